// Defines the types of Kubernetes objects on the wire, and how a kind of object is named to the API server.
import type { V1ObjectMeta, V1OwnerReference } from '@kubernetes/client-node';

/**
 * A type of client-node as it is on the wire. Its classes have `Date` where the wire has an RFC 3339 string, and `_from`
 * for `from`, since they are meant to go through its serializer. Use it with `import type` only: importing the classes
 * costs tens of megabytes (docs/adr/0001-own-kubernetes-transport.md).
 */
export type Wire<T> = T extends Date
  ? string
  : T extends readonly (infer Item)[]
    ? Wire<Item>[]
    : T extends object
      ? { [Key in keyof T as Key extends `_${infer Name}` ? Name : Key]: Wire<T[Key]> }
      : T;

/** An entry of `metadata.ownerReferences`. */
export type OwnerReference = Wire<V1OwnerReference>;

type PublishedMeta = Wire<V1ObjectMeta>;

/** The metadata of an object as the API server returns it: what it always sets is there. */
export type ObjectMeta = Omit<PublishedMeta, 'name' | 'uid' | 'resourceVersion' | 'creationTimestamp'> &
  Required<Pick<PublishedMeta, 'name' | 'uid' | 'resourceVersion' | 'creationTimestamp'>>;

/** An object read from the API server. `apiVersion` and `kind` are always set, in list items and watch events too. */
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
}

/** A published type as an object read from the API server: `KubeType<V1Pod>`. */
export type KubeType<S extends object> = KubeObject & Omit<Wire<S>, 'apiVersion' | 'kind' | 'metadata'>;

/** An object to be written: only the fields that the writer wants to own. */
export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    namespace?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    finalizers?: string[];
    ownerReferences?: OwnerReference[];
  };
  [field: string]: unknown;
}

/** Identifies an object within its kind. `namespace` is left out for cluster-scoped kinds. */
export interface ObjectRef {
  name: string;
  namespace?: string | undefined;
}

/** A kind of object and its path in the API. `T` is the type of the objects. Create one with `defineResource`. */
export interface Resource<T extends KubeObject = KubeObject> {
  /** API group; `''` is the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Lower-case plural, as in the URL. */
  readonly plural: string;
  readonly namespaced: boolean;
  /** Carries `T`; never set. */
  readonly type?: T;
}

/**
 * Defines a kind of object.
 *
 *     const pods = defineResource<KubeType<V1Pod>>({
 *       group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true });
 */
export function defineResource<T extends KubeObject>(resource: Omit<Resource<T>, 'type'>): Resource<T> {
  return Object.freeze({ ...resource });
}

/** `group/version`, or the version alone for the core group. */
export function formatApiVersion(resource: Pick<Resource, 'group' | 'version'>): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}

/** The key of an object: `namespace/name`, or `name` when it has no namespace. */
export function toObjectKey(ref: { metadata: { name: string; namespace?: string | undefined } } | ObjectRef): string {
  const { name, namespace } = 'metadata' in ref ? ref.metadata : ref;
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;
}

/** The inverse of `toObjectKey`. */
export function parseObjectKey(key: string): ObjectRef {
  const slash = key.indexOf('/');
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** An owner reference that makes `owner` the controller of a child. */
export function buildControllerReference(owner: KubeObject): OwnerReference {
  const { name, uid } = owner.metadata;
  return { apiVersion: owner.apiVersion, kind: owner.kind, name, uid, controller: true, blockOwnerDeletion: true };
}

/** The API's `MicroTime`, which must have six decimals. */
export function formatMicroTime(date: Date): string {
  return date.toISOString().replace('Z', '000Z');
}
