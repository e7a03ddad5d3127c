// Discovers, pins and caches the operations of live apps, so that a list of tools never waits for an app. The first
// description of a release is stored and never read again; an app that described none, or failed, is queried again later.
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { Logger } from '../../../lib/telemetry.ts';
import type { AgentPaths, Directory, Target } from '../directory.ts';
import {
  type Operation,
  type OperationList,
  operationList,
  OperationNames,
  nameSeparator,
  removePrefix,
  toNamePrefix,
} from './operation.ts';
import { createTimeLimit } from '../../../lib/values.ts';
import { Problem } from '../../../lib/problem.ts';
import type { Workers } from '../../tools/index.ts';
import { readContent, type ResponseContent, type AppClient } from '../calls/app-client.ts';
import { parseAppPath } from '../calls/forwarding.ts';
import { listMcpTools } from './app-mcp.ts';
import type { AppDescription } from './worker.ts';
import { ledgerUnconfigured, type LedgerHandle, type OpenLedger } from '../../billing/index.ts';

export interface OperationCacheOptions {
  /** Apps that are live now. */
  readonly directory: Pick<Directory, 'find' | 'listLive'>;
  readonly discover: DiscoverOperations;
  /** Asks an app whether it still offers operations. Default: none is asked. */
  readonly check?: ((target: Target, agentPaths: AgentPaths, signal: AbortSignal) => Promise<void>) | undefined;
  readonly pins: OperationPins;
  readonly log: Logger;
  /** Interval between two passes over the live apps; default 2 000. */
  readonly everyMs?: number;
  /** Delay before an app that described no operations is queried again; default 600 000. */
  readonly staleMs?: number;
  /** Time limit for one app; default 20 000. An MCP server gets longer, see mcpServerLimitMs. */
  readonly limitMs?: number;
  /** Interval at which an app with operations is asked whether it still answers; default 86 400 000. */
  readonly checkMs?: number;
  /** Delay before an app that did not answer is asked again; default 300 000. */
  readonly againMs?: number;
}

interface Entry {
  /** UID, commit and paths. The entry is stale as soon as one of them changes. */
  readonly key: string;
  readonly operations: readonly Operation[];
  readonly leftOut: number;
  /** Why there are none, or why the app does not answer any more. */
  readonly fault: string | undefined;
  readonly failures: number;
  readonly dueAt: number;
  /** When the app last answered, in milliseconds since 1970; undefined if it has not since this process started. */
  readonly answeredAt: number | undefined;
}

/** The operations of an app, or why there are none. */
export interface AppOperations {
  readonly operations: readonly Operation[];
  readonly leftOut: number;
  readonly fault: string | undefined;
  readonly answeredAt: number | undefined;
}

const maxConcurrent = 3;
/**
 * Over stdio, a session begins with the start of a process, which takes Python several seconds on a busy node. The bridge
 * waits this long, too.
 */
const mcpServerLimitMs = 60_000;
const firstRetryMs = 5_000;
/** How long a caller waits for the first list of a new app's operations. */
const firstWaitMs = 10_000;
/** Checks in a row that fail before an app counts as dead: one may fall into a restart. */
const failedChecks = 3;

export class OperationCache {
  readonly #options: Required<Omit<OperationCacheOptions, 'check'>> & Pick<OperationCacheOptions, 'check'>;
  readonly #entries = new Map<string, Entry>();
  readonly #pending = new Map<string, Promise<void>>();
  readonly #ending = new AbortController();
  #watching: Promise<void> | undefined;

  constructor(options: OperationCacheOptions) {
    const times = { everyMs: 2_000, staleMs: 600_000, limitMs: 20_000, checkMs: 86_400_000, againMs: 300_000 };
    this.#options = { ...times, ...options };
  }

  start(): void {
    this.#watching ??= this.#watch();
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#watching;
    await Promise.all(this.#pending.values());
  }

  /** The operations of an app; undefined before the first discovery, and for an app that offers none. */
  getOperations(target: Target): AppOperations | undefined {
    const entry = this.#entries.get(target.slug);
    return target.agentPaths === undefined || entry === undefined || !entry.key.startsWith(`${target.uid} `)
      ? undefined
      : entry;
  }

  /** All operations that can be called now, sorted by slug. */
  listAll(): { readonly target: Target; readonly operation: Operation; readonly fault: string | undefined }[] {
    return this.#options.directory
      .listLive()
      .toSorted((one, other) => (one.slug < other.slug ? -1 : 1))
      .flatMap((target) => {
        const { operations, fault } = this.getOperations(target) ?? { operations: [], fault: undefined };
        return operations.map((operation) => ({ target, operation, fault }));
      });
  }

  /** Waits for the first discovery, because a caller may know the operation from another replica. */
  async find(name: string): Promise<{ readonly target: Target; readonly operation: Operation } | undefined> {
    const { target, rest } = this.#findTarget(name) ?? {};
    if (target?.agentPaths === undefined) return undefined;
    const { agentPaths } = target;
    // An app that was renamed is also found by a name that it had.
    const isNamed = (one: Operation): boolean =>
      one.name === name || one.formerName === name || (rest !== undefined && removePrefix(one.name) === rest);
    const findKnown = (): Operation | undefined => this.getOperations(target)?.operations.find(isNamed);
    if (findKnown() === undefined && this.#isDue(target, agentPaths))
      await (this.#pending.get(target.slug) ?? this.#start(target, agentPaths));
    const operation = findKnown();
    return operation === undefined ? undefined : { target, operation };
  }

  /** Waits for the first discovery of an app, because this replica may not have queried it yet; at most for `limitMs`. */
  async waitForDiscovery(slug: string, limitMs = firstWaitMs): Promise<void> {
    const target = this.#options.directory.find(slug);
    if (target?.agentPaths === undefined || this.getOperations(target) !== undefined) return;
    const discovery = this.#pending.get(target.slug) ?? this.#start(target, target.agentPaths);
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, this.#ending.signal]);
    await Promise.race([discovery, sleep(limitMs, undefined, { signal }).catch(() => undefined)]);
    over.abort();
  }

  get count(): number {
    return this.listAll().length;
  }

  /**
   * The app whose prefix the operation's name has, and what follows the prefix if that is a former name of the app. Names of
   * built-in tools have no prefix.
   */
  #findTarget(name: string): { readonly target: Target; readonly rest?: string } | undefined {
    const { directory } = this.#options;
    const separator = [nameSeparator, '.'].find((each) => name.indexOf(each) > 0);
    if (separator === undefined) return undefined;
    const prefix = name.slice(0, name.indexOf(separator));
    const named = directory.find(prefix);
    if (named !== undefined)
      return named.slug === prefix
        ? { target: named }
        : { target: named, rest: name.slice(prefix.length + separator.length) };
    const target = directory.listLive().find(({ slug }) => toNamePrefix(slug) === prefix);
    return target && { target };
  }

  async #watch(): Promise<void> {
    while (!this.#ending.signal.aborted) {
      this.#refresh();
      await sleep(this.#options.everyMs, undefined, { signal: this.#ending.signal }).catch(() => undefined);
    }
  }

  #refresh(): void {
    const offering = this.#options.directory
      .listLive()
      .flatMap((target) => (target.agentPaths === undefined ? [] : [{ target, agentPaths: target.agentPaths }]));
    const slugs = new Set(offering.map(({ target }) => target.slug));
    for (const slug of this.#entries.keys()) if (!slugs.has(slug)) this.#entries.delete(slug);
    // The longest waiting come first, so that apps that keep failing do not hold up the others.
    const due = offering
      .filter(({ target, agentPaths }) => !this.#pending.has(target.slug) && this.#isDue(target, agentPaths))
      .toSorted((one, other) => this.#getDueTime(one.target) - this.#getDueTime(other.target));
    for (const { target, agentPaths } of due.slice(0, Math.max(0, maxConcurrent - this.#pending.size)))
      void this.#start(target, agentPaths);
  }

  /** When the app is due; 0 if it was never queried. */
  #getDueTime({ slug }: Target): number {
    return this.#entries.get(slug)?.dueAt ?? 0;
  }

  #isDue(target: Target, agentPaths: AgentPaths): boolean {
    const entry = this.#entries.get(target.slug);
    return entry === undefined || entry.key !== formatKey(target, agentPaths) || entry.dueAt <= Date.now();
  }

  #start(target: Target, agentPaths: AgentPaths): Promise<void> {
    const before = this.#entries.get(target.slug);
    const isKnown = before?.key === formatKey(target, agentPaths) && before.operations.length > 0;
    const discovery = (isKnown ? this.#check(before, target, agentPaths) : this.#discover(target, agentPaths))
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
    const key = formatKey(target, agentPaths);
    try {
      const { operations, leftOut, isNew } = await this.#readPinned(target, agentPaths);
      // A pinned description does not change, so the app is only asked whether it still answers. One that was stored before
      // shows nothing about that.
      const dueAt = Date.now() + (operations.length > 0 && isNew ? this.#options.checkMs : staleMs);
      return {
        key,
        operations,
        leftOut,
        fault: undefined,
        failures: 0,
        dueAt,
        answeredAt: isNew ? Date.now() : undefined,
      };
    } catch (error) {
      const fault = error instanceof Error ? error.message.slice(0, 500) : 'Discovery failed.';
      log.info({ app: target.slug, fault }, 'could not discover the operations of an app');
      return this.#recordFailure(target.slug, key, fault);
    }
  }

  /** An entry keeps its operations: an app that does not answer today may tomorrow, and a call says why it fails. */
  async #check(before: Entry, target: Target, agentPaths: AgentPaths): Promise<Entry> {
    const { check, log, checkMs, againMs } = this.#options;
    const isOverMcp = before.operations.some(({ way }) => way.kind === 'mcp');
    // Nothing wakes an app for this, and what is asleep cannot answer.
    if (check === undefined || !isOverMcp || target.isResting === true)
      return { ...before, dueAt: Date.now() + (isOverMcp ? againMs : checkMs) };
    try {
      await check(target, agentPaths, this.#createSignal(target));
      return { ...before, fault: undefined, failures: 0, dueAt: Date.now() + checkMs, answeredAt: Date.now() };
    } catch (error) {
      const failures = before.failures + 1;
      const reason = error instanceof Error ? error.message.slice(0, 300) : 'unknown error';
      log.info({ app: target.slug, failures, reason }, 'an app did not list its tools');
      const fault =
        failures < failedChecks
          ? before.fault
          : `The MCP endpoint at ${agentPaths.mcp} does not answer, in ${failedChecks} checks or more: ${reason}`;
      return { ...before, fault, failures, dueAt: Date.now() + againMs };
    }
  }

  /** Reads the description stored for this release, or stores what the app describes now. */
  async #readPinned(target: Target, agentPaths: AgentPaths): Promise<OperationList & { readonly isNew: boolean }> {
    const { discover, pins } = this.#options;
    const name = { app: target.uid, release: formatRelease(target, agentPaths) };
    const stored = await pins.read(name);
    if (stored !== undefined) return { ...renameOperations(stored, target.slug), isNew: false };
    const list = await discover(target, agentPaths, this.#createSignal(target));
    const kept = list.operations.length === 0 ? list : await pins.keep(name, list);
    return { ...renameOperations(kept, target.slug), isNew: true };
  }

  #createSignal({ isMcpServer = false }: Target): AbortSignal {
    const limitMs = isMcpServer ? mcpServerLimitMs : this.#options.limitMs;
    return AbortSignal.any([this.#ending.signal, createTimeLimit(limitMs)]);
  }

  #recordFailure(slug: string, key: string, fault: string): Entry {
    const before = this.#entries.get(slug);
    const failures = before?.key === key ? before.failures : 0;
    const wait = Math.min(firstRetryMs * 2 ** failures, this.#options.staleMs);
    const dueAt = Date.now() + wait;
    return { key, fault, operations: [], leftOut: 0, failures: failures + 1, dueAt, answeredAt: undefined };
  }
}

/** The operations of an app that was renamed since they were stored, by its current name. */
function renameOperations(list: OperationList, slug: string): OperationList {
  const prefix = `${toNamePrefix(slug)}${nameSeparator}`;
  if (list.operations.every(({ name }) => name.startsWith(prefix))) return list;
  const names = new OperationNames(slug);
  return {
    ...list,
    operations: list.operations.map((one) => ({ ...one, ...names.createName(removePrefix(one.name)) })),
  };
}

function formatKey(target: Target, agentPaths: AgentPaths): string {
  return `${target.uid} ${formatRelease(target, agentPaths)}`;
}

function formatRelease({ commit }: Target, { openapi, mcp }: AgentPaths): string {
  return `${commit} ${openapi} ${mcp}`;
}

const workerModule = new URL('worker.ts', import.meta.url);
const workerOutput = operationList.extend({ fault: z.string().optional() });
/** Size limit of an app's description. */
const maxDescriptionBytes = 2 * 1_048_576;

/** An app that is not known to speak MCP may never respond; 10 seconds leave time to read its OpenAPI document. */
function chooseMcpLimit({ isMcpServer = false }: Target): number {
  return isMcpServer ? mcpServerLimitMs : 10_000;
}

export interface DiscovererOptions {
  readonly appClient: AppClient;
  readonly workers: Workers;
}

export type DiscoverOperations = (
  target: Target,
  agentPaths: AgentPaths,
  signal: AbortSignal,
) => Promise<OperationList>;

/** An app has no readable description. The message gives the app's author the reason. */
export class DiscoveryError extends Error {
  override readonly name = 'DiscoveryError';
}

/**
 * Creates the discovery of one app's operations, from its MCP endpoint or, if it has none, from its OpenAPI document. It
 * throws DiscoveryError.
 */
export function createOperationDiscoverer({ appClient, workers }: DiscovererOptions): DiscoverOperations {
  return async (target, agentPaths, signal) => {
    const { slug, isMcpServer = false } = target;
    const tools = await listMcpTools({
      ...{ appClient, target, path: agentPaths.mcp, id: 'operations', signal },
      maxBytes: maxDescriptionBytes,
      limitMs: chooseMcpLimit(target),
    }).catch((error: unknown) => {
      if (!isMcpServer) return undefined;
      throw new DiscoveryError(
        `The MCP server at ${agentPaths.mcp} did not list its tools: ${error instanceof Error ? error.message : 'unknown error'}`,
        { cause: error },
      );
    });
    if (Array.isArray(tools) && tools.length > 0) return readOperations(target, { kind: 'mcp', slug, tools }, signal);
    const none = `The MCP endpoint at ${agentPaths.mcp} ${isMcpServer ? 'lists no tools' : 'does not answer'}, and`;
    const { status, bytes } = await fetchOpenApi(target, agentPaths, signal).catch((error: unknown) => {
      throw new DiscoveryError(
        `${none} GET ${agentPaths.openapi} failed: ${error instanceof Error ? error.message : 'unknown error'}`,
      );
    });
    if (status !== 200) throw new DiscoveryError(`${none} GET ${agentPaths.openapi} returned status ${status}.`);
    return readOperations(
      target,
      { kind: 'openapi', slug, text: new TextDecoder().decode(bytes) },
      signal,
      `${none} ${agentPaths.openapi}`,
    );
  };

  async function fetchOpenApi(target: Target, { openapi }: AgentPaths, signal: AbortSignal): Promise<ResponseContent> {
    const response = await appClient.send(target, {
      method: 'GET',
      path: parseAppPath(openapi) ?? '/openapi.json',
      headers: { accept: 'application/json, application/yaml;q=0.8, */*;q=0.5' },
      isLook: true,
      id: 'operations',
      signal,
    });
    return readContent(target, response);
  }

  async function readOperations(
    target: Target,
    description: AppDescription,
    signal: AbortSignal,
    where = '',
  ): Promise<OperationList> {
    const { fault, ...list } = workerOutput.parse(
      await workers
        .run(
          { module: workerModule, input: description, timeoutMs: 15_000, memoryMb: 128 },
          // All apps of one author take turns as one caller.
          { owner: target.author, signal },
        )
        .catch((error: unknown) => {
          if (error instanceof Problem)
            throw new DiscoveryError(`The description of the app could not be read: ${error.message}`, {
              cause: error,
            });
          throw error;
        }),
    );
    if (fault !== undefined) throw new DiscoveryError(`${where} ${fault}`.trim());
    return list;
  }
}

/** Creates the check of an app's MCP endpoint. It throws if the app lists no tools. */
export function createEndpointCheck(appClient: AppClient): NonNullable<OperationCacheOptions['check']> {
  return async (target, { mcp: path }, signal) => {
    const tools = await listMcpTools({
      ...{ appClient, target, path, signal, id: 'check' },
      maxBytes: maxDescriptionBytes,
      limitMs: chooseMcpLimit(target),
    });
    if (!Array.isArray(tools) || tools.length === 0) throw new DiscoveryError('it lists no tools.');
  };
}

/** A release of an app, identified by the UID of its HostedApp. */
export interface ReleaseName {
  readonly app: string;
  /** The commit, and the paths of the app's descriptions. */
  readonly release: string;
}

/**
 * Stored descriptions of operations. Every process reads the first one of a release, so that an app cannot change what
 * agents read after it was inspected.
 */
export interface OperationPins {
  /** Reads what was stored for this release. @throws Problem (ledger-unavailable) */
  read(name: ReleaseName): Promise<OperationList | undefined>;
  /** Stores this unless another process was first. @returns what is stored. @throws Problem (ledger-unavailable) */
  keep(name: ReleaseName, list: OperationList): Promise<OperationList>;
}

const storedPin = z.object({ operations: z.string() });
const statements = {
  read: {
    name: 'operation_pins_read',
    text: `update operation_pins set used_at = now() where app = $1 and release = $2 returning operations`,
    row: storedPin,
  },
  keep: {
    name: 'operation_pins_keep',
    text: `insert into operation_pins (app, release, operations) values ($1, $2, $3)
      on conflict (app, release) do update set used_at = now() returning operations`,
    row: storedPin,
  },
  expire: {
    name: 'operation_pins_expire',
    text: `with gone as (delete from operation_pins where used_at < now() - interval '90 days' returning 1)
      select count(*)::int as count from gone`,
    row: z.object({ count: z.int() }),
  },
} as const;

const expireEveryMs = 86_400_000;

/** Stores pins in the ledger's database. Without a database, each process pins for itself: see `OperationCache`. */
export function createOperationPins(ledger: Pick<LedgerHandle, 'get' | 'opened'>): OperationPins {
  void ledger.opened.then((open) =>
    open?.repeat('expire operation pins', expireEveryMs, async () => {
      const [row] = await open.database.query(statements.expire, []);
      return row?.count ?? 0;
    }),
  );
  return {
    async read({ app, release }) {
      const [row] = (await findDatabase(ledger)?.query(statements.read, [app, release])) ?? [];
      return row === undefined ? undefined : parsePin(row.operations);
    },
    async keep({ app, release }, list) {
      const [row] = (await findDatabase(ledger)?.query(statements.keep, [app, release, JSON.stringify(list)])) ?? [];
      return row === undefined ? list : (parsePin(row.operations) ?? list);
    },
  };
}

/** Undefined if no database is configured. */
export function findDatabase(ledger: Pick<LedgerHandle, 'get'>): OpenLedger['database'] | undefined {
  try {
    return ledger.get().database;
  } catch (error) {
    if (error instanceof Problem && error.type === ledgerUnconfigured) return undefined;
    throw error;
  }
}

/** Undefined if an earlier version stored it in another format. */
function parsePin(text: string): OperationList | undefined {
  return operationList.safeParse(JSON.parse(text)).data;
}
