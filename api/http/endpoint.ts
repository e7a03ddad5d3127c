// defineEndpoint(): one definition of an endpoint gives its route, its validation and its OpenAPI entry.
import type { z } from 'zod';
import type { Logger } from '../../lib/telemetry.ts';
import type { ProblemType } from '../../lib/problem.ts';
import { createJsonResponse } from './response/buffered-response.ts';
import { createConditionalJsonResponse } from './response/conditional.ts';
import type { Caller } from './request/caller.ts';
import { eventStreamType } from './response/event-stream.ts';
import { readInput, type noFields, type RawInput } from './problems/validation.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** What a handler knows about its request, in addition to the validated input. */
export interface RequestContext extends CallContext {
  /** Media type to answer with: one of the endpoint's `produces`. */
  readonly mediaType: string;
}

/** What any call knows about its request, over plain HTTP or a protocol. */
export interface CallContext {
  /** Id of the request: in the answer's X-Request-Id, in problems and in the log. */
  readonly id: string;
  readonly headers: Headers;
  /** Identifies the caller. */
  caller(): Caller;
  /** Aborted when the client goes away or when the process has to end. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /**
   * Calls this when the exchange is over, on every path: the answer is sent, was never read, failed, or the client has
   * gone. What a handler takes for the time of its answer, it gives back here.
   */
  onFinished(done: () => void): void;
}

/**
 * What answers at a path by the rules of a protocol of its own, such as MCP: it reads the request itself, whatever the
 * method.
 */
export interface ProtocolMount {
  readonly path: string;
  /** Which paths it answers, as the router writes it, where that is more than `path`. */
  readonly pattern?: string;
  /** Which requests there are for it; all when left out. */
  accepts?(request: Request): boolean;
  handle(request: Request, context: CallContext): Promise<Response>;
}

type Fields = z.ZodObject;
type Empty = typeof noFields;

/** Validated input of a handler. */
export interface Input<Params extends Fields, Query extends Fields, Body extends z.ZodType> {
  readonly params: z.output<Params>;
  readonly query: z.output<Query>;
  readonly body: z.output<Body>;
}

/** An endpoint as its author writes it. */
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
  /** Schemas of what comes in. Strict objects: an unknown field is refused by name. Descriptions say what to send. */
  readonly params?: Params;
  readonly query?: Query;
  readonly body?: Body;
  /** How a body is written; default JSON. A form comes as an object of its fields, and only from pages of this site. */
  readonly bodyForm?: 'json' | 'form';
  /** Maximum size of a body in bytes; default 64 KiB. */
  readonly bodyLimit?: number;
  /**
   * Reads the input where its schemas alone do not say it; by default they validate each part as it came. @throws
   * Problem (invalid-request)
   */
  readonly read?: (raw: RawInput) => Reading;
  /** Schema of a JSON answer. Answers are parsed by it: what it does not name does not leave. */
  readonly output: Output;
  readonly outputDescription: string;
  /** The answer says something of the caller: pages of other sites may read it only with a key. */
  readonly returnsCallerData?: boolean;
  /**
   * The answer is the same for everybody and may be kept for so many seconds: it has an ETag, and is 304 for a reader
   * whose If-None-Match names it. Default: nothing is kept.
   */
  readonly maxAgeSeconds?: number;
  /** Media types of the answer, the preferred one first; default application/json. */
  readonly produces?: readonly string[];
  /** Headers of an answer that succeeds, beside those that every endpoint of its kind sends: what each says. */
  readonly responseHeaders?: Readonly<Record<string, string>>;
  /** Headers of each of its problems, in addition to those that problems of that status have anywhere: what each says. */
  readonly problemHeaders?: Readonly<Record<string, string>>;
  /** Problems that it answers beside those that any endpoint can. */
  readonly problems?: readonly ProblemType[];
  /** Answers with a value of `output`, or with a whole Response of one of `produces`. Refuses by throwing a Problem. */
  readonly handler: (input: Reading, context: RequestContext) => Promise<z.input<Output> | Response>;
  /**
   * Required for GET. `as GET`: the handler only reads, so it also answers HEAD, and its content is left out. A function
   * answers HEAD where the handler takes, does or charges something, and does none of that.
   */
  readonly head?: 'as GET' | ((input: Reading, context: RequestContext) => Promise<Response>);
}

/** An endpoint as the application mounts and describes it. */
export interface Endpoint extends Omit<
  EndpointDefinition<Fields, Fields, z.ZodType, z.ZodType>,
  'handler' | 'head' | 'read' | 'produces' | 'bodyLimit' | 'problems'
> {
  readonly produces: readonly string[];
  readonly bodyLimit: number;
  readonly problems: readonly ProblemType[];
  /** Validates the input and runs the handler. @throws Problem */
  run(raw: RawInput, context: RequestContext): Promise<Response>;
  /** Does the same for HEAD, whose content is left out. @throws Problem */
  head(raw: RawInput, context: RequestContext): Promise<Response>;
}

/** Defines an endpoint. */
export function defineEndpoint<
  Params extends Fields = Empty,
  Query extends Fields = Empty,
  Body extends z.ZodType = z.ZodUndefined,
  Output extends z.ZodType = z.ZodType,
  Reading = Input<Params, Query, Body>,
>(definition: EndpointDefinition<Params, Query, Body, Output, Reading>): Endpoint {
  const { handler, head, read = (raw: RawInput) => readInput(definition, raw) as Reading, ...rest } = definition;
  if (definition.method === 'GET') assertHeadDefined(definition);
  const run = async (raw: RawInput, context: RequestContext): Promise<Response> => {
    const answer = await handler(read(raw), context);
    if (answer instanceof Response) return answer;
    const value = definition.output.parse(answer);
    return definition.maxAgeSeconds === undefined
      ? createJsonResponse(value, { headers: { 'cache-control': 'no-store' } })
      : createConditionalJsonResponse(value, context, { maxAgeSeconds: definition.maxAgeSeconds });
  };
  return {
    ...rest,
    produces: definition.produces ?? ['application/json'],
    bodyLimit: definition.bodyLimit ?? 65_536,
    problems: definition.problems ?? [],
    run,
    head: typeof head === 'function' ? async (raw, context) => head(read(raw), context) : run,
  };
}

/** Whoever defines a GET has to say what HEAD does: a handler with an effect must not run for it. */
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
