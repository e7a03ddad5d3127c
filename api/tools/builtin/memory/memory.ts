// The tool memory: stores a caller's values, text or JSON, by key, across calls and machines.
import { createHash, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { type FieldError, Problem } from '../../../../lib/problem.ts';
import { isUnguessable } from '../../../billing/index.ts';
import { createValidationProblem } from '../../../http/index.ts';
import { MemoryStore, type MemoryLimits, type Space } from './store.ts';
import { toolLimit } from '../../problems.ts';
import type { ToolDependencies } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool, type ToolContext } from '../../tool.ts';

const keyedLimits: MemoryLimits = { entries: 1_000, bytes: 4 * 1024 * 1024, ttlMs: null };
const anonymousLimits: MemoryLimits = {
  entries: 100,
  bytes: 256 * 1024,
  ttlMs: 24 * 3_600_000,
  network: { entries: 1_000, bytes: 2 * 1024 * 1024 },
};

const maxCharacters = 32_000;

/** PostgreSQL has no character 0, and half of a surrogate pair would come back as something else. */
const text = (maximum: number): z.ZodString =>
  z
    .string()
    .max(maximum)
    .regex(/^[^\0]*$/u, 'must not contain the character U+0000')
    .refine((value) => value.isWellFormed(), 'must not contain half of a surrogate pair');

const input = z.strictObject({
  action: z
    .enum(['set', 'get', 'list', 'delete'])
    .describe('What to do: set stores value under key, get reads it, list returns the keys, delete removes a key.'),
  key: text(200)
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

const storedText = text(maxCharacters);
/** Deeper ones are hard on every program that reads them. */
const maxDepth = 64;

function checkValue(value: unknown, context: z.RefinementCtx): void {
  for (const message of faultsOf(value)) context.addIssue({ code: 'custom', message });
}

function faultsOf(value: unknown): string[] {
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
      'Without an API key: the session name, which is the secret that opens the space. Send it as `s` in later calls.',
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

export function memoryTool(services: ToolDependencies): Tool {
  return defineTool({
    name: 'memory',
    title: 'Memory',
    description:
      'Stores text or any other JSON value under a key for later calls: set, get, list and delete. Over HTTP, set and delete need POST. With an API key, values are available from every machine and stay until you delete them, up to 1,000 entries and 4 MB per session; the optional session name `s` separates spaces. Without an API key, the session name `s` is what opens a space, from any network, so it has to be hard to guess: leave it out of the first set, and the response has a random one as session; or send a UUID of your own. Values then expire 24 hours after they are set and are limited to 100 entries and 256 KB per session, and to 1,000 entries and 2 MB for the network that you call from.',
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
      const { space, secret } = spaceOf(context, given.action);
      const key =
        given.action === 'list' ? (given.key ?? '') : required(given.key, 'key', 'Send the key of the value.');
      const store = new MemoryStore(services.database());
      const done = await actions[given.action]({
        store,
        space,
        key,
        value: given.value,
        limits: context.keyed ? keyedLimits : anonymousLimits,
      });
      return { result: { ...nothing, action: given.action, key: given.key ?? null, ...secret, ...done } };
    },
  });
}

const nothing = { found: null, value: null, updated_at: null, expires_at: null, keys: null };

interface MemoryAction {
  readonly store: MemoryStore;
  readonly space: Space;
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
        required(value, 'value', 'Send the text or JSON value to store.'),
        limits,
      );
      if (!stored.stored) throw tooMuch(limits);
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
 * A caller with a key has spaces by name. One without a key is reached by the secret name of the space alone: the address
 * is shared with others.
 */
function spaceOf(
  { owner, keyed, session }: ToolContext,
  action: string,
): { readonly space: Space; readonly secret?: { readonly session: string } } {
  if (keyed) return { space: { owner: `key:${owner}`, session: session ?? '' } };
  if (session === undefined && action !== 'set')
    throw refuse(
      's',
      'is missing: without an API key, values are found by their session name',
      'Send s=<the session in the response of set>, or send your key as Authorization: Bearer sk-….',
    );
  if (session !== undefined && !isUnguessable(session))
    throw refuse(
      's',
      'is too easy to guess: without an API key, anyone who knows the session name can read its values',
      'Leave it out of set, and the response has a random one; or send a random UUID; or send your key as Authorization: Bearer sk-….',
    );
  const secret = session ?? `m${randomBytes(18).toString('base64url')}`;
  const hash = createHash('sha256').update(secret).digest('hex');
  return { space: { owner: `secret:${hash}`, session: '', network: owner }, secret: { session: secret } };
}

function required<Value>(value: Value | undefined, field: string, fix: string): Value {
  if (value === undefined) throw refuse(field, 'is missing', fix);
  return value;
}

function refuse(field: string, message: string, fix: string): Problem {
  return createValidationProblem([{ in: 'query', field, message, fix } satisfies FieldError]);
}

function tooMuch({ entries, bytes, network }: MemoryLimits): Problem {
  return new Problem(
    toolLimit,
    `The limit is ${entries} entries and ${bytes / 1024} KB in total${network === undefined ? '' : `, and ${network.entries} entries and ${network.bytes / 1024} KB for all callers without a key in your network`}. Delete some entries first.`,
    { members: { limit: 'memory-entries', limit_entries: entries, limit_bytes: bytes } },
  );
}
