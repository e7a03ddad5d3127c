// Runs a controller: changes in caches become keys in a queue, and workers reconcile them.
//
//     const client = createClient(await readDefaultConnection());
//     const manager = createManager({ client, log, registry, healthPort: 9090,
//       leaderElection: { namespace: 'example', name: 'operator', identity: podName } });
//     const widgets = manager.reflect(
//       defineResource<Widget>({ group: 'example.dev', version: 'v1', kind: 'Widget', plural: 'widgets', namespaced: true }));
//     const jobs = manager.reflect(
//       defineResource<KubeType<V1Job>>({ group: 'batch', version: 'v1', kind: 'Job', plural: 'jobs', namespaced: true }),
//       { namespace: 'builds', labelSelector: 'example.dev/widget', indexers: { widget: createLabelIndexer('example.dev/widget') } });
//     manager.add(createController({
//       name: 'widgets', workers: 4, log, registry,
//       watches: [createWatch(widgets.store), createWatch(jobs.store, createLabelMapping('example.dev/widget', 'widgets'))],
//       async reconcile(key, { signal, log }) {
//         const widget = widgets.store.get(key);
//         if (widget === undefined) return done;                    // gone; its children are garbage-collected
//         if (widget.spec.size < 0) throw new StallingError('SizeInvalid', 'spec.size is negative; give 0 or more.');
//         const job = jobs.store.listByIndex('widget', widget.metadata.name)[0];
//         const { object } = await applyIfChanged(client, jobs.resource, job, jobFor(widget), { signal });
//         if (object.status?.succeeded !== 1) return done;          // the Job's next event brings the key back
//         await applyStatus(client, widgets.resource, parseObjectKey(key), { phase: 'Built' }, { signal });
//         return requeueAfter(300_000);                             // look again in five minutes
//       },
//     }));
//     await manager.run();                                         // until SIGTERM; leads, drains, releases the lease
import { setImmediate as waitForEvents } from 'node:timers/promises';
import type { Registry } from 'prom-client';
import { type Clock, applyJitter, sleep, systemClock } from '../clock.ts';
import { ApiError, isApiStatus, LeadershipLostError, toErrorMessage, StallingError, WaitingError } from '../errors.ts';
import { type Logger, silentLogger, type RuntimeMetrics, getRuntimeMetrics } from '../observability.ts';
import { type QueueOptions, type WorkQueue, createQueue } from './queue.ts';
import type { Store } from '../cache/store.ts';
import { type KubeObject, toObjectKey } from '../object.ts';

/** How a reconcile ended well. */
export type ReconcileResult = { readonly kind: 'done' } | { readonly kind: 'requeue'; readonly afterMs: number };

/** Nothing more to do until something changes. */
export const done: ReconcileResult = Object.freeze({ kind: 'done' });

/** Reconcile again after `afterMs`, unless a change comes first. */
export function requeueAfter(afterMs: number): ReconcileResult {
  return { kind: 'requeue', afterMs };
}

/** What a reconcile is given besides its key. */
export interface ReconcileContext {
  /** Aborted when the drain's time is up, or leadership is lost. Pass it to every call. */
  signal: AbortSignal;
  /** Carries the controller's name and the key. */
  log: Logger;
  /** Failures of this key in a row before this try. */
  failures: number;
}

/**
 * Brings the cluster to the state that the object under `key` asks for. May throw `StallingError` (stop), `WaitingError`
 * (come back at a time), or anything else (retried with the key's backoff; an `ApiError` with Retry-After waits at least
 * that long).
 */
export type Reconcile = (key: string, context: ReconcileContext) => Promise<ReconcileResult>;

/** Settings of a controller. */
export interface ControllerOptions {
  /** In logs and metrics. */
  name: string;
  watches: readonly Watch[];
  reconcile: Reconcile;
  /** Concurrent reconciles; default 4. */
  workers?: number;
  queue?: QueueOptions;
  /** Every key is enqueued in the background about this often, ±10 %; default 36 000 000 (10 h); 0 for never. */
  resyncMs?: number;
  /** Milliseconds that reconciles in progress get at shutdown before their signal is aborted; default 15 000. */
  drainMs?: number;
  registry?: Registry;
  clock?: Clock;
  log?: Logger;
}

/** A controller. */
export interface Controller {
  readonly name: string;
  /** Enqueues a key from outside. */
  enqueue(key: string): void;
  /** Enqueues every key of the watches without a mapping now, behind keys of changed objects. */
  resync(): void;
  /** Milliseconds that the longest reconcile in progress has run; 0 when idle. */
  getLongestReconcileMs(): number;
  /** True when no key is ready or in work. */
  readonly idle: boolean;
  /** Waits for the caches, then works until `signal` is aborted, then drains. Never rejects. Call once. */
  run(signal: AbortSignal): Promise<void>;
}

/** Makes a controller. */
export function createController(options: ControllerOptions): Controller {
  return new QueueController(options);
}

class QueueController implements Controller {
  readonly name: string;
  readonly #options: ControllerOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #queue: WorkQueue;
  readonly #metrics: RuntimeMetrics | undefined;
  readonly #labels: { controller: string };
  /** Keys in work, with the moment each was begun. */
  readonly #begun = new Map<string, number>();
  readonly #cut = new AbortController();

  constructor(options: ControllerOptions) {
    this.name = options.name;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log ?? silentLogger;
    this.#queue = createQueue({ clock: this.#clock, ...options.queue });
    this.#metrics = options.registry === undefined ? undefined : getRuntimeMetrics(options.registry);
    this.#labels = { controller: options.name };
  }

  enqueue(key: string): void {
    this.#queue.add(key);
    this.#measure();
  }

  resync(): void {
    for (const watch of this.#options.watches)
      for (const key of watch.listResyncKeys()) this.#queue.addInBackground(key);
    this.#measure();
  }

  getLongestReconcileMs(): number {
    const now = this.#clock.now();
    let longest = 0;
    for (const begun of this.#begun.values()) longest = Math.max(longest, now - begun);
    return longest;
  }

  get idle(): boolean {
    return this.#queue.depth === 0 && this.#queue.active === 0;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { watches: sources, workers = 4 } = this.#options;
    // Before the caches are full, a missing child would look like one to create.
    await Promise.all(sources.map((watch) => watch.waitUntilSynced(signal))).catch(() => undefined);
    if (signal.aborted) return;
    const stops = sources.map((watch) =>
      watch.start((key) => {
        this.enqueue(key);
      }),
    );
    const working = Array.from({ length: workers }, () => this.#runWorker());
    this.#log.info({ controller: this.name, workers, ready: this.#queue.depth }, 'The controller started.');
    await this.#resyncUntilAborted(signal);
    for (const stop of stops) stop();
    await this.#drain(signal);
    await Promise.all(working);
    this.#log.info({ controller: this.name }, 'The controller has drained.');
  }

  async #resyncUntilAborted(signal: AbortSignal): Promise<void> {
    const { resyncMs = 36_000_000 } = this.#options;
    for (;;) {
      await sleep(this.#clock, resyncMs === 0 ? Number.MAX_SAFE_INTEGER : applyJitter(resyncMs, 0.1), signal);
      if (signal.aborted) return;
      if (resyncMs > 0) this.resync();
    }
  }

  /** Lets reconciles in progress end within their limit, which is zero if leadership was lost. */
  async #drain(signal: AbortSignal): Promise<void> {
    const reason: unknown = signal.reason;
    const limitMs = reason instanceof LeadershipLostError ? 0 : (this.#options.drainMs ?? 15_000);
    const timer = this.#clock.setTimer(() => {
      this.#cut.abort(reason);
    }, limitMs);
    if (limitMs === 0) this.#cut.abort(reason);
    await this.#queue.drain();
    this.#clock.clearTimer(timer);
  }

  async #runWorker(): Promise<void> {
    for (;;) {
      const key = await this.#queue.get();
      if (key === undefined) return;
      this.#begun.set(key, this.#clock.now());
      this.#measure();
      await this.#reconcile(key);
      this.#begun.delete(key);
      this.#queue.finish(key);
      this.#measure();
      // A reconcile that finds nothing to do waits for nothing, so a resync of many keys would keep changes, probes and the
      // renewal of the lease waiting until its end.
      await waitForEvents();
    }
  }

  async #reconcile(key: string): Promise<void> {
    const begun = this.#clock.now();
    const log = addKey(this.#log, this.name, key);
    let result: string;
    try {
      const outcome = await this.#options.reconcile(key, {
        signal: this.#cut.signal,
        log,
        failures: this.#queue.countFailures(key),
      });
      this.#queue.forget(key);
      if (outcome.kind === 'requeue') this.#queue.addAfter(key, outcome.afterMs);
      result = outcome.kind;
    } catch (error) {
      result = this.#cut.signal.aborted ? 'cut' : this.#handleError(key, error, log);
    }
    this.#metrics?.reconciles.inc({ ...this.#labels, result });
    this.#metrics?.reconcileSeconds.observe(this.#labels, (this.#clock.now() - begun) / 1000);
  }

  #handleError(key: string, error: unknown, log: Logger): string {
    if (error instanceof StallingError) {
      this.#queue.forget(key);
      log.info({ reason: error.reason }, `Stalled: ${error.message}`);
      return 'stalled';
    }
    if (error instanceof WaitingError) {
      this.#queue.forget(key);
      this.#queue.addAfter(key, error.afterMs);
      log.debug({ reason: error.reason, afterMs: error.afterMs }, `Waiting: ${error.message}`);
      return 'waiting';
    }
    this.#metrics?.retries.inc(this.#labels);
    this.#retry(key, error);
    // A conflict means only that the cache was behind; the retry sees the newer object.
    const level = isApiStatus(error, 409) ? 'debug' : 'warn';
    log[level](
      { err: error, failures: this.#queue.countFailures(key) },
      `The reconcile failed and will be tried again: ${toErrorMessage(error)}`,
    );
    return 'error';
  }

  #retry(key: string, error: unknown): void {
    const seconds = error instanceof ApiError ? (error.retryAfterSeconds ?? 0) : 0;
    this.#queue.addRateLimited(key, seconds * 1000);
  }

  #measure(): void {
    this.#metrics?.queueDepth.set(this.#labels, this.#queue.depth);
    this.#metrics?.activeWorkers.set(this.#labels, this.#queue.active);
  }
}

/** A logger that adds the controller and the key to each line. */
function addKey(log: Logger, controller: string, key: string): Logger {
  const createLogMethod =
    (level: keyof Logger) =>
    (fields: object, message: string): void => {
      log[level]({ controller, key, ...fields }, message);
    };
  return {
    debug: createLogMethod('debug'),
    info: createLogMethod('info'),
    warn: createLogMethod('warn'),
    error: createLogMethod('error'),
  };
}

/** A cache whose changes enqueue keys. */
export interface Watch {
  /** Starts sending keys. Returns a function that stops it. */
  start(enqueue: (key: string) => void): () => void;
  /** Keys for the periodic resync. */
  listResyncKeys(): Iterable<string>;
  readonly hasSynced: boolean;
  waitUntilSynced(signal?: AbortSignal): Promise<void>;
}

/** The keys to reconcile when `object` changes. */
export type KeyMapping<T> = (object: T) => readonly string[];

/** Settings of a watch. */
export interface WatchFilter<T> {
  /** Whether an update is worth a reconcile. Default: any change of `resourceVersion`. */
  isChange?: (object: T, old: T) => boolean;
}

/**
 * Watches a store. Without a mapping the object's own key is used, and only such a watch takes part in the resync.
 * With one, an update enqueues the keys of the old and of the new object.
 */
export function createWatch<T extends KubeObject>(
  store: Store<T>,
  mapping?: KeyMapping<T>,
  filter: WatchFilter<T> = {},
): Watch {
  const keys = mapping ?? ((object: T): readonly string[] => [toObjectKey(object)]);
  const { isChange: changed = () => true } = filter;
  return {
    start: (enqueue) =>
      store.subscribe((change) => {
        if (change.type !== 'updated') keys(change.object).forEach(enqueue);
        else if (changed(change.object, change.old))
          new Set([...keys(change.old), ...keys(change.object)]).forEach(enqueue);
      }),
    listResyncKeys: () => (mapping === undefined ? store.list().map(toObjectKey) : []),
    get hasSynced() {
      return store.hasSynced;
    },
    waitUntilSynced: (signal) => store.waitUntilSynced(signal),
  };
}

/** Maps to the owner of that kind which controls the object, in the object's namespace. */
export function createOwnerMapping(kind: string): KeyMapping<KubeObject> {
  return (object) =>
    (object.metadata.ownerReferences ?? [])
      .filter((owner) => owner.controller === true && owner.kind === kind)
      .map((owner) => toObjectKey({ name: owner.name, namespace: object.metadata.namespace }));
}

/** Maps to the object named by a label, in the object's namespace or a fixed one. */
export function createLabelMapping(label: string, namespace?: string): KeyMapping<KubeObject> {
  return (object) => {
    const name = object.metadata.labels?.[label];
    return name === undefined ? [] : [toObjectKey({ name, namespace: namespace ?? object.metadata.namespace })];
  };
}

/**
 * Passes only changes of `spec` (generation), deletion, labels, annotations or finalizers: for objects whose status the
 * controller itself writes.
 */
export function ignoreStatus(object: KubeObject, old: KubeObject): boolean {
  const [a, b] = [object.metadata, old.metadata];
  return (
    a.generation !== b.generation ||
    JSON.stringify([a.deletionTimestamp, a.labels, a.annotations, a.finalizers]) !==
      JSON.stringify([b.deletionTimestamp, b.labels, b.annotations, b.finalizers])
  );
}
