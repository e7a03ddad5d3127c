// Pipelines whose pod found no room: seen by their pods, noted on their Jobs, tried again after a wait that grows.
import { z } from 'zod';
import { annotations } from '../../crds/names.ts';
import { unschedulable, type Job, type Pod } from '../objects/kinds.ts';

const note = z.object({ at: z.iso.datetime(), tries: z.int().positive(), reason: z.string() });

/** When, how often in a row, and why. */
export type NoRoom = z.infer<typeof note>;

const longestReason = 600;
const firstWaitMs = 30_000;
const longestWaitMs = 600_000;

/** What is noted on a Job; nothing when it cannot be read. */
export function noRoomOf({ metadata }: Job): NoRoom | undefined {
  const text = metadata.annotations?.[annotations.noRoom];
  if (text === undefined) return undefined;
  try {
    return note.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** The note after another try in vain. */
export function noted(job: Job, reason: string, now: number): string {
  const tries = (noRoomOf(job)?.tries ?? 0) + 1;
  return JSON.stringify({ at: new Date(now).toISOString(), tries, reason: reason.slice(0, longestReason) });
}

/** When a Job that found no room is tried again: after 30 s, doubling, at most 10 min. */
export function triedAgainAt({ at, tries }: NoRoom): number {
  return Date.parse(at) + Math.min(longestWaitMs, firstWaitMs * 2 ** Math.min(tries - 1, 10));
}

/** True while a Job that found no room waits before it is tried again. */
export function isHeld(job: Job, now: number): boolean {
  const found = noRoomOf(job);
  return found !== undefined && triedAgainAt(found) > now;
}

/** The cause in the scheduler's words, and what would make room. */
export function explainNoRoom(reason: string): string {
  const cause = reason
    .replace(/\s*(?:no new claims to deallocate,?)?\s*preemption: .*$/is, '')
    .replace(/[.,\s]*$/, '.');
  const freed = /\bToo many pods\b/i.test(cause)
    ? 'an app is deleted or suspended'
    : 'another build ends, or an app is deleted or suspended';
  return `Waiting for room: ${cause} There is room when ${freed}, or when the operator of this installation adds a node.`;
}

/** Since when a started Job has had no pod on a node, and why. */
export interface Roomless {
  readonly since: number;
  readonly reason: string;
}

/** What keeps a started Job from a node: the scheduler's reason, or that the cluster makes no pod for it at all. */
export function roomless(job: Job, pods: readonly Pod[]): Roomless | undefined {
  const own = pods.filter((pod) => isPodOf(pod, job));
  const started = job.status?.startTime;
  if (own.length === 0) {
    if (started === undefined) return undefined;
    return {
      since: Date.parse(started),
      reason: 'the cluster has not created its pod; the resource quota of the builds namespace may be used up',
    };
  }
  for (const pod of own.filter(isRoomless)) {
    const refused = unschedulable(pod);
    if (refused === undefined) continue;
    const since = Date.parse(refused.lastTransitionTime ?? pod.metadata.creationTimestamp);
    return { since, reason: refused.message ?? 'unschedulable' };
  }
  return undefined;
}

/** True when the Job made this pod. */
export function isPodOf({ metadata }: Pod, job: Job): boolean {
  return (metadata.ownerReferences ?? []).some(({ uid }) => uid === job.metadata.uid);
}

/** True when no node takes this pod. */
export function isRoomless(pod: Pod): boolean {
  const { phase } = pod.status ?? {};
  return phase !== 'Failed' && phase !== 'Succeeded' && unschedulable(pod) !== undefined;
}
