// Calls tools of apps in sessions that last between the calls of a caller. A server over stdio has a process for each session: a
// new one for each call would start it again and lose what it holds, such as a page in a browser. The sessions are in the
// database, so that calls of any replica share them, and a replica can be killed at any time.
import { SdkHttpError, type CallToolResult } from '@modelcontextprotocol/client';
import { createHash, randomUUID } from 'node:crypto';
import { Problem } from '../../../lib/problem.ts';
import type { LedgerHandle } from '../../billing/index.ts';
import { type AppClient, maxBufferedBytes } from '../calls/app-client.ts';
import type { Directory, Target } from '../directory.ts';
import { appUnreachable } from '../problems.ts';
import { type McpCall, McpConnection, type McpEndpoint, waitUnlessAborted } from './app-mcp.ts';
import { findDatabase } from './operation-cache.ts';
import {
  type RemovedSession,
  type SessionLimits,
  type SessionName,
  SessionStore,
  type SessionUse,
} from './session-store.ts';

/** Whose session it is. */
export interface SessionOwner {
  /** Hash of the caller. */
  readonly caller: string;
  /**
   * Id of the caller's own session with Moorage. A client that sends one has a session with the app for itself, also where
   * several callers share an address; without one, the calls of a caller share a session.
   */
  readonly session: string | undefined;
}

export interface SessionCall extends McpCall {
  readonly endpoint: McpEndpoint;
  readonly owner: SessionOwner;
}

export interface McpSessionsOptions {
  readonly ledger: Pick<LedgerHandle, 'get' | 'opened'>;
  readonly directory: Pick<Directory, 'listLive'>;
  readonly appClient: AppClient;
  readonly limits?: Partial<McpSessionLimits>;
}

/** Defaults: 4 for each caller, and 24 for each app: fewer than the 32 of the bridge, which visitors of the app use, too. */
export interface McpSessionLimits extends SessionLimits {
  /** A session without a call for this long is ended; default 300 000, half of what the bridge in an app waits. */
  readonly idleMs: number;
  /** Interval at which each replica ends idle sessions; default 30 000. */
  readonly sweepMs: number;
}

/** What a call runs in. */
interface Entry {
  readonly name: SessionName;
  readonly connection: McpConnection;
  /** Undefined if the app has no sessions. */
  readonly use: SessionUse | undefined;
  /** Whether there was a session, or a connection, before this call. */
  readonly isKept: boolean;
}

/** Beyond this, the oldest is opened again by its next call. */
const maxSessionless = 500;

export class McpSessions {
  readonly #options: McpSessionsOptions;
  readonly #idleMs: number;
  readonly #store: SessionStore;
  /** Sessions that are being started here, by key: calls that come in the meantime wait for them. */
  readonly #opening = new Map<string, Promise<void>>();
  /** Connections to apps without sessions, by release, so that their revision is not negotiated for each call. */
  readonly #sessionless = new Map<string, McpConnection>();
  readonly #closing = new Set<Promise<void>>();

  constructor(options: McpSessionsOptions) {
    const { perCaller = 4, perApp = 24, idleMs = 300_000, sweepMs = 30_000 } = options.limits ?? {};
    this.#options = options;
    this.#idleMs = idleMs;
    this.#store = new SessionStore(() => options.ledger.get().database, { perCaller, perApp });
    void options.ledger.opened.then((open) => open?.repeat('end idle MCP sessions', sweepMs, () => this.#endIdle()));
  }

  /**
   * Calls a tool in the session of its owner, and starts one if there is none. If the app has ended it in the meantime, by a
   * restart or because it was asleep, another one is started once: a message for an unknown session was not carried out.
   *
   * @throws Problem (tool-busy, too-many-calls) at a limit, if no other session is idle; ledger-unavailable
   */
  async call(call: SessionCall): Promise<CallToolResult> {
    const entry = await this.#enter(call);
    try {
      return await this.#run(entry, call);
    } catch (error) {
      if (!entry.isKept || !isSessionGone(error)) throw error;
      return await this.#run(await this.#enter(call), call);
    }
  }

  /** Ends the sessions that a client's own session has with apps, also during a call. */
  async end(owner: SessionOwner): Promise<void> {
    if (findDatabase(this.#options.ledger) === undefined) return;
    await this.#endAll(await this.#store.removeOwned(hashOwner(owner)));
  }

  /** Waits for sessions that are being ended. All others stay, for the other replicas. */
  async stop(): Promise<void> {
    await Promise.all(this.#closing);
  }

  /** Begins a call in the session that the database has, after starting one if it has none. */
  async #enter(call: SessionCall): Promise<Entry> {
    const name = nameSession(call);
    const use = { id: randomUUID(), limitMs: call.endpoint.limitMs };
    for (let isKept = true; ; isKept = false) {
      call.signal.throwIfAborted();
      const sessionless = this.#sessionless.get(name.release);
      if (sessionless !== undefined) return { name, connection: sessionless, use: undefined, isKept };
      const session = await this.#store.join(name.key, use);
      if (session !== undefined) return { name, connection: new McpConnection(call.endpoint, session), use, isKept };
      const opening =
        this.#opening.get(name.key) ?? this.#open(name, call.endpoint).finally(() => this.#opening.delete(name.key));
      this.#opening.set(name.key, opening);
      await waitUnlessAborted(call.signal, opening);
    }
  }

  /** Starts a session and stores it. If another replica was first, its session is used, and this one ends. */
  async #open(name: SessionName, endpoint: McpEndpoint): Promise<void> {
    void this.#endAll(await this.#store.makeRoom(name));
    const connection = new McpConnection(endpoint);
    try {
      await connection.open();
      const { session } = connection;
      if (session === undefined) {
        this.#keepSessionless(name.release, connection);
        return;
      }
      const { isAdded, removed } = await this.#store.add(name, session);
      void this.#endAll(removed);
      if (!isAdded) void this.#close(connection);
    } catch (error) {
      void this.#close(connection);
      throw error;
    }
  }

  #keepSessionless(release: string, connection: McpConnection): void {
    const [oldest] = this.#sessionless.keys();
    if (oldest !== undefined && this.#sessionless.size >= maxSessionless) this.#sessionless.delete(oldest);
    this.#sessionless.set(release, connection);
  }

  async #run(entry: Entry, call: SessionCall): Promise<CallToolResult> {
    const { name, connection, use } = entry;
    try {
      return await connection.call(call);
    } catch (error) {
      await this.#drop(entry, call, isSessionGone(error)).catch(() => undefined);
      throw error;
    } finally {
      // The answer counts for more. Without this, the session counts as in use until the time limit of the call.
      if (use !== undefined) await this.#store.leave(name.key, use.id).catch(() => undefined);
    }
  }

  /** Ends a session that failed. Nothing shows what state it is in, unless the caller has canceled or others still use it. */
  async #drop({ name, connection, use }: Entry, { signal }: SessionCall, isGone: boolean): Promise<void> {
    if (signal.aborted && !isGone) return;
    const { session } = connection;
    if (session === undefined) this.#sessionless.delete(name.release);
    else if (await this.#store.remove(name.key, session, isGone ? undefined : use)) void this.#close(connection);
  }

  async #endIdle(): Promise<number> {
    const removed = await this.#store.removeIdle(this.#idleMs);
    await this.#endAll(removed);
    return removed.length;
  }

  /** Sends the end of sessions to their apps. An app that rests is not woken for it: its bridge ends them after a while. */
  async #endAll(removed: readonly RemovedSession[]): Promise<void> {
    const { appClient, directory } = this.#options;
    const targets = directory.listLive().filter(({ isResting }) => isResting !== true);
    await Promise.all(
      removed.map(async (session) => {
        const target = targets.find(({ uid }) => uid === session.app);
        if (target === undefined) return;
        const path = target.agentPaths?.mcp ?? '/mcp';
        const limits = { limitMs: appClient.limitMs, maxBytes: maxBufferedBytes };
        await this.#close(new McpConnection({ appClient, target, path, id: 'sessions', ...limits }, session));
      }),
    );
  }

  #close(connection: McpConnection): Promise<void> {
    const closing = connection.close().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
    return closing;
  }
}

/**
 * A release has sessions of its own: those of the one before ended with its processes. So have the values of a caller for
 * variables, of which only a hash is kept.
 */
function nameSession({ endpoint: { target, path, environment }, owner }: SessionCall): SessionName {
  const values = environment === undefined ? '' : JSON.stringify(Object.entries(environment).sort());
  const release = hash(target.uid, target.commit, path, hash(values));
  const key = hash(release, hashOwner(owner));
  const { uid: app, slug } = target;
  return { key, release, app, slug, caller: hash(owner.caller), owner: hashOwner(owner) };
}

function hashOwner({ caller, session }: SessionOwner): string {
  return hash(caller, session);
}

function hash(...parts: readonly (string | undefined)[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
}

/** Servers answer 404 for a session that they do not know, or 400 as older ones do. */
function isSessionGone(error: unknown): boolean {
  return error instanceof SdkHttpError && (error.status === 404 || error.status === 400);
}

/** Names the status with which an MCP endpoint refused a message; undefined for any other failure. */
export function toSessionProblem(error: unknown, { slug, agentPaths }: Target): Problem | undefined {
  if (!(error instanceof SdkHttpError)) return undefined;
  const { status } = error;
  const text = `The MCP endpoint ${agentPaths?.mcp ?? '/mcp'} of ${slug} answered with status ${status}.`;
  const isFull = status === 503;
  return new Problem(appUnreachable, `${text} Try again in ${isFull ? '30' : '5'} seconds.`, {
    headers: { 'retry-after': isFull ? '30' : '5' },
    cause: error,
  });
}
