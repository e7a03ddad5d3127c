// Keeps the data of deleted apps for a while, so that an app can be restored, and deletes it then: claims with their
// disks, and generated Secrets.
import { annotations, labels } from '../../crds/names.ts';
import {
  deleteObject,
  isApiStatus,
  messageOf,
  sleep,
  systemClock,
  type Client,
  type KubeObject,
  type Logger,
} from '../../lib/kubernetes/index.ts';
import {
  claims as claimResource,
  hostedApps,
  secrets,
  type HostedAppObject,
  type PersistentVolumeClaim,
} from '../objects/kinds.ts';
import { timestamp } from '../objects/timestamp.ts';
import { belongsTo, chooseDataKey, dataIdentity } from '../steps/deploy/data.ts';

const never = 'never';

/** What the names of the app's data are made from: known, or found on claims of an app of the same identity. */
export async function findDataKey(client: Client, app: HostedAppObject, signal: AbortSignal): Promise<string> {
  if (app.status !== undefined) return chooseDataKey(app, []);
  const kept: PersistentVolumeClaim[] = [];
  // Asks the server: a cache may not have seen them yet.
  const selection = { namespace: app.metadata.namespace, labelSelector: `${labels.data}=${dataIdentity(app)}` };
  for await (const claim of client.listAll(claimResource, { ...selection, signal })) kept.push(claim);
  return chooseDataKey(app, kept);
}

/**
 * Writes onto the claims of an app that is being deleted how long they are kept: a time, or never for Retain. Must
 * happen before the app's finalizer is taken off; a second time changes nothing.
 */
export async function keepData(
  client: Client,
  app: HostedAppObject,
  times: { readonly keepMs: number; readonly now: Date },
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name, uid } = app.metadata;
  const identity = dataIdentity(app);
  const selection = { namespace, labelSelector: `${labels.app}=${name}` };
  for await (const claim of client.listAll(claimResource, { ...selection, signal })) {
    const isOwned = (claim.metadata.ownerReferences ?? []).some((owner) => owner.uid === uid);
    if (!belongsTo(claim, identity) && !isOwned) continue;
    if (isOwned || deleteAfter(claim) === undefined)
      await patchClaim(client, claim, farewell(app, claim, times), signal);
  }
}

/** What is written onto a claim whose app goes. */
function farewell(
  app: HostedAppObject,
  claim: PersistentVolumeClaim,
  { keepMs, now }: { readonly keepMs: number; readonly now: Date },
): object {
  // An app from before there was a policy is deleted like any other.
  const policy = app.spec.deletionPolicy ?? 'Delete';
  // What a submitted app that was never live has written is of no use, and its disks are wanted by others. A claim that
  // is older than the app was that of one before it.
  const isUseless =
    app.metadata.labels?.[labels.caller] !== undefined &&
    app.status?.url === undefined &&
    claim.metadata.creationTimestamp >= app.metadata.creationTimestamp;
  return {
    labels: { [labels.data]: dataIdentity(app) },
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
  return policy === 'Retain' ? never : timestamp(new Date(now.getTime() + keepMs));
}

/** Only this version: a claim that was changed since is looked at again (409). */
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
  /** How long data is kept whose HostedApp is gone without the operator having seen it go. */
  readonly keepMs: number;
  /** All claims of apps, and an app by its name, from the caches. */
  readonly claims: () => readonly PersistentVolumeClaim[];
  readonly app: (name: string) => HostedAppObject | undefined;
  readonly log: Logger;
  readonly now?: () => Date;
}

const longestIntervalMs = 600_000;

/** Deletes data whose time is up, again and again while this replica leads. */
export function createRetentionTask(options: RetentionOptions): (signal: AbortSignal) => Promise<void> {
  const intervalMs = Math.min(longestIntervalMs, Math.max(1_000, options.keepMs / 10));
  return async (signal) => {
    while (!signal.aborted) {
      for (const [identity, claims] of byIdentity(options.claims()))
        try {
          await endData(options, identity, claims, signal);
        } catch (error) {
          // One that was changed meanwhile (409) is looked at again.
          if (!isApiStatus(error, 409))
            options.log.warn(
              { identity, error: messageOf(error) },
              'data of a deleted app was not deleted; tried again',
            );
        }
      await sleep(systemClock, intervalMs, signal);
    }
  };
}

/** Claims of one identity. Those that a HostedApp of an earlier version owns have none yet, and are its own affair. */
function byIdentity(claims: readonly PersistentVolumeClaim[]): Map<string, PersistentVolumeClaim[]> {
  const found = new Map<string, PersistentVolumeClaim[]>();
  for (const claim of claims) {
    const identity = claim.metadata.labels?.[labels.data];
    if (identity === undefined || claim.metadata.deletionTimestamp !== undefined) continue;
    found.set(identity, [...(found.get(identity) ?? []), claim]);
  }
  return found;
}

/** Deletes the data of one identity if its app is gone and the time of all of it is up. */
async function endData(
  options: RetentionOptions,
  identity: string,
  claims: readonly PersistentVolumeClaim[],
  signal: AbortSignal,
): Promise<void> {
  const { client, namespace, log } = options;
  const now = options.now?.() ?? new Date();
  const name = claims[0]?.metadata.labels?.[labels.app] ?? '';
  if (
    hasIdentity(options.app(name), identity) ||
    hasIdentity(await client.get(hostedApps, { namespace, name }, { signal }), identity)
  )
    return;
  await markUnmarked(options, claims, now, signal);
  if (!claims.every((claim) => isOver(claim, now))) return;
  // Before the claims: as long as one is there, this is tried again.
  await deleteSecrets(client, namespace, claims, signal);
  for (const claim of claims) {
    // Exactly the version that was looked at: an app that came back in between has changed it.
    const { resourceVersion } = claim.metadata;
    await deleteObject(client, claimResource, claim, { resourceVersion, signal });
  }
  log.info({ app: name, claims: claims.map(({ metadata }) => metadata.name) }, 'deleted the data of a deleted app');
}

/** Claims whose HostedApp was removed past the operator, such as without its finalizer. */
async function markUnmarked(
  { client, keepMs }: RetentionOptions,
  claims: readonly PersistentVolumeClaim[],
  now: Date,
  signal: AbortSignal,
): Promise<void> {
  for (const claim of claims.filter((each) => deleteAfter(each) === undefined)) {
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
  return app !== undefined && dataIdentity(app) === identity;
}

function deleteAfter({ metadata }: PersistentVolumeClaim): string | undefined {
  return metadata.annotations?.[annotations.deleteAfter];
}

function isOver(claim: PersistentVolumeClaim, now: Date): boolean {
  const end = deleteAfter(claim);
  return end !== undefined && end !== never && Date.parse(end) <= now.getTime();
}
