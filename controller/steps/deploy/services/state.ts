// Judges a backing service by its Deployment and pods: does it take connections, and if not, why?
import type { BackingService } from '../../../../crds/backing-services.ts';
import {
  heldBack,
  unscheduled,
  type ContainerStatus,
  type Deployment,
  type Pod,
  type Termination,
} from '../../../objects/kinds.ts';
import { clean } from '../../../pipeline/text.ts';
import type { Rejection } from '../../../reconcile/outcome.ts';
import { restarts as timesRestarted } from '../pods.ts';

/** How a service stands. With a rejection, only a person can change it. */
export interface ServiceState {
  readonly isReady: boolean;
  /** Why not, in a sentence without its end. */
  readonly why?: string;
  readonly rejection?: Rejection;
}

/** `deployment` is the one that carries what is wanted; undefined while it is being made. */
export function stateOf(
  service: BackingService,
  deployment: Deployment | undefined,
  pods: readonly Pod[],
  memory: string,
): ServiceState {
  if (deployment === undefined) return { isReady: false, why: 'it is being created' };
  if (isAvailable(deployment)) return { isReady: true };
  const found = pods
    .filter((pod) => pod.metadata.deletionTimestamp === undefined && pod.status?.phase !== 'Failed')
    .map((pod) => stateOfPod(service, pod, memory))
    .find((each) => each !== undefined);
  return { isReady: false, ...(found ?? { why: 'it is starting' }) };
}

/** Of what is wanted now, and not of what was before. */
function isAvailable({ metadata, status = {} }: Deployment): boolean {
  const { observedGeneration = 0, availableReplicas = 0, updatedReplicas = 0 } = status;
  return observedGeneration >= (metadata.generation ?? 0) && availableReplicas > 0 && updatedReplicas > 0;
}

function stateOfPod(service: BackingService, pod: Pod, memory: string): Omit<ServiceState, 'isReady'> | undefined {
  const status = containerOf(pod);
  if (status === undefined) return held(unscheduled(pod));
  if (status.ready) return undefined;
  const ended = endOf(status);
  return ended === undefined
    ? held(heldBack(status.state?.waiting))
    : crashed(service, ended, status.restartCount, memory);
}

function containerOf(pod: Pod): ContainerStatus | undefined {
  return pod.status?.containerStatuses?.find(({ name }) => name === 'service');
}

function held(why: string | undefined): { why: string } | undefined {
  return why === undefined ? undefined : { why: cut(why) };
}

function endOf({ state, lastState }: ContainerStatus): Termination | undefined {
  return state?.terminated ?? lastState?.terminated;
}

/** Restarts from which on a crash is not expected to pass by itself. */
const enoughRestarts = 3;

function crashed(
  { name, type }: BackingService,
  ended: Termination,
  restarts: number,
  memory: string,
): Omit<ServiceState, 'isReady'> {
  const isOver = ended.reason === 'OOMKilled';
  const why = isOver ? `it exceeded its ${memory} of memory` : `it ended with exit code ${ended.exitCode}`;
  if (restarts < enoughRestarts) return { why };
  const log = clean(ended.message ?? '').trim();
  return {
    why,
    rejection: {
      rule: isOver ? 'services/out-of-memory' : 'services/crashed',
      message: `The service ${name} (${type}) does not start: ${why} (${timesRestarted(restarts)}).`,
      fix: isOver
        ? `Increase memory of the service ${name} in moorage.yaml (services).`
        : `Look at its last lines. What its volume holds may be of another version, or a setting in env of the service ${name} is wrong.`,
      ...(log === '' ? {} : { log: log.slice(-8_000) }),
    },
  };
}

function cut(text: string): string {
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
