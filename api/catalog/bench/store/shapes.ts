// What the store of benchmarks holds, as its statements return it.
import { z } from 'zod';
import { money } from '../../../billing/index.ts';

export const errorClasses = [
  'outage',
  'limit',
  'app-5xx',
  'timeout',
  'wake',
  'malformed',
  'refused',
  'wrong',
  'grader',
] as const;
export type ErrorClass = (typeof errorClasses)[number];

const time = z.coerce.date();

/** What finished runs add up to; `task` is empty for all tasks together. */
export const summaryRow = z.object({
  app: z.string(),
  model: z.string(),
  task: z.string(),
  runs: z.number(),
  passed: z.number(),
  /** Runs that show nothing of the model: outages of its upstream, and limits of ours. */
  unanswered: z.number(),
  cost: money,
  cost_unknown: z.number(),
  latency_p50: z.number(),
  latency_p95: z.number(),
  errors: z.partialRecord(z.enum(errorClasses), z.number()),
  updated: time,
});
export type Summary = z.output<typeof summaryRow>;

export const campaignTask = z.object({ task: z.string(), hash: z.string(), born: z.string() });

export const campaignRow = z.object({
  id: z.string(),
  app: z.string(),
  models: z.array(z.string()),
  tasks: z.array(campaignTask),
  runs: z.number(),
  seed: z.string(),
  held_back_hash: z.string(),
  parameters: z.record(z.string(), z.unknown()),
  attribution: z.enum(['marker', 'app']),
  registered_at: time,
  finished_at: time.nullable(),
});
export type Campaign = z.output<typeof campaignRow>;

/** Every run, whatever became of it, as the downloads have it. */
export const runRow = z.object({
  id: z.string(),
  campaign: z.string(),
  app: z.string(),
  model: z.string(),
  task: z.string(),
  number: z.number(),
  attempt: z.number(),
  held_back: z.boolean(),
  task_hash: z.string(),
  instance: z.string(),
  state: z.enum(['registered', 'running', 'finished', 'interrupted']),
  app_commit: z.string().nullable(),
  image: z.string().nullable(),
  router: z.string().nullable(),
  parameters: z.record(z.string(), z.unknown()),
  passed: z.boolean().nullable(),
  score: z.number().nullable(),
  /** Decimal text, digit by digit. */
  cost_usd: z.string().nullable(),
  cost_state: z.enum(['exact', 'pending', 'unknown']).nullable(),
  model_calls: z.number().nullable(),
  tokens_in: z.coerce.number().nullable(),
  tokens_out: z.coerce.number().nullable(),
  latency_ms: z.number().nullable(),
  error: z.enum(errorClasses).nullable(),
  detail: z.string().nullable(),
  output_hash: z.string().nullable(),
  registered_at: time,
  started_at: time.nullable(),
  at: time.nullable(),
});
export type Run = z.output<typeof runRow>;

/** A run that was started just now. */
export const startedRun = z.object({
  id: z.string(),
  model: z.string(),
  task: z.string(),
  number: z.number(),
  attempt: z.number(),
  held_back: z.boolean(),
  marker: z.string(),
  instance: z.string(),
});
export type StartedRun = z.output<typeof startedRun>;
