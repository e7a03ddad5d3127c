// The memory store: callers' values in the database, with limits and expiry.
import { z } from 'zod';
import type { Database, Statement } from '../../../billing/index.ts';

/**
 * Whose values: a caller's hash, and the session name by which the caller separates its spaces; empty for the main
 * one. Of a caller without a key, the owner is a hash of the session name, which is a secret.
 */
export interface Space {
  readonly owner: string;
  readonly session: string;
  /** The network that the values of a caller without a key count for. */
  readonly network?: string | undefined;
}

export interface MemoryLimits {
  readonly entries: number;
  readonly bytes: number;
  /** How long a value lasts after it was set; null for ever. */
  readonly ttlMs: number | null;
  /** What one network may keep without a key. */
  readonly network?: { readonly entries: number; readonly bytes: number };
}

const moment = z.string().nullable();
const stored = z.object({
  answer: z.object({ stored: z.boolean(), entries: z.int(), bytes: z.int(), expires_at: moment.optional() }),
});
export type StoreResult = z.output<typeof stored>['answer'];
const found = z.object({ value: z.string(), is_json: z.boolean(), updated_at: z.string(), expires_at: moment });
export interface MemoryEntry {
  readonly value: unknown;
  readonly updated_at: string;
  readonly expires_at: string | null;
}
const listed = z.object({ key: z.string(), bytes: z.int(), updated_at: z.string(), expires_at: moment });
export type MemoryListing = z.output<typeof listed>;

const utc = (column: string): string =>
  `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as ${column}`;
const lasts =
  'owner = $1 and session = $2 and (expires_at is null or expires_at > coalesce($3::timestamptz, clock_timestamp()))';

const statements = {
  set: {
    name: 'memory-set',
    text: 'select tools.remember_in_network($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) as answer',
    row: stored,
  } satisfies Statement<unknown>,
  get: {
    name: 'memory-get',
    text: `select value, is_json, ${utc('updated_at')}, ${utc('expires_at')} from tools.memory where ${lasts} and key = $4`,
    row: found,
  } satisfies Statement<unknown>,
  list: {
    name: 'memory-list',
    text: `select key, octet_length(value) as bytes, ${utc('updated_at')}, ${utc('expires_at')} from tools.memory where ${lasts} and starts_with(key, $4) order by key collate "C" limit 1000`,
    row: listed,
  } satisfies Statement<unknown>,
  remove: {
    name: 'memory-delete',
    text: `delete from tools.memory where ${lasts} and key = $4 returning key`,
    row: z.object({ key: z.string() }),
  } satisfies Statement<unknown>,
};

export class MemoryStore {
  readonly #database: Database;
  readonly #now: () => Date | null;

  /** Without `now`, the database's clock is used. */
  constructor(database: Database, now: () => Date | null = () => null) {
    this.#database = database;
    this.#now = now;
  }

  /** Stores text, or any other JSON value, under a key, in place of the one before. When that would be too much, nothing changes. */
  async set(
    { owner, session, network }: Space,
    key: string,
    value: unknown,
    { entries, bytes, ttlMs, network: together }: MemoryLimits,
  ): Promise<StoreResult> {
    const [row] = await this.#database.replay(statements.set, [
      owner,
      session,
      key,
      typeof value === 'string' ? value : JSON.stringify(value),
      typeof value !== 'string',
      ttlMs,
      entries,
      bytes,
      network ?? null,
      together?.entries ?? entries,
      together?.bytes ?? bytes,
      this.#now(),
    ]);
    if (row === undefined) throw new Error('tools.remember answered nothing');
    return row.answer;
  }

  async get({ owner, session }: Space, key: string): Promise<MemoryEntry | undefined> {
    const [row] = await this.#database.replay(statements.get, [owner, session, this.#now(), key]);
    if (row === undefined) return undefined;
    const { value, is_json, ...rest } = row;
    return { ...rest, value: is_json ? (JSON.parse(value) as unknown) : value };
  }

  /** Keys that begin with a prefix, in order. */
  async list({ owner, session }: Space, prefix: string): Promise<MemoryListing[]> {
    return this.#database.replay(statements.list, [owner, session, this.#now(), prefix]);
  }

  /** @returns whether there was such a key */
  async remove({ owner, session }: Space, key: string): Promise<boolean> {
    return (await this.#database.query(statements.remove, [owner, session, this.#now(), key])).length > 0;
  }
}
