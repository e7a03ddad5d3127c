// What is wrong with a field, and how to fix it, in plain words for each kind of issue that zod finds.
import { z } from 'zod';
import type { FieldError } from '../../../lib/problem.ts';

type Part = FieldError['in'];
type Issue = z.core.$ZodIssue;

type Words = { [Code in Issue['code']]: (issue: Extract<Issue, { code: Code }>, part: Part) => string };

const words: Words = {
  invalid_type: ({ expected, input }, part) => wrongType(part, expected, input),
  too_big: ({ origin, maximum }) => outOfRange(origin, 'at most', maximum),
  too_small: ({ origin, minimum }) => outOfRange(origin, 'at least', minimum),
  invalid_value: ({ values }) => `must be ${list(values)}`,
  not_multiple_of: ({ divisor }) => `must be a multiple of ${divisor}`,
  invalid_format: ({ format }) => formats[format] ?? 'does not have the expected format',
  invalid_union: ({ input }) => (input === undefined ? 'is missing' : 'has none of the accepted forms'),
  invalid_key: () => 'has a key that is not valid',
  invalid_element: () => 'has an element that is not valid',
  unrecognized_keys: () => 'has unknown fields',
  custom: () => 'is not valid',
};

/** What is wrong, as a predicate: the name of the field comes before it. A message of the schema's own stays. */
export function messageOf(part: Part, issue: Issue): string {
  if (issue.message !== '') return issue.message;
  return (words[issue.code] as (issue: Issue, part: Part) => string)(issue, part);
}

/** What to send instead; the description of the field says it best. */
export function fixOf(part: Part, issue: Issue, within: z.ZodType | undefined): string {
  const own: unknown = issue.code === 'custom' ? issue.params?.['fix'] : undefined;
  if (typeof own === 'string') return own;
  const about = within?.description;
  if (issue.path.length === 0) return about === undefined ? 'Send a JSON object.' : `Send a JSON object: ${about}`;
  if (part === 'query' && Array.isArray(issue.input)) return 'Send it only once.';
  return about === undefined ? 'See /openapi.json for its format.' : `Expected: ${about}`;
}

export function unknownFieldError(part: Part, field: string, within: z.ZodType | undefined): FieldError {
  const known = within instanceof z.ZodObject ? Object.keys(within.shape) : [];
  return {
    in: part,
    field,
    message: 'is not known',
    fix:
      known.length === 0 ? 'Remove it. No fields are accepted here.' : `Remove it. Known fields: ${known.join(', ')}.`,
  };
}

function wrongType(part: Part, expected: string, input: unknown): string {
  if (input === undefined) return 'is missing';
  if (part === 'query' && Array.isArray(input)) return `is sent ${input.length} times`;
  return `must be ${types[expected] ?? expected}`;
}

const types: Readonly<Record<string, string>> = {
  int: 'a whole number',
  number: 'a number',
  string: 'a string',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

const formats: Readonly<Record<string, string>> = {
  url: 'must be a URL',
  email: 'must be an e-mail address',
  base64: 'must be base64',
  datetime: 'must be a date and time in RFC 3339',
  date: 'must be a date like 2026-01-31',
  uuid: 'must be a UUID',
};

const units: Readonly<Record<string, readonly [one: string, many: string]>> = {
  string: ['character', 'characters'],
  array: ['item', 'items'],
  set: ['item', 'items'],
  object: ['field', 'fields'],
};

/** `must be at most 3 characters long`, `must have at most 3 items`, `must be at most 3`. */
function outOfRange(origin: string, bound: 'at most' | 'at least', value: number | bigint): string {
  const unit = units[origin]?.[Number(value) === 1 ? 0 : 1];
  if (unit === undefined) return `must be ${bound} ${String(value)}`;
  return origin === 'string'
    ? `must be ${bound} ${String(value)} ${unit} long`
    : `must have ${bound} ${String(value)} ${unit}`;
}

function list(values: readonly unknown[]): string {
  const quoted = values.map((value) => JSON.stringify(value));
  return quoted.length === 1 ? (quoted[0] ?? '') : `one of ${quoted.join(', ')}`;
}
