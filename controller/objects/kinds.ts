// The Kubernetes objects that the operator reads and writes, with the fields it reads, what their conditions say, and their
// quantities and timestamps.
import type {
  V1Condition,
  V1CronJob,
  V1ContainerStateTerminated,
  V1ContainerStateWaiting,
  V1ContainerStatus,
  V1Deployment,
  V1EndpointSlice,
  V1JobSpec,
  V1JobStatus,
  V1NetworkPolicy,
  V1PersistentVolumeClaim,
  V1PodCondition,
  V1PodStatus,
  V1Secret,
  V1Service,
} from '@kubernetes/client-node';
import type { HostedAppStatus, StoredSpec } from '../../crds/hosted-app.ts';
import { onlyComponent } from '../../crds/components.ts';
import { annotations, group, kind, plural, version } from '../../crds/names.ts';
import { parsePodComponents } from '../../crds/routes.ts';
import { defineResource, type KubeObject, type KubeType, type Wire } from '../../lib/kubernetes/index.ts';

/** A HostedApp as cached: `spec` has passed the API server, but is not parsed yet. */
export interface HostedAppObject extends KubeObject {
  spec: StoredSpec;
  status?: HostedAppStatus;
}

/** Of a Job's spec only `suspend` is kept; the template is by far its largest part. */
export interface Job extends KubeObject {
  spec?: Pick<Wire<V1JobSpec>, 'suspend'>;
  status?: Pick<Wire<V1JobStatus>, 'startTime' | 'completionTime' | 'conditions'>;
}

/** Of a CronJob the whole is kept, so that changes by others are reverted. */
export type CronJob = KubeType<V1CronJob>;

export type Termination = Wire<V1ContainerStateTerminated>;
export type WaitingState = Wire<V1ContainerStateWaiting>;
export type ContainerStatus = Pick<
  Wire<V1ContainerStatus>,
  'name' | 'ready' | 'started' | 'restartCount' | 'state' | 'lastState' | 'resources'
>;

/** Of a pod, only the parts of its status that are read are kept. */
export interface Pod extends KubeObject {
  status?: Pick<Wire<V1PodStatus>, 'phase' | 'reason' | 'message' | 'conditions' | 'hostIP'> & {
    initContainerStatuses?: ContainerStatus[];
    containerStatuses?: ContainerStatus[];
  };
}

export type Deployment = KubeType<V1Deployment>;
export type Service = KubeType<V1Service>;
export type NetworkPolicy = KubeType<V1NetworkPolicy>;
export type PersistentVolumeClaim = KubeType<V1PersistentVolumeClaim>;
export type Secret = KubeType<V1Secret>;

export type EndpointSlice = KubeType<V1EndpointSlice>;

export type RouteCondition = Wire<V1Condition>;

/** Of the Gateway API, which client-node does not have. */
export interface HttpRoute extends KubeObject {
  status?: {
    parents?: {
      parentRef: { name: string; namespace?: string; sectionName?: string };
      conditions?: RouteCondition[];
    }[];
  };
}

/** Only those of own domains of apps. */
export interface Gateway extends KubeObject {
  status?: { listeners?: { name: string; conditions?: RouteCondition[] }[] };
}

export const hostedApps = defineResource<HostedAppObject>({ group, version, kind, plural, namespaced: true });
export const jobs = defineResource<Job>({
  group: 'batch',
  version: 'v1',
  kind: 'Job',
  plural: 'jobs',
  namespaced: true,
});
export const cronJobs = defineResource<CronJob>({
  group: 'batch',
  version: 'v1',
  kind: 'CronJob',
  plural: 'cronjobs',
  namespaced: true,
});
export const pods = defineResource<Pod>({ group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true });
export const deployments = defineResource<Deployment>({
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
});
export const services = defineResource<Service>({
  group: '',
  version: 'v1',
  kind: 'Service',
  plural: 'services',
  namespaced: true,
});
/** Created for apps that call models; never read. */
export const secrets = defineResource<Secret>({
  group: '',
  version: 'v1',
  kind: 'Secret',
  plural: 'secrets',
  namespaced: true,
});
export const claims = defineResource<PersistentVolumeClaim>({
  group: '',
  version: 'v1',
  kind: 'PersistentVolumeClaim',
  plural: 'persistentvolumeclaims',
  namespaced: true,
});
export const policies = defineResource<NetworkPolicy>({
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'NetworkPolicy',
  plural: 'networkpolicies',
  namespaced: true,
});
export const routes = defineResource<HttpRoute>({
  group: 'gateway.networking.k8s.io',
  version: 'v1',
  kind: 'HTTPRoute',
  plural: 'httproutes',
  namespaced: true,
});
export const gateways = defineResource<Gateway>({
  group: 'gateway.networking.k8s.io',
  version: 'v1',
  kind: 'Gateway',
  plural: 'gateways',
  namespaced: true,
});

/** Only of the activator, to find its pods. */
export const endpointSlices = defineResource<EndpointSlice>({
  group: 'discovery.k8s.io',
  version: 'v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  namespaced: true,
});

/** True when the Job builds this very app, not another one that has or had its name. */
export function isJobOfApp(job: KubeObject, uid: string): boolean {
  return job.metadata.annotations?.[annotations.appUid] === uid;
}

/** The condition of that type. */
export function findCondition<Condition extends { type: string }>(
  conditions: readonly Condition[] | undefined,
  type: string,
): Condition | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/** True when the condition of that type is True. */
export function isConditionTrue(
  conditions: readonly { readonly type: string; readonly status: string }[] | undefined,
  type: string,
): boolean {
  return findCondition(conditions, type)?.status === 'True';
}

/**
 * The containers of an app's components in one of its pods, those that others wait for first. The pod of a backing service
 * has none, and a container that a cluster adds to pods is not the app's.
 */
export function listContainers({ metadata, status = {} }: Pod): readonly ContainerStatus[] {
  const components = parsePodComponents(metadata.annotations?.[annotations.components]);
  const names = components?.map(({ name }) => name) ?? [onlyComponent];
  const { initContainerStatuses = [], containerStatuses = [] } = status;
  return [...initContainerStatuses, ...containerStatuses].filter(({ name }) => names.includes(name));
}

/** The scheduler's condition on a pod that no node takes. */
export function findUnschedulable(pod: Pod): Wire<V1PodCondition> | undefined {
  const scheduled = findCondition(pod.status?.conditions, 'PodScheduled');
  return scheduled?.status === 'False' ? scheduled : undefined;
}

/** Why no node takes the pod, if none does. */
export function explainUnscheduled(pod: Pod): string | undefined {
  const refused = findUnschedulable(pod);
  return refused === undefined ? undefined : `no node can run it (${refused.message ?? 'unschedulable'})`;
}

/** Why a container has not started, unless it is only waiting for its turn. */
export function explainWaiting(waiting: WaitingState | undefined): string | undefined {
  const { reason, message = 'no message' } = waiting ?? {};
  const isUsual = reason === undefined || reason === 'PodInitializing' || reason === 'ContainerCreating';
  return isUsual ? undefined : `${reason} (${message})`;
}

/** True when the Job will run no more pod. */
export function isFinished(job: Job): boolean {
  return isConditionTrue(job.status?.conditions, 'Complete') || isConditionTrue(job.status?.conditions, 'Failed');
}

/** Evicted for its own usage; an eviction for the node's sake says "the node was low on resource" instead. */
export function isOutOfDisk(pod: Pod): boolean {
  return (
    pod.status?.reason === 'Evicted' &&
    /exceed/i.test(pod.status.message ?? '') &&
    !/node was low/i.test(pod.status.message ?? '')
  );
}

// Quantities and timestamps.

/** A quantity in thousandths; `binary`: written with Ki, Mi, Gi or Ti. */
interface Quantity {
  readonly milli: bigint;
  readonly binary: boolean;
}

const decimals = [
  ['T', 10n ** 12n],
  ['G', 10n ** 9n],
  ['M', 10n ** 6n],
  ['k', 10n ** 3n],
] as const;
const binaries = [
  ['Ti', 1n << 40n],
  ['Gi', 1n << 30n],
  ['Mi', 1n << 20n],
  ['Ki', 1n << 10n],
] as const;
const factors: ReadonlyMap<string, bigint> = new Map<string, bigint>([...decimals, ...binaries]);

/** Divides a quantity, in whole Mi or thousandths, never to 0. @throws RangeError for anything but a quantity */
export function divideQuantity(text: string, divisor: bigint): string {
  const { milli, binary } = parse(text);
  const whole = binary ? (milli / divisor / 1000n / (1n << 20n) || 1n) * (1n << 20n) * 1000n : milli / divisor || 1n;
  return format({ milli: whole, binary });
}

/** Adds quantities. One alone stays as it is written. @throws RangeError for anything but quantities */
export function sumQuantities(texts: readonly string[]): string {
  const [only, ...others] = texts;
  if (only !== undefined && others.length === 0) return only;
  const parsed = texts.map(parse);
  return format({
    milli: parsed.reduce((sum, { milli }) => sum + milli, 0n),
    binary: parsed.some(({ binary }) => binary),
  });
}

/** Whole bytes of a quantity. @throws RangeError for anything but a quantity */
export function parseBytes(text: string): bigint {
  return parse(text).milli / 1000n;
}

/** Thousandths of a quantity, such as of a CPU. @throws RangeError for anything but a quantity */
export function parseMilli(text: string): number {
  return Number(parse(text).milli);
}

/** The smaller of two. */
export function chooseSmaller(a: string, b: string): string {
  return parse(a).milli <= parse(b).milli ? a : b;
}

function parse(text: string): Quantity {
  const match = /^([0-9]+)(?:\.([0-9]+))?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$/.exec(text);
  if (match === null) throw new RangeError(`not a quantity: ${text}`);
  const [, whole = '0', fraction = '', suffix = ''] = match;
  const scaled = BigInt(whole + fraction) * (suffix === 'm' ? 1n : 1000n * (factors.get(suffix) ?? 1n));
  const divisor = 10n ** BigInt(fraction.length);
  // Rounded up, as the API server does.
  return { milli: (scaled + divisor - 1n) / divisor, binary: suffix.endsWith('i') };
}

function format({ milli, binary }: Quantity): string {
  if (milli % 1000n !== 0n) return `${milli}m`;
  const value = milli / 1000n;
  const suffixes = binary && value >= 1024n ? binaries : decimals;
  const fitting = value === 0n ? undefined : suffixes.find(([, factor]) => value % factor === 0n);
  return fitting === undefined ? `${value}` : `${value / fitting[1]}${fitting[0]}`;
}

/** Formats a time as Kubernetes does: RFC 3339 in UTC, cut to whole seconds. */
export function formatTimestamp(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`;
}
