// A nap: the process stays and requests a minimum, by a resize of its pod in place.
import type { HostedApp } from '../../../../crds/hosted-app.ts';
import type { Pod } from '../../../objects/kinds.ts';
import { bytesOf, milliOf } from '../../../objects/quantity.ts';
import type { Action } from '../../../reconcile/outcome.ts';
import { requestsOf } from '../template.ts';

/** What a pod that naps requests. The node may need its memory: then it is the first to go. */
export const napRequests = { cpu: '1m', memory: '1Mi' } as const;

/** Resizes of the pods that do not request what they should. Back from a nap they request what they began with. */
export function napActions(app: HostedApp, pods: readonly Pod[], isNapping: boolean): Action[] {
  const { cpu = '', memory = '' } = requestsOf(app.spec.run.resources);
  const wanted = isNapping ? napRequests : { cpu, memory };
  return pods.flatMap((pod): Action[] => {
    const present = requestsNow(pod);
    if (present === undefined || isNap(present) === isNapping) return [];
    return [{ kind: 'resize', pod, requests: wanted }];
  });
}

/** Whether the pod requests as little as one that naps, so that nothing else may raise that. */
export function isNapping(pod: Pod): boolean {
  const present = requestsNow(pod);
  return present !== undefined && isNap(present);
}

interface Requests {
  readonly cpu: string;
  readonly memory: string;
}

function requestsNow({ metadata, status }: Pod): Requests | undefined {
  if (metadata.deletionTimestamp !== undefined || status?.phase !== 'Running') return undefined;
  const { cpu, memory } = status.containerStatuses?.find(({ name }) => name === 'app')?.resources?.requests ?? {};
  return cpu === undefined || memory === undefined ? undefined : { cpu, memory };
}

/** No pod that is awake requests as little: what apps are fitted to is at least twice that. */
function isNap({ cpu, memory }: Requests): boolean {
  return milliOf(cpu) <= milliOf(napRequests.cpu) && bytesOf(memory) <= bytesOf(napRequests.memory);
}
