// Answers requests: routes each one with express to an endpoint or a protocol, turns anything thrown into a problem response,
// and writes the line in the access log.
import type { RequestListener, IncomingMessage, ServerResponse } from 'node:http';
import { randomUUID } from 'node:crypto';
import express, { type Request as ExpressRequest, type Response as ExpressResponse, type Router } from 'express';
import Negotiator from 'negotiator';
import { NodeRequest } from 'srvx/node';
import { ApiError } from '../../lib/kubernetes/index.ts';
import { Problem, buildProblemBody, problemMediaType } from '../../lib/problem.ts';
import { type Endpoint, type ProtocolMount, createValidationProblem, type CallContext } from './endpoint.ts';
import {
  clusterUnavailable,
  internalFault,
  malformedRequest,
  methodNotAllowed,
  notFound,
  notAcceptable,
} from './problems.ts';
import {
  readFormBody,
  readJsonBody,
  readRawBody,
  rejectKeysInQuery,
  identifyCaller,
  type Caller,
  type CallerRules,
  groupFields,
  type RequestFields,
} from './request.ts';
import { type Logger, type HttpMetrics } from '../../lib/telemetry.ts';
import { createJsonResponse, sendResponse } from './response.ts';

export interface RequestListenerOptions extends ExchangeOptions {
  readonly endpoints: readonly Endpoint[];
  readonly protocols?: readonly ProtocolMount[];
}

/**
 * Creates the listener that answers every request. It uses the router of express without its application, which would
 * change the prototypes of each request and response (see docs/adr/0007).
 */
export function createRequestListener(options: RequestListenerOptions): RequestListener {
  const router = express.Router({ caseSensitive: true });
  for (const protocol of options.protocols ?? []) mountProtocol(router, protocol);
  router.use((request, _response, next) => {
    request.url = normalizeUrl(request.url);
    next();
  });
  const byPath = Map.groupBy(options.endpoints, ({ path }) => path);
  for (const [path, endpoints] of byPath) mountEndpoints(router, path, endpoints);
  return (incoming, outgoing) => {
    const exchange = new Exchange(incoming, outgoing, options);
    const request = Object.assign(incoming, { exchange }) as unknown as ExpressRequest;
    router(request, outgoing as ExpressResponse, (error: unknown) => {
      void exchange.sendProblem(toProblem(error ?? createNotFound(exchange, options), exchange));
    });
  };
}

/** Protocols are mounted before URLs are normalized: they get their path as it was sent. */
function mountProtocol(router: Router, protocol: ProtocolMount): void {
  router.route(toRawPathPattern(protocol.pattern ?? protocol.path)).all(async (request, _response, next) => {
    const exchange = getExchange(request);
    if (protocol.accepts?.(exchange.request) === false) {
      next();
      return;
    }
    exchange.route = protocol.path;
    rejectKeysInQuery(exchange.query);
    await exchange.send(await protocol.handle(exchange.request, exchange));
  });
}

/** Mounts the endpoints of one path. HEAD comes before GET, whose handler express would otherwise run for it. */
function mountEndpoints(router: Router, path: string, endpoints: readonly Endpoint[]): void {
  const route = router.route(toExpressPath(path));
  const methods = endpoints.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  const allow = [...methods, 'OPTIONS'].join(', ');
  const returnsCallerData = endpoints.some((endpoint) => endpoint.returnsCallerData === true);
  route.all((request, _response, next) => {
    Object.assign(getExchange(request), { route: path, returnsCallerData });
    next();
  });
  for (const endpoint of endpoints) {
    if (endpoint.method === 'GET') route.head(createHandler(endpoint, 'head'));
    route[endpoint.method.toLowerCase() as Lowercase<Endpoint['method']>](createHandler(endpoint, 'run'));
  }
  route.options(async (request) => {
    const exchange = getExchange(request);
    // A preflight request has no credentials. Access to caller data is decided when the actual request brings them.
    exchange.returnsCallerData = false;
    const requestedHeaders = exchange.headers.get('access-control-request-headers');
    const headers = { allow, ...(exchange.allowsOtherSites ? createPreflightHeaders(allow, requestedHeaders) : {}) };
    await exchange.send(new Response(null, { status: 204, headers }));
  });
  route.all(({ method }) => {
    throw new Problem(methodNotAllowed, `${path} does not support ${method.slice(0, 20)}. Use ${allow}.`, {
      headers: { allow },
    });
  });
}

function createHandler(
  endpoint: Endpoint,
  run: 'run' | 'head',
): (request: ExpressRequest<Record<string, string>>) => Promise<void> {
  const readBody = { json: readJsonBody, form: readFormBody, raw: readRawBody }[endpoint.bodyForm ?? 'json'];
  return async (request) => {
    const exchange = getExchange(request);
    const { query } = exchange;
    rejectKeysInQuery(query);
    const body = endpoint.body === undefined ? undefined : await readBody(exchange.incoming, endpoint.bodyLimit);
    // Assigned to the exchange, not copied from it: its getters build headers, signal and log on demand.
    const context = Object.assign(exchange, { mediaType: exchange.negotiateMediaType(endpoint.produces) });
    await exchange.send(await endpoint[run]({ params: request.params, query, body }, context));
  };
}

/** Returns the exchange that an express request belongs to. */
function getExchange(request: object): Exchange {
  return (request as { exchange: Exchange }).exchange;
}

/** `/apps/{slug}/files/*` in the syntax of express; every other character stands for itself. */
function toExpressPath(path: string): string {
  return path
    .replaceAll(/[\\:()[\]?+!]/g, String.raw`\$&`)
    .replaceAll(/\{([^}]+)\}/g, ':$1')
    .replaceAll('*', '*rest');
}

/** The same for paths that are matched as they were sent: express decodes only captured groups. */
function toRawPathPattern(path: string): RegExp {
  const parts = path.split(/(\{[^}]+\}|\*)/).map((part) => {
    if (part === '*') return '.*';
    return part.startsWith('{') ? '[^/]+' : part.replaceAll(/[\\^$.|?*+()[\]{}]/g, String.raw`\$&`);
  });
  return new RegExp(`^${parts.join('')}/?$`, 's');
}

/** A URL that has only one spelling, so there is nothing to normalize. */
const normalUrl = /^\/(?!\/)[\w!$&'()*+,;=:@~-]*(?:[/.][\w!$&'()*+,;=:@~-]+)*\/?(?:\?[^#]*)?$/;
/** Unreserved characters, which mean the same whether they are encoded or not (RFC 3986, 6.2.2.2). */
const encodedUnreserved = /%(?:2[DE]|3\d|4[1-9A-F]|5[\dAF]|6[1-9A-F]|7[\dAE])/gi;

/**
 * Normalizes the URL of a request for routing: removes dot segments and decodes unreserved characters. Reserved
 * characters stay encoded. @throws Problem (malformed-request)
 */
function normalizeUrl(url: string): string {
  if (normalUrl.test(url)) return url;
  if (url.split('?', 1)[0]?.includes('\\') === true || !URL.canParse(url, 'http://host'))
    throw new Problem(malformedRequest, 'The path of the request is not valid. Percent-encode special characters.');
  const { pathname, search } = new URL(url.startsWith('/') ? `http://host${url}` : url, 'http://host');
  return pathname.replaceAll(encodedUnreserved, (encoded) => decodeURIComponent(encoded)) + search;
}

function createNotFound({ path }: Exchange, { baseUrl }: RequestListenerOptions): Problem {
  return new Problem(
    notFound,
    `There is nothing at ${path.slice(0, 200)}. ${baseUrl}/openapi.json lists all endpoints.`,
  );
}

/** Converts anything thrown to a problem. Our own faults are logged in full and reported without internal details. */
function toProblem(error: unknown, exchange: Exchange): Problem {
  if (error instanceof Problem) {
    if (error.type.status >= 500 && error.cause !== undefined)
      exchange.log.warn(
        { err: error.cause, type: error.type.slug, route: exchange.route },
        'could not serve a request',
      );
    return error;
  }
  if (error instanceof URIError)
    return createValidationProblem([
      {
        in: 'path',
        field: '',
        message: 'has a % that is not followed by the two hexadecimal digits of a UTF-8 byte',
        fix: 'Percent-encode the path as UTF-8; write a plain % as %25.',
      },
    ]);
  exchange.log.error({ err: error, route: exchange.route }, 'request failed');
  if (error instanceof ApiError && isTransient(error.status)) {
    const seconds = error.retryAfterSeconds ?? 5;
    return new Problem(clusterUnavailable, `The Kubernetes API did not answer. Try again in ${seconds} seconds.`, {
      headers: { 'retry-after': String(seconds) },
      cause: error,
    });
  }
  return new Problem(internalFault, `Something went wrong on our side. It is logged as ${exchange.id}.`, {
    cause: error,
  });
}

/**
 * Whether the cluster may answer differently later. An API server that has just started rejects (401, 403) requests
 * that it allows a moment later.
 */
function isTransient(status: number): boolean {
  return status === 0 || status === 401 || status === 403 || status === 429 || status >= 500;
}

/** The parts of a refused request that its problem page shows. */
export interface RefusedRequest {
  readonly id: string;
  /** As it was sent, without the query. */
  readonly path: string;
  readonly query: RequestFields;
  readonly headers: Headers;
}

/** What every exchange needs. */
interface ExchangeOptions {
  readonly baseUrl: string;
  readonly callers: CallerRules;
  readonly log: Logger;
  readonly metrics: HttpMetrics;
  /** Aborted when open streams have to end because the process is shutting down. */
  readonly ending: AbortSignal;
  /** Paths whose responses pages of other sites may read. Default: none. */
  readonly openPaths?: RegExp | undefined;
  /** Extra members of a path's problems, for clients that expect errors in another format. */
  readonly problemMembers?: ((problem: Problem, path: string) => Readonly<Record<string, unknown>>) | undefined;
  /** Extra headers of a path's problems. */
  readonly problemHeaders?: ((problem: Problem, path: string) => Readonly<Record<string, string>>) | undefined;
  /** Renders a problem for a person in a browser; undefined sends it as JSON. */
  readonly problemPage?: ((problem: Problem, request: RefusedRequest) => Response | undefined) | undefined;
}

/** One request and its response. */
class Exchange implements CallContext {
  readonly id: string;
  readonly incoming: IncomingMessage;
  /** Path of the endpoint that answers, for metrics and the log. */
  route = 'unmatched';
  /** Whether the response describes the caller, who is identified by address when they send no key. */
  returnsCallerData = false;
  readonly #outgoing: ServerResponse;
  readonly #options: ExchangeOptions;
  /** As it was sent: the router changes `incoming.url`. */
  readonly #url: string;
  readonly #start = performance.now();
  readonly #onFinished: (() => void)[] = [];
  #isFinished = false;
  #request: Request | undefined;

  constructor(incoming: IncomingMessage, outgoing: ServerResponse, options: ExchangeOptions) {
    const requestId = incoming.headers['x-request-id'];
    this.id = typeof requestId === 'string' && /^[A-Za-z0-9._-]{8,64}$/.test(requestId) ? requestId : randomUUID();
    this.incoming = incoming;
    this.#outgoing = outgoing;
    this.#options = options;
    this.#url = incoming.url ?? '/';
    options.metrics.open.inc();
  }

  /** The request as protocol handlers take it. Its parts are created on demand. */
  get request(): Request {
    return (this.#request ??= new NodeRequest({ req: this.incoming, res: this.#outgoing }));
  }

  get headers(): Headers {
    return this.request.headers;
  }

  get signal(): AbortSignal {
    return AbortSignal.any([this.request.signal, this.#options.ending]);
  }

  get log(): Logger {
    return this.#options.log.child({ request_id: this.id });
  }

  get path(): string {
    return this.#url.split('?', 1)[0] ?? '';
  }

  get query(): RequestFields {
    const start = this.#url.indexOf('?');
    return start === -1 ? {} : groupFields(new URLSearchParams(this.#url.slice(start + 1)));
  }

  caller(): Caller {
    const { headers, socket } = this.incoming;
    const forwardedFor = headers['x-forwarded-for'];
    return identifyCaller(
      {
        peer: socket.remoteAddress,
        // Node joins repeated headers itself, but its types do not say for which.
        forwardedFor: Array.isArray(forwardedFor) ? forwardedFor.join(', ') : forwardedFor,
        authorization: headers.authorization,
      },
      this.#options.callers,
    );
  }

  /** Returns the media type that the client prefers among those of an endpoint. @throws Problem (not-acceptable) */
  negotiateMediaType(produces: readonly string[]): string {
    const [preferred] = produces;
    const { accept } = this.incoming.headers;
    // An endpoint that returns files of any type ignores Accept, as RFC 9110 (12.5.1) allows.
    if (preferred !== undefined && (accept === undefined || preferred === '*/*')) return preferred;
    const [chosen] = new Negotiator({ headers: { accept } }).mediaTypes([...produces]);
    if (chosen !== undefined) return chosen;
    throw new Problem(
      notAcceptable,
      `This endpoint answers with ${produces.join(' or ')}, which the Accept header excludes.`,
      { members: { offers: produces } },
    );
  }

  /**
   * Whether a page of another site may read the response. Data of a visitor who is identified by address alone is closed
   * to it: their browser would hand that data to any page they open.
   */
  get allowsOtherSites(): boolean {
    if (this.#options.openPaths?.test(this.path) !== true) return false;
    return !this.returnsCallerData || this.incoming.headers.authorization !== undefined;
  }

  onFinished(done: () => void): void {
    if (this.#isFinished) done();
    else this.#onFinished.push(done);
  }

  /** Records the response in the log and the metrics, and sends it. Never throws. */
  async send(response: Response): Promise<void> {
    this.#record(response.status);
    const added = ['x-request-id', this.id, 'x-content-type-options', 'nosniff'];
    if (this.allowsOtherSites) added.push(...corsHeaders);
    try {
      await sendResponse(response, this.incoming, this.#outgoing, added);
    } catch (error) {
      // The headers are sent, so there is no way to report the error: the connection is closed.
      this.log.debug({ err: error }, 'the response was not sent completely');
    } finally {
      this.#isFinished = true;
      for (const done of this.#onFinished.splice(0)) done();
    }
  }

  async sendProblem(problem: Problem): Promise<void> {
    const { baseUrl, metrics, problemPage, problemMembers, problemHeaders } = this.#options;
    metrics.problems.inc({ type: problem.type.slug });
    const page = problemPage?.(problem, this);
    if (page !== undefined) {
      await this.send(page);
      return;
    }
    const body = {
      ...buildProblemBody(problem, baseUrl, this.path.slice(0, 300), this.id),
      ...problemMembers?.(problem, this.path),
    };
    await this.send(
      createJsonResponse(body, {
        status: problem.type.status,
        headers: {
          ...problemHeaders?.(problem, this.path),
          ...problem.headers,
          'content-type': problemMediaType,
          'cache-control': 'no-store',
        },
      }),
    );
  }

  #record(status: number): void {
    const { log, metrics } = this.#options;
    const seconds = (performance.now() - this.#start) / 1000;
    const { method = '' } = this.incoming;
    const labels = { method: methodLabels.has(method) ? method : 'OTHER', route: this.route };
    metrics.open.dec();
    metrics.seconds.observe({ ...labels, status: String(status) }, seconds);
    log.info({ request_id: this.id, ...labels, status, ms: Math.round(seconds * 10_000) / 10 }, 'request');
  }
}

/** Methods as values of a label. An invented one becomes OTHER, so that the label cannot grow. */
const methodLabels: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Our headers that scripts need: browsers show only a few standard ones unless a response names the others. */
const exposedHeaders = [
  'content-disposition',
  'etag',
  'idempotent-replayed',
  'link',
  'location',
  'mcp-session-id',
  'ratelimit',
  'ratelimit-policy',
  'retry-after',
  'www-authenticate',
  'x-charged-usd',
  'x-cost-source',
  'x-cost-usd',
  'x-latency-ms',
  'x-quota-hint',
  'x-request-id',
  'x-warnings',
].join(', ');

/**
 * Names and values, alternating, for every response of an open path. CORS is granted to public endpoints only, and never
 * with the browser's credentials.
 */
const corsHeaders: readonly string[] = [
  'access-control-allow-origin',
  '*',
  'access-control-expose-headers',
  exposedHeaders,
];

const headerList = /^[A-Za-z0-9-]{1,60}(?:\s*,\s*[A-Za-z0-9-]{1,60}){0,40}$/;

/**
 * Builds the headers of a preflight response. Clients add headers of their own, so the requested ones are allowed by
 * name: `*` would not include Authorization.
 */
function createPreflightHeaders(methods: string, requested: string | null): Record<string, string> {
  return {
    'access-control-allow-methods': methods,
    'access-control-allow-headers':
      requested !== null && headerList.test(requested.trim())
        ? requested.trim()
        : 'authorization, content-type, idempotency-key',
    'access-control-max-age': '7200',
    vary: 'access-control-request-headers',
  };
}
