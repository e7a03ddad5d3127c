// Reads the state of an app's pods: which ones serve, and why one does not.
import { authorLimits } from '../../../crds/app-manifest.ts';
import { hasControlSecretName } from '../../../crds/control.ts';
import { annotations } from '../../../crds/names.ts';
import type { ComponentStatus } from '../../../crds/status.ts';
import {
  explainUnscheduled,
  explainWaiting,
  findCondition,
  isConditionTrue,
  isOutOfDisk,
  listContainers,
  sumQuantities,
  type ContainerStatus,
  type Pod,
  type Termination,
} from '../../objects/kinds.ts';
import { clean } from '../../pipeline/text.ts';
import type { Rejection } from '../../reconcile/outcome.ts';
import { notExecutable } from './crash-causes.ts';
import {
  findCrashLine,
  findCrashPosition,
  findLastLine,
  findMissingVariables,
  suggestCrashFix,
  suggestNotFoundFix,
} from './crash-fixes.ts';

/** The limits of a component, for messages. */
export interface ComponentLimits {
  /** Name of its container. */
  readonly name: string;
  /** Whether messages have to name it: the app has others. */
  readonly isNamed: boolean;
  /** Absent: it does not listen. */
  readonly port: number | undefined;
  readonly startupMs: number;
  readonly startupTime: string;
  readonly healthPath: string | undefined;
  readonly memory: string;
  readonly disk: string;
}

type ComponentName = Pick<ComponentLimits, 'name' | 'isNamed'>;

/** The limits of all components that run in the pod, each after those that it depends on. */
export type AppLimits = readonly ComponentLimits[];

/** What distinguishes the release of a pod from others. */
export interface PodRelease {
  readonly image: string;
  readonly commit: string;
  readonly imagesHash: string | undefined;
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

/** The same, with the hash of the images of all components. */
export function readPodRelease(pod: Pod): PodRelease {
  return { ...readCommitAndImage(pod), imagesHash: pod.metadata.annotations?.[annotations.imagesHash] };
}

/** When the pod last became ready, or ceased to be; of one that never was, when it was created. Milliseconds since 1970. */
export function readReadyChange({ status, metadata }: Pod): number {
  return Date.parse(findCondition(status?.conditions, 'Ready')?.lastTransitionTime ?? metadata.creationTimestamp);
}

/** Since when a ready pod has served without a restart or a failed check, in milliseconds since 1970. */
export function readServingSince(pod: Pod, now: Date): number {
  const times = [
    findCondition(pod.status?.conditions, 'Ready')?.lastTransitionTime,
    ...listContainers(pod).map(({ state }) => state?.running?.startedAt),
  ].filter((time) => time !== undefined);
  return times.length === 0 ? now.getTime() : Math.max(...times.map((time) => Date.parse(time)));
}

/** When a component in the pod last exited by itself, in milliseconds since 1970; undefined: never. */
export function findCrashTime(pod: Pod): number | undefined {
  if (pod.metadata.deletionTimestamp !== undefined) return undefined;
  const finishedAt = findLastEnd(pod)?.finishedAt;
  return finishedAt === undefined ? undefined : Date.parse(finishedAt);
}

/** How long the component that exited last had run, in milliseconds. */
export function readLastRunMs(pod: Pod): number | undefined {
  const ended = findLastEnd(pod);
  return ended === undefined ? undefined : computeLifetimeMs(ended);
}

function findLastEnd(pod: Pod): Termination | undefined {
  return listContainers(pod)
    .flatMap((status) => readLastEnd(status) ?? [])
    .toSorted((one, other) => (other.finishedAt ?? '').localeCompare(one.finishedAt ?? ''))[0];
}

/** How often the app was restarted: the component that was restarted most often. */
export function countRestarts(pod: Pod): number {
  return Math.max(0, ...listContainers(pod).map(({ restartCount }) => restartCount));
}

/** Why this pod does not serve, if the author can act on it. The component that others depend on is judged before them. */
export function diagnose(pod: Pod, limits: AppLimits, now: Date): Rejection | undefined {
  if (hasRunOutOfDisk(pod, now)) return explainOutOfDisk(pod, limits);
  const statuses = listContainers(pod);
  for (const component of limits) {
    const status = statuses.find(({ name }) => name === component.name);
    const found = status === undefined || status.ready ? undefined : diagnoseComponent(status, component, now);
    if (found !== undefined) return found;
  }
  return undefined;
}

function diagnoseComponent(status: ContainerStatus, limits: ComponentLimits, now: Date): Rejection | undefined {
  return (
    findMisconfiguration(status, limits) ??
    findOutOfMemory(status, limits) ??
    findNeverListened(status, limits, now) ??
    findCrash(status, limits)
  );
}

/** The state of a component in a pod. */
export type ComponentState = Omit<ComponentStatus, 'name' | 'kind'>;

/** Describes the state of a component. @param pod the one that serves, or else a starting one; undefined: there is none */
export function describeComponent(pod: Pod | undefined, limits: ComponentLimits, now: Date): ComponentState {
  const status = pod === undefined ? undefined : listContainers(pod).find(({ name }) => name === limits.name);
  if (pod === undefined || status === undefined) return { ready: false, message: 'It does not run.' };
  const { ready, restartCount: restarts } = status;
  if (ready) return { ready, restarts };
  const message = diagnoseComponent(status, limits, now)?.message ?? explainUnready(status, limits);
  return { ready, restarts, message: message.slice(0, 500) };
}

function explainUnready({ state, started }: ContainerStatus, { port }: ComponentLimits): string {
  if (state?.waiting?.reason === 'PodInitializing') return 'It waits for the components that it depends on.';
  return (
    explainWaiting(state?.waiting) ??
    (started === true && port !== undefined ? 'It fails its check.' : 'It is starting.')
  );
}

/** What keeps the pod from starting, as a clause, before anything has failed. */
export function explainHoldUp(pod: Pod): string | undefined {
  const waits = listContainers(pod).map(({ state }) => explainWaiting(state?.waiting));
  const reason = explainUnscheduled(pod) ?? waits.find((found) => found !== undefined);
  return reason === undefined ? undefined : truncate(reason);
}

/** Milliseconds until a component of a starting pod exceeds its startup time; undefined if none is starting. */
export function computeStartMsLeft(pod: Pod, limits: AppLimits, now: Date): number | undefined {
  const left = listContainers(pod).flatMap(({ name, ready, state }) => {
    const component = limits.find((each) => each.name === name);
    const startedAt = state?.running?.startedAt;
    if (component?.port === undefined || startedAt === undefined || ready) return [];
    return [Date.parse(startedAt) + component.startupMs + 1_000 - now.getTime()];
  });
  const remainingMs = Math.min(...left.filter((ms) => ms > 0));
  return Number.isFinite(remainingMs) ? remainingMs : undefined;
}

/** The subject of a message about a component. */
function nameSubject({ name, isNamed }: ComponentLimits): string {
  return isNamed ? `Component ${name}` : 'The app';
}

/** Where moorage.yaml sets a field of a component, such as resources.memory. */
function nameField(field: string, { name, isNamed }: ComponentName): string {
  return isNamed ? `${field} of component ${name} in moorage.yaml` : `run.${field} in moorage.yaml`;
}

/** Rewrites a fix for an app of one process: fields of run that describe one process are those of the component. */
function translateFix(fix: string, { name, isNamed }: ComponentName): string {
  return isNamed ? fix.replaceAll(/\brun\.(command|port|healthPath|volumes)\b/g, `$1 of component ${name}`) : fix;
}

/** The kubelet has not read the Secret yet, and retries by itself. */
const notSynced = /failed to sync (?:secret|configmap) cache/i;

function rejectConfig(message: string, limits: ComponentLimits): Rejection | undefined {
  if (notSynced.test(message)) return undefined;
  const fields = limits.isNamed ? `spec.run.secrets or in secrets of component ${limits.name}` : 'spec.run.secrets';
  return {
    rule: 'run/misconfigured',
    message: `${nameSubject(limits)} cannot start with its current configuration: ${message}.`,
    fix: hasControlSecretName(message)
      ? 'The value of a variable that you set is gone: set each of your secrets again (PUT /api/apps/{slug}/secrets/NAME).'
      : `Ask the operator of this installation to create the Secret and key named in ${fields} of the HostedApp, or to correct the name.`,
  };
}

function findMisconfiguration(status: ContainerStatus, limits: ComponentLimits): Rejection | undefined {
  const { reason, message } = status.state?.waiting ?? {};
  const detail = truncate(message ?? 'no message');
  switch (reason) {
    case 'CreateContainerConfigError':
      return rejectConfig(detail, limits);
    case 'CreateContainerError':
      // Most errors of this kind are the node's own and pass.
      return /\b(?:users?|groups?) (?:\S+: )?(?:not )?(?:found|no matching)|unable to find (?:user|group)|no matching entries/i.test(
        detail,
      )
        ? {
            rule: 'run/no-such-user',
            message: `${nameImage(limits)} specifies a user or group that does not exist in it: ${detail}.`,
            fix: 'Create the user in the Dockerfile (RUN useradd …) before the USER instruction, or use a numeric ID.',
          }
        : undefined;
    case 'ErrImagePull':
    case 'ImagePullBackOff':
    case 'InvalidImageName':
      return {
        rule: 'run/image-pull',
        message: `${nameImage(limits)} cannot be pulled from the registry: ${detail}.`,
        fix: 'Your app did not cause this. The pull is retried automatically; if the image no longer exists, submit the repository again.',
      };
    default:
      return undefined;
  }
}

function nameImage({ name, isNamed }: ComponentLimits): string {
  return isNamed ? `The image of component ${name}` : 'The image';
}

const recentlyMs = 10 * 60_000;

/** Evicted for its own disk usage, recently enough to concern what runs now. */
function hasRunOutOfDisk(pod: Pod, now: Date): boolean {
  return isOutOfDisk(pod) && now.getTime() - readReadyChange(pod) < recentlyMs;
}

function explainOutOfDisk(pod: Pod, limits: AppLimits): Rejection {
  const said = truncate(clean(pod.status?.message ?? 'no message').trim());
  // The kubelet names the container, unless all of them together exceeded the limit of the pod.
  const container = /\bContainer "?([a-z0-9-]{1,63})"? exceeded/i.exec(said)?.[1];
  const [only] = limits;
  const component = limits.find(({ name }) => name === container) ?? (limits.length === 1 ? only : undefined);
  if (component === undefined)
    return {
      rule: 'run/out-of-disk',
      message: `The components of the app exceeded their ${sumQuantities(limits.map(({ disk }) => disk))} of temporary disk together, and were stopped (${said}).`,
      fix: `Increase resources.disk of the component that writes most in moorage.yaml (maximum ${authorLimits.components.disk} for all components together), write less (caches, logs, uploads), or keep persistent data on a volume (volumes of the component).`,
    };
  const volumes = component.isNamed ? nameField('volumes', component) : 'run.volumes in moorage.yaml';
  return {
    rule: 'run/out-of-disk',
    message: `${nameSubject(component)} exceeded its ${component.disk} of temporary disk and was stopped (${said}).`,
    fix: `Increase ${nameField('resources.disk', component)} (maximum ${formatMaximum('disk', component)}), write less (caches, logs, uploads), or keep persistent data on a volume (${volumes}).`,
  };
}

function formatMaximum(resource: 'memory' | 'disk', { isNamed }: ComponentLimits): string {
  return isNamed ? `${authorLimits.components[resource]} for all components together` : authorLimits.run[resource];
}

function findOutOfMemory(status: ContainerStatus, limits: ComponentLimits): Rejection | undefined {
  if (readLastEnd(status)?.reason !== 'OOMKilled') return undefined;
  const message = `${nameSubject(limits)} exceeded its memory limit of ${limits.memory} and was killed (${formatRestarts(status.restartCount)}).`;
  return {
    rule: 'run/out-of-memory',
    message,
    fix: `Increase ${nameField('resources.memory', limits)} (maximum ${formatMaximum('memory', limits)}), or reduce what the app needs (fewer workers, smaller models).`,
    ...readLog(status),
  };
}

function findNeverListened(status: ContainerStatus, limits: ComponentLimits, now: Date): Rejection | undefined {
  const { port, healthPath, startupTime } = limits;
  if (status.started === true || port === undefined) return undefined;
  const ended = readLastEnd(status);
  const runningFor = now.getTime() - Date.parse(status.state?.running?.startedAt ?? now.toISOString());
  const overdue = runningFor > limits.startupMs || (ended !== undefined && isStartupKill(ended, limits));
  if (!overdue) return undefined;
  const missing =
    healthPath === undefined
      ? `accept connections on port ${port}`
      : `respond with a status from 200 to 399 at ${healthPath} on port ${port}`;
  const slow = limits.isNamed ? `startupTime of component ${limits.name}` : 'run.startupTime';
  const fix = `Make it listen on 0.0.0.0 (not 127.0.0.1) and on $PORT, which is ${port}; or set ${nameField('port', limits)} to the port it uses, or increase ${slow} there if it starts slowly.`;
  return {
    rule: 'run/never-listened',
    message: `${nameSubject(limits)} is running, but did not ${missing} within ${startupTime}.`,
    fix,
    ...readLog(status),
  };
}

function findCrash(status: ContainerStatus, limits: ComponentLimits): Rejection | undefined {
  const ended = readLastEnd(status);
  if (ended === undefined || (status.restartCount < 2 && status.state?.waiting?.reason !== 'CrashLoopBackOff'))
    return undefined;
  const why =
    ended.reason === undefined || ended.reason === 'Error' || ended.reason === 'Completed' ? '' : ` (${ended.reason})`;
  const how =
    ended.exitCode === 0
      ? `exited with code 0: ${explainEnd(limits)}`
      : `crashed with exit code ${ended.exitCode}${why}`;
  return {
    rule: 'run/crashed',
    ...findPosition(ended),
    message: `${nameSubject(limits)} ${how} (${formatRestarts(status.restartCount)}).${quoteLog(ended)}`,
    fix: limits.port === undefined && ended.exitCode === 0 ? endingWorker : translateFix(chooseFix(ended), limits),
    ...readLog(status),
    ...readVariables(ended),
  };
}

/** Why a task failed. @param pod the one that ran it last; undefined: it is gone @param limit how long it may run */
/** @param others the components of the app's pod, which a task cannot reach */
export function explainTaskFailure(
  pod: Pod | undefined,
  name: string,
  limit: string,
  others: readonly string[],
): Rejection {
  const status = pod?.status?.containerStatuses?.[0];
  const failure = { rule: 'run/task-failed', ...(status === undefined ? {} : readLog(status)) };
  if (pod?.status?.reason === 'DeadlineExceeded') {
    const fix = `Increase startupTime of component ${name} in moorage.yaml (maximum ${authorLimits.run.startupTime}), or make it do less.`;
    return { ...failure, message: `Task ${name} did not end within ${limit} and was stopped.`, fix };
  }
  const ended = status === undefined ? undefined : readLastEnd(status);
  if (ended === undefined)
    return { ...failure, message: `Task ${name} failed.`, fix: `Push a commit in which component ${name} ends well.` };
  const component = { name, isNamed: true };
  if (ended.reason === 'OOMKilled') {
    const fix = `Increase ${nameField('resources.memory', component)}, or reduce what it needs.`;
    return { ...failure, message: `Task ${name} exceeded its memory limit and was killed.`, fix };
  }
  const message = `Task ${name} failed with exit code ${ended.exitCode}.${quoteLog(ended)}`;
  const missed = others.find((other) => isLookedUp(other, clean(ended.message ?? '')));
  if (missed === undefined)
    return { ...failure, message, fix: translateFix(chooseFix(ended), component), ...readVariables(ended) };
  const fix = `${name} runs in its own pod, before ${missed} starts, and cannot reach it. Let it do the work itself, with the code of ${missed} (image: ${missed}) and the services of the app, or do it in a worker.`;
  return { ...failure, message, fix };
}

const failedLookup =
  /ENOTFOUND|EAI_AGAIN|getaddrinfo|gaierror|name resolution|name or service not known|no such host|resolve host|translate host name|UnknownHost|nodename nor servname|ECONNREFUSED|connection refused/i;

/** Whether a line of a log says that the host name of a component was not found. */
function isLookedUp(name: string, log: string): boolean {
  const host = new RegExp(`(?:^|[\\s"'/@(=])${name}(?:["':/,)]|\\s|$)`);
  return log.split('\n').some((each) => failedLookup.test(each) && host.test(each));
}

const endingWorker =
  'Make its command keep running, as a worker does. If it is meant to end, set kind: task (runs once per release, before it serves) or kind: cron with a schedule for this component in moorage.yaml.';

function explainEnd({ port }: ComponentLimits): string {
  return port === undefined
    ? 'its start command ended, and a worker has to keep running'
    : 'its start command ended, and nothing started a server that keeps running';
}

function findPosition({ exitCode, message = '' }: Termination): { file?: string; line?: number } {
  return exitCode === 0 ? {} : (findCrashPosition(clean(message)) ?? {});
}

/** Quotes the line of its log that says why. The app wrote it, so it is marked as a quotation. */
function quoteLog({ exitCode, message = '' }: Termination): string {
  if (exitCode === 0) return '';
  const log = clean(message);
  const line = findCrashLine(log);
  if (line !== undefined) return ` Its log says "${line}".`;
  const last = findLastLine(log);
  return last === undefined ? '' : ` Its log ends with "${last}".`;
}

/** The variables that the last lines name as missing. */
function readVariables({ message = '' }: Termination): { variables?: string[] } {
  const variables = findMissingVariables(clean(message));
  return variables.length === 0 ? {} : { variables };
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
function isStartupKill(ended: Termination, limits: ComponentLimits): boolean {
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
