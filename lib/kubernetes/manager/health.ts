// Serves probes and metrics over HTTP: /healthz, /readyz and /metrics on a separate port.
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { Registry } from 'prom-client';
import type { Controller } from '../loop/controller.ts';
import { toErrorMessage } from '../errors.ts';

/** The part of a `Reflector` that the checks need. */
export interface ReflectorHealth {
  readonly resource: { readonly plural: string };
  readonly store: { readonly hasSynced: boolean };
  getLastTurnAgeMs(): number;
}

/** A named check. `undefined` means healthy; a string says what is wrong. */
export interface HealthCheck {
  name: string;
  check: () => string | undefined;
}

/** Settings of the server. */
export interface HealthServerOptions {
  /** 0 picks a free port. */
  port: number;
  /** Default all addresses. */
  host?: string;
  registry: Registry;
  /** Answered by /healthz: failing means "restart me". */
  liveness: readonly HealthCheck[];
  /** Answered by /readyz: failing means "not yet". */
  readiness: readonly HealthCheck[];
  /** Further listeners, by path. */
  routes?: Readonly<Record<string, RequestListener>>;
}

/** A running server. */
export interface HealthServer {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Starts the server. `/healthz` and `/readyz` answer 200 or 503 with a line a check. Rejects when the port is taken.
 */
export async function startHealthServer(options: HealthServerOptions): Promise<HealthServer> {
  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? '';
    const listener = options.routes?.[path];
    if (listener !== undefined) {
      listener(request, response);
      return;
    }
    answer(options, path).then(
      ({ status, type, body }) => response.writeHead(status, { 'content-type': type }).end(body),
      (error: unknown) => response.writeHead(500, TEXT).end(`${toErrorMessage(error)}\n`),
    );
  });
  server.listen(options.port, options.host);
  await once(server, 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : options.port,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

const TEXT = { 'content-type': 'text/plain; charset=utf-8' };

interface Answer {
  status: number;
  type: string;
  body: string;
}

async function answer(options: HealthServerOptions, path: string): Promise<Answer> {
  switch (path) {
    case '/healthz':
      return report(options.liveness);
    case '/readyz':
      return report(options.readiness);
    case '/metrics':
      return { status: 200, type: options.registry.contentType, body: await options.registry.metrics() };
    default:
      return {
        status: 404,
        type: TEXT['content-type'],
        body: 'Not found. Available: /healthz, /readyz and /metrics.\n',
      };
  }
}

function report(checks: readonly HealthCheck[]): Answer {
  const results = checks.map(({ name, check }) => ({ name, fault: check() }));
  const status = results.some(({ fault }) => fault !== undefined) ? 503 : 200;
  const lines = results.map(({ name, fault }) => (fault === undefined ? `ok ${name}` : `failed ${name}: ${fault}`));
  return { status, type: TEXT['content-type'], body: `${[...lines, status === 200 ? 'ok' : 'failed'].join('\n')}\n` };
}

/**
 * Fails if a reflector has neither heard from the server nor tried to for longer than `limitMs` (default 900 000, more
 * than the longest watch). A server that is down does not fail it: a restart would not help.
 */
export function createReflectorLivenessCheck(reflector: ReflectorHealth, limitMs = 900_000): HealthCheck {
  const check = (): string | undefined => {
    const age = reflector.getLastTurnAgeMs();
    return age <= limitMs
      ? undefined
      : `nothing was heard or tried for ${Math.round(age / 1000)} s (limit ${Math.round(limitMs / 1000)} s)`;
  };
  return { name: `watch-${reflector.resource.plural}`, check };
}

/** Fails until the cache is filled. */
export function createReflectorSyncCheck(reflector: ReflectorHealth): HealthCheck {
  const check = (): string | undefined => (reflector.store.hasSynced ? undefined : 'waiting for the first list');
  return { name: `cache-${reflector.resource.plural}`, check };
}

/** Fails when one reconcile has run for longer than `limitMs` (default 600 000). */
export function createWorkerLivenessCheck(
  controller: Pick<Controller, 'name' | 'getLongestReconcileMs'>,
  limitMs = 600_000,
): HealthCheck {
  const check = (): string | undefined => {
    const age = controller.getLongestReconcileMs();
    return age <= limitMs
      ? undefined
      : `a reconcile has run for ${Math.round(age / 1000)} s (limit ${Math.round(limitMs / 1000)} s)`;
  };
  return { name: `workers-${controller.name}`, check };
}
