// The snapshot of one app: everything that a reconcile reads, taken from the caches and from finished lookups before anything is
// decided, with the app's secrets masked.
import { applyControl } from '../../crds/control.ts';
import { findPins } from '../../crds/effective-settings.ts';
import { hostedApp, type HostedApp } from '../../crds/hosted-app.ts';
import { annotations, labels } from '../../crds/names.ts';
import type { CloseRequest } from '../../crds/reports.ts';
import { formatSlugHost, readSlug } from '../../crds/slugs.ts';
import { createAppToken, createPushToken } from '../../lib/app-tokens.ts';
import { StallingError, type KubeObject } from '../../lib/kubernetes/index.ts';
import { markPrivate, readRepository, type Repository, RepositoryError } from '../../lib/repository.ts';
import { createSecretMask, isSecretName, type SecretMask } from '../../lib/secret-mask.ts';
import { isQueued, sortQueue } from '../build-queue/build-queue.ts';
import type { ActivityRecord } from '../idle/activators.ts';
import type { WorkerRecord } from '../usage/busy-workers.ts';
import type {
  CronJob,
  Deployment,
  HostedAppObject,
  HttpRoute,
  Job,
  NetworkPolicy,
  PersistentVolumeClaim,
  Pod,
  Service,
  Termination,
} from '../objects/kinds.ts';
import type { PodLayers } from '../space/space.ts';
import { applySettings } from '../steps/build/records.ts';
import { collectVariables } from '../steps/deploy/components.ts';
import type { Activators, AppActivity, WorkerUse } from '../steps/deploy/rest.ts';
import { deriveGeneratedValues } from '../steps/deploy/secrets.ts';
import { derivePassword } from '../steps/deploy/services/connections.ts';
import type { DomainAnswers } from '../steps/domains/proof.ts';
import type { DomainView } from '../steps/domains/domains.ts';
import type { PageQuery } from '../steps/publish/page.ts';
import type { ProbeQuery } from '../steps/publish/probe.ts';
import { identifySource, type RevisionQuery, type RevisionResult } from '../steps/source/source.ts';
import type { BackgroundLookups } from './controller.ts';
import { byApp, type Caches } from './caches.ts';
import type { InstallationConfig } from './installation-config.ts';

/** Lookups whose results belong in a snapshot. */
export interface Lookups {
  readonly polls: BackgroundLookups<RevisionQuery, RevisionResult>;
  readonly probes: BackgroundLookups<ProbeQuery, ProbeResult>;
  readonly pages: BackgroundLookups<PageQuery, PageView>;
  /** Undefined where apps have no domains of their own. */
  readonly proofs?: BackgroundLookups<readonly string[], DomainAnswers> | undefined;
  /** Undefined where this installation has no activator. */
  readonly closings?: BackgroundLookups<CloseRequest, boolean> | undefined;
}

/** The sources of snapshots. */
export interface SnapshotSources extends Lookups {
  readonly caches: Caches;
  readonly config: InstallationConfig;
  readonly shortage?: (() => string | undefined) | undefined;
  readonly layers?: ((namespace: string, pod: string) => PodLayers | undefined) | undefined;
  readonly activity?: ActivityRecord | undefined;
  /** Absent where what apps use is not measured. */
  readonly workers?: WorkerRecord | undefined;
}

/** The repository of an app, or why it is rejected. */
function readSource({ spec }: HostedApp, { gitHosts }: InstallationConfig): Repository | RepositoryError {
  const repository = readRepository(spec.source.repo, gitHosts);
  return repository instanceof RepositoryError ? repository : markPrivate(repository, spec.source.private);
}

/** Takes the snapshot of an app. @throws StallingError if its spec cannot be read */
export function takeSnapshot(sources: SnapshotSources, object: HostedAppObject, now: Date, dataKey: string): Snapshot {
  const { caches, config, polls, probes, pages } = sources;
  const parsed = parseApp(object);
  const app: HostedApp = { ...parsed, status: { ...parsed.status, dataKey } };
  const { name, namespace } = app.metadata;
  const key = `${namespace}/${name}`;
  const jobs = caches.jobs.listByIndex(byApp, name);
  const pods = maskPods(caches.pods.listByIndex(byApp, name), app, config);
  return {
    app,
    now,
    config,
    repository: readSource(app, config),
    poll: polls.take(key, identifySource(app)),
    idle: readIdleView(sources, app, now),
    probe: maskProbe(
      probes.take(key, formatProbeIdentity(app.status?.answer?.template, formatSlugHost(app, config.site))),
      app,
      config,
    ),
    page: app.status?.served === undefined ? undefined : pages.take(key, formatPageIdentity(app.status.served)),
    jobs,
    pipelinePods: caches.pipelinePods.listByIndex(byApp, name),
    // Sorts the whole queue only for apps that are in it.
    shortage: sources.shortage?.(),
    queue: jobs.some(isQueued) ? sortQueue(caches.jobs.list()).map((job) => job.metadata.name) : [],
    deployment: caches.deployments.get(key),
    service: caches.services.get(key),
    policy: caches.policies.get(key),
    claims: caches.claims.listByIndex(byApp, name),
    pods: pods.filter((pod) => !isServiceObject(pod) && !isTrial(pod) && !isTask(pod)),
    trial: { deployment: caches.deployments.listByIndex(byApp, name).find(isTrial), pods: pods.filter(isTrial) },
    route: caches.routes.get(`${namespace}/${readSlug(app)}`),
    componentRoutes: caches.routes
      .listByIndex(byApp, name)
      .filter((each) => each.metadata.name !== readSlug(app) && !isDomainRoute(each)),
    findRoute: (routeName) => caches.routes.get(`${namespace}/${routeName}`),
    domains: {
      answers: sources.proofs?.take(key, proofIdentity),
      routes: caches.routes.listByIndex(byApp, name).filter(isDomainRoute),
      gateways: caches.gateways?.listByIndex(byApp, name) ?? [],
      findRoute: (domain) => caches.routes.get(`${namespace}/${domain}`),
    },
    tasks: {
      jobs: caches.taskJobs.listByIndex(byApp, name),
      cronJobs: caches.cronJobs.listByIndex(byApp, name),
      pods: pods.filter(isTask),
    },
    layers: (pod) => sources.layers?.(namespace, pod),
    serviceObjects: {
      deployments: caches.deployments.listByIndex(byApp, name).filter(isServiceObject),
      services: caches.services.listByIndex(byApp, name).filter(isServiceObject),
      policies: caches.policies.listByIndex(byApp, name).filter(isServiceObject),
      pods: pods.filter(isServiceObject),
    },
  };
}

/** Of the lookup of an app's domains: one at a time. */
export const proofIdentity = 'domains';

function isDomainRoute({ metadata }: HttpRoute): boolean {
  return metadata.labels?.[labels.domain] !== undefined;
}

function readIdleView(
  { activity, closings, workers }: SnapshotSources,
  app: HostedApp,
  now: Date,
): IdleView | undefined {
  if (activity === undefined) return undefined;
  const { name, namespace } = app.metadata;
  return {
    activators: activity.getActivatorState(now.getTime()),
    activity: activity.find(name, now.getTime()),
    workers: workers?.find(name, now.getTime()),
    isClosed: closings?.take(`${namespace}/${name}`, formatClosingIdentity((app.status?.idle?.number ?? 0) + 1)),
  };
}

/** Identifies an agreement of the activators: by the number of the next rest. */
export function formatClosingIdentity(number: number): string {
  return String(number);
}

/** True for objects of a backing service, not of the app itself. */
function isServiceObject({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[annotations.service] !== undefined;
}

/** True for objects that only try a new image of the app. */
export function isTrial({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[annotations.trial] !== undefined;
}

/** True for objects that run a task or cron component of the app. */
function isTask({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[annotations.task] !== undefined;
}

/**
 * Identifies a probe: by the pod template that it is about, and by its host. An answer of the release before, or at the address
 * before, says nothing about it.
 */
export function formatProbeIdentity(template: string | undefined, host: string): string {
  return `${template ?? 'any'} ${host}`;
}

/** Identifies a look at a page: by the release that served when it began. */
export function formatPageIdentity({ image, commit }: { readonly image: string; readonly commit: string }): string {
  return `${image} ${commit}`;
}

/** A status that cannot be read was written by an older version or by hand; the reconcile writes it again. */
function parseApp(object: HostedAppObject): HostedApp {
  const result = hostedApp.safeParse(object);
  const whole = result.success ? result : hostedApp.safeParse({ ...object, status: undefined });
  if (!whole.success)
    throw new StallingError(
      'SpecUnreadable',
      `The spec was accepted by the API server but cannot be read: ${whole.error.message.slice(0, 500)}`,
    );
  return { ...whole.data, spec: applyControl(whole.data.spec, whole.data.metadata), pinned: findPins(object.spec) };
}

/**
 * Creates the mask of an app. The operator derives the generated passwords, secrets and tokens, and so knows them. It must
 * not read the Secrets of the installation (spec.run.secrets), so those are masked by variable names and by their look.
 */
function createAppMask(app: HostedApp, config: InstallationConfig): SecretMask {
  const { spec } = applySettings(app, app.status?.settings?.values);
  const fullApp: HostedApp = { ...app, spec };
  const { models, services } = config.run;
  const { name, uid } = app.metadata;
  const { env, secrets } = collectVariables(fullApp);
  const set = [...env, ...spec.build.env, ...spec.services.flatMap((service) => service.env)];
  return createSecretMask({
    values: [
      ...spec.services.map((service) => derivePassword(fullApp, service, services.passwordSecret)),
      ...deriveGeneratedValues(fullApp, services.passwordSecret),
      models === undefined ? undefined : createAppToken({ name, uid }, models.tokenSecret),
      createPushToken({ name, uid }, config.registry.tokenSecret),
      ...set.filter(({ name: variable }) => isSecretName(variable)).map(({ value }) => value),
    ],
    variables: secrets.map(({ name: variable }) => variable),
  });
}

/**
 * Masks termination messages before anything is derived from them: the status, its events and the annotations are public,
 * or readable by more people than a secret is meant for. Cached pods are shared, so those that change are copied.
 */
export function maskPods(pods: readonly Pod[], app: HostedApp, config: InstallationConfig): readonly Pod[] {
  if (!pods.some(hasLastWords)) return pods;
  const mask = createAppMask(app, config);
  return pods.map((pod) => {
    if (!hasLastWords(pod)) return pod;
    const copy = structuredClone(pod);
    for (const ended of findTerminations(copy)) if (ended.message !== undefined) ended.message = mask(ended.message);
    return copy;
  });
}

/** An error page can show variables of the app. */
function maskProbe(
  probe: ProbeResult | undefined,
  app: HostedApp,
  config: InstallationConfig,
): ProbeResult | undefined {
  return probe?.text === undefined ? probe : { ...probe, text: createAppMask(app, config)(probe.text) };
}

function hasLastWords(pod: Pod): boolean {
  return findTerminations(pod).some(({ message }) => message !== undefined);
}

function findTerminations({ status }: Pod): Termination[] {
  const containers = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])];
  return containers
    .flatMap(({ state, lastState }) => [state?.terminated, lastState?.terminated])
    .filter((ended) => ended !== undefined);
}

/** Whether an app responded through the gateway. */
export interface ProbeResult {
  readonly responds: boolean;
  /** A bare 404, from the gateway or from an app with nothing at its root; or no response in time. */
  readonly isDoubtful?: boolean;
  /** Status of the response, if there was one. */
  readonly status?: number;
  /** What came back, as a clause for people: "the response was HTTP 404". */
  readonly detail: string;
  /** Path of the response, if / redirects to it. */
  readonly path?: string;
  /** Path that responds, if there is no page at /. */
  readonly instead?: string;
  /** Text of an error page, on one line. The app wrote it. */
  readonly text?: string;
}

/** Objects of the backing services of an app. Their volumes are among its claims. */
export interface BackingObjects {
  readonly deployments: readonly Deployment[];
  readonly services: readonly Service[];
  readonly policies: readonly NetworkPolicy[];
  readonly pods: readonly Pod[];
}

/** Objects of the task and cron components of an app. */
export interface TaskObjects {
  /** One for each task of a release, and those that its CronJobs have made. */
  readonly jobs: readonly Job[];
  readonly cronJobs: readonly CronJob[];
  readonly pods: readonly Pod[];
}

/** What the activators report about an app. */
export interface IdleView {
  readonly activators: Activators;
  readonly activity: AppActivity | undefined;
  /** Of its workers, if it has any; absent where what apps use is not measured. */
  readonly workers?: WorkerUse | undefined;
  /** Whether they agreed to hold its requests; undefined: they were not asked. */
  readonly isClosed: boolean | undefined;
}

/** The result of a look at an app's page. */
export interface PageView {
  /** Status of the page; absent: nothing came. */
  readonly status?: number;
  /** Files of its own host that it loads. */
  readonly assets: number;
  /** What does not work, each as the end of a sentence about the app. */
  readonly faults: readonly string[];
}

/**
 * A snapshot of one app and everything that belongs to it. Objects are shared with the caches: nothing here may be
 * changed.
 */
export interface Snapshot {
  readonly app: HostedApp;
  readonly now: Date;
  readonly config: InstallationConfig;
  /** The repository of the app, or why its address is refused. */
  readonly repository: Repository | RepositoryError;
  /** What the revision resolved to, if a lookup has ended since the last reconcile. */
  readonly poll: RevisionResult | undefined;
  /** Its pipeline Jobs. */
  readonly jobs: readonly Job[];
  readonly pipelinePods: readonly Pod[];
  /** Names of all queued Jobs, in order. */
  readonly queue: readonly string[];
  /** Why no build may start for lack of disk space, as a sentence; absent: there is some. */
  readonly shortage?: string | undefined;
  readonly deployment: Deployment | undefined;
  readonly service: Service | undefined;
  readonly policy: NetworkPolicy | undefined;
  readonly claims: readonly PersistentVolumeClaim[];
  readonly pods: readonly Pod[];
  readonly route: HttpRoute | undefined;
  /** Of components with host names that only they have, and of former names of the app. */
  readonly componentRoutes?: readonly HttpRoute[];
  /** The route of this name, of whichever app. */
  readonly findRoute?: ((name: string) => HttpRoute | undefined) | undefined;
  /** Own domains. Absent: the app has none. */
  readonly domains?: DomainView | undefined;
  /** What the containers of the pod of this name have written outside of volumes; absent where disks are not measured. */
  readonly layers?: ((pod: string) => PodLayers | undefined) | undefined;
  /** What runs its backing services. */
  readonly serviceObjects: BackingObjects;
  /** The objects that start a new image before it replaces the one that serves. */
  readonly trial?: { readonly deployment: Deployment | undefined; readonly pods: readonly Pod[] };
  /** What runs its task and cron components. */
  readonly tasks?: TaskObjects;
  readonly probe: ProbeResult | undefined;
  /** Undefined where this installation has no activator. */
  readonly idle: IdleView | undefined;
  /** The page of the serving release, if a look has ended since the last reconcile. */
  readonly page: PageView | undefined;
}
