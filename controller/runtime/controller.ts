// The controller loop: changes in caches become keys in a queue, and workers reconcile them.
//
//     const client = createClient(await defaultConnection());
//     const manager = createManager({ client, log, registry, healthPort: 9090,
//       leaderElection: { namespace: 'example', name: 'operator', identity: podName } });
//     const widgets = manager.reflect(defineResource<Widget>({ group: 'example.dev', version: 'v1', kind: 'Widget', plural: 'widgets', namespaced: true }));
//     const jobs = manager.reflect(defineResource<KubeType<V1Job>>({ group: 'batch', version: 'v1', kind: 'Job', plural: 'jobs', namespaced: true }),
//       { namespace: 'builds', labelSelector: 'example.dev/widget', indexers: { widget: byLabel('example.dev/widget') } });
//     manager.add(createController({
//       name: 'widgets', workers: 4, log, registry,
//       watches: [watches(widgets.store), watches(jobs.store, labelKey('example.dev/widget', 'widgets'))],
//       async reconcile(key, { signal, log }) {
//         const widget = widgets.store.get(key);
//         if (widget === undefined) return done;                    // gone; its children are garbage-collected
//         if (widget.spec.size < 0) throw new StallingError('SizeInvalid', 'spec.size is negative; give 0 or more.');
//         const job = jobs.store.byIndex('widget', widget.metadata.name)[0];
//         const { object } = await applyIfChanged(client, jobs.resource, job, jobFor(widget), { signal });
//         if (object.status?.succeeded !== 1) return done;          // the Job's next event brings the key back
//         await applyStatus(client, widgets.resource, refOf(key), { phase: 'Built' }, { signal });
//         return requeueAfter(300_000);                             // look again in five minutes
//       },
//     }));
//     await manager.run();                                         // until SIGTERM; leads, drains, releases the lease
import type { Registry } from 'prom-client';
import type { Clock } from './clock.ts';
import type { Logger } from './logger.ts';
import type { KubeObject } from './object.ts';
import { keyOf } from './object.ts';
import type { QueueOptions } from './queue.ts';
import type { Store } from './store.ts';

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
 * Brings the world to what the object under `key` asks for. May throw `StallingError` (stop), `WaitingError` (come back at
 * a time), or anything else (retried with the key's backoff; an `ApiError` with Retry-After waits at least that long).
 */
export type Reconcile = (key: string, context: ReconcileContext) => Promise<ReconcileResult>;

/** A cache whose changes lead to keys. */
export interface Watch {
  /** Starts sending keys; returns the way to stop. */
  start(enqueue: (key: string) => void): () => void;
  /** Keys for the periodic resync. */
  resyncKeys(): Iterable<string>;
  readonly hasSynced: boolean;
  whenSynced(signal?: AbortSignal): Promise<void>;
}

/** Gives the keys to reconcile when `object` changes. */
export type KeyMapping<T> = (object: T) => readonly string[];

/** Settings of a watch. */
export interface WatchFilter<T> {
  /** Whether an update is worth a reconcile. Default: any change of `resourceVersion`. */
  changed?: (object: T, old: T) => boolean;
}

/**
 * Watches a store. Without a mapping the object's own key is used, and only such a watch takes part in the resync.
 * With one, an update enqueues the keys of the old and of the new object.
 */
export function watches<T extends KubeObject>(store: Store<T>, mapping?: KeyMapping<T>, filter: WatchFilter<T> = {}): Watch {
  throw new Error(`not implemented ${store.size} ${String(mapping)} ${String(filter.changed)} ${keyOf({ name: 'x' })}`);
}

/** Maps to the owner of that kind which controls the object, in the object's namespace. */
export function ownerKey(kind: string): KeyMapping<KubeObject> {
  return (object) =>
    (object.metadata.ownerReferences ?? [])
      .filter((owner) => owner.controller === true && owner.kind === kind)
      .map((owner) => keyOf({ name: owner.name, namespace: object.metadata.namespace }));
}

/** Maps to the object named by a label, in the object's namespace or a fixed one. */
export function labelKey(label: string, namespace?: string): KeyMapping<KubeObject> {
  return (object) => {
    const name = object.metadata.labels?.[label];
    return name === undefined ? [] : [keyOf({ name, namespace: namespace ?? object.metadata.namespace })];
  };
}

/** Only changes of `spec` (generation), of deletion, labels, annotations or finalizers: for one's own object, whose status one writes. */
export function ignoreStatus(object: KubeObject, old: KubeObject): boolean {
  const [a, b] = [object.metadata, old.metadata];
  return a.generation !== b.generation || JSON.stringify([a.deletionTimestamp, a.labels, a.annotations, a.finalizers]) !== JSON.stringify([b.deletionTimestamp, b.labels, b.annotations, b.finalizers]);
}

/** Settings of a controller. */
export interface ControllerOptions {
  /** In logs and metrics. */
  name: string;
  watches: readonly Watch[];
  reconcile: Reconcile;
  /** Reconciles at once; default 4. */
  workers?: number;
  queue?: QueueOptions;
  /** Every key is enqueued again about this often, ±10 %; default 36 000 000 (10 h); 0 for never. */
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
  /** Enqueues every key of the watches without a mapping now. */
  resync(): void;
  /** Milliseconds that the longest reconcile in progress has run; 0 when idle. */
  longestReconcileMs(): number;
  /** True when no key is ready or in work. */
  readonly idle: boolean;
  /** Waits for the caches, then works until `signal` is aborted, then drains. Never rejects. Call once. */
  run(signal: AbortSignal): Promise<void>;
}

/** Makes a controller. */
export function createController(options: ControllerOptions): Controller {
  throw new Error(`not implemented ${options.name}`);
}
