// The fix for each invalid field: it names what was meant, and nothing that would not help.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import { type InputPart, readPart } from '../../../../api/http/endpoint.ts';
import { type FieldError, Problem } from '../../../../lib/problem.ts';

const known = z.strictObject({
  models: z
    .array(z.enum(['alpha-v4-flash', 'beta-K3']))
    .max(2)
    .optional()
    .describe('Up to two models.'),
  language: z.enum(['en', 'de']).optional().describe('The language.'),
  query: z.string().optional().describe('What to look for.'),
  max_tokens: z.int().optional(),
  content: z
    .union([
      z.string(),
      z.array(
        z.discriminatedUnion('type', [
          z.strictObject({ type: z.literal('text'), text: z.string() }),
          z.strictObject({ type: z.literal('image'), url: z.string() }),
        ]),
      ),
    ])
    .optional(),
});

function readErrors(part: InputPart, value: unknown): readonly Pick<FieldError, 'field' | 'message' | 'fix'>[] {
  try {
    readPart(part, known, value);
  } catch (error) {
    assert.ok(error instanceof Problem);
    return error.errors.map(({ field, message, fix }) => ({ field, message, fix }));
  }
  return assert.fail('it is valid');
}

const advice: readonly (readonly [name: string, part: InputPart, value: unknown, field: string, fix: RegExp])[] = [
  [
    'too many items of a list',
    'query',
    { models: ['beta-K3', 'beta-K3', 'beta-K3'] },
    'models',
    /^Expected: Up to two models\.$/,
  ],
  ['a text that is sent twice', 'query', { query: ['a', 'b'] }, 'query', /^Send it only once\.$/],
  ['one of some words that is sent twice', 'query', { language: ['en', 'de'] }, 'language', /^Send it only once\.$/],
  ['a value that is a slip away', 'body', { models: ['beta-k3x'] }, 'models.0', /^Did you mean "beta-K3"\?/],
  [
    'a name in another case',
    'body',
    { maxTokens: 5 },
    'maxTokens',
    /^Did you mean "max_tokens"\? Rename it, or remove it\. Known fields: /,
  ],
  ['a name that is a slip away', 'body', { qeury: 'a' }, 'qeury', /^Did you mean "query"\?/],
  [
    'a name like one that is sent too',
    'body',
    { model: 'a', models: [] },
    'model',
    /^Remove it\. Known fields: models, /,
  ],
  ['a name that is like none', 'body', { temperature: 1 }, 'temperature', /^Remove it\. Known fields: /],
  [
    'a member of one of several forms',
    'body',
    { content: [{ type: 'image', url: 'x', txt: 1 }] },
    'content.0.txt',
    /^Remove it\. Known fields: type, url\.$/,
  ],
];

for (const [name, part, value, field, fix] of advice)
  test(`advises on ${name}`, () => {
    const [error, ...more] = readErrors(part, value);
    assert.deepEqual(more, []);
    assert.equal(error?.field, field);
    assert.match(error.fix, fix);
  });
