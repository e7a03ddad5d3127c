// SQL statements of benchmarks, and the rows that they return.
import { z } from 'zod';
import { money, prefixStatements } from '../../billing/index.ts';

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

const defineStatement = prefixStatements('bench');

const nothing = z.unknown();
const count = z.object({ count: z.number() });

const summaryColumns =
  'app, model, task, runs, passed, unanswered, cost::text as cost, cost_unknown, latency_p50, latency_p95, errors, updated';
export const selectSummaries = defineStatement(
  'summaries-of',
  `select ${summaryColumns} from bench.summary where app = $1 order by model, task`,
  summaryRow,
);
export const selectAllSummaries = defineStatement(
  'all-summaries',
  `select ${summaryColumns} from bench.summary order by app, model, task`,
  summaryRow,
);

const campaignColumns =
  'id::text as id, app, models, tasks, runs, seed, held_back_hash, parameters, attribution, registered_at, finished_at';
export const selectCampaigns = defineStatement(
  'campaigns-of',
  `select ${campaignColumns} from bench.campaign where app = $1 order by registered_at desc, id limit $2`,
  campaignRow,
);
/** The apps that have been registered, each with its last campaign. */
export const selectLastCampaigns = defineStatement(
  'last-campaigns',
  `select distinct on (app) ${campaignColumns} from bench.campaign order by app, registered_at desc, id`,
  campaignRow,
);
export const selectUnfinishedCampaign = defineStatement(
  'unfinished-campaign',
  `select ${campaignColumns}, held_back_seed from bench.campaign
    where app = $1 and models = $2::text[] and tasks = $3::jsonb and runs = $4 and ($5::text is null or seed = $5) and finished_at is null
    order by registered_at desc limit 1`,
  campaignRow.extend({ held_back_seed: z.string() }),
);

export const countUnfinishedRuns = defineStatement(
  'unfinished-runs',
  "select state, count(*)::int as count from bench.run where app = $1 and state <> 'finished' group by state",
  z.object({ state: z.enum(['registered', 'running', 'interrupted']), count: z.number() }),
);
/** The release that the last run was made on. */
export const selectLastRelease = defineStatement(
  'last-release',
  `select app_commit, image, router from bench.run where app = $1 and state = 'finished' order by registered_at desc, id desc limit 1`,
  z.object({ app_commit: z.string().nullable(), image: z.string().nullable(), router: z.string().nullable() }),
);
const runColumns =
  'id::text as id, campaign::text as campaign, app, model, task, number, attempt, held_back, task_hash, instance, state, app_commit, image, router, ' +
  'parameters, passed, score, trim_scale(cost)::text as cost_usd, cost_state, model_calls, tokens_in::text as tokens_in, tokens_out::text as tokens_out, ' +
  'latency_ms, error, detail, output_hash, registered_at, started_at, at';
export const selectRunsAfter = defineStatement(
  'runs-after',
  `select ${runColumns} from bench.run where app = $1 and (registered_at, id) > ($2::timestamptz, $3::uuid) order by registered_at, id limit $4`,
  runRow,
);

export const register = defineStatement('register', 'select bench.register($1::jsonb, $2::jsonb)', nothing);
export const takeOver = defineStatement('take-over', 'select bench.take_over($1, $2) as count', count);
export const startNext = defineStatement(
  'start-next',
  'select bench.start_next($1, $2, $3::jsonb, $4) as started',
  z.object({ started: z.union([z.null(), z.literal('taken'), z.literal('busy'), startedRun]) }),
);
export const endCalls = defineStatement(
  'end-calls',
  'select bench.end_calls($1) as outcomes',
  z.object({ outcomes: z.array(z.string().nullable()) }),
);
export const finish = defineStatement(
  'finish',
  'select bench.finish($1, $2, $3::jsonb) as finished',
  z.object({ finished: z.boolean() }),
);
export const settleCosts = defineStatement('settle-costs', 'select bench.settle_costs($1) as count', count);
export const countPendingCosts = defineStatement(
  'pending-costs',
  "select count(*)::int as count from bench.run where campaign = $1 and cost_state = 'pending'",
  count,
);
