// Writes objects by server-side apply under one field manager, and deletes them by UID.
import type { CallOptions, Client, DeleteOptions } from './client.ts';
import { isApiStatus } from '../errors.ts';
import type { KubeObject, Manifest, ObjectRef, Resource } from '../object.ts';
import { apiVersionOf } from '../object.ts';
import { hashOf, isSubset } from './compare.ts';

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
export function apply<T extends KubeObject>(
  client: Client,
  resource: Resource<T>,
  manifest: Manifest,
  options: ApplyOptions = {},
): Promise<T> {
  const { fieldManager = 'moorage', force = true } = options;
  return client.patch(resource, manifest.metadata, manifest, {
    ...options,
    type: 'application/apply-patch+yaml',
    fieldManager,
    force,
  });
}

/** Settings of an apply of a status. */
export interface StatusOptions extends Omit<ApplyOptions, 'subresource'> {
  /** Only to this version: a change made since is left alone, and a namesake (409). A UID is no precondition here. */
  resourceVersion?: string | undefined;
}

/** Applies the status of an object and nothing else. `status` is the whole of what we own there. */
export function applyStatus<T extends KubeObject>(
  client: Client,
  resource: Resource<T>,
  ref: ObjectRef,
  status: object,
  { resourceVersion, ...options }: StatusOptions = {},
): Promise<T> {
  const { name, namespace } = ref;
  const metadata = {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  };
  const manifest: Manifest = { apiVersion: apiVersionOf(resource), kind: resource.kind, metadata, status };
  return apply(client, resource, manifest, { ...options, subresource: 'status' });
}

/** Applies the status only if the cached object has another. Returns the object and whether it was written. */
export async function applyStatusIfChanged<T extends KubeObject & { status?: object | undefined }>(
  client: Client,
  resource: Resource<T>,
  cached: T,
  status: object,
  options: Omit<ApplyOptions, 'subresource'> = {},
): Promise<Applied<T>> {
  if (cached.status !== undefined && hashOf(cached.status) === hashOf(status))
    return { object: cached, changed: false };
  return { object: await applyStatus(client, resource, cached.metadata, status, options), changed: true };
}

/** True when the cached object carries this very manifest, as `applyIfChanged` wrote it. */
export function isApplied(cached: KubeObject, manifest: Manifest): boolean {
  return cached.metadata.annotations?.[APPLIED_HASH_ANNOTATION] === hashOf(manifest);
}

/** What came of a write that is left out when it would change nothing. */
export interface Applied<T> {
  object: T;
  changed: boolean;
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
 * Applies a manifest only if the cached object does not have it yet, so that a resync that changes nothing costs no
 * request.
 * The hash of the manifest is kept in the annotation `APPLIED_HASH_ANNOTATION`. Returns the object and whether it was
 * written.
 */
export async function applyIfChanged<T extends KubeObject>(
  client: Client,
  resource: Resource<T>,
  cached: T | undefined,
  manifest: Manifest,
  options: ApplyIfChangedOptions<T> = {},
): Promise<Applied<T>> {
  const { holds = (object, wanted) => isSubset(wanted, object), ...rest } = options;
  if (cached !== undefined && isApplied(cached, manifest) && holds(cached, manifest))
    return { object: cached, changed: false };
  const annotations = { ...manifest.metadata.annotations, [APPLIED_HASH_ANNOTATION]: hashOf(manifest) };
  const marked = { ...manifest, metadata: { ...manifest.metadata, annotations } };
  return { object: await apply(client, resource, marked, rest), changed: true };
}

/** Deletes exactly this object: a namesake made since is left alone. `false` when it was gone (or replaced) already. */
export async function deleteObject(
  client: Client,
  resource: Resource,
  object: KubeObject,
  options: Omit<DeleteOptions, 'uid'> = {},
): Promise<boolean> {
  try {
    return await client.delete(resource, object.metadata, { ...options, uid: object.metadata.uid });
  } catch (error) {
    // Of the two preconditions, a UID that differs means that the object is gone; a version that differs is the
    // caller's affair.
    if (isApiStatus(error, 409) && options.resourceVersion === undefined) return false;
    throw error;
  }
}
