// Routes requests with express to endpoints and protocols, and answers whatever is thrown with a problem.
import type { RequestListener } from 'node:http';
import express, { type Request, type Response as ExpressResponse, type Router } from 'express';
import { ApiError } from '../../lib/kubernetes/index.ts';
import { Problem } from '../../lib/problem.ts';
import type { Endpoint, ProtocolMount, RequestContext } from './endpoint.ts';
import { Exchange, type ExchangeOptions } from './exchange.ts';
import { clusterUnavailable, internalFault, methodNotAllowed, notFound } from './problems/problems.ts';
import { createPreflightHeaders } from './response/cors.ts';
import { rejectKeysInQuery } from './request/query-keys.ts';
import { readFormBody } from './request/form-body.ts';
import { readJsonBody } from './request/request-body.ts';
import { toExpressPath, normalizeUrl, toRawPathPattern } from './request/request-path.ts';
import { createValidationProblem } from './problems/validation.ts';

/** What the application needs. */
export interface RequestListenerOptions extends ExchangeOptions {
  readonly endpoints: readonly Endpoint[];
  readonly protocols?: readonly ProtocolMount[];
}

/**
 * Answers every request. It is the router of express without its application, which would change the prototypes of
 * each request and response (see docs/adr/0007).
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

/** The exchange that a request of express belongs to. */
function getExchange(request: object): Exchange {
  return (request as { exchange: Exchange }).exchange;
}

function createNotFound({ path }: Exchange, { baseUrl }: RequestListenerOptions): Problem {
  return new Problem(
    notFound,
    `There is nothing at ${path.slice(0, 200)}. ${baseUrl}/openapi.json lists all endpoints.`,
  );
}

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

/** The endpoints of one path. HEAD comes before GET, whose handler express would run for it. */
function mountEndpoints(router: Router, path: string, endpoints: readonly Endpoint[]): void {
  const route = router.route(toExpressPath(path));
  const allow = listAllowedMethods(endpoints);
  const returnsCallerData = endpoints.some((endpoint) => endpoint.returnsCallerData === true);
  route.all((request, _response, next) => {
    Object.assign(getExchange(request), { route: path, returnsCallerData });
    next();
  });
  for (const endpoint of endpoints) {
    if (endpoint.method === 'GET') route.head(createHandler(endpoint, 'head'));
    route[toLowerCase(endpoint.method)](createHandler(endpoint, 'run'));
  }
  route.options(async (request) => {
    const exchange = getExchange(request);
    // The question before a request has no credentials; what may be read is decided when they come.
    exchange.returnsCallerData = false;
    const asked = exchange.headers.get('access-control-request-headers');
    const headers = { allow, ...(exchange.allowsOtherSites ? createPreflightHeaders(allow, asked) : {}) };
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
  return async (request) => {
    const exchange = getExchange(request);
    const { params } = request;
    const { query } = exchange;
    rejectKeysInQuery(query);
    const body = endpoint.body === undefined ? undefined : await readBody(exchange, endpoint);
    const context = toContext(exchange, exchange.negotiateMediaType(endpoint.produces));
    await exchange.send(await endpoint[run]({ params, query, body }, context));
  };
}

async function readBody({ incoming }: Exchange, { bodyForm, bodyLimit }: Endpoint): Promise<unknown> {
  return bodyForm === 'form' ? readFormBody(incoming, bodyLimit) : readJsonBody(incoming, bodyLimit);
}

/** Not a copy: what the context says of the request is made on demand. */
function toContext(exchange: Exchange, mediaType: string): RequestContext {
  return Object.assign(exchange, { mediaType });
}

function listAllowedMethods(endpoints: readonly Endpoint[]): string {
  const methods = endpoints.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return [...methods, 'OPTIONS'].join(', ');
}

function toLowerCase<Method extends string>(method: Method): Lowercase<Method> {
  return method.toLowerCase() as Lowercase<Method>;
}

/** Makes a problem of anything thrown. A fault of ours is logged in full and reported without its insides. */
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
 * Whether the cluster may answer otherwise later. An API server that has just started refuses (401, 403) what it allows
 * a moment later.
 */
function isTransient(status: number): boolean {
  return status === 0 || status === 401 || status === 403 || status === 429 || status >= 500;
}
