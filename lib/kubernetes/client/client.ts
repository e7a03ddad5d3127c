// Defines the interface of a typed client of the Kubernetes API, and the options of its calls.
import type { KubeObject, Manifest, ObjectRef, Resource } from '../object.ts';

/** Settings of one call. */
export interface CallOptions {
  /** Aborts the call; it then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Milliseconds until the response must be complete (for a watch: must begin); default 30 000. */
  timeoutMs?: number;
}

/** Which objects to list or watch. */
export interface Selection {
  /** One namespace; all namespaces when absent. */
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  fieldSelector?: string | undefined;
}

/** Settings of one page of a list. */
export interface ListOptions extends CallOptions, Selection {
  limit?: number;
  /** Token of the previous page. */
  continue?: string | undefined;
  resourceVersion?: string | undefined;
}

/** One page of a list. */
export interface ListPage<T> {
  items: T[];
  resourceVersion: string;
  /** Token for the next page; absent on the last. */
  continue: string | undefined;
}

/** Settings of a watch. */
export interface WatchOptions extends CallOptions, Selection {
  resourceVersion: string;
  /** Seconds after which the server ends the watch. */
  timeoutSeconds: number;
  /** Called when the server has accepted the watch (within `timeoutMs`, or the watch fails). */
  onOpen?: () => void;
}

/** One line of a watch. A stream's `ERROR` line is thrown as `ApiError` instead. */
export type WatchEvent<T> =
  { type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: T } | { type: 'BOOKMARK'; resourceVersion: string };

/** Settings of a delete. */
export interface DeleteOptions extends CallOptions {
  /** Delete only the object with this UID, not one created since under the same name (409). */
  uid?: string | undefined;
  resourceVersion?: string | undefined;
  /** How the object's dependents are deleted; default `Background`. */
  propagation?: 'Background' | 'Foreground' | 'Orphan';
  gracePeriodSeconds?: number;
}

/** Settings of a patch. */
export interface PatchOptions extends CallOptions {
  /** Media type of the patch, such as `application/merge-patch+json`. */
  type: string;
  subresource?: string | undefined;
  fieldManager?: string;
  force?: boolean;
  dryRun?: boolean;
}

/** Settings of a create or a replace. */
export interface WriteOptions extends CallOptions {
  fieldManager?: string;
  subresource?: string | undefined;
}

/** Settings of a raw request. */
export interface RawRequest extends CallOptions {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path and query from the server's root, such as `/version`. */
  path: string;
  body?: unknown;
  contentType?: string;
}

/** A client of one API server. Every method rejects with `ApiError` if the server returns an error or cannot be reached. */
export interface Client {
  /** The object, or `undefined` when there is none. */
  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options?: CallOptions): Promise<T | undefined>;
  /** One page of objects. */
  list<T extends KubeObject>(resource: Resource<T>, options?: ListOptions): Promise<ListPage<T>>;
  /** Every object, page by page (500 a page). */
  listAll<T extends KubeObject>(
    resource: Resource<T>,
    options?: CallOptions & Selection,
  ): AsyncGenerator<T, void, undefined>;
  /** The changes since `resourceVersion`, until the server ends the stream (returns) or it breaks (throws). */
  watch<T extends KubeObject>(
    resource: Resource<T>,
    options: WatchOptions,
  ): AsyncGenerator<WatchEvent<T>, void, undefined>;
  /** Creates an object; 409 `AlreadyExists` when the name is taken. */
  create<T extends KubeObject>(resource: Resource<T>, object: Manifest, options?: WriteOptions): Promise<T>;
  /** Replaces an object; 409 `Conflict` when `metadata.resourceVersion` is set and is not the latest. */
  replace<T extends KubeObject>(resource: Resource<T>, object: Manifest | T, options?: WriteOptions): Promise<T>;
  /** Patches an object. For server-side apply use `apply`. */
  patch<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, patch: unknown, options: PatchOptions): Promise<T>;
  /** Deletes an object. `false` when it was gone already (404); a UID that does not match is 409. */
  delete(resource: Resource, ref: ObjectRef, options?: DeleteOptions): Promise<boolean>;
  /** Sends any request. Resolves with the parsed JSON, or with text for other media types. */
  request(request: RawRequest): Promise<unknown>;
  /** Closes idle connections. */
  close(): void;
}

/** Settings of a client. */
export interface ClientOptions {
  /** Default of `CallOptions.timeoutMs`; default 30 000. */
  timeoutMs?: number;
  /** Sent as `User-Agent`, and shown in the server's audit log; default `moorage`. */
  userAgent?: string;
}
