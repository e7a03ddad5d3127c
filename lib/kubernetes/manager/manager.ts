// Runs reflectors, election, controllers and the health server together, and ends them in the right order on SIGTERM,
// within a bounded time.
import type { Registry } from 'prom-client';
import type { Client } from '../client/client.ts';
import type { Clock } from '../clock.ts';
import type { Controller } from '../loop/controller.ts';
import { toErrorMessage } from '../errors.ts';
import {
  type HealthCheck,
  type HealthServer,
  type HealthServerOptions,
  type ReflectorHealth,
  createReflectorLivenessCheck,
  createReflectorSyncCheck,
  startHealthServer,
  createWorkerLivenessCheck,
} from './health.ts';
import { type LeaderElectionOptions, createLeaderElection } from '../election/leader-election.ts';
import { type Logger, silentLogger, getRuntimeMetrics } from '../observability.ts';
import type { KubeObject, Resource } from '../object.ts';
import { type Reflector, type ReflectorOptions, createReflector } from '../cache/reflector.ts';

/** Settings of a manager. */
export interface ManagerOptions {
  client: Client;
  registry: Registry;
  log?: Logger;
  /** Port of /healthz, /readyz and /metrics; no server when absent. */
  healthPort?: number;
  /** Default all addresses. */
  healthHost?: string;
  /** Further listeners of that server, by path. They answer whether this replica leads or not. */
  routes?: HealthServerOptions['routes'];
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
  addReflector<T extends KubeObject>(
    resource: Resource<T>,
    options?: Omit<ReflectorOptions<T>, 'client' | 'resource' | 'clock' | 'log' | 'metrics'>,
  ): Reflector<T>;
  /** Adds a controller. It works only while this replica leads. */
  add(controller: Controller): void;
  /** Adds anything else that must run only on the leader, until its signal is aborted. */
  addLeaderTask(name: string, run: (signal: AbortSignal) => Promise<void>): void;
  /** Port of the health server once `run` has started it. */
  readonly healthPort: number | undefined;
  /**
   * Runs until SIGTERM or the loss of leadership: controllers drain, the lease is released, reflectors stop, then
   * `shutdown.finish()`.
   */
  run(): Promise<void>;
}

/** Shorter than the time between giving up leadership (7 s without a renewal) and the end of the lease (10 s). */
const LOST_LIMIT_MS = 2000;

/** Creates a manager. */
export function createManager(options: ManagerOptions): Manager {
  return new ProcessManager(options);
}

class ProcessManager implements Manager {
  readonly #options: ManagerOptions;
  readonly #log: Logger;
  readonly #shutdown: Shutdown;
  readonly #reflectors: (ReflectorHealth & { run(signal: AbortSignal): Promise<void> })[] = [];
  readonly #controllers: Controller[] = [];
  readonly #tasks: ((signal: AbortSignal) => Promise<void>)[] = [];
  #health: HealthServer | undefined;

  constructor(options: ManagerOptions) {
    this.#options = options;
    this.#log = options.log ?? silentLogger;
    this.#shutdown = options.shutdown ?? listenForShutdown({ log: this.#log });
  }

  addReflector<T extends KubeObject>(
    resource: Resource<T>,
    options: Omit<ReflectorOptions<T>, 'client' | 'resource' | 'clock' | 'log' | 'metrics'> = {},
  ): Reflector<T> {
    const { client, registry, clock } = this.#options;
    const reflector = createReflector<T>({
      ...options,
      client,
      resource,
      log: this.#log,
      metrics: getRuntimeMetrics(registry),
      ...(clock === undefined ? {} : { clock }),
    });
    this.#reflectors.push(reflector);
    return reflector;
  }

  add(controller: Controller): void {
    this.#controllers.push(controller);
  }

  addLeaderTask(name: string, run: (signal: AbortSignal) => Promise<void>): void {
    this.#tasks.push(async (signal) => {
      try {
        await run(signal);
        if (!signal.aborted) this.#shutdown.fail(`The task "${name}" has ended.`);
      } catch (error) {
        if (!signal.aborted) this.#shutdown.fail(`The task "${name}" failed: ${toErrorMessage(error)}`);
      }
    });
  }

  get healthPort(): number | undefined {
    return this.#health?.port;
  }

  async run(): Promise<void> {
    const reading = new AbortController();
    this.#health = await this.#startHealth();
    const mirrors = this.#reflectors.map((reflector) => reflector.run(reading.signal));
    await this.#runAsLeader();
    reading.abort();
    await Promise.all(mirrors);
    await this.#health?.close();
    this.#options.client.close();
    this.#shutdown.finish();
  }

  /** Works while leading. The lease is given back only after the work has drained, so that two never act at once. */
  async #runAsLeader(): Promise<void> {
    const { signal } = this.#shutdown;
    const election = this.#options.leaderElection;
    if (election === undefined) return this.#runControllers(signal);
    const { client, registry, clock } = this.#options;
    const candidacy = new AbortController();
    const gauge = getRuntimeMetrics(registry).leader;
    let working: Promise<void> | undefined;
    const onAcquired = (term: AbortSignal): void => {
      gauge.set(1);
      working = this.#runControllers(AbortSignal.any([term, signal]));
    };
    const onLost = (reason: string): void => {
      // Another replica may take over soon: work that ignores its signal is ended by force before that.
      this.#shutdown.fail(reason, LOST_LIMIT_MS);
    };
    const running = createLeaderElection({
      ...election,
      client,
      onAcquired,
      onLost,
      log: this.#log,
      ...(clock === undefined ? {} : { clock }),
    }).run(candidacy.signal);
    await waitForAbort(signal);
    await working;
    candidacy.abort();
    await running;
    gauge.set(0);
  }

  async #runControllers(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    await Promise.all([
      ...this.#controllers.map((controller) => controller.run(signal)),
      ...this.#tasks.map((task) => task(signal)),
    ]);
    await waitForAbort(signal);
  }

  async #startHealth(): Promise<HealthServer | undefined> {
    const { healthPort: port, healthHost: host, routes, registry, liveness = [], readiness = [] } = this.#options;
    if (port === undefined) return undefined;
    return startHealthServer({
      port,
      ...(host === undefined ? {} : { host }),
      ...(routes === undefined ? {} : { routes }),
      registry,
      liveness: [
        ...this.#reflectors.map((reflector) => createReflectorLivenessCheck(reflector)),
        ...this.#controllers.map((controller) => createWorkerLivenessCheck(controller)),
        ...liveness,
      ],
      readiness: [...this.#reflectors.map(createReflectorSyncCheck), ...readiness],
    });
  }
}

function waitForAbort(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else
      signal.addEventListener(
        'abort',
        () => {
          resolve();
        },
        { once: true },
      );
  });
}

/** Settings of a shutdown. */
export interface ShutdownOptions {
  /** Default SIGTERM and SIGINT. */
  signals?: readonly NodeJS.Signals[];
  /** Milliseconds after the signal until the process is ended by force, with exit code 1; default 25 000. */
  limitMs?: number;
  log?: Logger;
  /** Default `process.exit`. */
  exit?: (code: number) => void;
}

/** Reports that the process is asked to end, and ends it. */
export interface Shutdown {
  /** Aborted when the process is asked to end. */
  readonly signal: AbortSignal;
  /**
   * Ends the process from inside, such as when leadership is lost; the exit code is then 1. `limitMs` shortens the bound.
   */
  fail(reason: string, limitMs?: number): void;
  /** Removes the handlers and exits with 0, or 1 after `fail`. Call it when everything has ended. */
  finish(): void;
}

/** Listens for signals from now on. A second signal ends the process immediately. */
export function listenForShutdown(options: ShutdownOptions = {}): Shutdown {
  const {
    signals = ['SIGTERM', 'SIGINT'],
    limitMs = 25_000,
    log = silentLogger,
    exit = (code: number) => process.exit(code),
  } = options;
  const controller = new AbortController();
  let failed = false;
  let timer: NodeJS.Timeout | undefined;
  const limitShutdown = (ms: number): void => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      log.error({ limitMs: ms }, 'The shutdown took too long; exiting by force.');
      exit(1);
    }, ms);
    // The bound must not be what keeps the process alive.
    timer.unref();
  };
  const onSignal = (name: NodeJS.Signals): void => {
    if (controller.signal.aborted) {
      log.warn({ signal: name }, 'Second signal: exiting immediately.');
      exit(1);
      return;
    }
    log.info({ signal: name }, 'Shutting down.');
    limitShutdown(limitMs);
    controller.abort(new Error(`The process got ${name}.`));
  };
  for (const name of signals) process.on(name, onSignal);
  return {
    signal: controller.signal,
    fail(reason, shorterMs) {
      failed = true;
      log.error({ reason }, 'Exiting because of a fault.');
      if (shorterMs !== undefined || !controller.signal.aborted) limitShutdown(shorterMs ?? limitMs);
      controller.abort(new Error(reason));
    },
    finish() {
      for (const name of signals) process.off(name, onSignal);
      clearTimeout(timer);
      exit(failed ? 1 : 0);
    },
  };
}

/** Runs `stop` when the process is asked to end, reports its failure, and lets the process end. */
export function stopOnShutdown(shutdown: Shutdown, log: Logger, stop: () => Promise<void>): void {
  shutdown.signal.addEventListener('abort', () => {
    void stop()
      .catch((error: unknown) => {
        log.error({ err: error }, 'stopping failed');
      })
      .finally(() => {
        shutdown.finish();
      });
  });
}
