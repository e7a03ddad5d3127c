// JSON schemas of benchmarks, and the problem that their endpoints return.
import { z } from 'zod';
import type { ProblemType } from '../../../lib/problem.ts';
import { errorClasses } from './statements.ts';

const time = z.iso.datetime();
const usd = z.number();
const interval = z.tuple([z.number(), z.number()]);

const rate = z.object({
  passed: z.int().describe('Runs that passed.'),
  n: z.int().describe('Runs that count.'),
  rate: z.number().nullable().describe('passed / n, from 0 to 1; null without runs.'),
  interval: interval.nullable().describe('95 % Wilson interval of the rate; null without runs.'),
});
export type Rate = z.output<typeof rate>;

const latency = z.object({ p50: z.number().describe('Median, ms.'), p95: z.number().describe('95th percentile, ms.') });

const measured = {
  quality: rate.describe('How often the model passes when it is available: excludes upstream outages and our limits.'),
  delivered: rate.describe('How often a run passes overall: outages and limits count as failed.'),
  cost_per_run_usd: usd.nullable().describe('Mean billed cost per run, USD; null while no cost is known.'),
  latency_ms: latency.describe('From sending the prompt to the app until its answer is complete.'),
};

const byTask = z.object({ task: z.string().describe('Slug of the task.'), ...measured });
const errors = z
  .partialRecord(z.enum(errorClasses), z.int())
  .describe('Runs that did not pass, by class: ' + errorClasses.join(', ') + '.');

const modelView = z.object({
  model: z.string().describe('Model identifier.'),
  runs: z.int().describe('Runs that finished.'),
  ...measured,
  cost_per_success_usd: usd
    .nullable()
    .describe('Billed cost of all runs divided by the number that passed, USD; null if unknown.'),
  cost_per_success_at_least_usd: usd
    .nullable()
    .describe('Lower bound of the cost per success if it is unknown: no run passed, or the cost of some is unknown.'),
  cost_unknown: z.int().describe('Runs whose cost is unknown, for now or permanently.'),
  errors,
  by_task: z.array(byTask),
});
export type ModelView = z.output<typeof modelView>;

const pairView = z.object({
  a: z.string(),
  b: z.string(),
  difference: z.number().describe('Mean over the tasks of the quality of a minus that of b.'),
  interval: interval
    .nullable()
    .describe('95 % interval of the difference, clustered by task; null for fewer than two tasks.'),
  tasks: z.int().describe('Tasks on which both have counting runs.'),
  adjusted_p: z.number().nullable().describe('p-value of the difference, adjusted for all pairs (Benjamini–Hochberg).'),
  verdict: z
    .enum(['a', 'b', 'tie'])
    .describe('The better one: only where the interval excludes 0 and adjusted_p is at most 0.05.'),
  runs_to_decide: z
    .int()
    .nullable()
    .describe(
      'For a tie: runs of each model per task that would decide it at the same rates; null if only more tasks would.',
    ),
});
export type PairView = z.output<typeof pairView>;

const taskView = z.object({
  slug: z.string(),
  title: z.string(),
  title_zh: z.string(),
  born: z.string().describe('When the task was created.'),
  hash: z.string().describe('Hash of the task in its last run.'),
});

const campaignView = z.object({
  id: z.string(),
  registered_at: time.describe('When all of its runs were registered, before the first one started.'),
  finished_at: time.nullable(),
  models: z.array(z.string()),
  runs: z.int().describe('Runs of each model on each task.'),
  seed: z.string().describe('Seed of the instances of odd runs, from which they can be regenerated.'),
  held_back_hash: z.string().describe('SHA-256 of the seed of the instances of even runs, which is not published.'),
  attribution: z
    .enum(['marker', 'app'])
    .describe(
      'How model calls are attributed to a run: by a marker that the app forwards, or because all calls of the app belong to it.',
    ),
  parameters: z.record(z.string(), z.unknown()).describe('Data sent with each prompt.'),
});

const common = {
  slug: z.string().describe('Slug of the app.'),
  title: z.string(),
  verdict: z.string().describe('One line derived from the data.'),
  verdict_zh: z.string(),
  updated: time.describe('When the last run finished, or was registered.'),
  runs: z.int().describe('Runs that finished.'),
  page: z.string().describe('HTML page.'),
  data_url: z.string().describe('Every run as JSON lines.'),
  csv_url: z.string().describe('Every run as CSV.'),
  license: z.literal('CC BY 4.0'),
};

export const benchmarkEntry = z.object({
  ...common,
  models: z.int().describe('Benchmarked models.'),
  tasks: z.int().describe('Benchmark tasks.'),
});
export type BenchmarkEntry = z.output<typeof benchmarkEntry>;
export const benchmarkList = z.array(benchmarkEntry);

export const benchmarkDetail = z.object({
  ...common,
  app: z.object({
    commit: z.string().nullable().describe('Commit of the app at the last run; null where it is not known.'),
    image: z.string().nullable().describe('Image of the app, by digest.'),
  }),
  router: z.string().nullable().describe('Router that called the models in the last run.'),
  method: z.string(),
  unfinished: z
    .object({ registered: z.int(), running: z.int(), interrupted: z.int() })
    .describe('Registered runs that have not finished. They are included in the downloads, but in no rate.'),
  models: z.array(modelView),
  pairs: z.array(pairView),
  tasks: z.array(taskView),
  errors,
  campaigns: z.array(campaignView).describe('Registered plans, newest first, at most 20.'),
});
export type BenchmarkDetail = z.output<typeof benchmarkDetail>;

export const unknownBenchmark: ProblemType = {
  slug: 'unknown-benchmark',
  status: 404,
  title: 'No benchmark for this app',
  description:
    'No benchmark has been registered for an app with this slug. `nearest` lists similar slugs that have one; GET /api/bench lists all benchmarks.',
};
