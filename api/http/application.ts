// Routes requests with express to endpoints and protocols, and turns anything thrown into a problem response.
import type { RequestListener } from 'node:http';
import express, { type Request, type Response as ExpressResponse, type Router } from 'express';
import { ApiError } from '../../lib/kubernetes/index.ts';
import { Problem } from '../../lib/problem.ts';
import type { Endpoint, ProtocolMount } from './endpoint.ts';
import { createPreflightHeaders, Exchange, type ExchangeOptions } from './exchange.ts';
import { clusterUnavailable, internalFault, malformedRequest, methodNotAllowed, notFound } from './problems.ts';
import { readFormBody, readJsonBody, rejectKeysInQuery } from './request-fields.ts';
import { createValidationProblem } from './validation.ts';

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
    const request = Object.assign(incoming, { exchange }) as unknown as Request;
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
): (request: Request<Record<string, string>>) => Promise<void> {
  const readBody = endpoint.bodyForm === 'form' ? readFormBody : readJsonBody;
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
        'request could not be served',
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
