// Reconciles one HostedApp: takes a snapshot, decides, carries out the actions, writes one status and its events.
import { isDeepStrictEqual } from 'node:util';
import { type HostedAppStatus, spec as specSchema } from '../../crds/hosted-app.ts';
import { annotations, finalizer, labels } from '../../crds/names.ts';
import {
  ApiError,
  applyIfChanged,
  applyStatus,
  deleteObject,
  done,
  done as nothingMore,
  isApiStatus,
  parseObjectKey,
  requeueAfter,
  type Client,
  type EventRecorder,
  type Reconcile,
  type ReconcileResult,
} from '../../lib/kubernetes/index.ts';
import { omitUndefined } from '../../lib/values.ts';
import { claims, gateways, hostedApps, isJobOfApp, jobs, secrets, type HostedAppObject } from '../objects/kinds.ts';
import { findDataKey, keepData } from '../retention/retention.ts';
import type { Pruner } from '../space/pruner.ts';
import { identifySource } from '../steps/source/source.ts';
import { resizePod } from '../usage/usage.ts';
import type { Caches } from './caches.ts';
import { decide, type Decision } from './decide.ts';
import type { InstallationConfig } from './installation-config.ts';
import { countBuildEnds, type BuildMetrics } from './metrics.ts';
import { createFailedOutcome, type Action, type Outcomes } from './outcome.ts';
import {
  formatClosingIdentity,
  formatPageIdentity,
  formatProbeIdentity,
  proofIdentity,
  takeSnapshot,
  type Lookups,
  type Snapshot,
  type SnapshotSources,
} from './snapshot.ts';
import { buildStatus, checkMs, listTransitions } from './status.ts';
import { hasEveryDefault, layeredFields } from '../../crds/effective-settings.ts';

export interface ReconcilerOptions extends Lookups {
  readonly client: Client;
  readonly caches: Caches;
  readonly config: InstallationConfig;
  readonly recorder: EventRecorder;
  /** Absent: nothing is removed from the registry. */
  readonly pruner?: Pruner | undefined;
  /** Why no build may start. */
  readonly shortage?: (() => string | undefined) | undefined;
  readonly layers?: SnapshotSources['layers'];
  readonly metrics: BuildMetrics;
  readonly activity?: SnapshotSources['activity'];
  readonly workers?: SnapshotSources['workers'];
  readonly now?: () => Date;
}

/** By the reason of the Event. */
const deletionMessages = {
  Expired: 'The app was deleted, because it has never been live. Its repository can be submitted again.',
  DeletedByAuthor: 'The app was deleted, because its author requested it and did not restore it in time.',
} as const;

type Lookup = Extract<Action, { kind: 'poll' | 'probe' | 'look' | 'close' | 'prove' }>;

/** For an app that has not responded within the usual time: its first response may take longer. */
const patientMs = 30_000;

/** Rejected writes are retried after this long; a quota or policy that rejects them sends no event. */
const refusedRetryMs = 30_000;

/**
 * Creates the reconcile function. Between calls it keeps only the last status it wrote, until the cache has it.
 */
export function createReconciler(options: ReconcilerOptions): Reconcile {
  const { client, caches, config, recorder, metrics, polls, probes, pages, proofs, closings, pruner } = options;
  const { now = () => new Date() } = options;
  const written = new Map<string, HostedAppObject>();
  const removeDefaults = createDefaultsRemover(client);

  /** The cache can lag behind our last write. Deciding on stale data would revert it. */
  function getNewest(key: string): HostedAppObject | undefined {
    const cached = caches.apps.get(key);
    const lastWrite = written.get(key);
    if (lastWrite === undefined || cached === undefined) return cached;
    if (
      cached.metadata.uid === lastWrite.metadata.uid &&
      BigInt(cached.metadata.resourceVersion) < BigInt(lastWrite.metadata.resourceVersion)
    )
      return lastWrite;
    written.delete(key);
    return cached;
  }

  async function performAction(snapshot: Snapshot, action: Action, signal: AbortSignal): Promise<void> {
    const { app } = snapshot;
    const key = `${app.metadata.namespace}/${app.metadata.name}`;
    switch (action.kind) {
      case 'apply':
        await applyIfChanged(client, action.resource, action.cached, action.manifest, { signal });
        return;
      case 'create':
        if (action.request !== undefined && !(await isRequested(client, app, action.request, signal))) return;
        await createOnce(client, action, signal);
        return;
      case 'delete':
        if (action.isStranger === true && !(await isCurrent(client, app, signal))) return;
        await deleteObject(client, action.resource, action.object, { propagation: 'Background', signal });
        return;
      case 'deleteNamed':
        await client.delete(action.resource, action.ref, { signal });
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

  /** Starts a lookup in the background; its result triggers the next reconcile. */
  function lookUp(app: Snapshot['app'], key: string, action: Lookup): void {
    switch (action.kind) {
      case 'poll':
        polls.start(key, identifySource(app), { repository: action.repository, revision: app.spec.source.revision });
        return;
      case 'probe':
        probes.start(key, formatProbeIdentity(action.template, action.host), {
          host: action.host,
          paths: action.paths,
          attempts: action.isLive === true ? 3 : 1,
          timeoutMs: action.isPatient === true ? patientMs : undefined,
        });
        return;
      case 'look':
        pages.start(key, formatPageIdentity(action.release), { host: action.host, path: action.path });
        return;
      case 'prove':
        proofs?.start(key, proofIdentity, action.domains);
        return;
      case 'close':
        closings?.start(key, formatClosingIdentity(action.request.number), action.request);
        return;
    }
  }

  function forget(key: string): void {
    for (const each of [polls, probes, pages, proofs, closings, pruner]) each?.forget(key);
    written.delete(key);
  }

  /**
   * Carries out the decided actions. If the API server rejects one for good, that becomes the outcome of its step.
   */
  async function performActions(
    app: HostedAppObject,
    snapshot: Snapshot,
    decision: Decision,
    signal: AbortSignal,
  ): Promise<Outcomes> {
    let { outcomes } = decision;
    for (const { condition, action } of decision.actions) {
      try {
        await performAction(snapshot, action, signal);
      } catch (error) {
        if (!(error instanceof ApiError) || ![400, 403, 404, 422].includes(error.status)) throw error;
        if (condition === undefined) {
          // A domain has a message of its own, and does not affect the app as a whole.
          recorder.record(app, { type: 'Warning', reason: 'DomainRefused', message: error.message.slice(0, 1_000) });
          continue;
        }
        const refused = createFailedOutcome(
          'Refused',
          `The cluster rejected a resource of this app: ${error.message.slice(0, 1_000)}`,
          refusedRetryMs,
        );
        outcomes = { ...outcomes, [condition]: refused };
      }
    }
    return outcomes;
  }

  async function writeStatus(app: HostedAppObject, status: HostedAppStatus, signal: AbortSignal): Promise<void> {
    const key = `${app.metadata.namespace ?? ''}/${app.metadata.name}`;
    if (isDeepStrictEqual(status, app.status)) return;
    const { resourceVersion } = app.metadata;
    written.set(key, await applyStatus(client, hostedApps, parseObjectKey(key), status, { resourceVersion, signal }));
    for (const note of listTransitions(app.status, status)) recorder.record(app, note);
  }

  /** Deletes exactly the version that was decided on: one that has changed is reconciled again. */
  async function expire(
    app: HostedAppObject,
    reason: keyof typeof deletionMessages,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { resourceVersion } = app.metadata;
    await deleteObject(client, hostedApps, app, { resourceVersion, signal });
    recorder.record(app, { type: 'Warning', reason, message: deletionMessages[reason] });
    return nothingMore;
  }

  function prune({ app, deployment }: Snapshot, status: HostedAppStatus): void {
    pruner?.schedule({ ...app.metadata, status, deployment });
  }

  /** Releases an app that is being deleted; its data is kept. */
  async function end(app: HostedAppObject, signal: AbortSignal): Promise<ReconcileResult> {
    if (app.metadata.finalizers?.includes(finalizer) === true)
      await keepData(client, app, { keepMs: config.keepDataMs, now: now() }, signal);
    await removeDomainGateways(client, app, config.domains?.namespace, signal);
    const removeManifests = async (): Promise<boolean> => (await pruner?.removeApp(app, signal)) ?? true;
    return releaseApp(client, app, config.buildsNamespace, signal, removeManifests);
  }

  return async (key, { signal }) => {
    const cached = getNewest(key);
    if (cached === undefined || cached.metadata.deletionTimestamp !== undefined) {
      forget(key);
      return cached === undefined ? nothingMore : end(cached, signal);
    }
    const app = await removeDefaults(await addFinalizer(client, cached, signal), signal);
    if (app !== cached) written.set(key, app);
    const snapshot = takeSnapshot(options, app, now(), await findDataKey(client, app, signal));
    const decision = decide(snapshot);
    if (decision.expiry?.isDue === true) return expire(app, decision.expiry.reason, signal);
    const outcomes = await performActions(app, snapshot, decision, signal);
    const status = buildStatus(snapshot, {
      ...decision,
      fields: keepUnconfirmed(snapshot, decision, outcomes),
      outcomes,
    });
    await writeStatus(app, status, signal);
    countBuildEnds(metrics, snapshot, app.status, status);
    for (const action of decision.afterStatus) await performAction(snapshot, action, signal);
    prune(snapshot, status);
    return computeNextReconcile(outcomes, decision.expiry?.afterMs, decision.domainsAfterMs);
  };
}

/** If a write was rejected, it may be the deletion of a Secret, which nothing but this field makes the operator repeat. */
function keepUnconfirmed({ app }: Snapshot, { fields, outcomes }: Decision, ended: Outcomes): Decision['fields'] {
  return ended === outcomes ? fields : omitUndefined({ ...fields, secretVersions: app.status?.secretVersions });
}

/**
 * Whether the app of this name is still the one that was decided about. A stale cache, such as that of a leader that does
 * not know yet that it was replaced, may attribute a newer app's objects to an older one.
 */
async function isCurrent(client: Client, { metadata }: Snapshot['app'], signal: AbortSignal): Promise<boolean> {
  return (await client.get(hostedApps, metadata, { signal }))?.metadata.uid === metadata.uid;
}

/**
 * Whether a run is requested and not recorded yet. A stale cache may still have a request whose run has ended and whose Job
 * is gone, and it must not run again.
 */
async function isRequested(
  client: Client,
  { metadata }: Snapshot['app'],
  id: string,
  signal: AbortSignal,
): Promise<boolean> {
  const stored = await client.get(hostedApps, metadata, { signal });
  if (stored?.metadata.uid !== metadata.uid) return false;
  const isRecorded = stored.status?.taskRuns?.some((run) => run.id === id) === true;
  return !isRecorded && stored.spec.control?.runs?.some((request) => request.id === id) === true;
}

function computeNextReconcile(outcomes: Outcomes, ...others: readonly (number | undefined)[]): ReconcileResult {
  const further = [...others, checkMs].map((afterMs) => ({ afterMs }));
  const times = [...Object.values(outcomes), ...further].flatMap(({ afterMs }) =>
    afterMs !== undefined && Number.isFinite(afterMs) ? [afterMs] : [],
  );
  return requeueAfter(Math.max(0, Math.min(...times)));
}

/** The version makes it fail (409, retried) if the claim has changed, as when it is about to be deleted. */
async function annotate(client: Client, action: Action & { kind: 'annotate' }, signal: AbortSignal): Promise<void> {
  const { uid, resourceVersion } = action.object.metadata;
  await client.patch(
    claims,
    action.object.metadata,
    { metadata: { uid, resourceVersion, annotations: action.annotations } },
    { type: 'application/merge-patch+json', signal },
  );
}

/**
 * The name derives from everything that the object is made from, so one that exists already is the wanted one; or it is the
 * route of a domain, and the next reconcile sees whose it is.
 *
 * @throws ApiError also with status 409 if the quota could not be counted; that is retried
 */
export async function createOnce(
  client: Pick<Client, 'create'>,
  action: Action & { kind: 'create' },
  signal: AbortSignal,
): Promise<void> {
  try {
    await client.create(action.resource, action.manifest, { signal, fieldManager: 'moorage' });
  } catch (error) {
    if (!isApiStatus(error, 409) || error.reason !== 'AlreadyExists') throw error;
  }
}

// The finalizer holds a HostedApp until its pipeline Jobs are gone, which are in another namespace, out of reach of owner
// references, and then its images, which are in no namespace at all.

/** Adds the finalizer if it is missing, and returns the updated object. Must happen before the first Job is created. */
async function addFinalizer(client: Client, app: HostedAppObject, signal: AbortSignal): Promise<HostedAppObject> {
  const finalizers = app.metadata.finalizers ?? [];
  return finalizers.includes(finalizer) ? app : patchFinalizers(client, app, [...finalizers, finalizer], signal);
}

/** Its routes are deleted with the app, by their owner reference. */
async function removeDomainGateways(
  client: Client,
  { metadata }: HostedAppObject,
  namespace: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (namespace === undefined) return;
  const labelSelector = `${labels.app}=${metadata.name},${labels.domain}`;
  for await (const gateway of client.listAll(gateways, { namespace, labelSelector, signal })) {
    if (gateway.metadata.annotations?.[annotations.appUid] !== metadata.uid) continue;
    await deleteObject(client, gateways, gateway, { propagation: 'Background', signal });
    await client.delete(secrets, { namespace, name: gateway.metadata.name }, { signal });
  }
}

/** Retried after this long while the registry does not answer. */
const removeAgainMs = 15_000;

/**
 * Deletes the Jobs of an app that is being deleted, then its images by `removeManifests` (false: not done yet), then the
 * finalizer.
 * Lists from the server, not from a cache.
 */
export async function releaseApp(
  client: Client,
  app: HostedAppObject,
  buildsNamespace: string,
  signal: AbortSignal,
  removeManifests: () => Promise<boolean> = () => Promise.resolve(true),
): Promise<ReconcileResult> {
  const finalizers = app.metadata.finalizers ?? [];
  if (!finalizers.includes(finalizer)) return done;
  const selection = { namespace: buildsNamespace, labelSelector: `${labels.app}=${app.metadata.name}` };
  let remaining = 0;
  for await (const job of client.listAll(jobs, { ...selection, signal })) {
    // A stale cache may still hold an app whose namesake is being built by now.
    if (!isJobOfApp(job, app.metadata.uid)) continue;
    await deleteObject(client, jobs, job, { propagation: 'Background', signal });
    remaining += 1;
  }
  if (remaining > 0) return requeueAfter(500);
  if (!(await removeManifests())) return requeueAfter(removeAgainMs);
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
 * The version makes the patch fail (409, retried) rather than drop a finalizer that someone else has just added.
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

// The CRD of earlier versions filled in defaults. They are removed from a stored HostedApp: today every stored field counts as
// set by someone, and wins over the author's moorage.yaml.

/** Where `kubectl apply` without --server-side keeps what was applied. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

/**
 * Creates the function that removes the former defaults of an app and returns the updated app. An app has them if it has
 * every such field. A value that was applied stays: `kubectl apply` records what its user wrote. After a create or a
 * patch, a default looks the same as a chosen value, and such a value had no effect until now either.
 */
export function createDefaultsRemover(
  client: Client,
): (app: HostedAppObject, signal: AbortSignal) => Promise<HostedAppObject> {
  /** With a CRD that still has the defaults, the API server would fill them in again after each write. */
  const tried = new Set<string>();
  return async (app, signal) => {
    if (!hasEveryDefault(app.spec) || tried.has(app.metadata.uid)) return app;
    // The cache keeps no managed fields.
    const fullApp = await client.get(hostedApps, app.metadata, { signal });
    if (fullApp === undefined || fullApp.metadata.uid !== app.metadata.uid) return app;
    const removed = findFormerDefaults(fullApp);
    if (removed.length === 0) {
      tried.add(app.metadata.uid);
      return app;
    }
    const { uid, resourceVersion } = fullApp.metadata;
    const spec = removed.reduce<Fields>((patch, path) => setNull(patch, path), {});
    // The version makes it fail (409, retried) if someone has just set one of them.
    const patched = await client.patch(
      hostedApps,
      app.metadata,
      { metadata: { uid, resourceVersion }, spec },
      { type: 'application/merge-patch+json', signal },
    );
    tried.add(uid);
    return patched;
  };
}

type Fields = Readonly<Record<string, unknown>>;

/** Fields that have their default and were not applied. */
export function findFormerDefaults({ spec, metadata }: HostedAppObject): (readonly string[])[] {
  const defaults = specSchema.parse({ source: spec.source });
  const applied = [
    parseApplied(metadata.annotations?.[lastApplied]),
    ...(metadata.managedFields ?? []).flatMap(({ operation, fieldsV1 }) =>
      operation === 'Apply' ? [(fieldsV1 as Fields | undefined)?.['f:spec']] : [],
    ),
  ];
  const isApplied = (path: readonly string[]): boolean =>
    applied.some(
      (fields) =>
        find(fields, path) !== undefined ||
        find(
          fields,
          path.map((name) => `f:${name}`),
        ) !== undefined,
    );
  return layeredFields.filter((path) => isDeepStrictEqual(find(spec, path), find(defaults, path)) && !isApplied(path));
}

function parseApplied(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : find(JSON.parse(text), ['spec']);
  } catch {
    return undefined;
  }
}

function find(fields: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (current, name) => (typeof current === 'object' && current !== null ? (current as Fields)[name] : undefined),
    fields,
  );
}

function setNull(patch: Fields, [name = '', ...rest]: readonly string[]): Fields {
  return { ...patch, [name]: rest.length === 0 ? null : setNull((patch[name] ?? {}) as Fields, rest) };
}
