// What pages show: the views of the endpoints, as far as a page reads them. A field that a page does not know is left out.
import { z } from 'zod';

const figure = z.number().nullish();
const text = z.string().nullish();

const rate = z.object({
  passed: z.int(),
  n: z.int(),
  rate: figure,
  interval: z.tuple([z.number(), z.number()]).nullish(),
});
export type Rate = z.output<typeof rate>;

const latency = z.object({ p50: figure, p95: figure });
export type Latency = z.output<typeof latency>;

export const project = z.object({
  slug: z.string(),
  title: z.string(),
  title_zh: text,
  description: z.string(),
  description_zh: text,
  category: z.string(),
  repo: z.string(),
  stars: z.int().nullish(),
  stars_at: text,
  stars_reason: text,
  license: text,
  license_reason: text,
  state: z.enum(['live', 'in_pipeline', 'rejected', 'not_deployed']),
  state_reason: text,
  url: text,
  since: text,
  machine_readable: text,
  status_url: text,
});
export type Project = z.output<typeof project>;

export const benchEntry = z.object({
  slug: z.string(),
  title: z.string(),
  verdict: z.string(),
  verdict_zh: text,
  updated: text,
  runs: z.int(),
  models: z.int(),
  tasks: z.int(),
  data_url: text,
  csv_url: text,
  license: z.string(),
});
export type BenchEntry = z.output<typeof benchEntry>;

export const telemetry = z.object({
  uptime: figure,
  visits: figure,
  compute: z.object({ cpu_seconds: z.number(), memory_gib_hours: z.number() }).nullish(),
  requests: figure,
  callers: figure,
  latency_ms: latency.nullish(),
  error_rate: figure,
  model_cost_usd: figure,
  model_calls: figure,
  unmeasured: z.record(z.string(), z.string()).nullish(),
});
export type Telemetry = z.output<typeof telemetry>;

export const idle = z.object({
  state: z.enum(['awake', 'napping', 'asleep', 'waking']),
  since: z.string(),
  idle_seconds: z.int(),
  wakes: z.object({ count: z.int(), p50_ms: z.int(), p95_ms: z.int() }).nullish(),
});
export type Idle = z.output<typeof idle>;

export const projectDetail = project.extend({
  idle: idle.nullish(),
  commit: text,
  telemetry: z.record(z.string(), telemetry).nullish(),
  benchmark: benchEntry.nullish(),
  benchmark_reason: text,
});
export type ProjectDetail = z.output<typeof projectDetail>;

const modelOnTask = z.object({
  task: z.string(),
  quality: rate,
  delivered: rate,
  cost_per_run_usd: figure,
  latency_ms: latency.nullish(),
});

const modelResult = z.object({
  model: z.string(),
  runs: z.int(),
  quality: rate,
  delivered: rate,
  cost_per_run_usd: figure,
  cost_per_success_usd: figure,
  cost_per_success_at_least_usd: figure,
  latency_ms: latency.nullish(),
  by_task: z.array(modelOnTask),
});
export type ModelResult = z.output<typeof modelResult>;

const pair = z.object({
  a: z.string(),
  b: z.string(),
  difference: figure,
  interval: z.tuple([z.number(), z.number()]).nullish(),
  tasks: z.int(),
  verdict: z.enum(['a', 'b', 'tie']),
  runs_to_decide: z.number().nullish(),
});
export type Pair = z.output<typeof pair>;

export const bench = benchEntry.extend({
  runs: z.int(),
  app: z.object({ commit: text, image: text }).nullish(),
  method: z.string(),
  method_zh: text,
  // The index counts models and tasks; the detail lists them.
  models: z.array(modelResult),
  pairs: z.array(pair),
  tasks: z.array(z.object({ slug: z.string(), title: z.string(), title_zh: text })),
  errors: z.record(z.string(), z.number().optional()),
});
export type Bench = z.output<typeof bench>;

const score = z.object({
  value: figure,
  interval: z.tuple([z.number(), z.number()]).nullish(),
  n: z.number().nullish(),
  detail: z.object({ requests: z.number(), seconds: z.object({ p50: figure, p95: figure }) }).nullish(),
  formula: text,
  reason: text,
});
export type Score = z.output<typeof score>;

export const scoreNames = ['onboarding', 'quality', 'cost', 'stability', 'retention'] as const;
export type ScoreName = (typeof scoreNames)[number];

export const rank = z.object({
  weights: z.record(z.string(), z.number()).nullish(),
  formulas: text,
  next: text,
  apps: z.array(
    z.object({
      slug: z.string(),
      title: z.string(),
      score: figure,
      score_reason: text,
      scores: z.object({ onboarding: score, quality: score, cost: score, stability: score, retention: score }),
    }),
  ),
});
export type Rank = z.output<typeof rank>;

const evidence = z.object({
  slug: z.string(),
  available: z.boolean(),
  url: text,
  data_url: text,
  updated: text,
  runs_per_task: z.number().nullish(),
  models_tested: z.number().nullish(),
  models_with_complete_pass_rate: z.number().nullish(),
  best_measured_value: z.object({ model: z.string(), usd_per_run: figure }).nullish(),
  failed_all_tasks: z.array(z.string()).nullish(),
  not_measured: z.array(z.string()).nullish(),
});
export type Evidence = z.output<typeof evidence>;

export const guideEntry = z.object({
  slug: z.string(),
  question: z.string(),
  title_zh: text,
  answer: text,
  answer_zh: text,
  updated: text,
});
export type GuideEntry = z.output<typeof guideEntry>;

export const guide = guideEntry.extend({
  answer: z.string(),
  method: z.string(),
  method_zh: text,
  tool: z.object({
    name: z.string(),
    description: z.string(),
    arguments_example: z.record(z.string(), z.unknown()),
    mcp_endpoint: z.string(),
    openapi: z.string(),
  }),
  steps: z.array(z.string()),
  steps_zh: z.array(z.string()).nullish(),
  evidence: z.array(evidence),
  machine_readable: text,
  license: z.string(),
});
export type Guide = z.output<typeof guide>;

export const author = z.object({
  author: z.string(),
  apps: z.array(z.object({ slug: z.string(), share: z.number() })),
  has_key: z.boolean(),
});

export const priceList = z.object({
  current: z.string(),
  versions: z.array(
    z.object({
      version: z.string(),
      from: z.string(),
      note: text,
      use_usd: z.string(),
      call_usd: z.string(),
      tools: z.record(z.string(), z.string()),
      model_margin: z.string(),
      free: z.array(z.string()),
    }),
  ),
});
export type PriceListRecord = z.output<typeof priceList>;

/** A page of the list of projects. */
export interface ProjectPage {
  readonly projects: readonly Project[];
  /** Of all pages. */
  readonly total: number;
  /** Where the next page begins. */
  readonly next: string | undefined;
}

export interface ProjectQuery {
  readonly search: string;
  readonly category: string;
  /** Empty for the first page. */
  readonly cursor: string;
  readonly size: number;
}

/** Weights by score; empty for none. */
export type Weights = Readonly<Partial<Record<ScoreName, number>>>;

export interface RankQuery {
  readonly weights: Weights;
  /** Empty for the first page. */
  readonly cursor: string;
}
