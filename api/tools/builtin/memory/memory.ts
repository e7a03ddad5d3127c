// The tool memory: stores a caller's values, text or JSON, by key, across calls and machines, with limits and expiry.
import { createHash, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { type FieldError, Problem } from '../../../../lib/problem.ts';
import { isUnguessable, type Database, type Statement } from '../../../billing/index.ts';
import { createValidationProblem } from '../../../http/index.ts';
import { toolLimit } from '../../problems.ts';
import { type ToolDependencies, defineTool, type Tool, type ToolContext } from '../../tool.ts';

const keyedLimits: MemoryLimits = { entries: 1_000, bytes: 4 * 1024 * 1024, ttlMs: null };
const anonymousLimits: MemoryLimits = {
  entries: 100,
  bytes: 256 * 1024,
  ttlMs: 24 * 3_600_000,
  network: { entries: 1_000, bytes: 2 * 1024 * 1024 },
};

const maxCharacters = 32_000;

/** PostgreSQL cannot store U+0000, and a lone surrogate would be returned as another character. */
const createTextSchema = (maximum: number): z.ZodString =>
  z
    .string()
    .max(maximum)
    .regex(/^[^\0]*$/u, 'must not contain the character U+0000')
    .refine((value) => value.isWellFormed(), 'must not contain half of a surrogate pair');

const input = z.strictObject({
  action: z
    .enum(['set', 'get', 'list', 'delete'])
    .describe('What to do: set stores value under key, get reads it, list returns the keys, delete removes a key.'),
  key: createTextSchema(200)
    .min(1)
    .optional()
    .describe('Key of the value, 1 to 200 characters. For list: prefix of the keys to return.'),
  value: z
    .unknown()
    .superRefine(checkValue)
    .optional()
    .describe(
      'Value to store: text, or any other JSON value (number, boolean, null, list, object), up to 32,000 characters as JSON. get returns it as it was sent. In a query it is always text.',
    ),
});

const storedText = createTextSchema(maxCharacters);
/** Deeper values cause problems for every program that reads them. */
const maxDepth = 64;

function checkValue(value: unknown, context: z.RefinementCtx): void {
  for (const message of findValueFaults(value)) context.addIssue({ code: 'custom', message });
}

function findValueFaults(value: unknown): string[] {
  if (value === undefined) return [];
  if (typeof value === 'string') return storedText.safeParse(value).error?.issues.map(({ message }) => message) ?? [];
  if (isDeeperThan(value, maxDepth)) return [`is nested more than ${maxDepth} levels deep`];
  const { length } = JSON.stringify(value);
  return length > maxCharacters ? [`must be at most ${maxCharacters} characters long as JSON, and has ${length}`] : [];
}

function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((item) => isDeeperThan(item, levels - 1));
}

const output = z.object({
  action: z.string().describe('Action that was performed.'),
  key: z.string().nullable().describe('Key, or prefix for list.'),
  session: z
    .string()
    .optional()
    .describe(
      'Without an API key: the session name, a secret that gives access to the space. Send it as `s` in later calls.',
    ),
  found: z.boolean().nullable().describe('For get and delete: whether the key existed.'),
  value: z.unknown().describe('For get: the value as it was set, text or JSON; null if there is none.'),
  updated_at: z.string().nullable().describe('For get: when the value was set.'),
  expires_at: z.string().nullable().describe('For set and get: when the value expires; null if never.'),
  keys: z
    .array(
      z.object({
        key: z.string().describe('Key.'),
        bytes: z.int().describe('Size of the value in bytes (UTF-8).'),
        updated_at: z.string().describe('When the value was set.'),
        expires_at: z.string().nullable().describe('When the value expires; null if never.'),
      }),
    )
    .nullable()
    .describe('For list: keys in order, at most 1000.'),
});
type Answer = z.input<typeof output>;

export function createMemoryTool(services: ToolDependencies): Tool {
  return defineTool({
    name: 'memory',
    title: 'Memory',
    description:
      'Stores text or any other JSON value under a key for later calls: set, get, list and delete. Over HTTP, set and delete require POST. With an API key, values are available from every machine and stay until you delete them, up to 1,000 entries and 4 MB per session; the optional session name `s` separates spaces. Without an API key, the session name `s` gives access to a space from any network, so it must be hard to guess: omit it from the first set to get a random one in the session field of the response, or send your own UUID. Values then expire 24 hours after they are set and are limited to 100 entries and 256 KB per session, and to 1,000 entries and 2 MB for the network that you call from.',
    input,
    aliases: {
      op: 'action',
      operation: 'action',
      name: 'key',
      prefix: 'key',
      data: 'value',
      content: 'value',
      text: 'value',
    },
    output,
    example: { action: 'list' },
    price: '0',
    openWorld: false,
    writes: true,
    changes: ({ action }) => action === 'set' || action === 'delete',
    async run(given, context) {
      const { space, secret } = resolveSpace(context, given.action);
      const key =
        given.action === 'list' ? (given.key ?? '') : requireValue(given.key, 'key', 'Send the key of the value.');
      const store = new MemoryStore(services.database());
      const done = await actions[given.action]({
        store,
        space,
        key,
        value: given.value,
        limits: context.keyed ? keyedLimits : anonymousLimits,
      });
      return { result: { ...emptyAnswer, action: given.action, key: given.key ?? null, ...secret, ...done } };
    },
  });
}

const emptyAnswer = { found: null, value: null, updated_at: null, expires_at: null, keys: null };

interface MemoryAction {
  readonly store: MemoryStore;
  readonly space: MemorySpace;
  readonly key: string;
  readonly value: unknown;
  readonly limits: MemoryLimits;
}

const actions: Readonly<Record<z.output<typeof input>['action'], (action: MemoryAction) => Promise<Partial<Answer>>>> =
  {
    async set({ store, space, key, value, limits }) {
      const stored = await store.set(
        space,
        key,
        requireValue(value, 'value', 'Send the text or JSON value to store.'),
        limits,
      );
      if (!stored.stored) throw createLimitProblem(limits);
      return {
        expires_at:
          stored.expires_at === undefined || stored.expires_at === null
            ? null
            : new Date(stored.expires_at).toISOString(),
      };
    },
    async get({ store, space, key }) {
      const found = await store.get(space, key);
      return found === undefined ? { found: false } : { found: true, ...found };
    },
    list: async ({ store, space, key }) => ({ keys: await store.list(space, key) }),
    delete: async ({ store, space, key }) => ({ found: await store.remove(space, key) }),
  };

/**
 * A caller with a key has named spaces. Without a key, only the secret name of the space opens it, since other callers
 * can share the network address.
 */
function resolveSpace(
  { owner, keyed, session }: ToolContext,
  action: string,
): { readonly space: MemorySpace; readonly secret?: { readonly session: string } } {
  if (keyed) return { space: { owner: `key:${owner}`, session: session ?? '' } };
  if (session === undefined && action !== 'set')
    throw createRefusal(
      's',
      'is missing: without an API key, values are found by their session name',
      'Send s=<the session in the response of set>, or send your key as Authorization: Bearer sk-….',
    );
  if (session !== undefined && !isUnguessable(session))
    throw createRefusal(
      's',
      'is too easy to guess: without an API key, anyone who knows the session name can read its values',
      'Leave it out of set, and the response has a random one; or send a random UUID; or send your key as Authorization: Bearer sk-….',
    );
  const secret = session ?? `m${randomBytes(18).toString('base64url')}`;
  const hash = createHash('sha256').update(secret).digest('hex');
  return { space: { owner: `secret:${hash}`, session: '', network: owner }, secret: { session: secret } };
}

function requireValue<Value>(value: Value | undefined, field: string, fix: string): Value {
  if (value === undefined) throw createRefusal(field, 'is missing', fix);
  return value;
}

function createRefusal(field: string, message: string, fix: string): Problem {
  return createValidationProblem([{ in: 'query', field, message, fix } satisfies FieldError]);
}

function createLimitProblem({ entries, bytes, network }: MemoryLimits): Problem {
  return new Problem(
    toolLimit,
    `The limit is ${entries} entries and ${bytes / 1024} KB in total${network === undefined ? '' : `, and ${network.entries} entries and ${network.bytes / 1024} KB for all callers without a key in your network`}. Delete some entries first.`,
    { members: { limit: 'memory-entries', limit_entries: entries, limit_bytes: bytes } },
  );
}

/**
 * A space of values: the caller's hash, and the session name that separates the caller's spaces (empty for the main
 * one). For a caller without a key, the owner is a hash of the session name, which is a secret.
 */
export interface MemorySpace {
  readonly owner: string;
  readonly session: string;
  /** The network whose limit the values of a caller without a key count towards. */
  readonly network?: string | undefined;
}

export interface MemoryLimits {
  readonly entries: number;
  readonly bytes: number;
  /** Lifetime of a value after it is set; null for no expiry. */
  readonly ttlMs: number | null;
  /** Limits per network for callers without a key. */
  readonly network?: { readonly entries: number; readonly bytes: number };
}

const moment = z.string().nullable();
const storeOutcome = z.object({
  answer: z.object({ stored: z.boolean(), entries: z.int(), bytes: z.int(), expires_at: moment.optional() }),
});
export type StoreResult = z.output<typeof storeOutcome>['answer'];
const storedValue = z.object({ value: z.string(), is_json: z.boolean(), updated_at: z.string(), expires_at: moment });
export interface MemoryEntry {
  readonly value: unknown;
  readonly updated_at: string;
  readonly expires_at: string | null;
}
const storedKey = z.object({ key: z.string(), bytes: z.int(), updated_at: z.string(), expires_at: moment });
export type MemoryListing = z.output<typeof storedKey>;

const selectUtc = (column: string): string =>
  `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as ${column}`;
const currentRows =
  'owner = $1 and session = $2 and (expires_at is null or expires_at > coalesce($3::timestamptz, clock_timestamp()))';

const statements = {
  set: {
    name: 'memory-set',
    text: 'select tools.remember_in_network($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) as answer',
    row: storeOutcome,
  } satisfies Statement<unknown>,
  get: {
    name: 'memory-get',
    text: `select value, is_json, ${selectUtc('updated_at')}, ${selectUtc('expires_at')} from tools.memory where ${currentRows} and key = $4`,
    row: storedValue,
  } satisfies Statement<unknown>,
  list: {
    name: 'memory-list',
    text: `select key, octet_length(value) as bytes, ${selectUtc('updated_at')}, ${selectUtc('expires_at')} from tools.memory where ${currentRows} and starts_with(key, $4) order by key collate "C" limit 1000`,
    row: storedKey,
  } satisfies Statement<unknown>,
  remove: {
    name: 'memory-delete',
    text: `delete from tools.memory where ${currentRows} and key = $4 returning key`,
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

  /**
   * Stores text, or any other JSON value, under a key, and replaces the previous value. If a limit is exceeded, nothing
   * changes.
   */
  async set(
    { owner, session, network }: MemorySpace,
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

  async get({ owner, session }: MemorySpace, key: string): Promise<MemoryEntry | undefined> {
    const [row] = await this.#database.replay(statements.get, [owner, session, this.#now(), key]);
    if (row === undefined) return undefined;
    const { value, is_json, ...rest } = row;
    return { ...rest, value: is_json ? (JSON.parse(value) as unknown) : value };
  }

  /** Lists keys with a prefix, in order. */
  async list({ owner, session }: MemorySpace, prefix: string): Promise<MemoryListing[]> {
    return this.#database.replay(statements.list, [owner, session, this.#now(), prefix]);
  }

  /** @returns whether the key existed */
  async remove({ owner, session }: MemorySpace, key: string): Promise<boolean> {
    return (await this.#database.query(statements.remove, [owner, session, this.#now(), key])).length > 0;
  }
}
