// Writes objects by server-side apply under one field manager, skips writes that would change nothing, and deletes by UID.
import { createHash } from 'node:crypto';
import type { CallOptions, Client, DeleteOptions } from './client.ts';
import { isApiStatus } from '../errors.ts';
import { type KubeObject, type Manifest, type ObjectRef, type Resource, formatApiVersion } from '../object.ts';

/** Settings of an apply. */
export interface ApplyOptions extends CallOptions {
  /** Default `moorage`. */
  fieldManager?: string;
  /** Such as `status`. */
  subresource?: string;
  /** Take fields over from other managers; default true, as controllers should. */
  force?: boolean;
  /** Validate the write on the server, and change nothing. */
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
  /** Write only to this version: one changed or replaced since gives 409. A UID is no precondition here. */
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
  const manifest: Manifest = { apiVersion: formatApiVersion(resource), kind: resource.kind, metadata, status };
  return apply(client, resource, manifest, { ...options, subresource: 'status' });
}

/** Applies the status only if the cached object has another. Returns the object and whether it was written. */
export async function applyStatusIfChanged<T extends KubeObject & { status?: object | undefined }>(
  client: Client,
  resource: Resource<T>,
  cached: T,
  status: object,
  options: Omit<ApplyOptions, 'subresource'> = {},
): Promise<ApplyResult<T>> {
  if (cached.status !== undefined && computeHash(cached.status) === computeHash(status))
    return { object: cached, changed: false };
  return { object: await applyStatus(client, resource, cached.metadata, status, options), changed: true };
}

/** Whether the cached object was written by `applyIfChanged` with this same manifest. */
export function isApplied(cached: KubeObject, manifest: Manifest): boolean {
  return cached.metadata.annotations?.[APPLIED_HASH_ANNOTATION] === computeHash(manifest);
}

/** The result of a write that is skipped if it would change nothing. */
export interface ApplyResult<T> {
  object: T;
  changed: boolean;
}

/** Annotation that keeps the hash of the manifest last applied by `applyIfChanged`. */
export const APPLIED_HASH_ANNOTATION = 'moorage.dev/applied';

/** Settings of `applyIfChanged`. */
export interface ApplyIfChangedOptions<T> extends ApplyOptions {
  /**
   * Whether the cached object still is what was applied, besides the hash. Catches changes by others.
   * Default: every field of the manifest is in the cached object with that value (`isSubset`).
   */
  isCurrent?: (cached: T, manifest: Manifest) => boolean;
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
): Promise<ApplyResult<T>> {
  const { isCurrent = (object, applied) => isSubset(applied, object), ...rest } = options;
  if (cached !== undefined && isApplied(cached, manifest) && isCurrent(cached, manifest))
    return { object: cached, changed: false };
  const annotations = { ...manifest.metadata.annotations, [APPLIED_HASH_ANNOTATION]: computeHash(manifest) };
  const marked = { ...manifest, metadata: { ...manifest.metadata, annotations } };
  return { object: await apply(client, resource, marked, rest), changed: true };
}

/** Deletes exactly this object, not one created since under the same name. `false` if it was already gone or replaced. */
export async function deleteObject(
  client: Client,
  resource: Resource,
  object: KubeObject,
  options: Omit<DeleteOptions, 'uid'> = {},
): Promise<boolean> {
  try {
    return await client.delete(resource, object.metadata, { ...options, uid: object.metadata.uid });
  } catch (error) {
    // A UID that differs means that the object is gone; a version that differs is left to the caller.
    if (isApiStatus(error, 409) && options.resourceVersion === undefined) return false;
    throw error;
  }
}

/**
 * A stable hash (16 hex digits) of any JSON value; the order of keys does not matter, nor do fields that are
 * `undefined`.
 */
export function computeHash(value: unknown): string {
  return createHash('sha256').update(toCanonicalJson(value)).digest('hex').slice(0, 16);
}

function toCanonicalJson(value: unknown): string {
  const sortKeys = (_key: string, inner: unknown): unknown =>
    isRecord(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner;
  return JSON.stringify([value], sortKeys);
}

/**
 * True when every field of `wanted` is in `actual` with an equal value; arrays must be as long and match item by item.
 * What the API server writes in another way counts as equal: quantities (`1000m` and `1`), and empty values, which it
 * drops.
 */
export function isSubset(expected: unknown, actual: unknown): boolean {
  if (expected === undefined) return true;
  if (Array.isArray(expected)) {
    const items: unknown[] = Array.isArray(actual) ? actual : [];
    return items.length === expected.length && expected.every((item, index) => isSubset(item, items[index]));
  }
  if (isRecord(expected)) {
    const fields = isRecord(actual) ? actual : {};
    return Object.entries(expected).every(([name, value]) => isSubset(value, fields[name]));
  }
  return expected === actual || (isEmpty(expected) && isEmpty(actual)) || isSameQuantity(expected, actual);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === '' || value === 0 || value === false;
}

const QUANTITY = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:e([+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)$/;
const SCALES: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

function isSameQuantity(a: unknown, b: unknown): boolean {
  const [x, y] = [parseQuantity(a), parseQuantity(b)];
  return x !== undefined && y !== undefined && Math.abs(x - y) <= 1e-9 * Math.max(Math.abs(x), Math.abs(y));
}

function parseQuantity(value: unknown): number | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined;
  const match = QUANTITY.exec(String(value));
  if (match === null) return undefined;
  const scale = match[2] === undefined ? (SCALES[match[3] ?? ''] ?? 1) : 10 ** Number(match[2]);
  return Number(match[1]) * scale;
}
