// Reads the state of an app's pods: which ones serve, and why one does not.
import { authorLimits } from '../../../crds/app-manifest.ts';
import { annotations } from '../../../crds/names.ts';
import {
  explainUnscheduled,
  explainWaiting,
  findCondition,
  isConditionTrue,
  isOutOfDisk,
  type ContainerStatus,
  type Pod,
  type Termination,
} from '../../objects/kinds.ts';
import { clean } from '../../pipeline/text.ts';
import type { Rejection } from '../../reconcile/outcome.ts';
import { findCrashLine, findCrashPosition, notExecutable, suggestCrashFix, suggestNotFoundFix } from './crash-fixes.ts';

/** The limits of an app, for messages. */
export interface AppLimits {
  readonly port: number;
  readonly startupMs: number;
  readonly startupTime: string;
  readonly healthPath: string | undefined;
  readonly memory: string;
  readonly disk: string;
}

/** True when the pod takes requests. */
export function isReady(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp === undefined && isConditionTrue(pod.status?.conditions, 'Ready');
}

/** Hash of the template that the pod was created from. */
export function readTemplateHash(pod: Pod): string | undefined {
  return pod.metadata.annotations?.[annotations.template];
}

/** Image and commit that a pod was created from. */
export function readCommitAndImage(pod: Pod): { image: string; commit: string } {
  return {
    image: pod.metadata.annotations?.[annotations.image] ?? '',
    commit: pod.metadata.annotations?.[annotations.commit] ?? '',
  };
}

/** When the pod last became ready, or ceased to be; of one that never was, when it was created. Milliseconds since 1970. */
export function readReadyChange({ status, metadata }: Pod): number {
  return Date.parse(findCondition(status?.conditions, 'Ready')?.lastTransitionTime ?? metadata.creationTimestamp);
}

/** Since when a ready pod has served without a restart or a failed check, in milliseconds since 1970. */
export function readServingSince(pod: Pod, now: Date): number {
  const times = [
    findCondition(pod.status?.conditions, 'Ready')?.lastTransitionTime,
    findAppStatus(pod)?.state?.running?.startedAt,
  ].filter((time) => time !== undefined);
  return times.length === 0 ? now.getTime() : Math.max(...times.map((time) => Date.parse(time)));
}

/** When the app in the pod last exited by itself, in milliseconds since 1970; undefined: never. */
export function findCrashTime(pod: Pod): number | undefined {
  if (pod.metadata.deletionTimestamp !== undefined) return undefined;
  const status = findAppStatus(pod);
  const finishedAt = status === undefined ? undefined : readLastEnd(status)?.finishedAt;
  return finishedAt === undefined ? undefined : Date.parse(finishedAt);
}

/** How long the app in the pod ran before it last exited, in milliseconds. */
export function readLastRunMs(pod: Pod): number | undefined {
  const status = findAppStatus(pod);
  const ended = status === undefined ? undefined : readLastEnd(status);
  return ended === undefined ? undefined : computeLifetimeMs(ended);
}

/** How often its app was restarted. */
export function countRestarts(pod: Pod): number {
  return findAppStatus(pod)?.restartCount ?? 0;
}

/** Why this pod does not serve, if the author can act on it. */
export function diagnose(pod: Pod, limits: AppLimits, now: Date): Rejection | undefined {
  if (hasRunOutOfDisk(pod, now)) return explainOutOfDisk(pod, limits);
  const status = findAppStatus(pod);
  if (status === undefined || status.ready) return undefined;
  return (
    findMisconfiguration(status) ??
    findOutOfMemory(status, limits) ??
    findNeverListened(status, limits, now) ??
    findCrash(status)
  );
}

/** What keeps the pod from starting, as a clause, before anything has failed. */
export function explainHoldUp(pod: Pod): string | undefined {
  const reason = explainUnscheduled(pod) ?? explainWaiting(findAppStatus(pod)?.state?.waiting);
  return reason === undefined ? undefined : truncate(reason);
}

/** Milliseconds until a starting pod exceeds its startup time; undefined if it is not starting. */
export function computeStartMsLeft(pod: Pod, limits: AppLimits, now: Date): number | undefined {
  const status = findAppStatus(pod);
  const startedAt = status?.state?.running?.startedAt;
  if (startedAt === undefined || status?.ready === true) return undefined;
  const remainingMs = Date.parse(startedAt) + limits.startupMs + 1_000 - now.getTime();
  return remainingMs > 0 ? remainingMs : undefined;
}

function findAppStatus(pod: Pod): ContainerStatus | undefined {
  return pod.status?.containerStatuses?.find(({ name }) => name === 'app');
}

/** The kubelet has not read the Secret yet, and retries by itself. */
const notSynced = /failed to sync (?:secret|configmap) cache/i;

function rejectConfig(message: string): Rejection | undefined {
  if (notSynced.test(message)) return undefined;
  return {
    rule: 'run/misconfigured',
    message: `The app cannot start with its current configuration: ${message}.`,
    fix: 'Ask the operator of this installation to create the Secret and key named in spec.run.secrets of the HostedApp, or to correct the name.',
  };
}

function findMisconfiguration(status: ContainerStatus): Rejection | undefined {
  const { reason, message } = status.state?.waiting ?? {};
  const detail = truncate(message ?? 'no message');
  switch (reason) {
    case 'CreateContainerConfigError':
      return rejectConfig(detail);
    case 'CreateContainerError':
      // Most errors of this kind are the node's own and pass.
      return /\b(?:users?|groups?) (?:\S+: )?(?:not )?(?:found|no matching)|unable to find (?:user|group)|no matching entries/i.test(
        detail,
      )
        ? {
            rule: 'run/no-such-user',
            message: `The image specifies a user or group that does not exist in it: ${detail}.`,
            fix: 'Create the user in the Dockerfile (RUN useradd …) before the USER instruction, or use a numeric ID.',
          }
        : undefined;
    case 'ErrImagePull':
    case 'ImagePullBackOff':
    case 'InvalidImageName':
      return {
        rule: 'run/image-pull',
        message: `The image cannot be pulled from the registry: ${detail}.`,
        fix: 'Your app did not cause this. The pull is retried automatically; if the image no longer exists, submit the repository again.',
      };
    default:
      return undefined;
  }
}

const recentlyMs = 10 * 60_000;

/** Evicted for its own disk usage, recently enough to concern what runs now. */
function hasRunOutOfDisk(pod: Pod, now: Date): boolean {
  return isOutOfDisk(pod) && now.getTime() - readReadyChange(pod) < recentlyMs;
}

function explainOutOfDisk(pod: Pod, limits: AppLimits): Rejection {
  return {
    rule: 'run/out-of-disk',
    message: `The app exceeded its ${limits.disk} of temporary disk and was stopped (${truncate(clean(pod.status?.message ?? 'no message').trim())}).`,
    fix: `Increase run.resources.disk in moorage.yaml (maximum ${authorLimits.run.disk}), write less (caches, logs, uploads), or keep persistent data on a volume (run.volumes in moorage.yaml).`,
  };
}

function findOutOfMemory(status: ContainerStatus, limits: AppLimits): Rejection | undefined {
  if (readLastEnd(status)?.reason !== 'OOMKilled') return undefined;
  const message = `The app exceeded its memory limit of ${limits.memory} and was killed (${formatRestarts(status.restartCount)}).`;
  return {
    rule: 'run/out-of-memory',
    message,
    fix: `Increase run.resources.memory in moorage.yaml (maximum ${authorLimits.run.memory}), or reduce what the app needs (fewer workers, smaller models).`,
    ...readLog(status),
  };
}

function findNeverListened(status: ContainerStatus, limits: AppLimits, now: Date): Rejection | undefined {
  if (status.started === true) return undefined;
  const ended = readLastEnd(status);
  const runningFor = now.getTime() - Date.parse(status.state?.running?.startedAt ?? now.toISOString());
  const overdue = runningFor > limits.startupMs || (ended !== undefined && isStartupKill(ended, limits));
  if (!overdue) return undefined;
  const { port, healthPath, startupTime } = limits;
  const missing =
    healthPath === undefined
      ? `accept connections on port ${port}`
      : `respond with a status from 200 to 399 at ${healthPath} on port ${port}`;
  const fix = `Make it listen on 0.0.0.0 (not 127.0.0.1) and on $PORT, which is ${port}; or set run.port in moorage.yaml to the port it uses, or increase run.startupTime there if it starts slowly.`;
  return {
    rule: 'run/never-listened',
    message: `The app is running, but did not ${missing} within ${startupTime}.`,
    fix,
    ...readLog(status),
  };
}

function findCrash(status: ContainerStatus): Rejection | undefined {
  const ended = readLastEnd(status);
  if (ended === undefined || (status.restartCount < 2 && status.state?.waiting?.reason !== 'CrashLoopBackOff'))
    return undefined;
  const why =
    ended.reason === undefined || ended.reason === 'Error' || ended.reason === 'Completed' ? '' : ` (${ended.reason})`;
  const how =
    ended.exitCode === 0
      ? 'exited with code 0: its start command ended, and nothing started a server that keeps running'
      : `crashed with exit code ${ended.exitCode}${why}`;
  return {
    rule: 'run/crashed',
    ...findPosition(ended),
    message: `The app ${how} (${formatRestarts(status.restartCount)}).${quoteLog(ended)}`,
    fix: chooseFix(ended),
    ...readLog(status),
  };
}

function findPosition({ exitCode, message = '' }: Termination): { file?: string; line?: number } {
  return exitCode === 0 ? {} : (findCrashPosition(clean(message)) ?? {});
}

/** Quotes the line of its log that says why. The app wrote it, so it is marked as a quotation. */
function quoteLog({ exitCode, message = '' }: Termination): string {
  const line = exitCode === 0 ? undefined : findCrashLine(clean(message));
  return line === undefined ? '' : ` Its log says "${line}".`;
}

/** Also used for backing services. */
export function formatRestarts(count: number): string {
  return count === 1 ? '1 restart' : `${count} restarts`;
}

function chooseFix({ exitCode, reason, message = '' }: Termination): string {
  // A program with missing libraries exits with 127 too.
  const isLibrary = /error while loading shared libraries/.test(message);
  if ((exitCode === 127 && !isLibrary) || reason === 'StartError') return suggestNotFoundFix(message);
  return exitCode === 126 ? notExecutable : suggestCrashFix(message, exitCode);
}

/** Its last exit. A container that the kubelet lost, such as in an eviction for lack of disk on the node, did not exit by itself. */
function readLastEnd({ state, lastState }: ContainerStatus): Termination | undefined {
  const ends = [state?.terminated, lastState?.terminated];
  return ends.find((ended) => ended !== undefined && ended.reason !== 'ContainerStatusUnknown');
}

/** Killed by the kubelet when its startup time was over; some apps handle the signal and exit with 0. */
function isStartupKill(ended: Termination, limits: AppLimits): boolean {
  return [0, 137, 143].includes(ended.exitCode) && computeLifetimeMs(ended) >= 0.9 * limits.startupMs;
}

function computeLifetimeMs(ended: Termination): number {
  return ended.startedAt === undefined || ended.finishedAt === undefined
    ? 0
    : Date.parse(ended.finishedAt) - Date.parse(ended.startedAt);
}

function readLog(status: ContainerStatus): { log?: string } {
  // The app wrote it: cleaned, so that it cannot control a reader's terminal.
  const text = clean(readLastEnd(status)?.message ?? '').trim();
  return text === '' ? {} : { log: text.slice(-8_000) };
}

function truncate(text: string): string {
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
