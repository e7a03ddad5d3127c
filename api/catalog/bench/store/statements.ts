// Statements of the store of benchmarks.
import { z } from 'zod';
import type { Statement } from '../../../billing/index.ts';
import { campaignRow, runRow, startedRun, summaryRow } from './shapes.ts';

function statement<Row>(name: string, text: string, row: z.ZodType<Row>): Statement<Row> {
  return { name: `bench-${name}`, text, row };
}

const nothing = z.unknown();
const count = z.object({ count: z.number() });

const summaryColumns =
  'app, model, task, runs, passed, unanswered, cost::text as cost, cost_unknown, latency_p50, latency_p95, errors, updated';
export const summariesOf = statement(
  'summaries-of',
  `select ${summaryColumns} from bench.summary where app = $1 order by model, task`,
  summaryRow,
);
export const allSummaries = statement(
  'all-summaries',
  `select ${summaryColumns} from bench.summary order by app, model, task`,
  summaryRow,
);

const campaignColumns =
  'id::text as id, app, models, tasks, runs, seed, held_back_hash, parameters, attribution, registered_at, finished_at';
export const campaignsOf = statement(
  'campaigns-of',
  `select ${campaignColumns} from bench.campaign where app = $1 order by registered_at desc, id limit $2`,
  campaignRow,
);
/** The apps that have been registered, each with its last campaign. */
export const lastCampaigns = statement(
  'last-campaigns',
  `select distinct on (app) ${campaignColumns} from bench.campaign order by app, registered_at desc, id`,
  campaignRow,
);
export const unfinishedCampaign = statement(
  'unfinished-campaign',
  `select ${campaignColumns}, held_back_seed from bench.campaign
    where app = $1 and models = $2::text[] and tasks = $3::jsonb and runs = $4 and ($5::text is null or seed = $5) and finished_at is null
    order by registered_at desc limit 1`,
  campaignRow.extend({ held_back_seed: z.string() }),
);

export const unfinishedRuns = statement(
  'unfinished-runs',
  "select state, count(*)::int as count from bench.run where app = $1 and state <> 'finished' group by state",
  z.object({ state: z.enum(['registered', 'running', 'interrupted']), count: z.number() }),
);
/** The release that the last run was made on. */
export const lastRelease = statement(
  'last-release',
  `select app_commit, image, router from bench.run where app = $1 and state = 'finished' order by registered_at desc, id desc limit 1`,
  z.object({ app_commit: z.string().nullable(), image: z.string().nullable(), router: z.string().nullable() }),
);
const runColumns =
  'id::text as id, campaign::text as campaign, app, model, task, number, attempt, held_back, task_hash, instance, state, app_commit, image, router, ' +
  'parameters, passed, score, trim_scale(cost)::text as cost_usd, cost_state, model_calls, tokens_in::text as tokens_in, tokens_out::text as tokens_out, ' +
  'latency_ms, error, detail, output_hash, registered_at, started_at, at';
export const runsAfter = statement(
  'runs-after',
  `select ${runColumns} from bench.run where app = $1 and (registered_at, id) > ($2::timestamptz, $3::uuid) order by registered_at, id limit $4`,
  runRow,
);

export const register = statement('register', 'select bench.register($1::jsonb, $2::jsonb)', nothing);
export const takeOver = statement('take-over', 'select bench.take_over($1, $2) as count', count);
export const startNext = statement(
  'start-next',
  'select bench.start_next($1, $2, $3::jsonb, $4) as started',
  z.object({ started: z.union([z.null(), z.literal('taken'), z.literal('busy'), startedRun]) }),
);
export const endCalls = statement(
  'end-calls',
  'select bench.end_calls($1) as outcomes',
  z.object({ outcomes: z.array(z.string().nullable()) }),
);
export const finish = statement(
  'finish',
  'select bench.finish($1, $2, $3::jsonb) as finished',
  z.object({ finished: z.boolean() }),
);
export const settleCosts = statement('settle-costs', 'select bench.settle_costs($1) as count', count);
export const pendingCosts = statement(
  'pending-costs',
  "select count(*)::int as count from bench.run where campaign = $1 and cost_state = 'pending'",
  count,
);
