// Keeps the MCP sessions of callers with apps between their calls, within limits. A server over stdio has a process for each
// session: a new one for each call would start it again and lose what it holds, such as a page in a browser.
import { SdkHttpError, type CallToolResult } from '@modelcontextprotocol/client';
import { createHash } from 'node:crypto';
import { Problem } from '../../../lib/problem.ts';
import { toolBusy, tooManyCalls } from '../../tools/index.ts';
import type { Target } from '../directory.ts';
import { appUnreachable } from '../problems.ts';
import { type McpCall, McpConnection, type McpEndpoint } from './app-mcp.ts';

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

export interface McpSessionLimits {
  /** A session without a call for this long is ended; default 300 000, half of what the bridge in an app waits. */
  readonly idleMs: number;
  /** Default 4. */
  readonly perCaller: number;
  /** Default 24: fewer than the 32 of the bridge, which visitors of the app use, too. */
  readonly perApp: number;
  /** Of all apps together; default 512. */
  readonly total: number;
}

interface Entry {
  readonly key: string;
  readonly app: string;
  readonly owner: SessionOwner;
  readonly connection: McpConnection;
  /** Calls in progress. */
  calls: number;
  timer: NodeJS.Timeout | undefined;
}

export class McpSessions {
  readonly #limits: McpSessionLimits;
  /** The one that was used last comes last. */
  readonly #entries = new Map<string, Entry>();
  readonly #closing = new Set<Promise<void>>();

  constructor(limits: Partial<McpSessionLimits> = {}) {
    this.#limits = { idleMs: 300_000, perCaller: 4, perApp: 24, total: 512, ...limits };
  }

  /**
   * Calls a tool in the session of its owner, and starts one if there is none. If the app has ended it in the meantime, by a
   * restart or because it was asleep, another one is started once: a message for an unknown session was not carried out.
   *
   * @throws Problem (tool-busy, too-many-calls) at a limit, if no other session is idle
   */
  async call(call: SessionCall): Promise<CallToolResult> {
    const key = formatKey(call);
    const isKept = this.#entries.has(key);
    const entry = this.#enter(key, call);
    try {
      return await this.#run(entry, call);
    } catch (error) {
      if (!isKept || !isSessionGone(error)) throw error;
      return await this.#run(this.#enter(key, call), call);
    }
  }

  /** Ends the sessions that a client's own session has with apps, also during a call. */
  async end({ caller, session }: SessionOwner): Promise<void> {
    const own = [...this.#entries.values()].filter(({ owner }) => owner.caller === caller && owner.session === session);
    for (const entry of own) this.#drop(entry);
    await Promise.all(this.#closing);
  }

  async stop(): Promise<void> {
    for (const entry of this.#entries.values()) this.#drop(entry);
    await Promise.all(this.#closing);
  }

  async #run(entry: Entry, call: SessionCall): Promise<CallToolResult> {
    try {
      return await entry.connection.call(call);
    } catch (error) {
      // Nothing shows what state the session is in, unless the caller has canceled. Other calls may still be answered.
      if (isSessionGone(error) || (!call.signal.aborted && entry.calls === 1)) this.#drop(entry);
      throw error;
    } finally {
      this.#leave(entry);
    }
  }

  #enter(key: string, call: SessionCall): Entry {
    const entry = this.#entries.get(key) ?? this.#open(key, call);
    clearTimeout(entry.timer);
    entry.calls += 1;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry;
  }

  #open(key: string, { endpoint, owner }: SessionCall): Entry {
    const { perCaller, perApp, total } = this.#limits;
    const app = endpoint.target.uid;
    const { slug } = endpoint.target;
    const isOfApp = (entry: Entry): boolean => entry.app === app;
    const isOwn = (entry: Entry): boolean => isOfApp(entry) && entry.owner.caller === owner.caller;
    this.#makeRoom(isOwn, perCaller, () => createTooMany(slug, perCaller));
    this.#makeRoom(isOfApp, perApp, () => createBusy(`${slug} has reached its limit of ${perApp} sessions`));
    this.#makeRoom(
      () => true,
      total,
      () => createBusy(`This replica has reached its limit of ${total} sessions`),
    );
    const connection = new McpConnection(endpoint);
    return { key, app, owner, connection, calls: 0, timer: undefined };
  }

  /** Ends the session that has been idle the longest if there is no room for one more. */
  #makeRoom(isCounted: (entry: Entry) => boolean, limit: number, refuse: () => Problem): void {
    const counted = [...this.#entries.values()].filter(isCounted);
    if (counted.length < limit) return;
    const idle = counted.find(({ calls }) => calls === 0);
    if (idle === undefined) throw refuse();
    this.#drop(idle);
  }

  #leave(entry: Entry): void {
    entry.calls -= 1;
    if (entry.calls > 0 || this.#entries.get(entry.key) !== entry) return;
    entry.timer = setTimeout(() => {
      this.#drop(entry);
    }, this.#limits.idleMs).unref();
  }

  #drop(entry: Entry): void {
    clearTimeout(entry.timer);
    if (this.#entries.get(entry.key) !== entry) return;
    this.#entries.delete(entry.key);
    const closing = entry.connection.close().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }
}

/**
 * A release has sessions of its own: those of the one before ended with its processes. So have the values of a caller for
 * variables, of which only a hash is kept here.
 */
function formatKey({ endpoint: { target, path, environment }, owner }: SessionCall): string {
  const values = environment === undefined ? '' : JSON.stringify(Object.entries(environment).sort());
  const release = `${target.uid} ${target.commit} ${target.origin} ${path}`;
  return JSON.stringify([release, owner.caller, owner.session, createHash('sha256').update(values).digest('hex')]);
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

function createTooMany(slug: string, limit: number): Problem {
  return new Problem(
    tooManyCalls,
    `You have ${limit} sessions with ${slug} in use, the limit for a caller. Wait for one of your calls to finish, or end a session with DELETE.`,
    { headers: { 'retry-after': '5' } },
  );
}

function createBusy(text: string): Problem {
  return new Problem(toolBusy, `${text}, and all of them are in use. Try again in 30 seconds.`, {
    headers: { 'retry-after': '30' },
  });
}
