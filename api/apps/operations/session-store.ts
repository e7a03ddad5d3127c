// Stores the sessions that callers have with the MCP servers of apps in the ledger's database, and counts them against the limits.
// A row belongs to all replicas: each continues the session, and the one that removes the row ends the session at the app.
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { type OpenLedger, prefixStatements, type Transaction } from '../../billing/index.ts';
import { toolBusy, tooManyCalls } from '../../tools/index.ts';
import type { AppSession } from './app-mcp.ts';

/** What a session is stored under. All but the names of the app are hashes. */
export interface SessionName {
  /** Of the release, the caller, the caller's own session and their values for variables. */
  readonly key: string;
  /** Of the release and the values alone. */
  readonly release: string;
  /** UID of the app. */
  readonly app: string;
  readonly slug: string;
  readonly caller: string;
  /** Of the caller and the caller's own session. */
  readonly owner: string;
}

/** A call in a session. */
export interface SessionUse {
  readonly id: string;
  /** After this time the call is over, even if its process was killed. */
  readonly limitMs: number;
}

export interface SessionLimits {
  /** Sessions of a caller with an app. */
  readonly perCaller: number;
  /** Sessions of all callers with an app. */
  readonly perApp: number;
}

/** A session whose row was removed, and which is still to be ended at the app. */
export type RemovedSession = z.output<typeof removedSession>;

export class SessionStore {
  readonly #database: () => OpenLedger['database'];
  readonly #limits: SessionLimits;

  constructor(database: () => OpenLedger['database'], limits: SessionLimits) {
    this.#database = database;
    this.#limits = limits;
  }

  /** Begins a call in the session of this key; undefined if there is none. */
  async join(key: string, { id, limitMs }: SessionUse): Promise<AppSession | undefined> {
    const [session] = await this.#database().replay(statements.join, [key, id, limitMs]);
    return session;
  }

  /** Ends a call in the session. */
  async leave(key: string, id: string): Promise<void> {
    await this.#database().replay(statements.leave, [key, id]);
  }

  /**
   * Removes the sessions that are idle the longest until there is room for one more.
   *
   * @throws Problem (too-many-calls, tool-busy) if all others are in use
   */
  async makeRoom(name: SessionName): Promise<RemovedSession[]> {
    return this.#database().transaction((transaction) => this.#evict(transaction, name, 1));
  }

  /**
   * Stores a session that was started, unless another replica was first.
   *
   * @throws Problem (too-many-calls, tool-busy) as `makeRoom`: others may have taken the room while the session started
   */
  async add(
    name: SessionName,
    { id, protocolVersion }: AppSession,
  ): Promise<{ readonly isAdded: boolean; readonly removed: readonly RemovedSession[] }> {
    const values = [name.key, name.app, name.caller, name.owner, id, protocolVersion];
    return this.#database().transaction(async (transaction) => {
      const added = await transaction.query(statements.add, values);
      if (added.length === 0) return { isAdded: false, removed: [] };
      return { isAdded: true, removed: await this.#evict(transaction, name, 0) };
    });
  }

  /**
   * Removes a session in which something failed, if it is still the one of its key. With `unless`, it stays if there are
   * calls in progress other than that one.
   */
  async remove(key: string, { id }: AppSession, unless?: SessionUse): Promise<boolean> {
    return (await this.#database().query(statements.remove, [key, id, unless?.id ?? null])).length > 0;
  }

  /** Removes all sessions of an owner, also those in use. */
  async removeOwned(owner: string): Promise<RemovedSession[]> {
    return this.#database().query(statements.removeOwned, [owner]);
  }

  /** Removes sessions that no replica has used for this long, at most 100 at a time. */
  async removeIdle(idleMs: number): Promise<RemovedSession[]> {
    return this.#database().query(statements.removeIdle, [idleMs]);
  }

  async #evict(transaction: Transaction, { app, slug, caller }: SessionName, wanted: 0 | 1): Promise<RemovedSession[]> {
    const { perCaller, perApp } = this.#limits;
    // One transaction at a time for each app, so that none counts while another adds.
    await transaction.query(statements.lock, [app]);
    const [counted] = await transaction.query(statements.count, [app, caller]);
    const remove = async (excess: number, of: string | null, refuse: () => Problem): Promise<RemovedSession[]> => {
      if (excess <= 0) return [];
      const removed = await transaction.query(statements.evict, [app, of, excess]);
      if (removed.length < excess) throw refuse();
      return removed;
    };
    const own = await remove((counted?.own ?? 0) + wanted - perCaller, caller, () => createTooMany(slug, perCaller));
    const excess = (counted?.all ?? 0) + wanted - own.length - perApp;
    return [...own, ...(await remove(excess, null, () => createBusy(slug, perApp)))];
  }
}

function createTooMany(slug: string, limit: number): Problem {
  return new Problem(
    tooManyCalls,
    `You have ${limit} sessions with ${slug} in use, the limit for a caller. Wait for one of your calls to finish, or end a session with DELETE.`,
    { headers: { 'retry-after': '5' } },
  );
}

function createBusy(slug: string, limit: number): Problem {
  const text = `${slug} has reached its limit of ${limit} sessions, and all of them are in use.`;
  return new Problem(toolBusy, `${text} Try again in 30 seconds.`, { headers: { 'retry-after': '30' } });
}

const nowMs = '(extract(epoch from now()) * 1000)::bigint';
const liveCalls = `jsonb_each(calls) c (id, until) where c.until::bigint > ${nowMs}`;
const isIdle = `not exists (select from ${liveCalls})`;
const removedSession = z.object({ app: z.string(), id: z.string(), protocolVersion: z.string() });
const session = `session as id, protocol_version as "protocolVersion"`;
const defineStatement = prefixStatements('mcp-sessions');
const none = z.unknown();

/** A session that was just added counts as in use until its first call begins, or its replica must have been killed. */
const opening = { id: 'opening', ms: 5_000 };

const statements = {
  lock: defineStatement('lock', `select pg_advisory_xact_lock(hashtextextended('mcp_sessions ' || $1::text, 0))`, none),
  join: defineStatement(
    'join',
    `update mcp_sessions set used_at = now(), calls = (calls - '${opening.id}'::text) || jsonb_build_object($2::text, ${nowMs} + $3::bigint)
      where key = $1 returning ${session}`,
    removedSession.omit({ app: true }),
  ),
  leave: defineStatement(
    'leave',
    `update mcp_sessions set used_at = now(),
        calls = coalesce((select jsonb_object_agg(c.id, c.until) from ${liveCalls} and c.id <> $2), '{}')
      where key = $1`,
    none,
  ),
  count: defineStatement(
    'count',
    `select count(*)::int as all, (count(*) filter (where caller = $2))::int as own from mcp_sessions where app = $1`,
    z.object({ all: z.int(), own: z.int() }),
  ),
  evict: defineStatement(
    'evict',
    `delete from mcp_sessions where key in (
        select key from mcp_sessions where app = $1 and ($2::text is null or caller = $2) and ${isIdle}
          order by used_at limit $3 for update skip locked
      ) returning app, ${session}`,
    removedSession,
  ),
  add: defineStatement(
    'add',
    `insert into mcp_sessions (key, app, caller, owner, session, protocol_version, calls)
      values ($1, $2, $3, $4, $5, $6, jsonb_build_object('${opening.id}', ${nowMs} + ${opening.ms})) on conflict (key) do nothing returning key`,
    none,
  ),
  remove: defineStatement(
    'remove',
    `delete from mcp_sessions where key = $1 and session = $2
      and ($3::text is null or not exists (select from ${liveCalls} and c.id <> $3)) returning key`,
    none,
  ),
  removeOwned: defineStatement(
    'remove-owned',
    `delete from mcp_sessions where owner = $1 returning app, ${session}`,
    removedSession,
  ),
  removeIdle: defineStatement(
    'remove-idle',
    `delete from mcp_sessions where key in (
        select key from mcp_sessions where used_at < now() - $1::bigint * interval '1 millisecond' and ${isIdle}
          order by used_at limit 100 for update skip locked
      ) returning app, ${session}`,
    removedSession,
  ),
} as const;
