// Stands in for what this world lacks: kubelet, job controller, deployment controller and gateway. It only writes
// status.
import { z } from 'zod';
import {
  deployments,
  jobs,
  pods,
  routes,
  type ContainerStatus,
  type Deployment,
  type Job,
} from '../../../controller/objects/kinds.ts';
import { applyStatus, type Client } from '../../../lib/kubernetes/index.ts';
import { formatImageRepository, annotations, labels } from '../../../crds/names.ts';
import { listAll, waitFor, type World } from './world.ts';

/** Pods are made from the operator's own templates, so that the chart's admission policy judges them as it would. */
const templated = z.object({
  template: z.object({
    metadata: z.object({
      labels: z.record(z.string(), z.string()),
      annotations: z.record(z.string(), z.string()).optional(),
    }),
    spec: z.looseObject({}),
  }),
});

const manager = { fieldManager: 'stand-in' };
const builds = 'moorage-builds';
const apps = 'moorage-apps';

function time(): string {
  return `${new Date().toISOString().slice(0, 19)}Z`;
}

/** The one Job of an app that is neither suspended nor finished, once the build queue has let it go. */
export async function awaitStartedJob(world: World, app: string, other?: string): Promise<Job> {
  return waitFor(`a started Job of ${app}`, async () =>
    (await world.jobs(app)).find(
      (job) => job.spec?.suspend !== true && job.metadata.name !== other && job.status?.conditions === undefined,
    ),
  );
}

/** A container that ended so, leaving `message`. */
export function createEndedContainer(name: string, exitCode: number, message: unknown): ContainerStatus {
  const at = time();
  return {
    name,
    ready: false,
    restartCount: 0,
    state: { terminated: { exitCode, message: JSON.stringify(message), startedAt: at, finishedAt: at } },
  };
}

export function createRunningContainer(name: string): ContainerStatus {
  return { name, ready: true, restartCount: 0, state: { running: { startedAt: time() } } };
}

/** Makes the Job's pod if need be and writes how its containers stand. */
export async function writePod(
  client: Client,
  job: Job,
  statuses: ContainerStatus[],
  phase = 'Running',
  conditions: object[] = [],
): Promise<void> {
  const name = `${job.metadata.name}-pod`;
  const ref = { name, namespace: builds };
  if ((await client.get(pods, ref)) === undefined) {
    const app = job.metadata.labels?.[labels.app] ?? '';
    const owner = {
      apiVersion: 'batch/v1',
      kind: 'Job',
      name: job.metadata.name,
      uid: job.metadata.uid,
      controller: true,
    };
    const { template } = templated.parse((await client.get(jobs, job.metadata))?.spec);
    await client.create(pods, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...ref, labels: { [labels.app]: app }, ownerReferences: [owner] },
      spec: template.spec,
    });
  }
  const padded = (status: ContainerStatus): object => ({ image: 'none', imageID: '', ...status });
  await applyStatus(
    client,
    pods,
    ref,
    {
      phase,
      conditions,
      containerStatuses: statuses.map(padded),
    },
    manager,
  );
}

export async function startJob(client: Client, job: Job): Promise<void> {
  await applyStatus(
    client,
    jobs,
    job.metadata,
    { startTime: time(), active: 1, ready: 0, terminating: 0, uncountedTerminatedPods: {} },
    manager,
  );
}

/** The time at which a Job was started must not change afterwards. */
async function readStartTime(client: Client, job: Job): Promise<string> {
  return (await client.get(jobs, job.metadata))?.status?.startTime ?? time();
}

export async function completeJob(client: Client, job: Job): Promise<void> {
  const startTime = await readStartTime(client, job);
  const conditions = ['SuccessCriteriaMet', 'Complete'].map((type) => ({
    type,
    status: 'True',
    reason: 'CompletionsReached',
    lastTransitionTime: time(),
    lastProbeTime: time(),
  }));
  await applyStatus(
    client,
    jobs,
    job.metadata,
    {
      startTime,
      completionTime: time(),
      succeeded: 1,
      terminating: 0,
      ready: 0,
      uncountedTerminatedPods: {},
      conditions,
    },
    manager,
  );
}

/** Says of a Job's pod, in place of the scheduler, that no node takes it. */
export async function findNoRoom(client: Client, job: Job, message: string): Promise<void> {
  const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message };
  await writePod(client, job, [], 'Pending', [{ ...condition, lastTransitionTime: time() }]);
}

/** Ends a Job in failure; `at`: when, for what is tried again after a while. */
export async function failJob(client: Client, job: Job, reason: string, at = time()): Promise<void> {
  const startTime = await readStartTime(client, job);
  const conditions = ['FailureTarget', 'Failed'].map((type) => ({
    type,
    status: 'True',
    reason,
    message: reason,
    lastTransitionTime: at,
    lastProbeTime: at,
  }));
  await applyStatus(
    client,
    jobs,
    job.metadata,
    { startTime, failed: 1, terminating: 0, ready: 0, uncountedTerminatedPods: {}, conditions },
    manager,
  );
}

export const plan = { strategy: 'python', reason: 'requirements.txt' };
export const createCloneEnd = (commit: string, more: object = {}): ContainerStatus =>
  createEndedContainer('clone', 0, { commit, files: 3, bytes: 300, ...more });
export const createReviewEnd = (more: object = {}): ContainerStatus =>
  createEndedContainer('review', 0, { findings: [], plan, ...more });
/** An image of the app of a Job, as its pipeline would push it. */
export const formatImage = ({ metadata }: Job, character: string): string =>
  `registry.test/${formatImageRepository({ name: metadata.labels?.[labels.app] ?? '', uid: metadata.annotations?.[annotations.appUid] ?? '' })}@sha256:${character.repeat(64)}`;
export const createBuildEnd = (image: string, more: object = {}): ContainerStatus =>
  createEndedContainer('build', 0, { image, port: 8000, ...more });

/** Completes a started Job. @param more what the build reports in addition to its image */
export async function buildWell(
  client: Client,
  job: Job,
  commit: string,
  image: string,
  more: object = {},
): Promise<void> {
  await startJob(client, job);
  await writePod(client, job, [createCloneEnd(commit), createReviewEnd(), createBuildEnd(image, more)], 'Succeeded');
  await completeJob(client, job);
}

/** The Deployment of an app, once it runs `image`. */
export function awaitDeployment(world: World, app: string, image: string): Promise<Deployment> {
  return waitFor(`a Deployment of ${app} with ${image}`, async () => {
    const deployment = await world.client.get(deployments, { name: app, namespace: apps });
    return JSON.stringify(deployment?.spec ?? {}).includes(image) ? deployment : undefined;
  });
}

/** Rolls a Deployment out: its new pod becomes ready and takes the place of those before. */
export async function rollOut(client: Client, deployment: Deployment): Promise<void> {
  const { name } = deployment.metadata;
  const old = await listAll(client, pods, apps, `${labels.app}=${name}`);
  await writeAppPod(client, deployment, { ready: true, started: true, state: { running: { startedAt: time() } } });
  const own = podName(deployment);
  for (const pod of old)
    if (pod.metadata.name !== own) await client.delete(pods, pod.metadata, { gracePeriodSeconds: 0 });
  const counts = { replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 };
  await applyStatus(
    client,
    deployments,
    deployment.metadata,
    { observedGeneration: deployment.metadata.generation, ...counts },
    manager,
  );
}

/** The new pod of a Deployment runs beside the old one, and nothing listens in it. */
export async function rollOutInVain(client: Client, deployment: Deployment): Promise<void> {
  await writeAppPod(client, deployment, {
    started: false,
    state: { running: { startedAt: new Date(Date.now() - 300_000).toISOString() } },
  });
  const counts = { replicas: 2, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, unavailableReplicas: 1 };
  await applyStatus(
    client,
    deployments,
    deployment.metadata,
    { observedGeneration: deployment.metadata.generation, ...counts },
    manager,
  );
}

function podName(deployment: Deployment): string {
  return `${deployment.metadata.name}-${deployment.metadata.generation ?? 0}`;
}

const named = z.array(z.object({ name: z.string() })).default([]);

/** Makes the pod of a Deployment's present template and writes how its containers stand, those in `others` differently. */
export async function writeAppPod(
  client: Client,
  deployment: Deployment,
  status: Partial<ContainerStatus>,
  others: Readonly<Record<string, Partial<ContainerStatus>>> = {},
): Promise<void> {
  const { template } = templated.parse(deployment.spec);
  const toStatuses = (list: unknown): object[] =>
    named.parse(list).map(({ name }) => ({
      name,
      image: 'none',
      imageID: '',
      ready: false,
      restartCount: 0,
      ...status,
      ...others[name],
    }));
  const ref = { name: podName(deployment), namespace: apps };
  if ((await client.get(pods, ref)) === undefined) {
    await client.create(pods, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...ref, labels: template.metadata.labels, annotations: template.metadata.annotations ?? {} },
      spec: template.spec,
    });
  }
  const isReady = [status, ...Object.values(others)].every((each) => each.ready === true);
  const ready = isReady ? 'True' : 'False';
  await applyStatus(
    client,
    pods,
    ref,
    {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: ready, lastTransitionTime: time(), lastProbeTime: time() }],
      initContainerStatuses: toStatuses(template.spec['initContainers']),
      containerStatuses: toStatuses(template.spec['containers']),
    },
    manager,
  );
}

/** Has the gateway accept the route of an app. */
export async function acceptRoute(world: World, app: string): Promise<void> {
  const route = await waitFor(`a route of ${app}`, () => world.client.get(routes, { name: app, namespace: apps }));
  const conditions = ['Accepted', 'ResolvedRefs'].map((type) => ({
    type,
    status: 'True',
    reason: type,
    message: '',
    observedGeneration: route.metadata.generation,
    lastTransitionTime: time(),
  }));
  const parentRef = {
    group: 'gateway.networking.k8s.io',
    kind: 'Gateway',
    name: 'moorage',
    namespace: 'moorage-system',
    sectionName: 'https',
  };
  await applyStatus(
    world.client,
    routes,
    route.metadata,
    { parents: [{ parentRef, controllerName: 'stand-in.test/gateway', conditions }] },
    manager,
  );
}
