// The indexed cache of one kind of object, filled by a reflector and read by reconcilers.
import type { KubeObject } from '../object.ts';
import { toObjectKey } from '../object.ts';

/** A change of the cache. An object that replaces one of the same name comes as `deleted` (old UID), then `added`. */
export type Change<T> =
  { type: 'added'; object: T } | { type: 'updated'; object: T; old: T } | { type: 'deleted'; object: T };

/** The values under which an object is found in an index. */
export type Indexer<T> = (object: T) => readonly string[];

/** A cache to read from. Objects are shared: never change one (they are frozen when `freeze` is on). */
export interface Store<T extends KubeObject> {
  /** The object under `namespace/name` (or `name`). */
  get(key: string): T | undefined;
  /** Every object, or those of a namespace. */
  list(namespace?: string): T[];
  /** The objects under `value` in the named index. Throws on an unknown index. */
  listByIndex(index: string, value: string): T[];
  readonly size: number;
  /** Grows with each change, before it is reported. What was derived from the objects stays valid while this does not change. */
  readonly version: number;
  /** True once the first full list is in. */
  readonly hasSynced: boolean;
  /** Resolves when `hasSynced`; rejects with the signal's reason when aborted first. */
  waitUntilSynced(signal?: AbortSignal): Promise<void>;
  /**
   * Calls `handler` for each change from now on, and immediately with `added` for each object already here. Returns a
   * function that stops it.
   */
  subscribe(handler: (change: Change<T>) => void): () => void;
}

/** A cache with its writing side, which belongs to the reflector. */
export interface WritableStore<T extends KubeObject> extends Store<T> {
  /** Sets an object. One under the same name with another UID is first reported as deleted. */
  set(object: T): void;
  /** Removes an object, unless the cache holds one under the same name with another UID. */
  remove(object: T): void;
  /** Makes the cache hold exactly these objects, and reports the differences; then it has synced. */
  replace(objects: readonly T[]): void;
}

/** Settings of a store. */
export interface StoreOptions<T> {
  /** Indexes by name. */
  indexers?: Readonly<Record<string, Indexer<T>>>;
  /**
   * Deep-freeze objects, so that a reconciler that changes one throws. Default: on, unless `NODE_ENV` is `production`.
   */
  freeze?: boolean;
  /**
   * Called when a subscriber throws; the others still receive the change. Default: rethrown in a microtask, which ends
   * the process.
   */
  onError?: (error: unknown) => void;
}

/** Creates an empty store. */
export function createStore<T extends KubeObject>(options: StoreOptions<T> = {}): WritableStore<T> {
  return new MapStore(options);
}

class MapStore<T extends KubeObject> implements WritableStore<T> {
  readonly #objects = new Map<string, T>();
  readonly #indexes: Map<string, KeyIndex<T>>;
  readonly #subscribers = new Set<(change: Change<T>) => void>();
  readonly #freeze: boolean;
  readonly #onError: (error: unknown) => void;
  readonly #synced = Promise.withResolvers<undefined>();
  #hasSynced = false;
  #version = 0;

  constructor(options: StoreOptions<T>) {
    this.#freeze = options.freeze ?? process.env['NODE_ENV'] !== 'production';
    this.#onError = options.onError ?? throwOutside;
    this.#indexes = new Map(
      Object.entries(options.indexers ?? {}).map(([name, indexer]) => [name, new KeyIndex(indexer)]),
    );
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  list(namespace?: string): T[] {
    const objects = [...this.#objects.values()];
    return namespace === undefined ? objects : objects.filter((object) => object.metadata.namespace === namespace);
  }

  listByIndex(index: string, value: string): T[] {
    const entries = this.#indexes.get(index);
    if (entries === undefined)
      throw new Error(`The store has no index "${index}"; it has: ${[...this.#indexes.keys()].join(', ') || 'none'}.`);
    const objects: T[] = [];
    for (const key of entries.getKeys(value)) {
      const object = this.#objects.get(key);
      if (object !== undefined) objects.push(object);
    }
    return objects;
  }

  get size(): number {
    return this.#objects.size;
  }

  get version(): number {
    return this.#version;
  }

  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  async waitUntilSynced(signal?: AbortSignal): Promise<void> {
    if (signal === undefined) return this.#synced.promise;
    signal.throwIfAborted();
    const aborted = Promise.withResolvers<never>();
    const abort = (): void => {
      aborted.reject(signal.reason as Error);
    };
    signal.addEventListener('abort', abort);
    try {
      await Promise.race([this.#synced.promise, aborted.promise]);
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  subscribe(handler: (change: Change<T>) => void): () => void {
    for (const object of this.#objects.values()) handler({ type: 'added', object });
    this.#subscribers.add(handler);
    return () => {
      this.#subscribers.delete(handler);
    };
  }

  set(object: T): void {
    const key = toObjectKey(object);
    const old = this.#objects.get(key);
    if (old !== undefined && old.metadata.uid === object.metadata.uid) {
      // A relist brings objects that have not changed: keep the one that is here, and report nothing.
      if (old.metadata.resourceVersion !== object.metadata.resourceVersion) this.#update(key, old, object);
      return;
    }
    if (old !== undefined) this.#delete(key, old);
    this.#objects.set(key, this.#freezeObject(object));
    for (const index of this.#indexes.values()) index.add(key, object);
    this.#report({ type: 'added', object });
  }

  remove(object: T): void {
    const key = toObjectKey(object);
    const old = this.#objects.get(key);
    if (old !== undefined && old.metadata.uid === object.metadata.uid) this.#delete(key, old);
  }

  replace(objects: readonly T[]): void {
    const uids = new Set(objects.map((object) => object.metadata.uid));
    for (const [key, old] of [...this.#objects]) if (!uids.has(old.metadata.uid)) this.#delete(key, old);
    for (const object of objects) this.set(object);
    this.#hasSynced = true;
    this.#synced.resolve(undefined);
  }

  #update(key: string, old: T, object: T): void {
    this.#objects.set(key, this.#freezeObject(object));
    for (const index of this.#indexes.values()) {
      index.remove(key, old);
      index.add(key, object);
    }
    this.#report({ type: 'updated', object, old });
  }

  #delete(key: string, old: T): void {
    this.#objects.delete(key);
    for (const index of this.#indexes.values()) index.remove(key, old);
    this.#report({ type: 'deleted', object: old });
  }

  #freezeObject(object: T): T {
    return this.#freeze ? freezeDeeply(object) : object;
  }

  #report(change: Change<T>): void {
    this.#version += 1;
    for (const handler of [...this.#subscribers]) {
      try {
        handler(change);
      } catch (error) {
        this.#onError(error);
      }
    }
  }
}

function throwOutside(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

/** The keys under each value of an index. */
class KeyIndex<T> {
  readonly #indexer: Indexer<T>;
  readonly #keys = new Map<string, Set<string>>();

  constructor(indexer: Indexer<T>) {
    this.#indexer = indexer;
  }

  getKeys(value: string): Iterable<string> {
    return this.#keys.get(value) ?? [];
  }

  add(key: string, object: T): void {
    for (const value of this.#indexer(object)) {
      const keys = this.#keys.get(value);
      if (keys === undefined) this.#keys.set(value, new Set([key]));
      else keys.add(key);
    }
  }

  remove(key: string, object: T): void {
    for (const value of this.#indexer(object)) {
      const keys = this.#keys.get(value);
      keys?.delete(key);
      if (keys?.size === 0) this.#keys.delete(value);
    }
  }
}

/** Freezes an object and everything in it. */
export function freezeDeeply<V>(value: V): V {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const inner of Object.values(value)) freezeDeeply(inner);
  return value;
}

/** Indexes objects by the value of a label; objects without it are not in the index. */
export function createLabelIndexer(label: string): Indexer<KubeObject> {
  return (object) => {
    const value = object.metadata.labels?.[label];
    return value === undefined ? [] : [value];
  };
}

/** Indexes objects by the UID of the owner that controls them. */
export const listControllerUids: Indexer<KubeObject> = (object) =>
  (object.metadata.ownerReferences ?? []).filter((owner) => owner.controller === true).map((owner) => owner.uid);
