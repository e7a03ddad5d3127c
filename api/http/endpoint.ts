// Defines endpoints: one definition gives the route, the validation and the OpenAPI entry. Reports every invalid field with a
// fix in plain words.
import { z } from 'zod';
import type { Logger } from '../../lib/telemetry.ts';
import { type ProblemType, type FieldError, findMeantField, findNearestNames, Problem } from '../../lib/problem.ts';
import { createJsonResponse, createConditionalJsonResponse, eventStreamType } from './response.ts';
import type { Caller } from './request.ts';
import { invalidRequest } from './problems.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** What a handler knows about its request, in addition to the validated input. */
export interface RequestContext extends CallContext {
  /** Media type to answer with: one of the endpoint's `produces`. */
  readonly mediaType: string;
}

/** What any call knows about its request, over plain HTTP or a protocol. */
export interface CallContext {
  /** Request id: in the X-Request-Id header, in problems and in the log. */
  readonly id: string;
  readonly headers: Headers;
  /** Identifies the caller. */
  caller(): Caller;
  /** Aborted when the client leaves or the process shuts down. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /**
   * Calls `done` when the exchange is over, on every path: the response is sent, was never read or failed, or the client
   * has left. A handler releases here what it holds while it answers.
   */
  onFinished(done: () => void): void;
}

/** A protocol such as MCP at a path. It handles every method and reads the request itself. */
export interface ProtocolMount {
  readonly path: string;
  /** Pattern of the paths that it answers. Default: `path`. */
  readonly pattern?: string;
  /** Whether a request is meant for this protocol. Default: all are. */
  accepts?(request: Request): boolean;
  handle(request: Request, context: CallContext): Promise<Response>;
}

type Fields = z.ZodObject;
type Empty = typeof noFields;

export interface Input<Params extends Fields, Query extends Fields, Body extends z.ZodType> {
  readonly params: z.output<Params>;
  readonly query: z.output<Query>;
  readonly body: z.output<Body>;
}

/** A value of an endpoint's `output`, with headers to send besides those of its kind. */
export class JsonAnswer<Value> {
  readonly value: Value;
  readonly headers: Readonly<Record<string, string>>;

  constructor(value: Value, headers: Readonly<Record<string, string>> = {}) {
    this.value = value;
    this.headers = headers;
  }
}

/** An endpoint as its author defines it. */
export interface EndpointDefinition<
  Params extends Fields,
  Query extends Fields,
  Body extends z.ZodType,
  Output extends z.ZodType,
  Reading = Input<Params, Query, Body>,
> {
  readonly method: Method;
  /** Like `/api/submit-status/{owner}/{name}`. */
  readonly path: string;
  /** OpenAPI operationId. */
  readonly operation: string;
  readonly summary: string;
  readonly description: string;
  readonly tag: string;
  /** Schemas of the input. Use strict objects, so that unknown fields are rejected by name. Descriptions say what to send. */
  readonly params?: Params;
  readonly query?: Query;
  readonly body?: Body;
  /**
   * Format of the body. Default: JSON. A form is read as an object of its fields, and only from pages of this site. `raw`
   * gives the handler the bytes as they were sent, for signatures over them; its schema is `rawBody`.
   */
  readonly bodyForm?: 'json' | 'form' | 'raw';
  /** Maximum size of a body in bytes. Default: 64 KiB. */
  readonly bodyLimit?: number;
  /** Reads the input if schemas alone cannot. Default: validates each part. @throws Problem (invalid-request) */
  readonly read?: (raw: RawInput) => Reading;
  /** Status of a successful response. Default: 200. 202: what was requested is done later. */
  readonly successStatus?: 200 | 202;
  /** Schema of a JSON response. Responses are parsed with it, so that fields it does not name never leave. */
  readonly output: Output;
  readonly outputDescription: string;
  /** The response describes the caller. Pages of other sites may read it only with a key. */
  readonly returnsCallerData?: boolean;
  /**
   * For how many seconds caches may keep the response, which must be the same for everyone. It gets an ETag, and is 304
   * for a reader whose If-None-Match names it. Default: `no-store`.
   */
  readonly maxAgeSeconds?: number;
  /** Media types of the response, the preferred one first. Default: application/json. */
  readonly produces?: readonly string[];
  /** Descriptions of response headers, in addition to those that every endpoint of its kind sends. */
  readonly responseHeaders?: Readonly<Record<string, string>>;
  /** Descriptions of headers on its problems, in addition to those that every problem of that status has. */
  readonly problemHeaders?: Readonly<Record<string, string>>;
  /** Problem types in addition to those of any endpoint. */
  readonly problems?: readonly ProblemType[];
  /** The scope that a token of an app needs for it, or `owner` or `key` if it accepts none. */
  readonly authorScope?: string;
  /**
   * Returns a value of `output`, such a value with headers, or a whole Response of a type in `produces`. Throws a Problem to
   * refuse.
   */
  readonly handler: (
    input: Reading,
    context: RequestContext,
  ) => Promise<z.input<Output> | JsonAnswer<z.input<Output>> | Response>;
  /**
   * Required for GET. `as GET`: the handler only reads, so it also answers HEAD, without the content. If the handler has an
   * effect, takes a slot or charges, pass a function that answers HEAD without doing so.
   */
  readonly head?: 'as GET' | ((input: Reading, context: RequestContext) => Promise<Response>);
}

/** An endpoint as it is mounted and described. */
export interface Endpoint extends Omit<
  EndpointDefinition<Fields, Fields, z.ZodType, z.ZodType>,
  'handler' | 'head' | 'read' | 'produces' | 'bodyLimit' | 'problems'
> {
  readonly produces: readonly string[];
  readonly bodyLimit: number;
  readonly problems: readonly ProblemType[];
  /** Validates the input and runs the handler. @throws Problem */
  run(raw: RawInput, context: RequestContext): Promise<Response>;
  /** Does the same for callers inside the process: returns the value of `output` that `run` would send. @throws Problem */
  call(raw: RawInput, context: RequestContext): Promise<unknown>;
  /** Does the same as `run` for HEAD; the content is dropped. @throws Problem */
  head(raw: RawInput, context: RequestContext): Promise<Response>;
}

/** Defines an endpoint. @throws TypeError for a GET without a safe `head` */
export function defineEndpoint<
  Params extends Fields = Empty,
  Query extends Fields = Empty,
  Body extends z.ZodType = z.ZodUndefined,
  Output extends z.ZodType = z.ZodType,
  Reading = Input<Params, Query, Body>,
>(definition: EndpointDefinition<Params, Query, Body, Output, Reading>): Endpoint {
  const { handler, head, read = (raw: RawInput) => readInput(definition, raw) as Reading, ...rest } = definition;
  if (definition.method === 'GET') assertHeadDefined(definition);
  const answer = async (raw: RawInput, context: RequestContext): Promise<JsonAnswer<z.output<Output>> | Response> => {
    const returned = await handler(read(raw), context);
    if (returned instanceof Response) return returned;
    const { value, headers } = returned instanceof JsonAnswer ? returned : new JsonAnswer(returned);
    return new JsonAnswer(definition.output.parse(value), headers);
  };
  const run = async (raw: RawInput, context: RequestContext): Promise<Response> => {
    const answered = await answer(raw, context);
    if (answered instanceof Response) return answered;
    const { maxAgeSeconds, successStatus: status = 200 } = definition;
    return maxAgeSeconds === undefined
      ? createJsonResponse(answered.value, { status, headers: { 'cache-control': 'no-store', ...answered.headers } })
      : createConditionalJsonResponse(answered.value, context, { maxAgeSeconds, headers: answered.headers });
  };
  return {
    ...rest,
    produces: definition.produces ?? ['application/json'],
    bodyLimit: definition.bodyLimit ?? 65_536,
    problems: definition.problems ?? [],
    run,
    async call(raw, context) {
      const answered = await answer(raw, context);
      if (answered instanceof Response)
        throw new TypeError(`${definition.method} ${definition.path} returned a whole Response`);
      return answered.value;
    },
    head: typeof head === 'function' ? async (raw, context) => head(read(raw), context) : run,
  };
}

/** Every GET must define what HEAD does, because a handler with an effect must not run for it. */
function assertHeadDefined({
  path,
  head,
  produces,
}: {
  path: string;
  head?: unknown;
  produces?: readonly string[];
}): void {
  if (head === undefined)
    throw new TypeError(`GET ${path} needs \`head\`: 'as GET' if its handler only reads, or a function`);
  if (head === 'as GET' && produces?.includes(eventStreamType) === true)
    throw new TypeError(`GET ${path} streams events and needs a function as \`head\`, so that HEAD opens no stream`);
}

/** The part of a request that a field belongs to. */
export type InputPart = FieldError['in'];
type Issue = z.core.$ZodIssue;

/** The parts of a request before validation. */
export interface RawInput {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string | string[]>>;
  /** Parsed JSON; undefined if the endpoint takes no body. */
  readonly body: unknown;
}

interface Schemas<Params extends z.ZodObject, Query extends z.ZodObject, Body extends z.ZodType> {
  readonly params?: Params;
  readonly query?: Query;
  readonly body?: Body;
}

/** Schema of a body that is read as bytes (`bodyForm: 'raw'`). */
export const rawBody = z.instanceof(Uint8Array);

/** Schema of a part that accepts no fields. */
export const noFields = z.strictObject({});

/**
 * Query schema of a document that is the same for every query. Links to documents are shared with cache busters, which are
 * ignored. Never use it for an endpoint that bills or changes something: there, a typing error must be rejected.
 */
export const ignoredFields = z.object({});

/** Validates all parts and reports the errors of all of them together. @throws Problem (invalid-request) */
export function readInput<Params extends z.ZodObject, Query extends z.ZodObject, Body extends z.ZodType>(
  schemas: Schemas<Params, Query, Body>,
  raw: RawInput,
): { params: z.output<Params>; query: z.output<Query>; body: z.output<Body> } {
  const errors: FieldError[] = [];
  const params = validate('path', schemas.params ?? noFields, raw.params, errors);
  const query = validate('query', schemas.query ?? noFields, raw.query, errors);
  const body = schemas.body === undefined ? undefined : validate('body', schemas.body, raw.body, errors);
  if (errors.length > 0) throw createValidationProblem(errors);
  return { params: params as z.output<Params>, query: query as z.output<Query>, body: body as z.output<Body> };
}

/** Validates one part. @throws Problem (invalid-request) */
export function readPart<Schema extends z.ZodType>(part: InputPart, schema: Schema, value: unknown): z.output<Schema> {
  const errors: FieldError[] = [];
  const read = validate(part, schema, value, errors);
  if (errors.length > 0) throw createValidationProblem(errors);
  return read as z.output<Schema>;
}

/** Bounds the response: a body full of unknown fields must not be answered with ten times its length. */
const maxErrors = 20;

/** Creates the problem that names these errors. */
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

/** Returns the value as its schema outputs it. Adds what is wrong with it to `errors`. */
function validate(part: InputPart, schema: z.ZodType, value: unknown, errors: FieldError[]): unknown {
  // A rule's own message stays. Where there is none, it is left empty here and written in plain words below.
  const parsed = schema.safeParse(value, { reportInput: true, error: () => '' });
  if (parsed.success) return parsed.data;
  for (const issue of parsed.error.issues.flatMap(narrowUnion)) errors.push(...toFieldErrors(part, schema, issue));
  return undefined;
}

/** If only one form of a union has the value's type, reports the errors of that form's fields instead of the whole value. */
function narrowUnion(issue: Issue): Issue[] {
  if (issue.code !== 'invalid_union') return [issue];
  const fitting = issue.errors.filter((issues) =>
    issues.every((inner) => inner.path.length > 0 || !isOtherType(inner)),
  );
  const [only] = fitting;
  if (only === undefined || fitting.length > 1) return [issue];
  return only.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] })).flatMap(narrowUnion);
}

/** Whether a form has another type than the value: a number, or one of some strings, where an object was sent. */
function isOtherType({ code, input }: Issue): boolean {
  return code === 'invalid_type' || (code === 'invalid_value' && typeof input === 'object');
}

function toFieldErrors(part: InputPart, schema: z.ZodType, issue: Issue): FieldError[] {
  const field = issue.path.map(String).join('.');
  const forms = findForms([schema], issue.path);
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => createUnknownFieldError(part, { path: issue.path, key, input: issue.input }, forms));
  const about = forms.find(({ description }) => description !== undefined)?.description;
  return [{ in: part, field, message: formatMessage(part, issue), fix: suggestFix(part, issue, about) }];
}

/** Finds the schemas of the field at a path, through objects, arrays, unions and optional wrappers. */
function findForms(schemas: readonly z.ZodType[], path: readonly PropertyKey[]): readonly z.ZodType[] {
  const [head, ...rest] = path;
  if (head === undefined) return schemas.flatMap((schema) => [schema, ...listForms(schema)]);
  return findForms(
    schemas.flatMap(listForms).flatMap((form) => getChildSchema(form, head) ?? []),
    rest,
  );
}

/** Returns the schema without its wrappers, or all forms of a union. */
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

type IssueMessages = { [Code in Issue['code']]: (issue: Extract<Issue, { code: Code }>, part: InputPart) => string };

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

/** Formats what is wrong as a predicate, since the name of the field comes before it. A schema's own message stays. */
function formatMessage(part: InputPart, issue: Issue): string {
  if (issue.message !== '') return issue.message;
  return (issueMessages[issue.code] as (issue: Issue, part: InputPart) => string)(issue, part);
}

/** Suggests what to send instead; `about`, the description of the field, says it best. */
function suggestFix(part: InputPart, issue: Issue, about: string | undefined): string {
  const own: unknown = issue.code === 'custom' ? issue.params?.['fix'] : undefined;
  if (typeof own === 'string') return own;
  if (issue.path.length === 0) return about === undefined ? 'Send a JSON object.' : `Send a JSON object: ${about}`;
  if (isRepeated(part, issue)) return 'Send it only once.';
  const meant = findMeantValue(issue);
  return `${meant === undefined ? '' : `Did you mean "${meant}"? `}${about === undefined ? 'See /openapi.json for its format.' : `Expected: ${about}`}`;
}

/** Whether a query parameter was sent several times although its field takes one value. A list may still be too long. */
function isRepeated(part: InputPart, { code, input, path, ...issue }: Issue): boolean {
  if (part !== 'query' || !Array.isArray(input) || typeof path.at(-1) === 'number') return false;
  return code === 'invalid_value' || (code === 'invalid_type' && 'expected' in issue && issue.expected !== 'array');
}

function findMeantValue(issue: Issue): string | undefined {
  if (issue.code !== 'invalid_value' || typeof issue.input !== 'string' || issue.values.length < 2) return undefined;
  const names = issue.values.filter((value) => typeof value === 'string');
  return findMeantField(issue.input, names) ?? findNearestNames(issue.input, names)[0];
}

/** Suggests the known field that was probably meant, unless that field was sent too. */
function createUnknownFieldError(
  part: InputPart,
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

/** Lists the fields of an object, or of the form that was sent if it has several. */
function listKnownFields(schemas: readonly z.ZodType[], input: unknown): string[] {
  const forms = schemas.filter((schema) => schema instanceof z.ZodObject);
  const sent = forms.filter((form) => hasMatchingConstants(form, input));
  return [...new Set((sent.length === 0 ? forms : sent).flatMap((form) => Object.keys(form.shape)))];
}

/** Whether every field with a single value in this form, such as its `type`, has that value. */
function hasMatchingConstants(form: z.ZodObject, input: unknown): boolean {
  return Object.entries(form.shape).every(
    ([name, field]) =>
      !(field instanceof z.ZodLiteral) ||
      (typeof input === 'object' &&
        input !== null &&
        field.safeParse((input as Record<string, unknown>)[name]).success),
  );
}

function formatWrongType(part: InputPart, expected: string, input: unknown): string {
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
