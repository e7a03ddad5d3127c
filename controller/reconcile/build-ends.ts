// Counts the builds that a new status records: each once, since its entry in the history is new only once.
import type { HistoryEntry, HostedAppStatus } from '../../crds/hosted-app.ts';
import { annotations, containers, type PipelineContainer } from '../../crds/names.ts';
import type { Job, Pod } from '../objects/kinds.ts';
import { podsOf } from '../steps/build/build.ts';
import { newestOf } from '../steps/build/verdict.ts';
import type { BuildEnd, BuildMetrics, TimedStage } from './metrics.ts';
import type { Snapshot } from './snapshot.ts';

/** Counts what the status after a reconcile has in its history and the one before has not. */
export function countBuildEnds(
  metrics: BuildMetrics,
  snapshot: Pick<Snapshot, 'jobs' | 'pipelinePods'>,
  before: HostedAppStatus | undefined,
  after: HostedAppStatus,
): void {
  const known = new Set((before?.history ?? []).map(({ number }) => number));
  for (const entry of (after.history ?? []).filter(({ number }) => !known.has(number))) {
    metrics.ended(resultOf(entry), secondsBetween(entry.startedAt, entry.finishedAt));
    const job = snapshot.jobs.find(({ metadata }) => metadata.name === entry.job);
    if (job !== undefined) countStages(metrics, snapshot, job);
  }
}

function countStages(metrics: BuildMetrics, snapshot: Pick<Snapshot, 'pipelinePods'>, job: Job): void {
  const pod = newestOf(podsOf(snapshot, job));
  const times: readonly (readonly [TimedStage, number | undefined])[] = [
    ['queue', secondsBetween(job.metadata.annotations?.[annotations.queuedAt], job.status?.startTime)],
    ...containers.map((stage) => [stage, secondsOf(pod, stage)] as const),
  ];
  for (const [stage, seconds] of times) if (seconds !== undefined) metrics.stage(stage, seconds);
}

/** How long a container ran, once it has ended. */
function secondsOf(pod: Pod | undefined, container: PipelineContainer): number | undefined {
  const statuses = [pod?.status?.initContainerStatuses, pod?.status?.containerStatuses].flatMap((some) => some ?? []);
  const { startedAt, finishedAt } = statuses.find(({ name }) => name === container)?.state?.terminated ?? {};
  return secondsBetween(startedAt, finishedAt);
}

function resultOf({ result }: HistoryEntry): BuildEnd {
  return result.toLowerCase() as BuildEnd;
}

/** undefined where one of the times is unknown; a start that is noted more finely than the end may lie after it. */
function secondsBetween(start: string | undefined, end: string | undefined): number | undefined {
  if (start === undefined || end === undefined) return undefined;
  const seconds = (Date.parse(end) - Date.parse(start)) / 1000;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : undefined;
}
