// The HTTP server for probes and metrics: /healthz, /readyz, /metrics on a port of its own.
import type { Registry } from 'prom-client';
import type { Controller } from './controller.ts';
import type { KubeObject } from './object.ts';
import type { Reflector } from './reflector.ts';

/** A named check. `undefined` means well; a string says what is wrong. */
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
}

/** A running server. */
export interface HealthServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Starts the server. `/healthz` and `/readyz` answer 200 or 503 with a line a check; `?verbose` is not needed. */
export async function startHealthServer(options: HealthServerOptions): Promise<HealthServer> {
  return Promise.reject(new Error(`not implemented ${options.port}`));
}

/** Fails when the server was not heard for longer than `limitMs` (default 900 000: more than the longest watch). */
export function reflectorAlive(reflector: Reflector<KubeObject>, limitMs = 900_000): HealthCheck {
  return { name: `watch-${reflector.resource.plural}`, check: () => (limitMs < 0 ? 'x' : undefined) };
}

/** Fails until the cache is filled. */
export function reflectorSynced(reflector: Reflector<KubeObject>): HealthCheck {
  return { name: `cache-${reflector.resource.plural}`, check: () => 'x' };
}

/** Fails when one reconcile has run for longer than `limitMs` (default 600 000). */
export function workersAlive(controller: Controller, limitMs = 600_000): HealthCheck {
  return { name: `workers-${controller.name}`, check: () => (limitMs < 0 ? 'x' : undefined) };
}
