// Notices the statuses of commits in the cache of apps, and reports them to the forges: at least once and in order. The process
// that claims a status reports it; another one takes over if that process dies.
import { Problem } from '../../../lib/problem.ts';
import type { Logger } from '../../../lib/telemetry.ts';
import type { LedgerHandle } from '../../billing/index.ts';
import { type Fetcher, urlRefused } from '../../tools/index.ts';
import { type App, type AppIndex, formatKeyRepository, readRepository } from '../hosted-apps.ts';
import { computeRetryDelayMs, type DeliveryTimes } from '../notifications/deliveries.ts';
import { forgeUnsupported } from '../problems.ts';
import { buildStatusRequest, findForge, type ForgeProvider, readStatusAnswer, type StatusAnswer } from './forges.ts';
import { listSourceStatuses } from './statuses.ts';
import {
  type ClaimedStatus,
  type CommitStatusStore,
  type ForgeTokens,
  type StoredToken,
  toReportedStatus,
} from './store.ts';

export interface ReporterOptions {
  readonly apps: Pick<AppIndex, 'listAll' | 'listPreviews'>;
  readonly store: CommitStatusStore;
  readonly tokens: ForgeTokens;
  readonly providers: readonly ForgeProvider[];
  readonly fetcher: Pick<Fetcher, 'fetch'>;
  readonly baseUrl: string;
  readonly log: Logger;
  /** Aborts when the process is about to exit. */
  readonly ending: AbortSignal;
  /** For tests. */
  readonly times?: Partial<DeliveryTimes> | undefined;
}

/** Longer than one attempt, so that no other process makes it at the same time. */
const leaseMs = 120_000;
const attemptMs = 10_000;
/** Parallel reports per process. */
const atOnce = 10;

/** How an attempt went. */
type Attempt = StatusAnswer | { readonly outcome: 'interrupted' };

export class StatusReporter {
  readonly #options: ReporterOptions;
  /** What was recorded for each app, by UID. What has not changed costs no further query. */
  readonly #settled = new Map<string, string>();

  constructor(options: ReporterOptions) {
    this.#options = options;
  }

  /**
   * Records the statuses of all apps with a token, as they are now. Call this repeatedly: it compares the state with what was
   * recorded, so nothing is lost while the API or the database is away.
   */
  async notice(): Promise<void> {
    const { apps, store, ending, log } = this.#options;
    const rows = new Map((await store.listTokens()).map((row) => [row.app, row]));
    for (const uid of this.#settled.keys()) if (!rows.has(uid)) this.#settled.delete(uid);
    if (rows.size === 0) return;
    for (const app of apps.listAll()) {
      if (ending.aborted) return;
      const row = rows.get(app.metadata.uid);
      if (row === undefined) continue;
      try {
        await this.#noticeApp(app, row.version);
      } catch (error) {
        if (error instanceof Problem) throw error;
        // One app must not keep the others from being noticed.
        log.error({ err: error, app: app.metadata.name }, 'cannot notice the commits of an app');
      }
    }
  }

  /** @throws Problem while there is no database */
  async #noticeApp(app: App, version: string): Promise<void> {
    const { apps, store, baseUrl } = this.#options;
    const { uid } = app.metadata;
    const previews = apps.listPreviews(app);
    const found = listSourceStatuses(app, previews, baseUrl);
    // The resourceVersion changes more often than what is said.
    const state = JSON.stringify([version, found.map(({ source, wanted, status }) => [source, wanted, status])]);
    const known = this.#settled.get(uid);
    if (known === state) return;
    this.#settled.delete(uid);
    await store.record(uid, found);
    this.#settled.set(uid, state);
  }

  /** Makes the reports that are due. Call this repeatedly. @returns the number of attempts */
  async deliver(): Promise<number> {
    const { store, tokens, apps, ending } = this.#options;
    if (ending.aborted) return 0;
    const due = await store.claim(this.#options.times?.leaseMs ?? leaseMs, atOnce);
    if (due.length === 0) return 0;
    const byUid = new Map(apps.listAll().map((app) => [app.metadata.uid, app]));
    // Read for each batch and kept nowhere.
    const known = await tokens.read().catch((error: unknown) => {
      this.#options.log.error({ err: error }, 'cannot read forge tokens');
      return undefined;
    });
    await Promise.all(due.map((status) => this.#try(status, byUid.get(status.app), known?.get(status.app))));
    return due.length;
  }

  /** Deletes what belongs to apps that are gone, and tokens that were deleted while a process was killed. */
  async purge(): Promise<number> {
    const { apps, store, tokens } = this.#options;
    const deleted = await store.purge(apps.listAll().map(({ metadata }) => metadata.uid));
    const listKnown = async (): Promise<ReadonlySet<string>> =>
      new Set((await store.listTokens()).map(({ app }) => app));
    return deleted + (await tokens.removeUnknown(listKnown));
  }

  async #try(status: ClaimedStatus, app: App | undefined, stored: StoredToken | undefined): Promise<void> {
    const { store, log } = this.#options;
    const attempt = await this.#report(status, app, stored);
    if (attempt.outcome === 'delivered') return store.finish(status, 'delivered');
    // The next process retries immediately.
    if (attempt.outcome === 'interrupted') return store.retry(status, 0, null);
    if (attempt.outcome === 'token-refused') {
      const { status: answered } = attempt;
      log.warn({ app: app?.metadata.name, commit: status.commit, status: answered }, 'a forge rejects a token');
      await store.refuseToken(status, answered);
      return store.retry(status, 0, `The forge rejects the token (${answered}).`);
    }
    const { why } = attempt;
    log.warn({ app: app?.metadata.name, commit: status.commit, why }, 'a commit status was not reported');
    if (attempt.outcome === 'refused') return store.finish(status, 'abandoned', why);
    const delayMs = computeRetryDelayMs(status.attempts, this.#options.times?.firstMs);
    return store.retry(status, Math.max(delayMs, attempt.waitMs ?? 0), why);
  }

  async #report(status: ClaimedStatus, app: App | undefined, stored: StoredToken | undefined): Promise<Attempt> {
    const { fetcher, providers, ending } = this.#options;
    if (app === undefined) return { outcome: 'failed', why: 'The app was deleted.' };
    if (formatKeyRepository(app) !== status.repository)
      return {
        outcome: 'refused',
        why: `The token was set for ${status.repository}. Set it again for this repository.`,
      };
    // A process may have been killed after it made the version, or is about to store its token.
    if (stored?.version !== status.version)
      return { outcome: 'failed', why: 'The token was not stored completely. If this lasts, set it again.' };
    try {
      const repository = readRepository(app);
      const forge = findForge(repository, providers);
      const request = buildStatusRequest(forge, repository, toReportedStatus(status), stored.token);
      // A redirect leads to another repository or host, which must not get the token.
      const limits = { httpsOnly: true, stayHere: true, maxBytes: 65_536, timeoutMs: attemptMs, signal: ending };
      return readStatusAnswer(forge.kind, await fetcher.fetch({ ...request, ...limits }));
    } catch (error) {
      if (ending.aborted) return { outcome: 'interrupted' };
      if (!(error instanceof Problem)) return { outcome: 'failed', why: 'The report failed on our side.' };
      const isFinal = error.type === urlRefused || error.type === forgeUnsupported;
      return { outcome: isFinal ? 'refused' : 'failed', why: error.message.slice(0, 300) };
    }
  }
}

/** Begins to notice and report. Call this once the cache has every app. */
export function startReporter(
  reporter: StatusReporter,
  ledger: LedgerHandle,
  times: { readonly noticeMs?: number | undefined; readonly deliverMs?: number | undefined } = {},
): void {
  void ledger.opened.then((opened) => {
    if (opened === undefined) return;
    opened.repeat('notice commits of apps', times.noticeMs ?? 5_000, async () => {
      await reporter.notice();
      return 0;
    });
    opened.repeat('report commit statuses', times.deliverMs ?? 2_000, () => reporter.deliver());
    opened.repeat('purge forge tokens', 3_600_000, () => reporter.purge());
  });
}
