// The indexed cache of one kind of object, filled by a reflector and read by reconcilers.
import type { KubeObject } from './object.ts';

/** A change of the cache. A namesake of a deleted object comes as `deleted` (old UID), then `added`. */
export type Change<T> =
  | { type: 'added'; object: T }
  | { type: 'updated'; object: T; old: T }
  | { type: 'deleted'; object: T };

/** Gives the values under which an object is found in an index. */
export type Indexer<T> = (object: T) => readonly string[];

/** A cache to read from. Objects are shared: never change one (they are frozen when `freeze` is on). */
export interface Store<T extends KubeObject> {
  /** The object under `namespace/name` (or `name`). */
  get(key: string): T | undefined;
  /** Every object, or those of a namespace. */
  list(namespace?: string): T[];
  /** The objects that the named index files under `value`. Throws on an unknown index. */
  byIndex(index: string, value: string): T[];
  readonly size: number;
  /** True once the first full list is in. */
  readonly hasSynced: boolean;
  /** Resolves when `hasSynced`; rejects with the signal's reason when aborted first. */
  whenSynced(signal?: AbortSignal): Promise<void>;
  /** Calls `handler` for each change from now on, and at once with `added` for each object already here. Returns the way to stop it. */
  subscribe(handler: (change: Change<T>) => void): () => void;
}

/** A cache with its writing side, which belongs to the reflector. */
export interface WritableStore<T extends KubeObject> extends Store<T> {
  /** Sets an object; a namesake with another UID is first shown as deleted. */
  set(object: T): void;
  /** Removes an object; nothing happens if the cache holds a namesake with another UID. */
  remove(object: T): void;
  /** Makes the cache hold exactly these objects, showing the differences; then it has synced. */
  replace(objects: readonly T[]): void;
}

/** Settings of a store. */
export interface StoreOptions<T> {
  /** Indexes by name. */
  indexers?: Readonly<Record<string, Indexer<T>>>;
  /** Deep-freeze objects, so that a reconciler that changes one throws. Default: on, unless `NODE_ENV` is `production`. */
  freeze?: boolean;
}

/** Makes an empty store. */
export function createStore<T extends KubeObject>(options: StoreOptions<T> = {}): WritableStore<T> {
  throw new Error(`not implemented ${String(options.freeze)}`);
}

/** Files an object under the value of a label; objects without it are not filed. */
export function byLabel(label: string): Indexer<KubeObject> {
  return (object) => {
    const value = object.metadata.labels?.[label];
    return value === undefined ? [] : [value];
  };
}

/** Files an object under the UID of the owner that controls it. */
export const byControllerUid: Indexer<KubeObject> = (object) =>
  (object.metadata.ownerReferences ?? []).filter((owner) => owner.controller === true).map((owner) => owner.uid);
