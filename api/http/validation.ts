// Checks what came in against an endpoint's schemas, and names every field that is wrong together with its fix.
import { z } from 'zod';
import { Problem, type FieldError } from '../../lib/problem.ts';
import { invalidRequest } from './problems.ts';

type Part = FieldError['in'];

/** The parts of a request before validation. */
export interface RawInput {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string | string[]>>;
  /** Parsed JSON; undefined where the endpoint takes no body. */
  readonly body: unknown;
}

interface Schemas<Params extends z.ZodObject, Query extends z.ZodObject, Body extends z.ZodType> {
  readonly params?: Params;
  readonly query?: Query;
  readonly body?: Body;
}

/** Schema of a part in which nothing is taken. */
export const noFields = z.strictObject({});

/** Validates all parts and reports what is wrong in all of them at once. @throws Problem (invalid-request) */
export function readInput<Params extends z.ZodObject, Query extends z.ZodObject, Body extends z.ZodType>(
  schemas: Schemas<Params, Query, Body>,
  raw: RawInput,
): { params: z.output<Params>; query: z.output<Query>; body: z.output<Body> } {
  const errors: FieldError[] = [];
  const take = (part: Part, schema: z.ZodType, value: unknown): unknown => {
    const parsed = schema.safeParse(value, { reportInput: true });
    if (parsed.success) return parsed.data;
    errors.push(...parsed.error.issues.flatMap((issue) => fieldErrors(part, schema, issue)));
    return undefined;
  };
  const params = take('path', schemas.params ?? noFields, raw.params);
  const query = take('query', schemas.query ?? noFields, raw.query);
  const body = schemas.body === undefined ? undefined : take('body', schemas.body, raw.body);
  if (errors.length > 0) throw invalid(errors);
  return { params: params as z.output<Params>, query: query as z.output<Query>, body: body as z.output<Body> };
}

/** Errors that are told; a body of nothing but unknown fields must not be answered by ten times its length. */
const mostErrors = 20;

/** A problem that names what is wrong. */
export function invalid(errors: readonly FieldError[]): Problem {
  const [first] = errors;
  const named = first === undefined || first.field === '' ? '' : `${first.field}: `;
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more, see errors)` : '';
  return new Problem(invalidRequest, `${named}${first?.message ?? 'invalid'}${more}`, {
    errors: errors.slice(0, mostErrors),
  });
}

function fieldErrors(part: Part, schema: z.ZodType, issue: z.core.$ZodIssue): FieldError[] {
  const field = issue.path.map(String).join('.');
  const within = at(schema, issue.path);
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      in: part,
      field: field === '' ? key : `${field}.${key}`,
      message: `there is no such field in the ${part}`,
      fix: unknownFix(within),
    }));
  }
  return [{ in: part, field, message: messageOf(issue), fix: fixOf(part, issue, within) }];
}

function unknownFix(within: z.ZodType | undefined): string {
  const known = within instanceof z.ZodObject ? Object.keys(within.shape) : [];
  return known.length === 0
    ? 'leave it out; nothing is taken here'
    : `leave it out; the fields are: ${known.join(', ')}`;
}

function messageOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_type') {
    if (issue.input === undefined) return 'is missing';
    return `must be ${article(issue.expected)}`;
  }
  if (issue.code === 'too_big' && issue.origin === 'string')
    return `is longer than ${String(issue.maximum)} characters`;
  if (issue.code === 'too_small' && issue.origin === 'string')
    return `is shorter than ${String(issue.minimum)} ${issue.minimum === 1 ? 'character' : 'characters'}`;
  return issue.message;
}

function fixOf(part: Part, issue: z.core.$ZodIssue, within: z.ZodType | undefined): string {
  const description = within?.description;
  if (issue.path.length === 0) return `send a JSON object${description === undefined ? '' : `: ${description}`}`;
  if (description !== undefined) return `send: ${description}`;
  return part === 'query' ? 'give it once, in the form that /openapi.json describes' : 'see /openapi.json for its form';
}

function article(expected: string): string {
  if (expected === 'int') return 'a whole number';
  return `${/^[aeiou]/.test(expected) ? 'an' : 'a'} ${expected}`;
}

/** The schema of the field at a path, looked up through objects, arrays and optional wrappers. */
function at(schema: z.ZodType | undefined, path: readonly PropertyKey[]): z.ZodType | undefined {
  const [head, ...rest] = path;
  if (head === undefined || schema === undefined) return schema;
  return at(child(unwrap(schema), head), rest);
}

function child(schema: z.ZodType, key: PropertyKey): z.ZodType | undefined {
  if (schema instanceof z.ZodObject) return (schema.shape as Record<PropertyKey, z.ZodType>)[key];
  if (schema instanceof z.ZodArray) return schema.element as z.ZodType;
  return undefined;
}

function unwrap(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) return unwrap(schema.unwrap() as z.ZodType);
  return schema;
}
