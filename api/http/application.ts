// The express application: mounts endpoints and protocols, and answers whatever is thrown with a problem.
import express, { type Express, type NextFunction, type Request, type Response as ExpressResponse } from 'express';
import { ApiError } from '../../lib/kubernetes/errors.ts';
import { Problem } from '../../lib/problem.ts';
import { BufferedResponse } from './buffered-response.ts';
import type { Endpoint, ProtocolMount, RequestContext } from './endpoint.ts';
import { Exchange, type ExchangeOptions } from './exchange.ts';
import { clusterUnavailable, internalFault, methodNotAllowed, notFound } from './problems.ts';
import { refuseKeys } from './query-keys.ts';
import { readJsonBody } from './request-body.ts';
import { expressPath, routingUrl, undecodedPath } from './request-path.ts';
import { invalid } from './validation.ts';

/** What the application needs. */
export interface AppOptions extends ExchangeOptions {
  readonly endpoints: readonly Endpoint[];
  readonly protocols?: readonly ProtocolMount[];
}

type Outgoing = ExpressResponse<unknown, { exchange: Exchange }>;

export function createApp(options: AppOptions): Express {
  const app = express();
  app.disable('x-powered-by').enable('case sensitive routing');
  app.use((request: Request, response: Outgoing, next) => {
    response.locals.exchange = new Exchange(request, response, options);
    next();
  });
  for (const protocol of options.protocols ?? []) mountProtocol(app, protocol);
  app.use((request, _response, next) => {
    request.url = routingUrl(request.url);
    next();
  });
  const byPath = Map.groupBy(options.endpoints, ({ path }) => path);
  for (const [path, endpoints] of byPath) mountEndpoints(app, path, endpoints);
  app.use((_request: Request, { locals: { exchange } }: Outgoing) => {
    throw new Problem(
      notFound,
      `There is nothing at ${exchange.path.slice(0, 200)}. ${options.baseUrl}/openapi.json lists all endpoints.`,
    );
  });
  // Express knows by its four parameters that this one handles errors.
  app.use(async (error: unknown, _request: Request, { locals: { exchange } }: Outgoing, _next: NextFunction) => {
    await exchange.refuse(problemOf(error, exchange));
  });
  return app;
}

function mountProtocol(app: Express, protocol: ProtocolMount): void {
  app
    .route(undecodedPath(protocol.pattern ?? protocol.path))
    .all(async (_request: Request, { locals: { exchange } }: Outgoing, next) => {
      if (protocol.takes?.(exchange.request) === false) {
        next();
        return;
      }
      exchange.route = protocol.path;
      refuseKeys(exchange.query);
      await exchange.answer(await protocol.answer(exchange.request, exchange));
    });
}

/** The endpoints of one path. HEAD comes before GET, whose handler express would run for it. */
function mountEndpoints(app: Express, path: string, endpoints: readonly Endpoint[]): void {
  const route = app.route(expressPath(path));
  const allow = allowedMethods(endpoints);
  route.all((_request: Request, { locals: { exchange } }: Outgoing, next) => {
    exchange.route = path;
    next();
  });
  for (const endpoint of endpoints) {
    if (endpoint.method === 'GET') route.head(handlerOf(endpoint, 'head'));
    route[lowerCase(endpoint.method)](handlerOf(endpoint, 'run'));
  }
  route.options(async (_request: Request, { locals: { exchange } }: Outgoing) => {
    await exchange.answer(new Response(null, { status: 204, headers: { allow } }));
  });
  route.all(({ method }) => {
    throw new Problem(methodNotAllowed, `${path} does not support ${method.slice(0, 20)}. Use ${allow}.`, {
      headers: { allow },
    });
  });
}

function handlerOf(
  endpoint: Endpoint,
  run: 'run' | 'head',
): (request: Request<Record<string, string>>, response: Outgoing) => Promise<void> {
  return async ({ params }, { locals: { exchange } }) => {
    const { query } = exchange;
    refuseKeys(query);
    const body =
      endpoint.body === undefined ? undefined : await readJsonBody(exchange.incoming, endpoint.bodyLimit);
    const context = contextOf(exchange, exchange.mediaTypeOf(endpoint.produces));
    await exchange.answer(await endpoint[run]({ params, query, body }, context));
  };
}

/** Not a copy: what the context says of the request is made on demand. */
function contextOf(exchange: Exchange, mediaType: string): RequestContext {
  return Object.assign(exchange, { mediaType });
}

function allowedMethods(endpoints: readonly Endpoint[]): string {
  const methods = endpoints.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return [...methods, 'OPTIONS'].join(', ');
}

function lowerCase<Method extends string>(method: Method): Lowercase<Method> {
  return method.toLowerCase() as Lowercase<Method>;
}

/** Makes a problem of anything thrown. A fault of ours is logged in full and reported without its insides. */
function problemOf(error: unknown, exchange: Exchange): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof URIError)
    return invalid([
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
