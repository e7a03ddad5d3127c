// Judges a pipeline by its Job and pods. The pods' output may be hostile: it is bounded and validated.
import type { z } from 'zod';
import { authorLimits, type ReportedSettings } from '../../../crds/app-manifest.ts';
import type { Finding, HostedAppStatus, Plan } from '../../../crds/hosted-app.ts';
import { annotations, type PipelineContainer } from '../../../crds/names.ts';
import { omitUndefined } from '../../../lib/values.ts';
import {
  explainWaiting,
  findCondition,
  findUnschedulable,
  isConditionTrue,
  isOutOfDisk,
  type ContainerStatus,
  type Job,
  type Pod,
  type Termination,
  type WaitingState,
} from '../../objects/kinds.ts';
import {
  buildResult,
  cloneResult,
  doubtfulExitCode,
  fault,
  rejectedExitCode,
  rejection as rejectionSchema,
  reviewResult,
  terminationMessageLimit,
  tooLargeSource,
  unprepared,
  unpreparedExitCode,
  type BuildResult,
} from '../../pipeline/contract.ts';
import type { Rejection } from '../../reconcile/outcome.ts';

export type Stage = NonNullable<NonNullable<HostedAppStatus['pipeline']>['stage']>;

/** The report of a review that has passed. */
export interface ReviewReport {
  readonly findings: readonly Finding[];
  readonly plan: Plan;
  /** The settings in moorage.yaml, if there is one. */
  readonly settings?: ReportedSettings | undefined;
  /** Ownership tokens that the clone found, unread. */
  readonly ownership?: readonly string[] | undefined;
  /** Hashes of the author's keys that the clone found. */
  readonly authorKeys?: readonly string[] | undefined;
}

/** The state of a pipeline. `pod` is the newest pod. */
export type Verdict = { readonly pod: string | undefined; readonly review?: ReviewReport | undefined } & (
  | {
      readonly kind: 'queued';
      /** It has its turn, but no node takes its pod: the scheduler's message. */
      readonly noRoom?: string;
    }
  | {
      readonly kind: 'running';
      readonly stage: Stage;
      readonly since: string | undefined;
      readonly trouble: string | undefined;
    }
  | { readonly kind: 'succeeded'; readonly result: BuildResult }
  | {
      readonly kind: 'rejected';
      readonly stage: 'Review' | 'Build';
      readonly rejection: Rejection;
      readonly findings: readonly Finding[];
    }
  /** The build needs images that the installation makes on first use. */
  | { readonly kind: 'unprepared'; readonly images: readonly string[] }
  | { readonly kind: 'faulted'; readonly message: string; readonly doubtful?: boolean }
);

/** Judges a Job by itself and its pods. `image` is the name that the pipeline has to push to. */
export function judgePipeline(job: Job, pods: readonly Pod[], image: string): Verdict {
  const newest = findNewest(pods);
  const seen = { pod: newest?.metadata.name, review: readReview(newest) };
  if (isAheadOfPods(job, pods)) return { ...seen, ...readProgress(job, newest) };
  if (isComplete(job, pods)) return { ...seen, ...readSuccess(job, pods.find(hasSucceeded), image) };
  if (isConditionTrue(job.status?.conditions, 'Failed')) return { ...seen, ...readFailure(job, pods, newest) };
  if (job.spec?.suspend === true) return { ...seen, kind: 'queued' };
  const noRoom = newest === undefined ? undefined : findNoRoom(newest);
  if (noRoom !== undefined) return { ...seen, kind: 'queued', noRoom: truncate(noRoom) };
  return { ...seen, ...readProgress(job, newest) };
}

/** Why no node takes the pod, or evicted it for the node's own sake; the Job then creates another one. */
function findNoRoom(pod: Pod): string | undefined {
  const refused = findUnschedulable(pod);
  if (refused !== undefined) return refused.message ?? 'unschedulable';
  const isTakenBack = pod.status?.phase === 'Failed' && isConditionTrue(pod.status.conditions, 'DisruptionTarget');
  return isTakenBack ? (pod.status?.message ?? pod.status?.reason ?? 'evicted') : undefined;
}

export function findNewest(pods: readonly Pod[]): Pod | undefined {
  return pods.toSorted(compareAge).at(-1);
}

/** The review's report in a pod; undefined until it has passed. */
export function readReview(pod: Pod | undefined): ReviewReport | undefined {
  const review = readMessage(findStatus(pod, 'review')?.state?.terminated, reviewResult);
  if (review === undefined) return undefined;
  const clone = readMessage(findStatus(pod, 'clone')?.state?.terminated, cloneResult);
  return { ...review, ownership: clone?.ownership, authorKeys: clone?.authorKeys };
}

/** The pod's phase changes about a second after its last container ends, when its sandbox is removed. */
function hasSucceeded(pod: Pod): boolean {
  return (
    pod.status?.phase === 'Succeeded' ||
    stages.every(([, name]) => findStatus(pod, name)?.state?.terminated?.exitCode === 0)
  );
}

/** Jobs and pods are watched separately: a Job can be complete before the end of its pod is seen here. */
function isAheadOfPods({ status }: Job, pods: readonly Pod[]): boolean {
  const isOpen = ({ status: of }: Pod): boolean => of?.phase !== 'Succeeded' && of?.phase !== 'Failed';
  return isConditionTrue(status?.conditions, 'Complete') && !pods.some(hasSucceeded) && pods.some(isOpen);
}

/** A pod that has succeeded decides: the Job itself reports it a second or two later. */
function isComplete({ status }: Job, pods: readonly Pod[]): boolean {
  return (
    isConditionTrue(status?.conditions, 'Complete') ||
    (pods.some(hasSucceeded) && !isConditionTrue(status?.conditions, 'Failed'))
  );
}

function readSuccess(
  job: Job,
  pod: Pod | undefined,
  image: string,
): { kind: 'succeeded'; result: BuildResult } | { kind: 'faulted'; message: string } {
  const clone = readMessage(findStatus(pod, 'clone')?.state?.terminated, cloneResult);
  const result = readMessage(findStatus(pod, 'build')?.state?.terminated, buildResult);
  if (result === undefined || clone === undefined)
    return { kind: 'faulted', message: 'The pipeline completed, but its result is missing or malformed.' };
  if (clone.commit !== job.metadata.annotations?.[annotations.commit])
    return { kind: 'faulted', message: 'The pipeline built a different commit than requested.' };
  const images = [result.image, ...(result.components ?? []).map((component) => component.image)];
  if (!images.every((each) => hasImageName(each, image)))
    return { kind: 'faulted', message: `The pipeline reported an image outside ${image}.` };
  return { kind: 'succeeded', result };
}

/** True when `image` is `name@sha256:<digest>`: a hostile pod must not have us run some other image. */
export function hasImageName(image: string, name: string): boolean {
  return image.startsWith(`${name}@`) && /^sha256:[0-9a-f]{64}$/.test(image.slice(name.length + 1));
}

type Failure =
  | { kind: 'rejected'; stage: 'Review' | 'Build'; rejection: Rejection; findings: readonly Finding[] }
  | { kind: 'unprepared'; images: readonly string[] }
  | { kind: 'faulted'; message: string; doubtful?: boolean };

function readFailure(job: Job, pods: readonly Pod[], newest: Pod | undefined): Failure {
  const refused = pods
    .flatMap((pod) => listStatuses(pod))
    .find((status) => status.state?.terminated?.exitCode === rejectedExitCode);
  if (refused !== undefined) return readRejection(refused);
  const images = findUnprepared(pods);
  if (images !== undefined) return { kind: 'unprepared', images };
  const over = findExceededLimit(pods);
  if (over !== undefined) return { kind: 'rejected', ...over, findings: [] };
  const failure = findCondition(job.status?.conditions, 'Failed');
  if (failure?.reason === 'DeadlineExceeded')
    return { kind: 'rejected', stage: 'Build', rejection: timedOut, findings: [] };
  return {
    kind: 'faulted',
    message: truncate(describeFault(newest) ?? failure?.message ?? 'The Job failed without a message.'),
    ...(pods.some(isDoubtful) ? { doubtful: true } : {}),
  };
}

function findUnprepared(pods: readonly Pod[]): readonly string[] | undefined {
  const ended = pods
    .map((pod) => findStatus(pod, 'build')?.state?.terminated)
    .find((terminated) => terminated?.exitCode === unpreparedExitCode);
  return readMessage(ended, unprepared)?.unprepared;
}

const timedOut: Rejection = {
  rule: 'build/timeout',
  message: 'The build exceeded build.timeout and was stopped.',
  fix: `Make the build faster (fewer or prebuilt dependencies), or increase build.timeout in moorage.yaml (maximum ${authorLimits.build.timeout}).`,
};

function readRejection(status: ContainerStatus): Failure {
  const report = readMessage(status.state?.terminated, rejectionSchema);
  const first = findFirstError(report?.findings ?? []);
  if (report === undefined || first === undefined)
    return { kind: 'faulted', message: `The ${status.name} stage rejected the app, but its report is malformed.` };
  const { rule, file, line, message, fix } = first;
  const rejection = omitUndefined({ rule, file, line, message, fix, log: report.log?.slice(-8_000) });
  return {
    kind: 'rejected',
    stage: status.name === 'build' ? 'Build' : 'Review',
    rejection,
    findings: report.findings.slice(0, 50),
  };
}

function findFirstError(findings: readonly Finding[]): Finding | undefined {
  return findings.find((finding) => finding.severity === 'error') ?? findings[0];
}

/** Whether a container of the pod ended with a fault that the author could have staged. */
function isDoubtful(pod: Pod): boolean {
  return listStatuses(pod).some(({ state }) => state?.terminated?.exitCode === doubtfulExitCode);
}

function describeFault(pod: Pod | undefined): string | undefined {
  if (pod === undefined) return undefined;
  const broken = listStatuses(pod)
    .flatMap(({ name, state }) => (state?.terminated === undefined ? [] : [{ name, ...state.terminated }]))
    .find(({ exitCode }) => exitCode !== 0);
  if (broken === undefined) return pod.status?.message;
  const reason = broken.reason === undefined ? '' : ` (${broken.reason})`;
  const cause = readMessage(broken, fault)?.fault ?? broken.message?.trim();
  return `${broken.name} ended with exit code ${broken.exitCode}${reason}: ${cause ?? 'no message'}`;
}

const stages = [
  ['Clone', 'clone'],
  ['Review', 'review'],
  ['Build', 'build'],
] as const satisfies readonly (readonly [Stage, PipelineContainer])[];

function readProgress(
  job: Job,
  pod: Pod | undefined,
): { kind: 'running'; stage: Stage; since: string | undefined; trouble: string | undefined } {
  let since = job.status?.startTime;
  for (const [stage, name] of stages) {
    const state = findStatus(pod, name)?.state;
    const ended = state?.terminated;
    if (ended?.exitCode === 0 && name !== 'build') {
      since = ended.finishedAt ?? since;
      continue;
    }
    return { kind: 'running', stage, since, trouble: describeTrouble(pod, state?.waiting) };
  }
  return { kind: 'running', stage: 'Build', since, trouble: undefined };
}

function describeTrouble(pod: Pod | undefined, waiting: WaitingState | undefined): string | undefined {
  if (pod === undefined) return undefined;
  const reason = explainWaiting(waiting);
  return reason === undefined ? undefined : truncate(`It is waiting: ${reason}.`);
}

function readMessage<Schema extends z.ZodType>(
  terminated: Termination | undefined,
  schema: Schema,
): z.output<Schema> | undefined {
  const text = terminated?.message;
  // The kubelet truncates by bytes, at 12 KiB over all containers; anything longer is not from our pipeline.
  if (text === undefined || text.length > 3 * terminationMessageLimit) return undefined;
  try {
    const parsed = schema.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}

function findStatus(pod: Pod | undefined, name: PipelineContainer): ContainerStatus | undefined {
  return pod === undefined ? undefined : listStatuses(pod).find((status) => status.name === name);
}

function listStatuses(pod: Pod): ContainerStatus[] {
  return [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
}

function compareAge(a: Pod, b: Pod): number {
  return (
    a.metadata.creationTimestamp.localeCompare(b.metadata.creationTimestamp) ||
    a.metadata.name.localeCompare(b.metadata.name)
  );
}

function truncate(text: string): string {
  return text.length > 900 ? `…${text.slice(-900)}` : text;
}

// Limits: a build that exceeds its memory or disk is rejected, and is no fault of the platform.

/** The limit that a pod exceeded, if any did. */
export function findExceededLimit(
  pods: readonly Pod[],
): { stage: 'Review' | 'Build'; rejection: Rejection } | undefined {
  if (pods.some((pod) => isOutOfMemory(pod, 'clone'))) return { stage: 'Review', rejection: tooLargeSource };
  const rejection = findExceededBuildLimit(pods);
  return rejection === undefined ? undefined : { stage: 'Build', rejection };
}

function findExceededBuildLimit(pods: readonly Pod[]): Rejection | undefined {
  if (pods.some((pod) => isOutOfMemory(pod, 'build'))) {
    return {
      rule: 'build/out-of-memory',
      message: 'The build exceeded its memory limit (build.resources.memory) and was killed.',
      fix: `Increase build.resources.memory in moorage.yaml (maximum ${authorLimits.build.memory}), or reduce what the build needs (fewer parallel jobs, prebuilt packages).`,
    };
  }
  const evicted = pods.find(isOutOfDisk);
  if (evicted === undefined) return undefined;
  return {
    rule: 'build/out-of-disk',
    message: `The build exceeded its disk limit (build.resources.disk) and was stopped (${(evicted.status?.message ?? '').slice(0, 300)}).`,
    fix: `Increase build.resources.disk in moorage.yaml (maximum ${authorLimits.build.disk}), or make the image smaller (a slimmer base image, CPU-only wheels, no build leftovers).`,
  };
}

function isOutOfMemory(pod: Pod, container: PipelineContainer): boolean {
  const statuses = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
  return statuses.some((status) => status.name === container && status.state?.terminated?.reason === 'OOMKilled');
}
