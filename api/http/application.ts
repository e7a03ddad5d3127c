// Mounts endpoints on a router: request ids, media types, bodies, problems, access log and metrics.
import { randomUUID } from 'node:crypto';
import type { HttpBindings } from '@hono/node-server';
import { Hono, type Context } from 'hono';
import Negotiator from 'negotiator';
import { ApiError } from '../../lib/kubernetes/index.ts';
import type { Logger } from '../../lib/log.ts';
import { methodLabel, type HttpMetrics } from '../../lib/metrics.ts';
import { Problem, problemBody, problemMediaType } from '../../lib/problem.ts';
import { identifyCaller, type CallerRules } from './caller.ts';
import type { Endpoint, ProtocolMount, RequestContext } from './endpoint.ts';
import { clusterUnavailable, internalFault, methodNotAllowed, notAcceptable, notFound } from './problems.ts';
import { refuseKeys } from './query-keys.ts';
import { readJsonBody } from './request-body.ts';

/** What the application needs. */
export interface AppOptions {
  readonly endpoints: readonly Endpoint[];
  readonly protocols?: readonly ProtocolMount[];
  readonly baseUrl: string;
  readonly callers: CallerRules;
  readonly log: Logger;
  readonly metrics: HttpMetrics;
  /** Aborted when open streams have to end, because the process does. */
  readonly ending: AbortSignal;
}

interface Environment {
  Bindings: Partial<HttpBindings>;
  Variables: { id: string; route: string };
}
type AppContext = Context<Environment>;

/** The application. `fetch` and `request` of what it returns answer requests. */
export function createApp(options: AppOptions): Hono<Environment> {
  const app = new Hono<Environment>({ strict: false });
  app.use(async (context, next) => {
    await observe(options, context, next);
  });
  for (const protocol of options.protocols ?? []) {
    app.all(protocol.pattern ?? protocol.path, async (context, next) => {
      if (protocol.takes?.(context.req.raw) === false) return next();
      context.set('route', protocol.path);
      refuseKeys(queryOf(context));
      return protocol.answer(context.req.raw, callContext(context, options));
    });
  }
  for (const endpoint of options.endpoints) {
    app.on(endpoint.method, honoPath(endpoint.path), async (context) => {
      context.set('route', endpoint.path);
      const raw = await rawInput(endpoint, context);
      const asked = requestContext(endpoint, context, options);
      return context.req.method === 'HEAD' ? endpoint.head(raw, asked) : endpoint.run(raw, asked);
    });
  }
  for (const [path, allow] of allowedMethods(options.endpoints)) {
    app.options(honoPath(path), (context) => {
      context.set('route', path);
      return context.body(null, 204, { allow });
    });
    app.all(honoPath(path), (context) => {
      context.set('route', path);
      throw new Problem(methodNotAllowed, `${path} takes ${allow}, not ${context.req.method.slice(0, 20)}`, {
        headers: { allow },
      });
    });
  }
  app.notFound((context) =>
    problemResponse(
      new Problem(
        notFound,
        `nothing answers at ${context.req.path.slice(0, 200)}; ${options.baseUrl}/openapi.json lists what does`,
      ),
      context,
      options,
    ),
  );
  app.onError((error, context) => problemResponse(toProblem(error, context, options.log), context, options));
  return app;
}

/** Gives the request its id, and once it is answered, its line in the log and its place in the metrics. */
async function observe(options: AppOptions, context: AppContext, next: () => Promise<void>): Promise<void> {
  const given = context.req.header('x-request-id');
  const id = given !== undefined && /^[A-Za-z0-9._-]{8,64}$/.test(given) ? given : randomUUID();
  context.set('id', id);
  context.set('route', 'unmatched');
  const start = performance.now();
  options.metrics.open.inc();
  try {
    await next();
  } finally {
    options.metrics.open.dec();
    const seconds = (performance.now() - start) / 1000;
    const method = methodLabel(context.req.method);
    const route = context.get('route');
    context.res.headers.set('x-request-id', id);
    context.res.headers.set('x-content-type-options', 'nosniff');
    options.metrics.seconds.observe({ method, route, status: String(context.res.status) }, seconds);
    options.log.info(
      { request_id: id, method, route, status: context.res.status, ms: Math.round(seconds * 10_000) / 10 },
      'request',
    );
  }
}

async function rawInput(
  endpoint: Endpoint,
  context: AppContext,
): Promise<{ params: Record<string, string>; query: Record<string, string | string[]>; body: unknown }> {
  const query = queryOf(context);
  refuseKeys(query);
  const body = endpoint.body === undefined ? undefined : await readJsonBody(context.req.raw, endpoint.bodyLimit);
  return { params: context.req.param(), query, body };
}

function queryOf(context: AppContext): Record<string, string | string[]> {
  return Object.fromEntries(Object.entries(context.req.queries()).map(([name, values]) => [name, single(values)]));
}

function single(values: string[]): string | string[] {
  const [first] = values;
  return values.length === 1 && first !== undefined ? first : values;
}

function requestContext(endpoint: Endpoint, context: AppContext, options: AppOptions): RequestContext {
  // Not spread: the signal is made on demand.
  return Object.assign(callContext(context, options), { mediaType: negotiate(endpoint, context.req.header('accept')) });
}

function callContext(context: AppContext, options: AppOptions): Omit<RequestContext, 'mediaType'> {
  const id = context.get('id');
  const { headers } = context.req.raw;
  return {
    id,
    headers,
    caller: () =>
      identifyCaller(
        {
          peer: context.env.incoming?.socket.remoteAddress,
          forwardedFor: headers.get('x-forwarded-for') ?? undefined,
          authorization: headers.get('authorization') ?? undefined,
        },
        options.callers,
      ),
    // Made on demand: the adapter builds a whole Request for it, which most endpoints do not need.
    get signal() {
      return AbortSignal.any([context.req.raw.signal, options.ending]);
    },
    get log() {
      return options.log.child({ request_id: id });
    },
  };
}

function negotiate(endpoint: Endpoint, accept: string | undefined): string {
  const [preferred] = endpoint.produces;
  // What answers with whatever a file is, does so whatever is accepted, as RFC 9110 (12.5.1) allows.
  if (preferred !== undefined && (accept === undefined || preferred === '*/*')) return preferred;
  const [chosen] = new Negotiator({ headers: { accept } }).mediaTypes([...endpoint.produces]);
  if (chosen === undefined) {
    throw new Problem(
      notAcceptable,
      `this is answered as ${endpoint.produces.join(' or ')}; the Accept header excludes that`,
      { members: { offers: endpoint.produces } },
    );
  }
  return chosen;
}

function problemResponse(problem: Problem, context: AppContext, options: AppOptions): Response {
  options.metrics.problems.inc({ type: problem.type.slug });
  const body = problemBody(problem, options.baseUrl, context.req.path.slice(0, 300), context.get('id'));
  return new Response(JSON.stringify(body), {
    status: problem.type.status,
    headers: { ...problem.headers, 'content-type': problemMediaType, 'cache-control': 'no-store' },
  });
}

/** Makes a problem of anything thrown. What is our fault is logged in full and told without its insides. */
function toProblem(error: unknown, context: AppContext, log: Logger): Problem {
  if (error instanceof Problem) return error;
  log.error({ err: error, request_id: context.get('id'), route: context.get('route') }, 'request failed');
  if (error instanceof ApiError && isPassing(error.status)) {
    const seconds = error.retryAfterSeconds ?? 5;
    return new Problem(clusterUnavailable, `the cluster did not answer; try again in ${seconds} s`, {
      headers: { 'retry-after': String(seconds) },
      cause: error,
    });
  }
  return new Problem(internalFault, `this failed on our side; the log knows it as ${context.get('id')}`, {
    cause: error,
  });
}

/**
 * Whether the cluster may answer otherwise later. An API server that has just started refuses (401, 403) what it allows
 * a moment later.
 */
function isPassing(status: number): boolean {
  return status === 0 || status === 401 || status === 403 || status === 429 || status >= 500;
}

function allowedMethods(endpoints: readonly Endpoint[]): Map<string, string> {
  const byPath = Map.groupBy(endpoints, (endpoint) => endpoint.path);
  return new Map(
    [...byPath].map(([path, group]) => {
      const methods = group.flatMap((endpoint) => (endpoint.method === 'GET' ? ['GET', 'HEAD'] : [endpoint.method]));
      return [path, [...methods, 'OPTIONS'].join(', ')];
    }),
  );
}

function honoPath(path: string): string {
  return path.replaceAll(/\{([^}]+)\}/g, ':$1');
}
