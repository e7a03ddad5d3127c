// A cache of the operations of live apps, so that a list of tools never waits for an app. What was found for a release is
// pinned to it; an app that described none, or failed, is asked again.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../../lib/telemetry.ts';
import type { AgentPaths, Directory, Target } from '../directory.ts';
import type { DiscoverOperations } from './discover.ts';
import type { Operation, OperationList } from './operation.ts';
import type { OperationPins } from './pins.ts';
import { nameSeparator, toNamePrefix } from './text.ts';
import { timeLimit } from '../../../lib/values.ts';

export interface OperationCacheOptions {
  /** Apps that are live now. */
  readonly directory: Pick<Directory, 'find' | 'live'>;
  readonly discover: DiscoverOperations;
  readonly pins: OperationPins;
  readonly log: Logger;
  /** Interval between two passes over the live apps; default 2 000. */
  readonly everyMs?: number;
  /** How long after an app described no operations it is asked again; default 600 000. */
  readonly staleMs?: number;
  /** Time limit for one app; default 20 000. */
  readonly limitMs?: number;
}

interface Entry {
  /** UID, commit and paths: when one changes, the entry is out of date. */
  readonly key: string;
  readonly operations: readonly Operation[];
  readonly leftOut: number;
  /** Why there are none. */
  readonly fault: string | undefined;
  readonly failures: number;
  readonly dueAt: number;
}

/** The operations of an app, or why there are none. */
export interface AppOperations {
  readonly operations: readonly Operation[];
  readonly leftOut: number;
  readonly fault: string | undefined;
}

const maxConcurrent = 3;
const firstRetryMs = 5_000;

export class OperationCache {
  readonly #options: Required<OperationCacheOptions>;
  readonly #entries = new Map<string, Entry>();
  readonly #pending = new Map<string, Promise<void>>();
  readonly #ending = new AbortController();
  #watching: Promise<void> | undefined;

  constructor(options: OperationCacheOptions) {
    this.#options = { everyMs: 2_000, staleMs: 600_000, limitMs: 20_000, ...options };
  }

  start(): void {
    this.#watching ??= this.#watch();
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#watching;
    await Promise.all(this.#pending.values());
  }

  /** Those of an app; undefined before the first discovery, and for an app that offers none. */
  of(target: Target): AppOperations | undefined {
    const entry = this.#entries.get(target.slug);
    return target.agentPaths === undefined || entry === undefined || !entry.key.startsWith(`${target.uid} `)
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

  /** Waits for the first discovery: a caller may know of the operation from another replica. */
  async find(name: string): Promise<{ readonly target: Target; readonly operation: Operation } | undefined> {
    const target = this.#targetOf(name);
    if (target?.agentPaths === undefined) return undefined;
    const { agentPaths } = target;
    const known = (): Operation | undefined =>
      this.of(target)?.operations.find((one) => one.name === name || one.formerName === name);
    if (known() === undefined && this.#isDue(target, agentPaths))
      await (this.#pending.get(target.slug) ?? this.#start(target, agentPaths));
    const operation = known();
    return operation === undefined ? undefined : { target, operation };
  }

  get count(): number {
    return this.all().length;
  }

  /** The app that an operation's name begins with; names of our own tools begin with none. */
  #targetOf(name: string): Target | undefined {
    const { directory } = this.#options;
    const end = [nameSeparator, '.'].map((separator) => name.indexOf(separator)).find((index) => index > 0);
    if (end === undefined) return undefined;
    const prefix = name.slice(0, end);
    return directory.find(prefix) ?? directory.live().find(({ slug }) => toNamePrefix(slug) === prefix);
  }

  async #watch(): Promise<void> {
    while (!this.#ending.signal.aborted) {
      this.#refresh();
      await sleep(this.#options.everyMs, undefined, { signal: this.#ending.signal }).catch(() => undefined);
    }
  }

  #refresh(): void {
    const offering = this.#options.directory
      .live()
      .flatMap((target) => (target.agentPaths === undefined ? [] : [{ target, agentPaths: target.agentPaths }]));
    const slugs = new Set(offering.map(({ target }) => target.slug));
    for (const slug of this.#entries.keys()) if (!slugs.has(slug)) this.#entries.delete(slug);
    // Those that wait longest come first, so that apps that fail again and again hold up no others.
    const due = offering
      .filter(({ target, agentPaths }) => !this.#pending.has(target.slug) && this.#isDue(target, agentPaths))
      .toSorted((one, other) => this.#dueAt(one.target) - this.#dueAt(other.target));
    for (const { target, agentPaths } of due.slice(0, Math.max(0, maxConcurrent - this.#pending.size)))
      void this.#start(target, agentPaths);
  }

  /** Since when, or that it was never asked. */
  #dueAt({ slug }: Target): number {
    return this.#entries.get(slug)?.dueAt ?? 0;
  }

  #isDue(target: Target, agentPaths: AgentPaths): boolean {
    const entry = this.#entries.get(target.slug);
    return entry === undefined || entry.key !== keyOf(target, agentPaths) || entry.dueAt <= Date.now();
  }

  #start(target: Target, agentPaths: AgentPaths): Promise<void> {
    const discovery = this.#discover(target, agentPaths)
      .then((entry) => {
        this.#entries.set(target.slug, entry);
      })
      .finally(() => {
        this.#pending.delete(target.slug);
      });
    this.#pending.set(target.slug, discovery);
    return discovery;
  }

  async #discover(target: Target, agentPaths: AgentPaths): Promise<Entry> {
    const { log, staleMs } = this.#options;
    const key = keyOf(target, agentPaths);
    try {
      const { operations, leftOut } = await this.#pinned(target, agentPaths);
      // What is pinned does not change, so the app is not asked again.
      const dueAt = operations.length > 0 ? Number.POSITIVE_INFINITY : Date.now() + staleMs;
      return { key, operations, leftOut, fault: undefined, failures: 0, dueAt };
    } catch (error) {
      const fault = error instanceof Error ? error.message.slice(0, 500) : 'Discovery failed.';
      log.info({ app: target.slug, fault }, 'operations of an app could not be discovered');
      return this.#failed(target.slug, key, fault);
    }
  }

  /** What is stored for this release, or what the app describes now, which is stored. */
  async #pinned(target: Target, agentPaths: AgentPaths): Promise<OperationList> {
    const { discover, pins, limitMs } = this.#options;
    const name = { app: target.uid, release: nameRelease(target, agentPaths) };
    const stored = await pins.read(name);
    if (stored !== undefined) return stored;
    const signal = AbortSignal.any([this.#ending.signal, timeLimit(limitMs)]);
    const found = await discover(target, agentPaths, signal);
    return found.operations.length === 0 ? found : pins.keep(name, found);
  }

  #failed(slug: string, key: string, fault: string): Entry {
    const before = this.#entries.get(slug);
    const failures = before?.key === key ? before.failures : 0;
    const wait = Math.min(firstRetryMs * 2 ** failures, this.#options.staleMs);
    return { key, fault, operations: [], leftOut: 0, failures: failures + 1, dueAt: Date.now() + wait };
  }
}

function keyOf(target: Target, agentPaths: AgentPaths): string {
  return `${target.uid} ${nameRelease(target, agentPaths)}`;
}

function nameRelease({ commit }: Target, { openapi, mcp }: AgentPaths): string {
  return `${commit} ${openapi} ${mcp}`;
}
