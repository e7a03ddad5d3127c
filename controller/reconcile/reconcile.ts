// Reconciles one HostedApp: takes a snapshot, decides, carries out the actions, writes one status and its events.
import { isDeepStrictEqual } from 'node:util';
import type { HostedAppStatus } from '../../crds/hosted-app.ts';
import { finalizer } from '../../crds/names.ts';
import {
  ApiError,
  applyIfChanged,
  applyStatus,
  deleteObject,
  done as nothingMore,
  isApiStatus,
  requeueAfter,
  refOf,
  type Client,
  type EventRecorder,
  type Reconcile,
  type ReconcileResult,
} from '../../lib/kubernetes/index.ts';
import type { Caches } from './cache/caches.ts';
import { decide, type Decision } from './decide.ts';
import { countBuildEnds } from './build-ends.ts';
import { transitions } from './events.ts';
import { hold, release } from './finalize.ts';
import { createDefaultsRemover } from './former-defaults.ts';
import { claims, hostedApps, type HostedAppObject } from '../objects/kinds.ts';
import { findDataKey, keepData } from '../retention/retention.ts';
import { closingIdentity, pageIdentity, takeSnapshot, type Lookups, type SnapshotSources } from './take-snapshot.ts';
import { resizePod } from '../usage/resize.ts';
import type { Snapshot } from './snapshot.ts';
import type { BuildMetrics } from './metrics.ts';
import { failed, type Action, type Outcomes } from './outcome.ts';
import type { InstallationConfig } from './installation-config.ts';
import type { Pruner } from '../space/registry/pruner.ts';
import { sourceIdentity } from '../steps/source/source.ts';
import { checkMs, makeStatus } from './status.ts';

export interface ReconcilerOptions extends Lookups {
  readonly client: Client;
  readonly caches: Caches;
  readonly config: InstallationConfig;
  readonly recorder: EventRecorder;
  /** Absent: nothing is removed from the registry. */
  readonly pruner?: Pruner | undefined;
  /** Why no build may start. */
  readonly shortage?: (() => string | undefined) | undefined;
  readonly metrics: BuildMetrics;
  readonly activity?: SnapshotSources['activity'];
  readonly now?: () => Date;
}

type Lookup = Extract<Action, { kind: 'poll' | 'probe' | 'look' | 'close' }>;

/** Refused writes are tried again after this long; what refuses them (a quota, a policy) sends no event. */
const refusedRetryMs = 30_000;

/**
 * Makes the reconcile function. It keeps nothing between calls but the last status it wrote, until the cache has it.
 */
export function createReconciler(options: ReconcilerOptions): Reconcile {
  const { client, caches, config, recorder, metrics, polls, probes, pages, closings, pruner } = options;
  const { now = () => new Date() } = options;
  const written = new Map<string, HostedAppObject>();
  const removeDefaults = createDefaultsRemover(client);

  /** The cache may be behind our own last write; judging by it would undo what was written. */
  function newest(key: string): HostedAppObject | undefined {
    const cached = caches.apps.get(key);
    const own = written.get(key);
    if (own === undefined || cached === undefined) return cached;
    if (
      cached.metadata.uid === own.metadata.uid &&
      BigInt(cached.metadata.resourceVersion) < BigInt(own.metadata.resourceVersion)
    )
      return own;
    written.delete(key);
    return cached;
  }

  async function act(snapshot: Snapshot, action: Action, signal: AbortSignal): Promise<void> {
    const { app } = snapshot;
    const key = `${app.metadata.namespace}/${app.metadata.name}`;
    switch (action.kind) {
      case 'apply':
        await applyIfChanged(client, action.resource, action.cached, action.manifest, { signal });
        return;
      case 'create':
        await createOnce(client, action, signal);
        return;
      case 'delete':
        if (action.isStranger === true && !(await isCurrent(client, app, signal))) return;
        await deleteObject(client, action.resource, action.object, { propagation: 'Background', signal });
        return;
      case 'annotate':
        await annotate(client, action, signal);
        return;
      case 'resize':
        await resizePod(client, action.pod, action.requests, signal);
        return;
      default:
        lookUp(app, key, action);
        return;
    }
  }

  /** In the background; the result brings the next reconcile. */
  function lookUp(app: Snapshot['app'], key: string, action: Lookup): void {
    switch (action.kind) {
      case 'poll':
        polls.start(key, sourceIdentity(app), { repository: action.repository, revision: app.spec.source.revision });
        return;
      case 'probe':
        probes.start(key, action.host, { host: action.host, attempts: action.isLive === true ? 3 : 1 });
        return;
      case 'look':
        pages.start(key, pageIdentity(action.release), action.host);
        return;
      case 'close':
        closings?.start(key, closingIdentity(action.request.number), action.request);
        return;
    }
  }

  function forget(key: string): void {
    for (const each of [polls, probes, pages, closings, pruner]) each?.forget(key);
    written.delete(key);
  }

  /**
   * Carries out what was decided; what the API server refuses for good becomes the outcome of the step that asked for
   * it.
   */
  async function actOn(snapshot: Snapshot, decision: Decision, signal: AbortSignal): Promise<Outcomes> {
    const outcomes: Outcomes = { ...decision.outcomes };
    for (const { condition, action } of decision.actions) {
      try {
        await act(snapshot, action, signal);
      } catch (error) {
        if (!(error instanceof ApiError) || ![400, 403, 404, 422].includes(error.status)) throw error;
        outcomes[condition] = failed(
          'Refused',
          `The cluster rejected a resource of this app: ${error.message.slice(0, 1_000)}`,
          refusedRetryMs,
        );
      }
    }
    return outcomes;
  }

  async function writeStatus(app: HostedAppObject, status: HostedAppStatus, signal: AbortSignal): Promise<void> {
    const key = `${app.metadata.namespace ?? ''}/${app.metadata.name}`;
    if (isDeepStrictEqual(status, app.status)) return;
    const { resourceVersion } = app.metadata;
    written.set(key, await applyStatus(client, hostedApps, refOf(key), status, { resourceVersion, signal }));
    for (const note of transitions(app.status, status)) recorder.record(app, note);
  }

  /** Exactly the version that was looked at: one that has changed is looked at again. */
  async function expire(app: HostedAppObject, signal: AbortSignal): Promise<ReconcileResult> {
    const { resourceVersion } = app.metadata;
    await deleteObject(client, hostedApps, app, { resourceVersion, signal });
    const message = 'The app was deleted, because it has never been live. Its repository can be submitted anew.';
    recorder.record(app, { type: 'Warning', reason: 'Expired', message });
    return nothingMore;
  }

  function prune({ app, deployment }: Snapshot, status: HostedAppStatus): void {
    pruner?.consider({ ...app.metadata, status, deployment });
  }

  /** Lets an app go that is being deleted; its data is kept. */
  async function end(app: HostedAppObject, signal: AbortSignal): Promise<ReconcileResult> {
    if (app.metadata.finalizers?.includes(finalizer) === true)
      await keepData(client, app, { keepMs: config.keepDataMs, now: now() }, signal);
    const empty = async (): Promise<boolean> => (await pruner?.empty(app, signal)) ?? true;
    return release(client, app, config.buildsNamespace, signal, empty);
  }

  return async (key, { signal }) => {
    const cached = newest(key);
    if (cached === undefined || cached.metadata.deletionTimestamp !== undefined) {
      forget(key);
      return cached === undefined ? nothingMore : end(cached, signal);
    }
    const app = await removeDefaults(await hold(client, cached, signal), signal);
    if (app !== cached) written.set(key, app);
    const snapshot = takeSnapshot(options, app, now(), await findDataKey(client, app, signal));
    const decision = decide(snapshot);
    if (decision.expiry?.isDue === true) return expire(app, signal);
    const outcomes = await actOn(snapshot, decision, signal);
    const status = makeStatus(snapshot, { ...decision, outcomes });
    await writeStatus(app, status, signal);
    countBuildEnds(metrics, snapshot, app.status, status);
    for (const action of decision.afterStatus) await act(snapshot, action, signal);
    prune(snapshot, status);
    return nextReconcile(outcomes, decision.expiry?.afterMs);
  };
}

/**
 * Whether the app of this name is still the one that was decided about. A cache that is behind, as that of a leader
 * which does not know yet that it was replaced, may take the newer app's objects for those of an older one.
 */
async function isCurrent(client: Client, { metadata }: Snapshot['app'], signal: AbortSignal): Promise<boolean> {
  return (await client.get(hostedApps, metadata, { signal }))?.metadata.uid === metadata.uid;
}

function nextReconcile(outcomes: Outcomes, expiryMs?: number): ReconcileResult {
  const times = [...Object.values(outcomes), { afterMs: expiryMs }, { afterMs: checkMs }].flatMap(({ afterMs }) =>
    afterMs !== undefined && Number.isFinite(afterMs) ? [afterMs] : [],
  );
  return requeueAfter(Math.max(0, Math.min(...times)));
}

/** The version makes it fail (409, tried again) where the claim has changed, as when it is about to be deleted. */
async function annotate(client: Client, action: Action & { kind: 'annotate' }, signal: AbortSignal): Promise<void> {
  const { uid, resourceVersion } = action.object.metadata;
  await client.patch(
    claims,
    action.object.metadata,
    { metadata: { uid, resourceVersion, annotations: action.annotations } },
    { type: 'application/merge-patch+json', signal },
  );
}

/** The name says all that a Job is made from, so one that is there already is the one that was asked for. */
async function createOnce(client: Client, action: Action & { kind: 'create' }, signal: AbortSignal): Promise<void> {
  try {
    await client.create(action.resource, action.manifest, { signal, fieldManager: 'moorage' });
  } catch (error) {
    if (!isApiStatus(error, 409)) throw error;
  }
}
