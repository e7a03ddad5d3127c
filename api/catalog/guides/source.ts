// A guide as it is written in manifests/guides: the text by hand, the calls as data, and what of it evidence has to
// support.
import { z } from 'zod';
import { guideSlugs } from './slugs.ts';

const text = z
  .string()
  .min(1)
  .regex(/^\S(?:[\s\S]*\S)?$/, 'must not begin or end with blank space');
const values = z.record(z.string(), z.unknown());

/** A value of a call that only the answer before, or the caller, knows: written `$NAME`. */
export const variableName = /^[A-Z][A-Z_]{0,30}$/;

const address = z
  .string()
  .regex(/^(?:\/[^?#\s]*|\$[A-Z][A-Z_]{0,30})$/, 'must be a path without a query, or a variable such as $FILE_URL');

const get = z.strictObject({
  get: address,
  query: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
  save: z
    .string()
    .regex(/^[a-z0-9.-]{1,60}$/, 'must be a file name')
    .optional()
    .describe('File that the bytes of the answer are written to.'),
});
const post = z.strictObject({
  post: address,
  json: values,
  key: z.boolean().optional().describe('Whether it is sent with the key of the caller.'),
});
const mcp = z.strictObject({ mcp: text.describe('Name of the tool.'), arguments: values });

const call = z.union([get, post, mcp]);
export type Call = z.output<typeof call>;

const step = z.strictObject({
  say: text,
  say_zh: text,
  call,
  uses: z
    .record(z.string().regex(variableName, 'must be a name in capitals'), text)
    .optional()
    .describe('Variables of the call, each with where an answer before has it, such as job.id.'),
});
export type SourceStep = z.output<typeof step>;

const claimed = {
  /** The claim in a sentence without a full stop, to be followed by a colon and the figures. */
  says: text,
  says_zh: text,
};

/** What evidence is asked for. Each kind is a condition that a program decides; see claims.ts. */
const claim = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('best-value'),
    ...claimed,
    model: z.string().optional().describe('The model that is said to be it; without it, whichever was measured to be.'),
  }),
  z.strictObject({
    kind: z.literal('cheaper-as-good'),
    ...claimed,
    margin: z
      .number()
      .min(0)
      .max(0.5)
      .default(0.1)
      .describe('How much lower a pass rate may be and still count as good.'),
  }),
  z.strictObject({
    kind: z.literal('reliable'),
    ...claimed,
    at_least: z.number().min(0).max(1).describe('Pass rate that the lower end of the interval has to reach.'),
  }),
]);
export type Claim = z.output<typeof claim>;

export const sourceGuide = z
  .strictObject({
    slug: z.enum(guideSlugs),
    updated: z.iso.datetime('must be a UTC time such as 2026-01-31T00:00:00Z').describe('When the text last changed.'),
    question: text,
    title_zh: text,
    answer: text,
    answer_zh: text,
    tool: z.strictObject({ name: text, arguments_example: values }),
    steps: z.array(step).min(1),
    evidence: z
      .array(z.string().regex(/^[a-z][a-z0-9-]{0,62}$/, 'must be the slug of an app'))
      .describe('Apps whose benchmark applies.'),
    claims: z.array(claim).default([]),
  })
  .refine(({ claims, evidence }) => claims.length === 0 || evidence.length > 0, {
    path: ['claims'],
    error: 'needs evidence: name the apps whose benchmark decides them',
  });
export type SourceGuide = z.output<typeof sourceGuide>;
