// Tools that only tests have: each shows one thing that a tool can do, or one way in which it can fail.
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { jsonField } from '../../../api/tools/engine/reading.ts';
import { toolFailed, unprocessable } from '../../../api/tools/problems.ts';
import { defineTool, type Tool } from '../../../api/tools/tool.ts';

const common = { openWorld: false, description: 'Of the tests.' };

/** Answers with what it was given; costs nothing. */
export const echo = defineTool({
  ...common,
  name: 'echo',
  title: 'Echo',
  price: '0',
  input: z.strictObject({
    text: z.string().min(1).max(100_000).describe('Any text'),
    times: z.int().min(1).max(5).default(1).describe('How often'),
    loud: z.boolean().optional().describe('In capitals'),
    tags: z.array(z.string()).max(5).optional().describe('Any words'),
    spec: jsonField(z.looseObject({})).optional().describe('Any object'),
    kind: z.enum(['a', 'b']).optional().describe('a or b'),
  }),
  aliases: { q: 'text', query: 'text', repeat: 'times' },
  output: z.object({ echoed: z.string(), input: z.record(z.string(), z.unknown()), session: z.string().optional() }),
  example: { text: 'Hello' },
  run: (input, { session }) =>
    Promise.resolve({
      result: {
        echoed: (input.loud === true ? input.text.toUpperCase() : input.text).repeat(input.times),
        input,
        secret: 'not in the schema',
        ...(session === undefined ? {} : { session }),
      },
    }),
});

/** Makes a file of so many bytes; costs 0.0001 USD. */
export const draw = defineTool({
  ...common,
  name: 'draw',
  title: 'Draw',
  price: '0.0001',
  input: z.strictObject({
    bytes: z.int().min(0).max(40_000_000).default(10).describe('Length of the file'),
    format: z.enum(['svg', 'png', 'html', 'none']).default('svg').describe('Form of the file'),
    note: z.string().max(20_000).optional().describe('Anything'),
  }),
  output: z.object({ drawn: z.int() }),
  example: { bytes: 10 },
  artifacts: ['image/svg+xml', 'image/png', 'text/html'],
  run: ({ bytes, format }) =>
    Promise.resolve({
      result: { drawn: bytes },
      ...(format === 'none'
        ? {}
        : {
            artifact: {
              bytes: new Uint8Array(bytes).fill(65),
              mediaType: { svg: 'image/svg+xml', png: 'image/png', html: 'text/html' }[format],
              fileName: format === 'html' ? '../evil".html' : `drawing.${format}`,
            },
          }),
    }),
});

const ways = ['problem', 'unprocessable', 'throw', 'bad-output', 'late', 'stubborn'] as const;

/** Fails in a way of choice; costs 0.0001 USD when it does not. */
export const fail = defineTool({
  ...common,
  name: 'fail',
  title: 'Fail',
  price: '0.0001',
  limitMs: 150,
  input: z.strictObject({ how: z.enum(ways).optional().describe('The way') }),
  output: z.object({ ok: z.boolean() }),
  example: {},
  async run({ how }, { signal }) {
    if (how === 'problem') throw new Problem(toolFailed, 'the service behind this misbehaved');
    if (how === 'unprocessable') throw new Problem(unprocessable, 'line 3 makes no sense');
    if (how === 'throw') throw new Error('password is hunter2');
    if (how === 'bad-output') return { result: { ok: 'no' } as unknown as { ok: boolean } };
    if (how === 'late') await sleep(60_000, undefined, { signal });
    if (how === 'stubborn') await sleep(600);
    return { result: { ok: true } };
  },
});

/** Waits until the test lets it go. */
export function createWaitingTool(until: () => Promise<unknown>): Tool {
  return defineTool({
    ...common,
    name: 'waiting',
    title: 'Waiting',
    price: '0',
    input: z.strictObject({}),
    output: z.object({ ok: z.boolean() }),
    example: {},
    async run() {
      await until();
      return { result: { ok: true } };
    },
  });
}

/** Has fields of which just one is to be given, says how far it is, and needs a service. */
export const oneOf = defineTool({
  ...common,
  name: 'one_of',
  title: 'One of',
  price: '0',
  input: z
    .strictObject({ url: z.string().optional().describe('An address'), html: z.string().optional().describe('A page') })
    .refine(({ url, html }) => (url === undefined) !== (html === undefined), {
      error: 'give either url or html',
      path: ['url'],
    }),
  output: z.object({ chosen: z.string() }),
  example: { url: 'https://example.org' },
  run: ({ url, html }, { report }) => {
    report({ done: 0.5, message: 'half way' });
    report({ done: 0.25, message: 'a step back, not reported' });
    report({ done: 1, message: 'done' });
    return Promise.resolve({ result: { chosen: url ?? html ?? '' } });
  },
});

export const off = defineTool({
  ...common,
  name: 'off',
  title: 'Off',
  price: '0',
  needs: 'gotenberg',
  input: z.strictObject({}),
  output: z.object({}),
  example: {},
  run: () => Promise.resolve({ result: {} }),
});

/** Asks a model, then fails when it is asked to. */
export const asks = defineTool({
  ...common,
  name: 'asks',
  title: 'Asks',
  price: '0.0002',
  asksModels: true,
  input: z.strictObject({
    model: z.string().optional().describe('A model'),
    then: z.enum(['answer', 'fail']).default('answer').describe('What to do after'),
  }),
  output: z.object({ text: z.string() }),
  example: {},
  async run({ model, then }, { models }) {
    const { text } = await models.ask({ prompt: 'Hello', model });
    if (then === 'fail') throw new Problem(toolFailed, 'failed after asking');
    return { result: { text } };
  },
});

export const sampleTools: readonly Tool[] = [echo, draw, fail, oneOf, off, asks];
