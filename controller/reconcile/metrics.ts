// Metrics of apps and of their builds. Labels are states, reasons, results and stages from the code: sets that cannot
// grow with apps.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { containers, type PipelineContainer } from '../../crds/names.ts';
import type { HistoryEntry } from '../../crds/hosted-app.ts';

/** How a build ended: `faulted` by a fault of the platform, `superseded` by a newer commit before it ended. */
export type BuildEnd = Lowercase<HistoryEntry['result']>;

/** `queue`: until it had a slot; the others are the containers of a pipeline pod, which overlap. */
export type TimedStage = 'queue' | PipelineContainer;

export interface BuildMetrics {
  ended(result: BuildEnd, seconds: number | undefined): void;
  stage(stage: TimedStage, seconds: number): void;
}

const ends: readonly BuildEnd[] = ['succeeded', 'rejected', 'faulted', 'superseded'];
const stages: readonly TimedStage[] = ['queue', ...containers];
const buckets = [1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 7_200];

export function buildMetrics(registry: Registry): BuildMetrics {
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
    ended(result, took) {
      builds.inc({ result });
      if (took !== undefined) seconds.observe({ result }, took);
    },
    stage(stage, took) {
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

/** Counted at each scrape, once for both: it reads every app. */
export function appMetrics(registry: Registry, count: () => AppCounts): void {
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
