// Runs reflectors, election, controllers and the health server together, and ends them in the right order.
import type { Registry } from 'prom-client';
import type { Client } from './client.ts';
import type { Clock } from './clock.ts';
import type { Controller } from './controller.ts';
import type { HealthCheck } from './health.ts';
import type { LeaderElectionOptions } from './leader-election.ts';
import type { Logger } from './logger.ts';
import type { KubeObject, Resource } from './object.ts';
import type { Reflector, ReflectorOptions } from './reflector.ts';
import type { Shutdown } from './shutdown.ts';

/** Settings of a manager. */
export interface ManagerOptions {
  client: Client;
  registry: Registry;
  log?: Logger;
  /** Port of /healthz, /readyz and /metrics; no server when absent. */
  healthPort?: number;
  /** Default all addresses. */
  healthHost?: string;
  /** Without it, this process always acts. */
  leaderElection?: Omit<LeaderElectionOptions, 'client' | 'onLost' | 'onAcquired' | 'clock' | 'log'>;
  /** Further checks. */
  liveness?: readonly HealthCheck[];
  readiness?: readonly HealthCheck[];
  clock?: Clock;
  /** Default `listenForShutdown()`. */
  shutdown?: Shutdown;
}

/** Everything that the process runs. */
export interface Manager {
  /** Adds a reflector. Its cache is filled whether this replica leads or not. */
  reflect<T extends KubeObject>(resource: Resource<T>, options?: Omit<ReflectorOptions<T>, 'client' | 'resource' | 'clock' | 'log' | 'metrics'>): Reflector<T>;
  /** Adds a controller. It works only while this replica leads. */
  add(controller: Controller): void;
  /** Adds anything else that must run only on the leader, until its signal is aborted. */
  addLeaderTask(name: string, run: (signal: AbortSignal) => Promise<void>): void;
  /** Port of the health server once `run` has started it. */
  readonly healthPort: number | undefined;
  /** Runs until SIGTERM or the loss of leadership: controllers drain, the lease is released, reflectors stop, then `shutdown.finish()`. */
  run(): Promise<void>;
}

/** Makes a manager. */
export function createManager(options: ManagerOptions): Manager {
  throw new Error(`not implemented ${String(options.healthPort)}`);
}
