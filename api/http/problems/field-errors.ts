// What is wrong with a field, and how to fix it, in plain words for each kind of issue that zod finds.
import { z } from 'zod';
import { type FieldError, findMeantField, findNearestNames } from '../../../lib/problem.ts';

type Part = FieldError['in'];
type Issue = z.core.$ZodIssue;

type IssueMessages = { [Code in Issue['code']]: (issue: Extract<Issue, { code: Code }>, part: Part) => string };

const issueMessages: IssueMessages = {
  invalid_type: ({ expected, input }, part) => formatWrongType(part, expected, input),
  too_big: ({ origin, maximum }) => formatOutOfRange(origin, 'at most', maximum),
  too_small: ({ origin, minimum }) => formatOutOfRange(origin, 'at least', minimum),
  invalid_value: ({ values }) => `must be ${formatChoices(values)}`,
  not_multiple_of: ({ divisor }) => `must be a multiple of ${divisor}`,
  invalid_format: ({ format }) => formats[format] ?? 'does not have the expected format',
  invalid_union: ({ input }) => (input === undefined ? 'is missing' : 'has none of the accepted forms'),
  invalid_key: () => 'has a key that is not valid',
  invalid_element: () => 'has an element that is not valid',
  unrecognized_keys: () => 'has unknown fields',
  custom: () => 'is not valid',
};

/** What is wrong, as a predicate: the name of the field comes before it. A message of the schema's own stays. */
export function formatMessage(part: Part, issue: Issue): string {
  if (issue.message !== '') return issue.message;
  return (issueMessages[issue.code] as (issue: Issue, part: Part) => string)(issue, part);
}

/** What to send instead; `about`, the description of the field, says it best. */
export function suggestFix(part: Part, issue: Issue, about: string | undefined): string {
  const own: unknown = issue.code === 'custom' ? issue.params?.['fix'] : undefined;
  if (typeof own === 'string') return own;
  if (issue.path.length === 0) return about === undefined ? 'Send a JSON object.' : `Send a JSON object: ${about}`;
  if (isRepeated(part, issue)) return 'Send it only once.';
  const meant = findMeantValue(issue);
  return `${meant === undefined ? '' : `Did you mean "${meant}"? `}${about === undefined ? 'See /openapi.json for its format.' : `Expected: ${about}`}`;
}

/** A query parameter that was sent several times, where its field takes one value; a list may be too long all the same. */
function isRepeated(part: Part, { code, input, path, ...issue }: Issue): boolean {
  if (part !== 'query' || !Array.isArray(input) || typeof path.at(-1) === 'number') return false;
  return code === 'invalid_value' || (code === 'invalid_type' && 'expected' in issue && issue.expected !== 'array');
}

function findMeantValue(issue: Issue): string | undefined {
  if (issue.code !== 'invalid_value' || typeof issue.input !== 'string' || issue.values.length < 2) return undefined;
  const names = issue.values.filter((value) => typeof value === 'string');
  return findMeantField(issue.input, names) ?? findNearestNames(issue.input, names)[0];
}

/** With the field that was meant, which is none of those that were sent too. */
export function createUnknownFieldError(
  part: Part,
  { path, key, input }: { readonly path: readonly PropertyKey[]; readonly key: string; readonly input: unknown },
  forms: readonly z.ZodType[],
): FieldError {
  const known = listKnownFields(forms, input);
  const given = typeof input === 'object' && input !== null ? Object.keys(input) : [];
  const meant = findMeantField(
    key,
    known.filter((name) => !given.includes(name)),
  );
  const fix = meant === undefined ? 'Remove it.' : `Did you mean "${meant}"? Rename it, or remove it.`;
  return {
    in: part,
    field: [...path.map(String), key].join('.'),
    message: 'is not known',
    fix: known.length === 0 ? 'Remove it. No fields are accepted here.' : `${fix} Known fields: ${known.join(', ')}.`,
  };
}

/** The fields of an object; where it has several forms, of the one that was sent. */
function listKnownFields(schemas: readonly z.ZodType[], input: unknown): string[] {
  const forms = schemas.filter((schema) => schema instanceof z.ZodObject);
  const sent = forms.filter((form) => matchesConstants(form, input));
  return [...new Set((sent.length === 0 ? forms : sent).flatMap((form) => Object.keys(form.shape)))];
}

/** Whether all fields that have one value in this form, such as its type, have it. */
function matchesConstants(form: z.ZodObject, input: unknown): boolean {
  return Object.entries(form.shape).every(
    ([name, field]) =>
      !(field instanceof z.ZodLiteral) ||
      (typeof input === 'object' &&
        input !== null &&
        field.safeParse((input as Record<string, unknown>)[name]).success),
  );
}

function formatWrongType(part: Part, expected: string, input: unknown): string {
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
function formatOutOfRange(origin: string, bound: 'at most' | 'at least', value: number | bigint): string {
  const unit = units[origin]?.[Number(value) === 1 ? 0 : 1];
  if (unit === undefined) return `must be ${bound} ${String(value)}`;
  return origin === 'string'
    ? `must be ${bound} ${String(value)} ${unit} long`
    : `must have ${bound} ${String(value)} ${unit}`;
}

function formatChoices(values: readonly unknown[]): string {
  const quoted = values.map((value) => JSON.stringify(value));
  return quoted.length === 1 ? (quoted[0] ?? '') : `one of ${quoted.join(', ')}`;
}
