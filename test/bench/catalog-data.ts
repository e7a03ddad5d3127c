// What the benchmark of the catalog loads into its database: uses of apps, and runs of benchmarks.
import { z } from 'zod';
import { rollUp } from '../../api/accounting/metering/usage-store.ts';
import type { Database, Statement } from '../../api/billing/database/database.ts';

const statement = (name: string, text: string): Statement<unknown> => ({
  name: `bench-${name}`,
  text,
  row: z.unknown(),
});

/** Half of the uses are calls of apps by 200,000 callers, half calls of models by apps. */
const addUses = statement(
  'load',
  `insert into ledger.usage (id, kind, at, caller, app, model, latency_ms, cost, cost_source)
    select gen_random_uuid()::text, kind, clock_timestamp() - random() * interval '60 days',
      case when kind = 'app' then 'caller-' || (random() * 200000)::int end, 'app-' || least(floor(($3::int + 1) ^ random()), $3)::int,
      case when kind = 'v1' then 'm' end, (exp(random() * 7))::int, (random() / 100)::numeric(20,12),
      case when kind = 'app' then 'tariff' else 'billed' end
    from (select case when random() < 0.5 then 'app' else 'v1' end as kind from generate_series($1::int, $2::int)) k`,
);

/** Eight apps are benchmarked, each with five models and five tasks. */
const benched = ['app-1', 'app-2', 'app-3', 'app-4', 'app-5', 'app-6', 'app-7', 'chat-ui-4'];
export const benchedApp = 'chat-ui-4';

const addCampaigns = statement(
  'campaigns',
  `insert into bench.campaign (id, app, models, tasks, runs, seed, held_back_seed, held_back_hash, parameters, attribution, runner, registered_at, finished_at)
    select gen_random_uuid(), app, array['m1','m2','m3','m4','m5'], (select jsonb_agg(jsonb_build_object('task', 'task-' || t, 'hash', 'h', 'born', '2026-01-01')) from generate_series(1, 5) t),
      $2::int, 's', 'h', 'h', '{}', 'app', gen_random_uuid(), date_trunc('milliseconds', clock_timestamp() - interval '1 day'), clock_timestamp()
    from unnest($1::text[]) app`,
);
const addRuns = statement(
  'runs',
  `insert into bench.run (id, campaign, app, model, task, number, held_back, task_hash, instance, state, parameters, passed, score, cost, cost_state,
      model_calls, tokens_in, tokens_out, latency_ms, error, registered_at, started_at, at)
    select gen_random_uuid(), id, app, 'm' || m, 'task-' || t, n, n % 2 = 0, 'h', 'i' || t || '-' || n, 'finished', '{}', passed, passed::int,
      (random() / 1000)::numeric(20,12), 'exact', 1, 100, 20, (exp(random() * 8))::int, case when not passed then 'wrong' end, registered_at, registered_at, clock_timestamp()
    from (select c.id, c.app, c.registered_at, m, t, n, random() < m / 6.0 as passed
      from bench.campaign c, generate_series(1, 5) m, generate_series(1, 5) t, generate_series(1, c.runs) n) r`,
);
const addVisits = statement(
  'visits',
  `insert into bench.visit (id, app, steps, latency_ms, answered, detail)
    select gen_random_uuid(), app, 2, (exp(random() * 8))::int, answered, case when not answered then 'no' end
    from (select app, random() < 0.9 as answered from unnest($1::text[]) app, generate_series(1, 450)) v`,
);
const summarize = statement(
  'summaries',
  `select bench.summarize(app, 'm' || m, task) from unnest($1::text[]) app, generate_series(1, 5) m,
      (select 'task-' || t as task from generate_series(1, 5) t union all select '') tasks`,
);

export async function loadUses(database: Database, uses: number, apps: number): Promise<void> {
  const slice = 50_000;
  for (let from = 1; from <= uses; from += slice)
    await database.query(addUses, [from, Math.min(from + slice - 1, uses), apps]);
  await database.transaction(
    async (transaction) => {
      await transaction.script('set local statement_timeout = 0');
      // They came before their days were made.
      await transaction.query(statement('days', 'select ledger.make_days(7)'), []);
      await transaction.query(rollUp, []);
    },
    { lasting: true },
  );
  for (const table of ['ledger.usage', 'metering.hour', 'metering.day']) await vacuum(database, table);
}

/** So many runs in all, rounded up to a whole number of each model on each task; and five first visits a day. */
export async function loadRuns(database: Database, runs: number): Promise<void> {
  await database.query(addCampaigns, [benched, Math.ceil(runs / benched.length / 25)]);
  await database.query(addRuns, []);
  await database.query(summarize, [benched]);
  await database.query(addVisits, [benched]);
  await vacuum(database, 'bench.run');
}

export async function vacuum(database: Database, table: string): Promise<void> {
  await database.query(statement(`vacuum-${table}`, `vacuum analyze ${table}`), []);
}
