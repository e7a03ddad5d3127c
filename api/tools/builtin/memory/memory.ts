// memory: keeps values by key for a caller, across calls and machines.
import { z } from 'zod';
import type { FieldError } from '../../../../lib/problem.ts';
import { Problem } from '../../../../lib/problem.ts';
import { invalid } from '../../../http/index.ts';
import { MemoryStore, type MemoryLimits, type Space } from './store.ts';
import { toolLimit } from '../../problems.ts';
import type { ToolServices } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool, type ToolContext } from '../../tool.ts';

const keyedLimits: MemoryLimits = { entries: 1_000, bytes: 4 * 1024 * 1024, ttlMs: null };
const anonymousLimits: MemoryLimits = { entries: 100, bytes: 256 * 1024, ttlMs: 24 * 3_600_000 };

/** PostgreSQL has no character 0, and half of a surrogate pair would come back as something else. */
const text = (most: number): z.ZodString =>
  z
    .string()
    .max(most)
    .regex(/^[^\0]*$/u, 'must not hold the character U+0000')
    .refine((value) => value.isWellFormed(), 'must not hold half of a surrogate pair');

const input = z.strictObject({
  action: z
    .enum(['set', 'get', 'list', 'delete'])
    .describe('set stores value under key, get reads it, list tells the keys, delete removes one'),
  key: text(200)
    .min(1)
    .optional()
    .describe('Name of the value, 1 to 200 characters; for list the beginning of the keys to tell'),
  value: text(32_000)
    .optional()
    .describe('What to store, text of up to 32 000 characters; put JSON into text yourself'),
});

const output = z.object({
  action: z.string().describe('What was done'),
  key: z.string().nullable().describe('The key, or the beginning of keys'),
  found: z.boolean().nullable().describe('get and delete: whether there was such a key'),
  value: z.string().nullable().describe('get: the value; null when there is none'),
  updated_at: z.string().nullable().describe('get: when it was set'),
  expires_at: z.string().nullable().describe('set and get: when it will be forgotten; null for never'),
  keys: z
    .array(
      z.object({
        key: z.string().describe('The key'),
        bytes: z.int().describe('Length of its value in UTF-8'),
        updated_at: z.string().describe('When it was set'),
        expires_at: z.string().nullable().describe('When it will be forgotten; null for never'),
      }),
    )
    .nullable()
    .describe('list: the keys in order'),
});
type Answer = z.input<typeof output>;

export function memoryTool(services: ToolServices): Tool {
  return defineTool({
    name: 'memory',
    title: 'Memory',
    description:
      'Keeps texts by key for later calls. With an API key they are yours on every machine and last until deleted; the session name `s` then divides them into spaces. Without one, give a session name `s`: they are kept for 24 hours for calls from the same network with the same name, so put nothing secret there.',
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
    async run(given, context) {
      const space = spaceOf(context);
      const key =
        given.action === 'list' ? (given.key ?? '') : required(given.key, 'key', 'send the name of the value');
      const store = new MemoryStore(services.database());
      const done = await actions[given.action]({
        store,
        space,
        key,
        value: given.value,
        limits: context.keyed ? keyedLimits : anonymousLimits,
      });
      return { result: { ...nothing, action: given.action, key: given.key ?? null, ...done } };
    },
  });
}

const nothing = { found: null, value: null, updated_at: null, expires_at: null, keys: null };

interface Deed {
  readonly store: MemoryStore;
  readonly space: Space;
  readonly key: string;
  readonly value: string | undefined;
  readonly limits: MemoryLimits;
}

const actions: Readonly<Record<z.output<typeof input>['action'], (deed: Deed) => Promise<Partial<Answer>>>> = {
  async set({ store, space, key, value, limits }) {
    const stored = await store.set(space, key, required(value, 'value', 'send the text to store'), limits);
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

function spaceOf({ owner, keyed, session }: ToolContext): Space {
  if (!keyed && session === undefined) {
    throw refuse(
      's',
      'is missing: without an API key, memory is kept only under a session name',
      'send s=<any name>, the same in each call; or send your key as Authorization: Bearer sk-…',
    );
  }
  // Whoever has a key never shares a space with someone without.
  return { owner: `${keyed ? 'key' : 'address'}:${owner}`, session: session ?? '' };
}

function required(value: string | undefined, field: string, fix: string): string {
  if (value === undefined) throw refuse(field, 'is missing', fix);
  return value;
}

function refuse(field: string, message: string, fix: string): Problem {
  return invalid([{ in: 'query', field, message, fix } satisfies FieldError]);
}

function tooMuch({ entries, bytes }: MemoryLimits): Problem {
  return new Problem(
    toolLimit,
    `this would be more than ${entries} entries or ${bytes / 1024} KB in all; delete some first`,
    { members: { limit: 'memory-entries', limit_entries: entries, limit_bytes: bytes } },
  );
}
