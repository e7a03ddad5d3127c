// Keeps a store equal to what the API server has: list once, watch from there, mend every break.
import type { Client, Selection } from './client.ts';
import type { Clock } from './clock.ts';
import type { Logger } from './logger.ts';
import type { RuntimeMetrics } from './metrics.ts';
import type { KubeObject, Resource } from './object.ts';
import type { Store, StoreOptions } from './store.ts';

/** Settings of a reflector. */
export interface ReflectorOptions<T extends KubeObject> extends Selection, StoreOptions<T> {
  client: Client;
  resource: Resource<T>;
  /** Changes each object before it is stored, to save memory; default drops `managedFields`. May change its argument. */
  transform?: (object: T) => T;
  /** Objects a page; default 500. */
  pageSize?: number;
  /** Bounds of a watch's length in seconds, drawn anew each time; default [300, 600]. */
  watchSeconds?: readonly [number, number];
  /** Wait after the first failure and at most, in ms, before jitter; default [800, 30 000]. */
  backoffMs?: readonly [number, number];
  clock?: Clock;
  log?: Logger;
  metrics?: RuntimeMetrics;
}

/** A mirror of one kind of object. */
export interface Reflector<T extends KubeObject> {
  readonly resource: Resource<T>;
  readonly store: Store<T>;
  /** Milliseconds since the server was last heard (an event, a bookmark, a list, a watch's good end); since the start when never. */
  lastEventAgeMs(): number;
  /** Lists and watches until `signal` is aborted; never rejects. Call once. */
  run(signal: AbortSignal): Promise<void>;
}

/** Makes a reflector; nothing is asked of the server until `run`. */
export function createReflector<T extends KubeObject>(options: ReflectorOptions<T>): Reflector<T> {
  throw new Error(`not implemented ${options.resource.kind}`);
}
