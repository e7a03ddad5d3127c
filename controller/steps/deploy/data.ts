// The data of an app: its volumes and generated Secrets. They have a life of their own: no owner takes them along when a
// HostedApp is deleted, and one of the same name and repository gets them back (controller/retention).
import { createHash } from 'node:crypto';
import type { HostedApp } from '../../../crds/hosted-app.ts';
import { annotations, labels } from '../../../crds/names.ts';
import { hashOf, type KubeObject, type Manifest } from '../../../lib/kubernetes/index.ts';
import { acceptedRepository, repositoryHash } from '../../../lib/repository.ts';
import type { PersistentVolumeClaim } from '../../objects/kinds.ts';
import type { Action } from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';

/** What the identity is read from: also of an object whose spec is not parsed. */
export interface AppIdentity {
  readonly metadata: { readonly name: string; readonly namespace?: string | undefined };
  readonly spec: { readonly source: { readonly repo: string } };
}

/**
 * Whose data it is: namespace, name and repository, which a HostedApp that is made again has in common with the one
 * before. A namesake with another repository has another identity. 128 bits, so that none can be made to match.
 */
export function computeDataIdentity({ metadata, spec }: AppIdentity): string {
  const repository = repositoryHash(acceptedRepository(spec.source.repo).url);
  return createHash('sha256')
    .update(['moorage data 1', metadata.namespace ?? '', metadata.name, repository].join('\n'))
    .digest('hex')
    .slice(0, 32);
}

type KeyedApp = Pick<HostedApp, 'metadata' | 'spec' | 'status'>;

/** What the names of the app's data are made from. */
export function readDataKey({ metadata, status }: KeyedApp): string {
  return status?.dataKey ?? metadata.uid;
}

/** Versions before this one made the names from the UID of the HostedApp; the data of such an app keeps its names. */
export function hasLegacyKey(app: KeyedApp): boolean {
  return readDataKey(app) !== computeDataIdentity(app);
}

/**
 * The key of an app that has none in its status yet. `kept` are claims of its identity: data of a HostedApp that was
 * deleted. An app with a status is of an earlier version, which named by UID.
 */
export function chooseDataKey(
  app: AppIdentity & {
    readonly metadata: { readonly uid: string };
    readonly status?: { readonly dataKey?: string | undefined } | undefined;
  },
  kept: readonly KubeObject[],
): string {
  if (app.status?.dataKey !== undefined) return app.status.dataKey;
  if (app.status !== undefined) return app.metadata.uid;
  const identity = computeDataIdentity(app);
  const keys = kept
    .filter((claim) => hasDataIdentity(claim, identity))
    .flatMap(({ metadata }) => metadata.annotations?.[annotations.dataKey] ?? [])
    .sort();
  return keys.includes(identity) ? identity : (keys[0] ?? identity);
}

/** Whether an object holds data of this identity. */
export function hasDataIdentity({ metadata }: KubeObject, identity: string): boolean {
  return metadata.labels?.[labels.data] === identity;
}

/** Whether the app has anything that its generated Secrets may open; without that, they go with it and are derived again. */
export function hasData({ spec }: Pick<HostedApp, 'spec'>): boolean {
  return spec.run.volumes.length > 0 || spec.services.length > 0;
}

/** A claim or Secret: like a child of the app, whose data it is, but without an owner. */
export function toKeptObject(app: HostedApp, manifest: Manifest): Manifest {
  const { ownerReferences: _, ...metadata } = manifest.metadata;
  return {
    ...manifest,
    metadata: { ...metadata, labels: { ...metadata.labels, [labels.data]: computeDataIdentity(app) } },
  };
}

/** A claim, with what has to be known of it once its HostedApp is gone. `secrets` go with it. */
export function toKeptClaim(app: HostedApp, manifest: Manifest, secrets: readonly string[]): Manifest {
  const kept = toKeptObject(app, manifest);
  const noted = {
    ...kept.metadata.annotations,
    [annotations.dataKey]: readDataKey(app),
    [annotations.deletionPolicy]: app.spec.deletionPolicy,
    ...(secrets.length === 0 ? {} : { [annotations.dataSecrets]: secrets.join(',') }),
  };
  return { ...kept, metadata: { ...kept.metadata, annotations: noted } };
}

/**
 * Name of the claim of a volume. A claim of an older version, which had no hash in its name, is kept if it is this
 * app's: data is not left behind.
 */
export function chooseClaimName(app: HostedApp, volume: string, claims: readonly KubeObject[]): string {
  const { name, uid } = app.metadata;
  const plain = `${name}-${volume}`;
  // The hash keeps volume c of app a-b apart from volume b-c of app a, and namesakes with other repositories apart.
  if (!hasLegacyKey(app)) return `${plain}-${hashOf([readDataKey(app), volume]).slice(0, 20)}`;
  const identity = computeDataIdentity(app);
  const isOwn = (claim: KubeObject): boolean =>
    claim.metadata.name === plain &&
    (hasDataIdentity(claim, identity) || (claim.metadata.ownerReferences ?? []).some((owner) => owner.uid === uid));
  return claims.some(isOwn) ? plain : `${plain}-${hashOf([name, volume]).slice(0, 8)}`;
}

/** Takes the end off claims that were kept for this app, now that it is here again. */
export function adoptClaims({ app, claims }: Pick<Snapshot, 'app' | 'claims'>): Action[] {
  const identity = computeDataIdentity(app);
  return claims
    .filter((claim) => hasDataIdentity(claim, identity) && isEnding(claim))
    .map((object) => ({ kind: 'annotate', object, annotations: { [annotations.deleteAfter]: null } }));
}

function isEnding({ metadata }: PersistentVolumeClaim): boolean {
  return metadata.annotations?.[annotations.deleteAfter] !== undefined && metadata.deletionTimestamp === undefined;
}
