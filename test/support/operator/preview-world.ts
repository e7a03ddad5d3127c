// An app with previews in a cluster in memory, its repository, and an operator that can be killed at any write.
import assert from 'node:assert/strict';
import { labels, annotations } from '../../../crds/names.ts';
import { choosePreviews, formatPreviewName } from '../../../crds/previews.ts';
import type { PreviewLimits } from '../../../controller/previews/plan.ts';
import { createPreviewReconciler, type Listing, type ListingQuery } from '../../../controller/previews/previews.ts';
import type { HostedAppObject } from '../../../controller/objects/kinds.ts';
import { createBackgroundLookups, type BackgroundLookups } from '../../../controller/reconcile/controller.ts';
import { silentLogger, toObjectKey, type Client, type Reconcile } from '../../../lib/kubernetes/index.ts';
import { MemoryCluster } from './memory-cluster.ts';

export type Step =
  | { readonly kind: 'push' | 'remove'; readonly reference: string; readonly event: boolean }
  | { readonly kind: 'late-event' | 'stale-cache' | 'git-fails' | 'suspend' | 'recreate' | 'end-deleted' }
  | { readonly kind: 'work'; readonly rounds: number }
  | { readonly kind: 'crash'; readonly writes: number }
  | { readonly kind: 'pass'; readonly minutes: number }
  | { readonly kind: 'switch'; readonly on: boolean };

const repo = 'https://github.com/owner/hello';
const manifest = { pullRequests: true, branches: ['feature/*', 'main'] };
const secret = { name: 'PAYMENT_KEY', secret: 'payments', key: 'key' };

class Killed extends Error {}

export class PreviewWorld {
  readonly cluster = new MemoryCluster();
  /** Commits of the repository by reference. */
  readonly references = new Map<string, string>();
  readonly #limits: PreviewLimits;
  readonly #limit: number;
  #now = Date.parse('2026-11-21T12:00:00Z');
  #commits = 0;
  #events = 0;
  #isOn = true;
  #isSuspended = false;
  /** Failures of the git server that are still to come. */
  #failures = 0;
  /** What the cache shows; undefined: all that is in the cluster. */
  #cache: readonly HostedAppObject[] | undefined;
  #listings!: BackgroundLookups<ListingQuery, Listing>;
  #reconcile!: Reconcile;

  constructor(limit: number, limits: PreviewLimits = { canSleep: true, limit: 5 }) {
    this.#limit = limit;
    this.#limits = limits;
    this.cluster.afterWrite = () => {
      this.#assertInvariants();
    };
    this.#createApp();
    this.startOperator();
  }

  /** Another process: nothing that the one before knew. */
  startOperator(): void {
    this.#listings = createBackgroundLookups({
      run: (query: ListingQuery) => Promise.resolve(this.#answer(query)),
      ...{ group: () => 'git', limit: 1, onResult: () => undefined },
    });
    this.cluster.beforeWrite = () => undefined;
    const view = (): readonly HostedAppObject[] => this.#cache ?? this.cluster.list();
    this.#reconcile = createPreviewReconciler({
      client: this.cluster.client as Client,
      apps: {
        get: (key) => view().find((app) => toObjectKey(app) === key),
        listByIndex: (_index, name) => view().filter(({ metadata }) => metadata.labels?.[labels.app] === name),
      },
      config: {
        gitAccess: {},
        appsNamespace: 'moorage-apps',
        gitHosts: { allowed: ['github.com'], insecure: [] },
        previews: this.#limits,
      },
      listings: this.#listings,
      now: () => this.#now,
    });
  }

  get isOn(): boolean {
    return this.#isOn && !this.#isSuspended && this.cluster.get('hello')?.metadata.deletionTimestamp === undefined;
  }

  get limit(): number {
    return Math.min(this.#limit, this.#limits.limit);
  }

  async take(step: Step): Promise<void> {
    switch (step.kind) {
      case 'push':
        this.#commits += 1;
        this.references.set(step.reference, this.#commits.toString(16).padStart(40, '0'));
        if (step.event) this.#sendEvent();
        return;
      case 'remove':
        this.references.delete(step.reference);
        if (step.event) this.#sendEvent();
        return;
      case 'late-event':
        // Of something that was long ago, or that has been reported before.
        this.#sendEvent();
        return;
      case 'stale-cache':
        this.#cache = this.cluster.list();
        return;
      case 'git-fails':
        this.#failures += 1;
        return;
      case 'work':
        return this.work(step.rounds);
      case 'crash':
        return this.#crash(step.writes);
      case 'pass':
        this.#now += step.minutes * 60_000;
        return;
      default:
        this.#changeApp(step);
    }
  }

  /** Reconciles every app a number of times. */
  async work(rounds: number): Promise<void> {
    for (let round = 0; round < rounds; round += 1) {
      const keys = new Set(
        this.cluster
          .list()
          .flatMap((app) => [
            toObjectKey(app),
            `moorage-apps/${app.metadata.labels?.[labels.app] ?? app.metadata.name}`,
          ]),
      );
      for (const key of keys) await this.#reconcileOnce(key);
      // Lookups end.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Waits for everything: caches catch up, what is deleted ends, and each poll is due. */
  async settle(): Promise<void> {
    this.#cache = undefined;
    this.#failures = 0;
    for (let round = 0; round < 3; round += 1) {
      this.#now += 3_600_000;
      await this.work(2);
      for (const { metadata } of this.cluster.list()) this.cluster.end(metadata.name);
    }
    await this.work(1);
  }

  recreateApp(): void {
    this.deleteApp();
    this.cluster.end('hello');
    this.#isSuspended = false;
    this.#createApp();
  }

  deleteApp(): void {
    this.cluster.beginEnd('hello');
  }

  #createApp(): void {
    this.cluster.put({
      ...{ apiVersion: 'moorage.dev/v1alpha1', kind: 'HostedApp' },
      metadata: { name: 'hello', namespace: 'moorage-apps' },
      spec: {
        source: { repo },
        run: { secrets: [secret], env: [{ name: 'TOKEN', value: 'correct horse battery' }] },
        control: { secrets: [{ name: 'OWN_KEY', version: 1 }], secretVersion: 1 },
        models: { enabled: true, dailyBudgetUsd: '5' },
      },
      status: {
        source: { commit: 'f'.repeat(40), reference: 'refs/heads/main' },
        settings: {
          commit: 'f'.repeat(40),
          values: JSON.stringify(this.#isOn ? { previews: { ...manifest, limit: this.#limit } } : {}),
        },
      },
    });
  }

  #changeApp(step: Step): void {
    if (step.kind === 'switch') {
      this.#isOn = step.on;
      const values = JSON.stringify(step.on ? { previews: { ...manifest, limit: this.#limit } } : {});
      this.cluster.set('hello', (app) => ({
        ...app,
        status: { ...app.status, settings: { commit: 'f'.repeat(40), values } },
      }));
    } else if (step.kind === 'suspend') {
      this.#isSuspended = !this.#isSuspended;
      this.cluster.set('hello', (app) => ({ ...app, spec: { ...app.spec, suspend: this.#isSuspended } }));
    } else if (step.kind === 'recreate') this.recreateApp();
    else for (const { metadata } of this.cluster.listPreviews('hello')) this.cluster.end(metadata.name);
  }

  /** What a hook does: it asks for a look, and says nothing else. */
  #sendEvent(): void {
    this.#events += 1;
    const poll = { [annotations.poll]: `event-${this.#events}` };
    this.cluster.set('hello', (app) => ({ ...app, metadata: { ...app.metadata, annotations: poll } }));
  }

  #answer({ previews }: ListingQuery): Listing {
    if (this.#failures > 0) {
      this.#failures -= 1;
      return { ok: false, message: 'no response within 20 s' };
    }
    const references = [...this.references].map(([name, commit]) => ({ name, commit }));
    assert.ok(previews.limit > 0);
    return { ok: true, references };
  }

  /** Kills the operator after this many writes, and starts another one. */
  async #crash(writes: number): Promise<void> {
    let rest = writes;
    this.cluster.beforeWrite = () => {
      rest -= 1;
      if (rest < 0) throw new Killed();
    };
    await this.work(2);
    this.startOperator();
  }

  async #reconcileOnce(key: string): Promise<void> {
    try {
      await this.#reconcile(key, { signal: new AbortController().signal, log: silentLogger, failures: 0 });
    } catch (error) {
      // A write on an old version is tried again, as the queue does.
      if (!(error instanceof Killed) && (error as { status?: number }).status !== 409) throw error;
    }
  }

  #assertInvariants(): void {
    const previews = this.cluster.listPreviews('hello');
    assert.ok(previews.length <= this.limit, `${previews.length} previews, and the limit is ${this.limit}`);
    for (const { spec } of previews) {
      const { run, models, author, control, services } = spec;
      assert.deepEqual([run?.secrets, run?.env, control, services], [undefined, undefined, undefined, []]);
      assert.deepEqual([models, author?.share], [{ enabled: false, dailyBudgetUsd: '0' }, '0']);
      assert.doesNotMatch(JSON.stringify(spec), /correct horse|payments|PAYMENT_KEY|OWN_KEY/);
    }
  }
}

/** The previews that there must be, by what the repository has now. */
export function listWantedNames(world: PreviewWorld): string[] {
  if (!world.isOn) return [];
  const references = [...world.references].map(([name, commit]) => ({ name, commit }));
  return choosePreviews(references, { ...manifest, limit: world.limit }, 'refs/heads/main').map(({ name }) =>
    formatPreviewName('hello', name),
  );
}
