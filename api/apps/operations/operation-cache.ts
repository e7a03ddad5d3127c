// Keeps what live apps can do, so that a list of tools never waits for an app: asked anew at each commit and now and
// then, and again when it failed.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../../lib/log.ts';
import type { Described, Directory, Target } from '../directory.ts';
import type { Learn } from './discover.ts';
import type { Operation } from './operation.ts';

export interface OperationBookOptions {
  /** Apps that are live now. */
  readonly directory: Pick<Directory, 'find' | 'live'>;
  readonly learn: Learn;
  readonly log: Logger;
  /** How often apps are looked through; default 2 000. */
  readonly everyMs?: number;
  /** After so long an app is asked again; default 600 000. */
  readonly staleMs?: number;
  /** How long an app may take; default 20 000. */
  readonly limitMs?: number;
}

interface Entry {
  /** What it was asked as: another app, commit or path is another. */
  readonly key: string;
  readonly operations: readonly Operation[];
  readonly leftOut: number;
  /** Why there are none. */
  readonly fault: string | undefined;
  readonly failures: number;
  readonly dueAt: number;
}

/** How it stands with the operations of an app. */
export interface Standing {
  readonly operations: readonly Operation[];
  readonly leftOut: number;
  readonly fault: string | undefined;
}

const mostAtOnce = 3;
const firstRetryMs = 5_000;

export class OperationBook {
  readonly #options: Required<OperationBookOptions>;
  readonly #entries = new Map<string, Entry>();
  readonly #asking = new Map<string, Promise<void>>();
  readonly #ending = new AbortController();
  #watching: Promise<void> | undefined;

  constructor(options: OperationBookOptions) {
    this.#options = { everyMs: 2_000, staleMs: 600_000, limitMs: 20_000, ...options };
  }

  start(): void {
    this.#watching ??= this.#watch();
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#watching;
    await Promise.all(this.#asking.values());
  }

  /** Those of an app; undefined while it has not been asked, and for one that offers none. */
  of(target: Target): Standing | undefined {
    const entry = this.#entries.get(target.slug);
    return target.described === undefined || entry === undefined || !entry.key.startsWith(`${target.uid} `)
      ? undefined
      : entry;
  }

  /** All that can be called now, by slug. */
  all(): { readonly target: Target; readonly operation: Operation }[] {
    return this.#options.directory
      .live()
      .toSorted((one, other) => (one.slug < other.slug ? -1 : 1))
      .flatMap((target) => (this.of(target)?.operations ?? []).map((operation) => ({ target, operation })));
  }

  /** Waits for an app that has yet to be asked: a caller may know of its operations from another replica. */
  async find(name: string): Promise<{ readonly target: Target; readonly operation: Operation } | undefined> {
    const [slug = '', operationName] = name.split('.', 2);
    // Names without a dot are of our own tools.
    const target = operationName === undefined ? undefined : this.#options.directory.find(slug);
    if (target?.described === undefined) return undefined;
    const { described } = target;
    const known = (): Operation | undefined => this.of(target)?.operations.find((one) => one.name === name);
    if (known() === undefined && this.#isDue(target, described))
      await (this.#asking.get(slug) ?? this.#ask(target, described));
    const operation = known();
    return operation === undefined ? undefined : { target, operation };
  }

  get count(): number {
    return this.all().length;
  }

  async #watch(): Promise<void> {
    while (!this.#ending.signal.aborted) {
      this.#look();
      await sleep(this.#options.everyMs, undefined, { signal: this.#ending.signal }).catch(() => undefined);
    }
  }

  #look(): void {
    const offering = this.#options.directory
      .live()
      .flatMap((target) => (target.described === undefined ? [] : [{ target, described: target.described }]));
    const slugs = new Set(offering.map(({ target }) => target.slug));
    for (const slug of this.#entries.keys()) if (!slugs.has(slug)) this.#entries.delete(slug);
    for (const { target, described } of offering) {
      if (this.#asking.size >= mostAtOnce) return;
      if (!this.#asking.has(target.slug) && this.#isDue(target, described)) void this.#ask(target, described);
    }
  }

  #isDue(target: Target, described: Described): boolean {
    const entry = this.#entries.get(target.slug);
    return entry === undefined || entry.key !== keyOf(target, described) || entry.dueAt <= Date.now();
  }

  #ask(target: Target, described: Described): Promise<void> {
    const asking = this.#learn(target, described)
      .then((entry) => {
        this.#entries.set(target.slug, entry);
      })
      .finally(() => {
        this.#asking.delete(target.slug);
      });
    this.#asking.set(target.slug, asking);
    return asking;
  }

  async #learn(target: Target, described: Described): Promise<Entry> {
    const { learn, log, staleMs, limitMs } = this.#options;
    const key = keyOf(target, described);
    try {
      const { operations, leftOut } = await learn(
        target,
        described,
        AbortSignal.any([this.#ending.signal, AbortSignal.timeout(limitMs)]),
      );
      return { key, operations, leftOut, fault: undefined, failures: 0, dueAt: Date.now() + staleMs };
    } catch (error) {
      const fault = error instanceof Error ? error.message.slice(0, 500) : 'it failed';
      log.info({ app: target.slug, fault }, 'operations of an app cannot be learnt');
      return this.#failed(target.slug, key, fault);
    }
  }

  /** What was known of this very commit still holds: the app is only away. */
  #failed(slug: string, key: string, fault: string): Entry {
    const before = this.#entries.get(slug);
    const known = before?.key === key ? before : { operations: [], leftOut: 0, failures: 0 };
    const wait = Math.min(firstRetryMs * 2 ** known.failures, this.#options.staleMs);
    return {
      key,
      fault,
      operations: known.operations,
      leftOut: known.leftOut,
      failures: known.failures + 1,
      dueAt: Date.now() + wait,
    };
  }
}

function keyOf({ uid, commit }: Target, { openapi, mcp }: Described): string {
  return `${uid} ${commit} ${openapi} ${mcp}`;
}
