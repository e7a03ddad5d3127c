// Writes objects by server-side apply under one field manager, and deletes them by UID.
import type { CallOptions, Client, DeleteOptions } from './client.ts';
import type { KubeObject, Manifest, ObjectRef, Resource } from './object.ts';

/** Settings of an apply. */
export interface ApplyOptions extends CallOptions {
  /** Default `moorage`. */
  fieldManager?: string;
  /** Such as `status`. */
  subresource?: string;
  /** Take fields over from other managers; default true, as controllers should. */
  force?: boolean;
  /** Ask what would come of it, and change nothing. */
  dryRun?: boolean;
}

/** Applies a manifest (creates or updates) and returns the object as it is now. Rejects with `ApiError`. */
export async function apply<T extends KubeObject>(client: Client, resource: Resource<T>, manifest: Manifest, options: ApplyOptions = {}): Promise<T> {
  return Promise.reject(new Error(`not implemented ${client.constructor.name} ${resource.kind} ${manifest.kind} ${String(options.force)}`));
}

/** Applies the status of an object and nothing else. `status` is the whole of what we own there. */
export async function applyStatus<T extends KubeObject>(client: Client, resource: Resource<T>, ref: ObjectRef, status: object, options: Omit<ApplyOptions, 'subresource'> = {}): Promise<T> {
  return Promise.reject(new Error(`not implemented ${client.constructor.name} ${resource.kind} ${ref.name} ${String(status)} ${String(options.force)}`));
}

/** Annotation that keeps the hash of the manifest last applied by `applyIfChanged`. */
export const APPLIED_HASH_ANNOTATION = 'moorage.dev/applied';

/** Settings of `applyIfChanged`. */
export interface ApplyIfChangedOptions<T> extends ApplyOptions {
  /**
   * Whether the cached object still is what was applied, besides the hash: catches a change by someone else's hand.
   * Default: every field of the manifest is in the cached object with that value (`isSubset`).
   */
  holds?: (cached: T, manifest: Manifest) => boolean;
}

/**
 * Applies a manifest only if the cached object does not have it yet, so that a resync that changes nothing costs no request.
 * The hash of the manifest is kept in the annotation `APPLIED_HASH_ANNOTATION`. Returns the object and whether it was written.
 */
export async function applyIfChanged<T extends KubeObject>(client: Client, resource: Resource<T>, cached: T | undefined, manifest: Manifest, options: ApplyIfChangedOptions<T> = {}): Promise<{ object: T; changed: boolean }> {
  return Promise.reject(new Error(`not implemented ${client.constructor.name} ${resource.kind} ${String(cached)} ${manifest.kind} ${String(options.force)}`));
}

/** A stable hash (16 hex digits) of any JSON value; the order of keys does not matter. */
export function hashOf(value: unknown): string {
  throw new Error(`not implemented ${String(value)}`);
}

/** True when every field of `wanted` is in `actual` with an equal value (arrays: as long, and item by item). */
export function isSubset(wanted: unknown, actual: unknown): boolean {
  throw new Error(`not implemented ${String(wanted)} ${String(actual)}`);
}

/** Deletes exactly this object: a namesake made since is left alone. `false` when it was gone (or replaced) already. */
export async function deleteObject(client: Client, resource: Resource, object: KubeObject, options: Omit<DeleteOptions, 'uid'> = {}): Promise<boolean> {
  return Promise.reject(new Error(`not implemented ${client.constructor.name} ${resource.kind} ${object.kind} ${String(options.propagation)}`));
}
