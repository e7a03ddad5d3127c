// Checks what came in against an endpoint's schemas, and names every field that is wrong together with its fix.
import { z } from 'zod';
import { Problem, type FieldError } from '../../../lib/problem.ts';
import { suggestFix, formatMessage, createUnknownFieldError } from './field-errors.ts';
import { invalidRequest } from './problems.ts';

/** Where a field stands. */
export type InputPart = FieldError['in'];

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

/**
 * Query of a document that is the same whatever is sent: links to one are shared with cache busters and the like, which
 * are ignored. Never for an endpoint that bills or changes something, where a typing error must be refused.
 */
export const ignoredFields = z.object({});

/** Validates all parts and reports what is wrong in all of them at once. @throws Problem (invalid-request) */
export function readInput<Params extends z.ZodObject, Query extends z.ZodObject, Body extends z.ZodType>(
  schemas: Schemas<Params, Query, Body>,
  raw: RawInput,
): { params: z.output<Params>; query: z.output<Query>; body: z.output<Body> } {
  const errors: FieldError[] = [];
  const params = collectErrors('path', schemas.params ?? noFields, raw.params, errors);
  const query = collectErrors('query', schemas.query ?? noFields, raw.query, errors);
  const body = schemas.body === undefined ? undefined : collectErrors('body', schemas.body, raw.body, errors);
  if (errors.length > 0) throw createValidationProblem(errors);
  return { params: params as z.output<Params>, query: query as z.output<Query>, body: body as z.output<Body> };
}

/** Validates one part. @throws Problem (invalid-request) */
export function readPart<Schema extends z.ZodType>(part: InputPart, schema: Schema, value: unknown): z.output<Schema> {
  const errors: FieldError[] = [];
  const read = collectErrors(part, schema, value, errors);
  if (errors.length > 0) throw createValidationProblem(errors);
  return read as z.output<Schema>;
}

/** Errors that are reported; a body of nothing but unknown fields must not be answered by ten times its length. */
const maxErrors = 20;

/** A problem that names what is wrong. */
export function createValidationProblem(errors: readonly FieldError[]): Problem {
  const [first] = errors;
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more, see errors)` : '';
  return new Problem(
    invalidRequest,
    first === undefined ? 'The request is not valid.' : `${formatFieldError(first)}${more}.`,
    {
      errors: errors.slice(0, maxErrors),
    },
  );
}

const wholes: Readonly<Record<InputPart, string>> = {
  body: 'The body',
  query: 'The query',
  path: 'The path',
  header: 'The header',
  argument: 'The arguments',
};
const fields: Readonly<Record<InputPart, string>> = {
  body: 'Body field',
  query: 'Query parameter',
  path: 'Path parameter',
  header: 'Header',
  argument: 'Argument',
};

/** `Query parameter "q" is missing`, without a full stop. */
function formatFieldError({ in: part, field, message }: FieldError): string {
  const subject = field === '' ? wholes[part] : `${fields[part]} "${field}"`;
  return `${subject} ${message.replace(/\.$/, '')}`;
}

/** The value as its schema gives it; what is wrong with it is added to `errors`. */
function collectErrors(part: InputPart, schema: z.ZodType, value: unknown, errors: FieldError[]): unknown {
  // A message of its own stays with a rule; where there is none, it is left empty and found in plain words here.
  const parsed = schema.safeParse(value, { reportInput: true, error: () => '' });
  if (parsed.success) return parsed.data;
  for (const issue of parsed.error.issues.flatMap(narrowUnion)) errors.push(...toFieldErrors(part, schema, issue));
  return undefined;
}

/** Of a value with several forms, what is wrong by the only form whose type it has: the field itself, not the whole value. */
function narrowUnion(issue: z.core.$ZodIssue): z.core.$ZodIssue[] {
  if (issue.code !== 'invalid_union') return [issue];
  const fitting = issue.errors.filter((issues) =>
    issues.every((inner) => inner.path.length > 0 || !isOtherType(inner)),
  );
  const [only] = fitting;
  if (only === undefined || fitting.length > 1) return [issue];
  return only.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] })).flatMap(narrowUnion);
}

/** Whether a form of a value is one of another type: a number, or one of some words, where an object was sent. */
function isOtherType({ code, input }: z.core.$ZodIssue): boolean {
  return code === 'invalid_type' || (code === 'invalid_value' && typeof input === 'object');
}

function toFieldErrors(part: InputPart, schema: z.ZodType, issue: z.core.$ZodIssue): FieldError[] {
  const field = issue.path.map(String).join('.');
  const forms = findForms([schema], issue.path);
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => createUnknownFieldError(part, { path: issue.path, key, input: issue.input }, forms));
  const about = forms.find(({ description }) => description !== undefined)?.description;
  return [{ in: part, field, message: formatMessage(part, issue), fix: suggestFix(part, issue, about) }];
}

/** The schemas of the field at a path, looked up through objects, arrays, forms and optional wrappers. */
function findForms(schemas: readonly z.ZodType[], path: readonly PropertyKey[]): readonly z.ZodType[] {
  const [head, ...rest] = path;
  if (head === undefined) return schemas.flatMap((schema) => [schema, ...listForms(schema)]);
  return findForms(
    schemas.flatMap(listForms).flatMap((form) => getChildSchema(form, head) ?? []),
    rest,
  );
}

/** The schema without its wrappers; of a union all of its forms. */
function listForms(schema: z.ZodType): readonly z.ZodType[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodNullable)
    return listForms(schema.unwrap() as z.ZodType);
  if (schema instanceof z.ZodUnion) return schema.options.flatMap((option) => listForms(option as z.ZodType));
  return [schema];
}

function getChildSchema(schema: z.ZodType, key: PropertyKey): z.ZodType | undefined {
  if (schema instanceof z.ZodObject) return (schema.shape as Record<PropertyKey, z.ZodType>)[key];
  return schema instanceof z.ZodArray ? (schema.element as z.ZodType) : undefined;
}
