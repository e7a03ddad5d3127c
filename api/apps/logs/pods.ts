// Pods of apps as the collector of their logs needs them: which app and component a container belongs to, whether it runs,
// and how it ended.
import type { V1ContainerStateTerminated, V1ContainerStatus, V1Pod } from '@kubernetes/client-node';
import { annotations, labels, taskComponent, trialComponent } from '../../../crds/names.ts';
import { defineResource, type KubeType, type Wire } from '../../../lib/kubernetes/index.ts';
import { omitUndefined } from '../../../lib/values.ts';
import type { App } from '../hosted-apps.ts';
import type { ContainerState } from './container-reader.ts';
import type { StreamName } from './log-store.ts';

export type Pod = KubeType<V1Pod>;
type ContainerStatus = Wire<V1ContainerStatus>;

export const pods = defineResource<Pod>({ group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true });

/** Pods that run the code of an app. Those of its backing services run images of others. */
export const podSelector = `${labels.app},${labels.component} in (app,${trialComponent},${taskComponent})`;

/** Keeps of a pod what the functions here read: the API watches all of them, and uses no more. */
export function shortenPod({ apiVersion, kind, metadata, spec, status }: Pod): Pod {
  const { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds } =
    metadata;
  const { containers, initContainers, restartPolicy, terminationGracePeriodSeconds } = spec ?? { containers: [] };
  return {
    apiVersion,
    kind,
    metadata: omitUndefined({
      ...{ name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds },
      labels: pick(metadata.labels, [labels.app, labels.component]),
      annotations: pick(metadata.annotations, [annotations.task]),
    }),
    spec: omitUndefined({
      containers: containers.map((container) => ({ name: container.name })),
      initContainers: initContainers?.map((container) => ({ name: container.name })),
      ...{ restartPolicy, terminationGracePeriodSeconds },
    }),
    status: omitUndefined({
      phase: status?.phase,
      reason: status?.reason,
      containerStatuses: status?.containerStatuses?.map(shortenStatus),
      initContainerStatuses: status?.initContainerStatuses?.map(shortenStatus),
    }),
  };
}

function shortenStatus({ name, state, lastState, restartCount, containerID }: ContainerStatus): ContainerStatus {
  return {
    ...omitUndefined({ name, state, lastState, restartCount, containerID }),
    image: '',
    imageID: '',
    ready: false,
  };
}

function pick(fields: Readonly<Record<string, string>> | undefined, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(fields ?? {}).filter(([name]) => names.includes(name)));
}

/** Whether a pod is one of this app, and not of one that had its name before it. */
export function isPodOfApp(pod: Pod, app: App): boolean {
  return (
    pod.metadata.labels?.[labels.app] === app.metadata.name &&
    pod.metadata.creationTimestamp >= app.metadata.creationTimestamp
  );
}

/** The containers of a pod. A task has one, which is named after the only component of other apps. */
export function listStreams({ metadata, spec }: Pod): StreamName[] {
  const task = metadata.annotations?.[annotations.task];
  return [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].map(({ name }) => ({
    podUid: metadata.uid,
    pod: metadata.name,
    container: name,
    component: task ?? name,
  }));
}

function listStatuses({ status }: Pod): ContainerStatus[] {
  return [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
}

/** @param pod undefined once it is gone */
export function readContainerState(pod: Pod | undefined, container: string): ContainerState {
  if (pod === undefined) return { run: undefined, isRunning: false, isOver: true };
  const { state = {}, containerID } = listStatuses(pod).find(({ name }) => name === container) ?? {};
  const isEnded = state.terminated !== undefined && pod.spec?.restartPolicy === 'Never';
  return {
    run: containerID ?? state.running?.startedAt,
    isRunning: state.running !== undefined,
    isOver: isEnded || ['Succeeded', 'Failed'].includes(pod.status?.phase ?? ''),
  };
}

/** The end of one run of a container. */
export interface Termination extends StreamName {
  /** Identifies the run. */
  readonly instance: string;
  readonly restarts: number;
  readonly exitCode: number;
  readonly signal: number | undefined;
  readonly reason: string;
  /** RFC 3339 in whole seconds. */
  readonly startedAt: string | undefined;
  readonly finishedAt: string;
  /** Whether the log of the run is that of the run before the present one. */
  readonly isPrevious: boolean;
}

/**
 * Ends of runs that nobody asked for. A task that succeeded, and a pod that was to stop, are none of them. An app that exits
 * with 0 is: it was to run on.
 */
export function findCrashes(pod: Pod): Termination[] {
  return listStreams(pod).flatMap((stream) => {
    const container = listStatuses(pod).find(({ name }) => name === stream.container);
    const { state, lastState } = container ?? {};
    const isWaiting = state?.waiting !== undefined;
    const restarts = container?.restartCount ?? 0;
    return [
      { ended: state?.terminated, isPrevious: false, restarts },
      {
        ended: lastState?.terminated,
        isPrevious: !isWaiting,
        restarts: isWaiting ? restarts : Math.max(0, restarts - 1),
      },
    ].flatMap(({ ended, ...run }) => {
      // The time is null if the node has lost the container.
      if (typeof ended?.finishedAt !== 'string' || isExpected(pod, ended)) return [];
      const { containerID, exitCode, signal, startedAt, finishedAt } = ended;
      const instance = containerID ?? `${stream.podUid}/${stream.container}/${finishedAt}`;
      return { ...stream, ...run, instance, exitCode, signal, reason: readReason(pod, ended), startedAt, finishedAt };
    });
  });
}

type Ended = Wire<V1ContainerStateTerminated>;

/** Between the end of the last container and that of its pod, on a busy node. */
const finalSeconds = 15;

function isExpected({ metadata, spec }: Pod, { exitCode, finishedAt = '' }: Ended): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds: graceSeconds = 0 } = metadata;
  if (exitCode === 0 && metadata.annotations?.[annotations.task] !== undefined) return true;
  if (deletionTimestamp === undefined) return false;
  // When the last container has ended, the API server sets the grace period to 0 and the time to that moment.
  const seconds = graceSeconds > 0 ? graceSeconds : (spec?.terminationGracePeriodSeconds ?? 0) + finalSeconds;
  return Date.parse(finishedAt) >= Date.parse(deletionTimestamp) - seconds * 1_000;
}

function readReason({ status }: Pod, { exitCode, reason }: Ended): string {
  if (status?.reason === 'Evicted') return status.reason;
  return reason ?? (exitCode === 0 ? 'Completed' : 'Error');
}
