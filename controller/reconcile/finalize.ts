// Holds a HostedApp until its pipeline Jobs are gone, which live in another namespace, where no owner reference reaches,
// and then its images, which are in no namespace at all.
import { finalizer, labels } from '../../crds/names.ts';
import {
  deleteObject,
  done,
  isApiStatus,
  requeueAfter,
  type Client,
  type ReconcileResult,
} from '../../lib/kubernetes/index.ts';
import { hostedApps, isJobOf, jobs, type HostedAppObject } from '../objects/kinds.ts';

/** Adds the finalizer if it is missing; returns the object as it is then. Must happen before the first Job is made. */
export async function hold(client: Client, app: HostedAppObject, signal: AbortSignal): Promise<HostedAppObject> {
  const finalizers = app.metadata.finalizers ?? [];
  return finalizers.includes(finalizer) ? app : patchFinalizers(client, app, [...finalizers, finalizer], signal);
}

/** Tried again after this long while the registry cannot be asked. */
const emptyAgainMs = 15_000;

/**
 * Deletes the Jobs of an app that is being deleted, then its images by `empty` (false: not done yet), and lets it go.
 * Asks the server, not a cache.
 */
export async function release(
  client: Client,
  app: HostedAppObject,
  buildsNamespace: string,
  signal: AbortSignal,
  empty: () => Promise<boolean> = () => Promise.resolve(true),
): Promise<ReconcileResult> {
  const finalizers = app.metadata.finalizers ?? [];
  if (!finalizers.includes(finalizer)) return done;
  const selection = { namespace: buildsNamespace, labelSelector: `${labels.app}=${app.metadata.name}` };
  let left = 0;
  for await (const job of client.listAll(jobs, { ...selection, signal })) {
    // A cache that is behind may still hold an app whose namesake builds by now.
    if (!isJobOf(job, app.metadata.uid)) continue;
    await deleteObject(client, jobs, job, { propagation: 'Background', signal });
    left += 1;
  }
  if (left > 0) return requeueAfter(500);
  if (!(await empty())) return requeueAfter(emptyAgainMs);
  try {
    await patchFinalizers(
      client,
      app,
      finalizers.filter((name) => name !== finalizer),
      signal,
    );
  } catch (error) {
    if (!isApiStatus(error, 404)) throw error;
  }
  return done;
}

/**
 * The version makes the patch fail (409, tried again) rather than drop a finalizer that someone else has just added.
 */
function patchFinalizers(
  client: Client,
  app: HostedAppObject,
  finalizers: string[],
  signal: AbortSignal,
): Promise<HostedAppObject> {
  const { uid, resourceVersion } = app.metadata;
  return client.patch(
    hostedApps,
    app.metadata,
    { metadata: { uid, resourceVersion, finalizers } },
    { type: 'application/merge-patch+json', signal },
  );
}
