// The data of apps outlives them: identifies it, keeps it for a while after an app is deleted, so that the app can be restored, then
// deletes it: claims with their disks, and generated Secrets.
import { createHash } from 'node:crypto';
import { annotations, labels } from '../../crds/names.ts';
import {
  deleteObject,
  isApiStatus,
  toErrorMessage,
  sleep,
  systemClock,
  type Client,
  type KubeObject,
  type Logger,
  computeHash,
  type Manifest,
} from '../../lib/kubernetes/index.ts';
import {
  claims as claimResource,
  hostedApps,
  secrets,
  type HostedAppObject,
  type PersistentVolumeClaim,
  formatTimestamp,
} from '../objects/kinds.ts';
import type { HostedApp } from '../../crds/hosted-app.ts';
import { parseAcceptedRepository, hashRepository } from '../../lib/repository.ts';
import type { Action } from '../reconcile/outcome.ts';
import type { Snapshot } from '../reconcile/snapshot.ts';
import { isRecreated } from '../steps/deploy/components.ts';

const never = 'never';

/** Finds the key that the names of the app's data derive from: in the status, or on claims of an earlier app of this identity. */
export async function findDataKey(client: Client, app: HostedAppObject, signal: AbortSignal): Promise<string> {
  if (app.status !== undefined) return chooseDataKey(app, []);
  const claims: PersistentVolumeClaim[] = [];
  // Asks the server: a cache may not have seen them yet.
  const selection = { namespace: app.metadata.namespace, labelSelector: `${labels.data}=${computeDataIdentity(app)}` };
  for await (const claim of client.listAll(claimResource, { ...selection, signal })) claims.push(claim);
  return chooseDataKey(app, claims);
}

/**
 * Annotates the claims of an app that is being deleted with how long they are kept: until a time, or `never` deleted for
 * Retain. Must happen before the app's finalizer is removed. Idempotent.
 */
export async function keepData(
  client: Client,
  app: HostedAppObject,
  times: { readonly keepMs: number; readonly now: Date },
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name, uid } = app.metadata;
  const identity = computeDataIdentity(app);
  const selection = { namespace, labelSelector: `${labels.app}=${name}` };
  for await (const claim of client.listAll(claimResource, { ...selection, signal })) {
    const isOwned = (claim.metadata.ownerReferences ?? []).some((owner) => owner.uid === uid);
    if (!hasDataIdentity(claim, identity) && !isOwned) continue;
    if (isOwned || readDeleteAfter(claim) === undefined)
      await patchClaim(client, claim, buildFarewell(app, claim, times), signal);
  }
}

/** The metadata of a claim whose app is deleted. */
function buildFarewell(
  app: HostedAppObject,
  claim: PersistentVolumeClaim,
  { keepMs, now }: { readonly keepMs: number; readonly now: Date },
): object {
  // An app from before there was a policy is deleted like any other.
  const policy = app.spec.deletionPolicy ?? 'Delete';
  // The data of a preview, and of a submitted app that was never live, is of no use, and others need its disks. A claim older
  // than the app belonged to an earlier one.
  const isUseless =
    app.spec.previewOf !== undefined ||
    (app.metadata.labels?.[labels.caller] !== undefined &&
      app.status?.url === undefined &&
      claim.metadata.creationTimestamp >= app.metadata.creationTimestamp);
  return {
    labels: { [labels.data]: computeDataIdentity(app) },
    annotations: {
      [annotations.dataKey]: chooseDataKey(app, []),
      [annotations.deletionPolicy]: policy,
      [annotations.deleteAfter]: formatEnd(policy, isUseless ? 0 : keepMs, now),
    },
    // A claim of an earlier version has its app as owner, and would be collected with it.
    ownerReferences: null,
  };
}

function formatEnd(policy: string, keepMs: number, now: Date): string {
  return policy === 'Retain' ? never : formatTimestamp(new Date(now.getTime() + keepMs));
}

/** Patches only this version: a claim that has changed since fails with 409 and is checked again. */
async function patchClaim(client: Client, claim: KubeObject, metadata: object, signal: AbortSignal): Promise<void> {
  const { uid, resourceVersion } = claim.metadata;
  await client.patch(
    claimResource,
    claim.metadata,
    { metadata: { ...metadata, uid, resourceVersion } },
    { type: 'application/merge-patch+json', signal },
  );
}

/** By name, since the operator has no right to list Secrets. */
async function deleteSecrets(
  client: Client,
  namespace: string,
  claims: readonly PersistentVolumeClaim[],
  signal: AbortSignal,
): Promise<void> {
  const names = claims.flatMap(({ metadata }) => metadata.annotations?.[annotations.dataSecrets]?.split(',') ?? []);
  for (const name of new Set(names)) await client.delete(secrets, { namespace, name }, { signal });
}

export interface RetentionOptions {
  readonly client: Client;
  readonly namespace: string;
  /** How long data is kept if the operator did not see its HostedApp being deleted. */
  readonly keepMs: number;
  /** All claims of apps, and an app by its name, from the caches. */
  readonly listClaims: () => readonly PersistentVolumeClaim[];
  readonly getApp: (name: string) => HostedAppObject | undefined;
  readonly log: Logger;
  readonly now?: () => Date;
}

const longestIntervalMs = 600_000;

/** Deletes expired data at an interval while this replica leads. */
export function createRetentionTask(options: RetentionOptions): (signal: AbortSignal) => Promise<void> {
  const intervalMs = Math.min(longestIntervalMs, Math.max(1_000, options.keepMs / 10));
  return async (signal) => {
    while (!signal.aborted) {
      for (const [identity, claims] of groupByIdentity(options.listClaims()))
        try {
          await deleteExpiredData(options, identity, claims, signal);
        } catch (error) {
          // A claim that changed meanwhile (409) is checked again.
          if (!isApiStatus(error, 409))
            options.log.warn(
              { identity, error: toErrorMessage(error) },
              'could not delete the data of a deleted app, retrying',
            );
        }
      await sleep(systemClock, intervalMs, signal);
    }
  };
}

/** Groups claims by identity. Claims owned by a HostedApp of an earlier version have none yet and are left to it. */
function groupByIdentity(claims: readonly PersistentVolumeClaim[]): Map<string, PersistentVolumeClaim[]> {
  const groups = new Map<string, PersistentVolumeClaim[]>();
  for (const claim of claims) {
    const identity = claim.metadata.labels?.[labels.data];
    if (identity === undefined || claim.metadata.deletionTimestamp !== undefined) continue;
    groups.set(identity, [...(groups.get(identity) ?? []), claim]);
  }
  return groups;
}

/** Deletes the data of one identity if its app is gone and all of it has expired. */
async function deleteExpiredData(
  options: RetentionOptions,
  identity: string,
  claims: readonly PersistentVolumeClaim[],
  signal: AbortSignal,
): Promise<void> {
  const { client, namespace, log } = options;
  const now = options.now?.() ?? new Date();
  const name = claims[0]?.metadata.labels?.[labels.app] ?? '';
  if (
    hasIdentity(options.getApp(name), identity) ||
    hasIdentity(await client.get(hostedApps, { namespace, name }, { signal }), identity)
  )
    return;
  await markUnmarked(options, claims, now, signal);
  if (!claims.every((claim) => isExpired(claim, now))) return;
  // Secrets go before the claims: as long as a claim exists, this is retried.
  await deleteSecrets(client, namespace, claims, signal);
  for (const claim of claims) {
    // Exactly this version: an app that came back in between has changed it.
    const { resourceVersion } = claim.metadata;
    await deleteObject(client, claimResource, claim, { resourceVersion, signal });
  }
  log.info({ app: name, claims: claims.map(({ metadata }) => metadata.name) }, 'deleted the data of a deleted app');
}

/** Annotates claims whose HostedApp was removed without the operator, such as without its finalizer. */
async function markUnmarked(
  { client, keepMs }: RetentionOptions,
  claims: readonly PersistentVolumeClaim[],
  now: Date,
  signal: AbortSignal,
): Promise<void> {
  for (const claim of claims.filter((each) => readDeleteAfter(each) === undefined)) {
    const policy = claim.metadata.annotations?.[annotations.deletionPolicy] ?? 'Delete';
    await patchClaim(
      client,
      claim,
      { annotations: { [annotations.deleteAfter]: formatEnd(policy, keepMs, now) } },
      signal,
    );
  }
}

function hasIdentity(app: HostedAppObject | undefined, identity: string): boolean {
  return app !== undefined && computeDataIdentity(app) === identity;
}

function readDeleteAfter({ metadata }: PersistentVolumeClaim): string | undefined {
  return metadata.annotations?.[annotations.deleteAfter];
}

function isExpired(claim: PersistentVolumeClaim, now: Date): boolean {
  const end = readDeleteAfter(claim);
  return end !== undefined && end !== never && Date.parse(end) <= now.getTime();
}

// The identity of an app's data, which is its volumes and generated Secrets. No owner reference deletes them with the HostedApp,
// and a new one with the same name and repository gets them back.

/** The fields that form the identity, also of an object whose spec is not parsed. */
export interface AppIdentity {
  readonly metadata: { readonly name: string; readonly namespace?: string | undefined };
  readonly spec: { readonly source: { readonly repo: string } };
}

/**
 * The owner of data: namespace, name and repository, which a recreated HostedApp shares with the one before. A namesake
 * with another repository has another identity. 128 bits, so that no collision can be constructed.
 */
function computeDataIdentity({ metadata, spec }: AppIdentity): string {
  const repository = hashRepository(parseAcceptedRepository(spec.source.repo).url);
  return createHash('sha256')
    .update(['moorage data 1', metadata.namespace ?? '', metadata.name, repository].join('\n'))
    .digest('hex')
    .slice(0, 32);
}

type KeyedApp = Pick<HostedApp, 'metadata' | 'spec' | 'status'>;

/** The key that the names of the app's data derive from. */
export function readDataKey({ metadata, status }: KeyedApp): string {
  return status?.dataKey ?? metadata.uid;
}

/** Earlier versions derived the names from the UID of the HostedApp; the data of such an app keeps its names. */
export function hasLegacyKey(app: KeyedApp): boolean {
  return readDataKey(app) !== computeDataIdentity(app);
}

/**
 * Chooses the key of an app. `kept` are claims of its identity: data of a deleted HostedApp. An app with a status but
 * without a key is from an earlier version, which named by UID.
 */
function chooseDataKey(
  app: AppIdentity & {
    readonly metadata: { readonly uid: string };
    readonly status?: { readonly dataKey?: string | undefined } | undefined;
  },
  keptClaims: readonly KubeObject[],
): string {
  if (app.status?.dataKey !== undefined) return app.status.dataKey;
  if (app.status !== undefined) return app.metadata.uid;
  const identity = computeDataIdentity(app);
  const keys = keptClaims
    .filter((claim) => hasDataIdentity(claim, identity))
    .flatMap(({ metadata }) => metadata.annotations?.[annotations.dataKey] ?? [])
    .sort();
  return keys.includes(identity) ? identity : (keys[0] ?? identity);
}

/** Whether an object holds data of this identity. */
function hasDataIdentity({ metadata }: KubeObject, identity: string): boolean {
  return metadata.labels?.[labels.data] === identity;
}

/** Whether the app has data that its generated Secrets may open; if not, they are deleted with it and derived again. */
export function hasData({ spec }: Pick<HostedApp, 'spec'>): boolean {
  return isRecreated({ spec }) || spec.services.length > 0;
}

/** A claim or Secret of the app's data: like a child of the app, but without an owner. */
export function toKeptObject(app: HostedApp, manifest: Manifest): Manifest {
  const { ownerReferences: _, ...metadata } = manifest.metadata;
  return {
    ...manifest,
    metadata: { ...metadata, labels: { ...metadata.labels, [labels.data]: computeDataIdentity(app) } },
  };
}

/** A claim with the annotations that are needed once its HostedApp is gone. `secrets` are deleted with it. */
export function toKeptClaim(app: HostedApp, manifest: Manifest, secrets: readonly string[]): Manifest {
  const keptObject = toKeptObject(app, manifest);
  const noted = {
    ...keptObject.metadata.annotations,
    [annotations.dataKey]: readDataKey(app),
    [annotations.deletionPolicy]: app.spec.deletionPolicy,
    ...(secrets.length === 0 ? {} : { [annotations.dataSecrets]: secrets.join(',') }),
  };
  return { ...keptObject, metadata: { ...keptObject.metadata, annotations: noted } };
}

/**
 * Chooses the name of a volume's claim. A claim of an older version, without a hash in its name, is kept if it belongs to
 * this app, so that its data is not lost.
 */
export function chooseClaimName(app: HostedApp, volume: string, claims: readonly KubeObject[]): string {
  const { name, uid } = app.metadata;
  const plain = `${name}-${volume}`;
  // The hash keeps volume c of app a-b apart from volume b-c of app a, and namesakes with other repositories apart.
  if (!hasLegacyKey(app)) return `${plain}-${computeHash([readDataKey(app), volume]).slice(0, 20)}`;
  const identity = computeDataIdentity(app);
  const isOwn = (claim: KubeObject): boolean =>
    claim.metadata.name === plain &&
    (hasDataIdentity(claim, identity) || (claim.metadata.ownerReferences ?? []).some((owner) => owner.uid === uid));
  return claims.some(isOwn) ? plain : `${plain}-${computeHash([name, volume]).slice(0, 8)}`;
}

/** Removes the expiry from claims that were kept for this app, now that it exists again. */
export function adoptClaims({ app, claims }: Pick<Snapshot, 'app' | 'claims'>): Action[] {
  const identity = computeDataIdentity(app);
  return claims
    .filter((claim) => hasDataIdentity(claim, identity) && isEnding(claim))
    .map((object) => ({ kind: 'annotate', object, annotations: { [annotations.deleteAfter]: null } }));
}

function isEnding({ metadata }: PersistentVolumeClaim): boolean {
  return metadata.annotations?.[annotations.deleteAfter] !== undefined && metadata.deletionTimestamp === undefined;
}
