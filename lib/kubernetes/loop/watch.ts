// Which keys a change in a cache leads to: the object's own, that of its owner, or that in a label.
import type { Store } from '../cache/store.ts';
import type { KubeObject } from '../object.ts';
import { keyOf } from '../object.ts';

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
export function watches<T extends KubeObject>(
  store: Store<T>,
  mapping?: KeyMapping<T>,
  filter: WatchFilter<T> = {},
): Watch {
  const keys = mapping ?? ((object: T): readonly string[] => [keyOf(object)]);
  const { changed = () => true } = filter;
  return {
    start: (enqueue) =>
      store.subscribe((change) => {
        if (change.type !== 'updated') keys(change.object).forEach(enqueue);
        else if (changed(change.object, change.old))
          new Set([...keys(change.old), ...keys(change.object)]).forEach(enqueue);
      }),
    resyncKeys: () => (mapping === undefined ? store.list().map(keyOf) : []),
    get hasSynced() {
      return store.hasSynced;
    },
    whenSynced: (signal) => store.whenSynced(signal),
  };
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

/**
 * Only changes of `spec` (generation), of deletion, labels, annotations or finalizers: for one's own object, whose
 * status one writes.
 */
export function ignoreStatus(object: KubeObject, old: KubeObject): boolean {
  const [a, b] = [object.metadata, old.metadata];
  return (
    a.generation !== b.generation ||
    JSON.stringify([a.deletionTimestamp, a.labels, a.annotations, a.finalizers]) !==
      JSON.stringify([b.deletionTimestamp, b.labels, b.annotations, b.finalizers])
  );
}
