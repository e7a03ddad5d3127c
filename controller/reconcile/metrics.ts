// Metrics of apps and of their builds. Labels are states, reasons, results and stages from the code: sets that cannot
// grow with apps.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { HistoryEntry, HostedAppStatus } from '../../crds/hosted-app.ts';
import { annotations, containers, type PipelineContainer } from '../../crds/names.ts';
import { toPublicStatus } from '../../crds/public-status.ts';
import type { HostedAppObject, Job, Pod } from '../objects/kinds.ts';
import { listPods } from '../steps/build/build.ts';
import { findNewest } from '../steps/build/verdict.ts';
import type { Snapshot } from './snapshot.ts';

/** How a build ended: `faulted` by a fault of the platform, `superseded` by a newer commit before it ended. */
export type BuildEnd = Lowercase<HistoryEntry['result']>;

/** `queue`: until it had a slot; the others are the containers of a pipeline pod, which overlap. */
export type TimedStage = 'queue' | PipelineContainer;

export interface BuildMetrics {
  recordEnd(result: BuildEnd, seconds: number | undefined): void;
  recordStage(stage: TimedStage, seconds: number): void;
}

const ends: readonly BuildEnd[] = ['succeeded', 'rejected', 'faulted', 'superseded'];
const stages: readonly TimedStage[] = ['queue', ...containers];
const buckets = [1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 7_200];

export function createBuildMetrics(registry: Registry): BuildMetrics {
  const registers = [registry];
  const builds = new Counter({
    name: 'moorage_builds_total',
    help: 'Pipelines that ended, by result. faulted: by a fault of the platform.',
    labelNames: ['result'],
    registers,
  });
  const seconds = new Histogram({
    name: 'moorage_build_duration_seconds',
    help: 'Seconds from the start of a pipeline to its end.',
    labelNames: ['result'],
    buckets,
    registers,
  });
  const stageSeconds = new Histogram({
    name: 'moorage_pipeline_stage_duration_seconds',
    help: 'Seconds of a stage of a pipeline: queue until it had a slot, then its containers, which overlap.',
    labelNames: ['stage'],
    buckets,
    registers,
  });
  // From the first scrape on, so that the first fault is an increase.
  for (const result of ends) builds.inc({ result }, 0);
  for (const stage of stages) stageSeconds.zero({ stage });
  for (const result of ends) seconds.zero({ result });
  return {
    recordEnd(result, took) {
      builds.inc({ result });
      if (took !== undefined) seconds.observe({ result }, took);
    },
    recordStage(stage, took) {
      stageSeconds.observe({ stage }, took);
    },
  };
}

export interface AppCounts {
  /** Apps by public status. */
  readonly statuses: Readonly<Record<'live' | 'in_pipeline' | 'rejected', number>>;
  /** Apps whose newest commit is not served, by the reason of their condition Ready. */
  readonly reasons: ReadonlyMap<string, number>;
}

/** Counted once per scrape for both metrics, since it reads every app. */
export function registerAppMetrics(registry: Registry, count: () => AppCounts): void {
  const registers = [registry];
  const notReady = new Gauge({
    name: 'moorage_apps_not_ready',
    help: 'Apps that are not Ready, by the reason of that condition.',
    labelNames: ['reason'],
    registers: [],
  });
  new Gauge({
    name: 'moorage_apps',
    help: 'Apps by public status.',
    labelNames: ['status'],
    registers,
    collect() {
      const { statuses, reasons } = count();
      for (const [status, apps] of Object.entries(statuses)) this.set({ status }, apps);
      notReady.reset();
      for (const [reason, apps] of reasons) notReady.set({ reason }, apps);
    },
  });
  // After the one that fills it: a registry collects in this order.
  registry.registerMetric(notReady);
}

/** Apps by public status, and those that are not Ready by reason. */
export function countApps(apps: readonly HostedAppObject[]): AppCounts {
  const statuses = { live: 0, in_pipeline: 0, rejected: 0 };
  const reasons = new Map<string, number>();
  // Without previews: a stranger's pull request that does not build must cause no alert.
  for (const app of apps.filter(({ spec }) => spec.previewOf === undefined)) {
    statuses[toPublicStatus(app).status] += 1;
    const ready = app.status?.conditions?.find(({ type }) => type === 'Ready');
    if (ready === undefined || ready.status === 'True') continue;
    reasons.set(ready.reason, (reasons.get(ready.reason) ?? 0) + 1);
  }
  return { statuses, reasons };
}

// Builds are counted when a new status records them: each once, since its entry in the history is new only once.

/** Counts the builds that are new in the history of the status after a reconcile. */
export function countBuildEnds(
  metrics: BuildMetrics,
  snapshot: Pick<Snapshot, 'jobs' | 'pipelinePods'>,
  before: HostedAppStatus | undefined,
  after: HostedAppStatus,
): void {
  const known = new Set((before?.history ?? []).map(({ number }) => number));
  for (const entry of (after.history ?? []).filter(({ number }) => !known.has(number))) {
    metrics.recordEnd(toBuildEnd(entry), computeSecondsBetween(entry.startedAt, entry.finishedAt));
    const job = snapshot.jobs.find(({ metadata }) => metadata.name === entry.job);
    if (job !== undefined) countStages(metrics, snapshot, job);
  }
}

function countStages(metrics: BuildMetrics, snapshot: Pick<Snapshot, 'pipelinePods'>, job: Job): void {
  const pod = findNewest(listPods(snapshot, job));
  const times: readonly (readonly [TimedStage, number | undefined])[] = [
    ['queue', computeSecondsBetween(job.metadata.annotations?.[annotations.queuedAt], job.status?.startTime)],
    ...containers.map((stage) => [stage, measureContainer(pod, stage)] as const),
  ];
  for (const [stage, seconds] of times) if (seconds !== undefined) metrics.recordStage(stage, seconds);
}

/** How long a container ran, once it has ended. */
function measureContainer(pod: Pod | undefined, container: PipelineContainer): number | undefined {
  const statuses = [pod?.status?.initContainerStatuses, pod?.status?.containerStatuses].flatMap((some) => some ?? []);
  const { startedAt, finishedAt } = statuses.find(({ name }) => name === container)?.state?.terminated ?? {};
  return computeSecondsBetween(startedAt, finishedAt);
}

function toBuildEnd({ result }: HistoryEntry): BuildEnd {
  return result.toLowerCase() as BuildEnd;
}

/** Undefined if one of the times is unknown. A start recorded more precisely than the end may lie after it. */
function computeSecondsBetween(start: string | undefined, end: string | undefined): number | undefined {
  if (start === undefined || end === undefined) return undefined;
  const seconds = (Date.parse(end) - Date.parse(start)) / 1000;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : undefined;
}
