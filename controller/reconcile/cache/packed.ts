// Keeps cached objects as deflated text: a parsed object takes over ten times the memory, and most are never looked at
// between resyncs.
import { hashOf, type KubeObject, type ObjectMeta, type Store } from '../../../lib/kubernetes/index.ts';
import { present } from '../../objects/present.ts';
import type { SimilarTexts } from './similar-texts.ts';

/**
 * An object of the cache. Its own metadata has what caches and watches need; all that was kept of it is in `packed`.
 */
export interface PackedObject extends KubeObject {
  readonly packed: string;
  /** Differs when anything but the status does. */
  readonly wanted: string;
}

/** Reads objects of one kind out of a cache. */
export interface Unpacker<T extends KubeObject> {
  get(key: string): T | undefined;
  byIndex(index: string, value: string): T[];
  list(): T[];
  /** The cache itself, to be watched. */
  readonly store: Store<PackedObject>;
}

/** Unpacks on each read. The objects are the reader's own. */
export function unpacking<T extends KubeObject>(store: Store<PackedObject>, texts: SimilarTexts): Unpacker<T> {
  const unpack = ({ packed }: PackedObject): T => JSON.parse(texts.unpack(packed)) as T;
  return {
    store,
    get(key) {
      const found = store.get(key);
      return found === undefined ? undefined : unpack(found);
    },
    byIndex: (index, value) => store.byIndex(index, value).map(unpack),
    list: () => store.list().map(unpack),
  };
}

/** Packs what `keep` returns of an object; `label` is the one label that the cache files it by. */
export function packer(
  label: string,
  texts: SimilarTexts,
  keep: (object: KubeObject) => object,
): (object: KubeObject) => PackedObject {
  return (object) => {
    const {
      name,
      namespace,
      uid,
      resourceVersion,
      creationTimestamp,
      labels,
      generation,
      deletionTimestamp,
      annotations,
      finalizers,
    } = object.metadata;
    const value = labels?.[label];
    const metadata: ObjectMeta = present({
      name,
      namespace,
      uid,
      resourceVersion,
      creationTimestamp,
      labels: value === undefined ? undefined : { [label]: value },
    });
    const wanted = hashOf([generation, deletionTimestamp, labels, annotations, finalizers]);
    return {
      apiVersion: object.apiVersion,
      kind: object.kind,
      metadata,
      wanted,
      packed: texts.pack(JSON.stringify(keep(object))),
    };
  };
}
