// The kinds of objects that the reconciler reads and writes, with the fields of each that it reads.
import type { HostedAppSpec, HostedAppStatus } from '../../crds/hosted-app.ts';
import { group, kind, plural, version } from '../../crds/names.ts';
import { defineResource, type KubeObject } from '../../lib/kubernetes/index.ts';

/** A HostedApp as it is in the cache: `spec` is what the API server let through, not yet parsed. */
export interface HostedAppObject extends KubeObject {
  spec: HostedAppSpec;
  status?: HostedAppStatus;
}

/** A condition of a Kubernetes object. */
export interface ObjectCondition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
  observedGeneration?: number;
}

export interface Job extends KubeObject {
  spec?: { suspend?: boolean };
  status?: {
    startTime?: string;
    completionTime?: string;
    active?: number;
    failed?: number;
    conditions?: ObjectCondition[];
  };
}

export interface Terminated {
  exitCode: number;
  reason?: string;
  message?: string;
  startedAt?: string;
  finishedAt?: string;
}

export interface ContainerState {
  waiting?: { reason?: string; message?: string };
  running?: { startedAt?: string };
  terminated?: Terminated;
}

export interface ContainerStatus {
  name: string;
  ready: boolean;
  started?: boolean;
  restartCount: number;
  state?: ContainerState;
  lastState?: ContainerState;
}

export interface Pod extends KubeObject {
  status?: {
    phase?: string;
    reason?: string;
    message?: string;
    conditions?: ObjectCondition[];
    initContainerStatuses?: ContainerStatus[];
    containerStatuses?: ContainerStatus[];
  };
}

export interface Deployment extends KubeObject {
  spec?: {
    replicas?: number;
    strategy?: { type?: string };
    template?: { metadata?: { annotations?: Record<string, string> } };
  };
  status?: {
    observedGeneration?: number;
    replicas?: number;
    updatedReplicas?: number;
    availableReplicas?: number;
    conditions?: ObjectCondition[];
  };
}

export interface HttpRoute extends KubeObject {
  status?: {
    parents?: {
      parentRef: { name: string; namespace?: string; sectionName?: string };
      conditions?: ObjectCondition[];
    }[];
  };
}

export const hostedApps = defineResource<HostedAppObject>({ group, version, kind, plural, namespaced: true });
export const jobs = defineResource<Job>({
  group: 'batch',
  version: 'v1',
  kind: 'Job',
  plural: 'jobs',
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
export const services = defineResource({
  group: '',
  version: 'v1',
  kind: 'Service',
  plural: 'services',
  namespaced: true,
});
/** Created for apps that ask models; never read. */
export const secrets = defineResource({
  group: '',
  version: 'v1',
  kind: 'Secret',
  plural: 'secrets',
  namespaced: true,
});
export const claims = defineResource({
  group: '',
  version: 'v1',
  kind: 'PersistentVolumeClaim',
  plural: 'persistentvolumeclaims',
  namespaced: true,
});
export const policies = defineResource({
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

/** The condition of that type. */
export function conditionOf(
  conditions: readonly ObjectCondition[] | undefined,
  type: string,
): ObjectCondition | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/** True when the condition of that type is True. */
export function isTrue(conditions: readonly ObjectCondition[] | undefined, type: string): boolean {
  return conditionOf(conditions, type)?.status === 'True';
}

/** Why no node takes the pod, if none does. */
export function unscheduled(pod: Pod): string | undefined {
  const scheduled = conditionOf(pod.status?.conditions, 'PodScheduled');
  return scheduled?.status === 'False'
    ? `no node has room for it (${scheduled.message ?? 'unschedulable'})`
    : undefined;
}

/** Why a container has not started, if it is more than that its turn has not come. */
export function heldBack(waiting: ContainerState['waiting']): string | undefined {
  const { reason, message = 'no message' } = waiting ?? {};
  const isUsual = reason === undefined || reason === 'PodInitializing' || reason === 'ContainerCreating';
  return isUsual ? undefined : `${reason} (${message})`;
}
