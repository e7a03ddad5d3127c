// The data of an app: its volumes and generated Secrets. They outlive it: no owner reference deletes them with the HostedApp,
// and a new one with the same name and repository gets them back (controller/retention).
import { createHash } from 'node:crypto';
import type { HostedApp } from '../../../crds/hosted-app.ts';
import { annotations, labels } from '../../../crds/names.ts';
import { computeHash, type KubeObject, type Manifest } from '../../../lib/kubernetes/index.ts';
import { parseAcceptedRepository, hashRepository } from '../../../lib/repository.ts';
import type { PersistentVolumeClaim } from '../../objects/kinds.ts';
import type { Action } from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';

/** The fields that form the identity, also of an object whose spec is not parsed. */
export interface AppIdentity {
  readonly metadata: { readonly name: string; readonly namespace?: string | undefined };
  readonly spec: { readonly source: { readonly repo: string } };
}

/**
 * The owner of data: namespace, name and repository, which a recreated HostedApp shares with the one before. A namesake
 * with another repository has another identity. 128 bits, so that no collision can be constructed.
 */
export function computeDataIdentity({ metadata, spec }: AppIdentity): string {
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
export function chooseDataKey(
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
export function hasDataIdentity({ metadata }: KubeObject, identity: string): boolean {
  return metadata.labels?.[labels.data] === identity;
}

/** Whether the app has data that its generated Secrets may open; if not, they are deleted with it and derived again. */
export function hasData({ spec }: Pick<HostedApp, 'spec'>): boolean {
  return spec.run.volumes.length > 0 || spec.services.length > 0;
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
