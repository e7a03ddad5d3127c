// Defines endpoints: one definition gives the route, the validation and the OpenAPI entry.
import type { z } from 'zod';
import type { Logger } from '../../lib/telemetry.ts';
import type { ProblemType } from '../../lib/problem.ts';
import { createJsonResponse, createConditionalJsonResponse, eventStreamType } from './response.ts';
import type { Caller } from './caller.ts';
import { readInput, type noFields, type RawInput } from './validation.ts';

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
  /** Format of the body. Default: JSON. A form is read as an object of its fields, and only from pages of this site. */
  readonly bodyForm?: 'json' | 'form';
  /** Maximum size of a body in bytes. Default: 64 KiB. */
  readonly bodyLimit?: number;
  /** Reads the input if schemas alone cannot. Default: validates each part. @throws Problem (invalid-request) */
  readonly read?: (raw: RawInput) => Reading;
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
    const { maxAgeSeconds } = definition;
    return maxAgeSeconds === undefined
      ? createJsonResponse(answered.value, { headers: { 'cache-control': 'no-store', ...answered.headers } })
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
