// Reads and writes benchmarks in the database: campaigns, runs, and first visits.
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Database, Statement } from '../../billing/index.ts';
import type { Campaign, campaignTask, ErrorClass, Run, StartedRun, Summary } from './statements.ts';
import * as statements from './statements.ts';

/** All that is known of one app, without its single runs. */
export interface AppRecords {
  readonly summaries: readonly Summary[];
  /** The newest first. */
  readonly campaigns: readonly Campaign[];
  /** Runs that have not finished, by state. */
  readonly findUnfinished: Readonly<Partial<Record<'registered' | 'running' | 'interrupted', number>>>;
  readonly release: { readonly commit: string | null; readonly image: string | null; readonly router: string | null };
}

/** Campaigns that a benchmark lists. */
const listedCampaigns = 20;
const first = { at: new Date(0), id: '00000000-0000-0000-0000-000000000000' };

export async function readApp(database: Database, app: string): Promise<AppRecords> {
  const [summaries, campaigns, unfinished, [release]] = await Promise.all([
    database.replay(statements.selectSummaries, [app]),
    database.replay(statements.selectCampaigns, [app, listedCampaigns]),
    database.replay(statements.countUnfinishedRuns, [app]),
    database.replay(statements.selectLastRelease, [app]),
  ]);
  return {
    summaries,
    campaigns,
    findUnfinished: Object.fromEntries(unfinished.map(({ state, count }) => [state, count])),
    release: { commit: release?.app_commit ?? null, image: release?.image ?? null, router: release?.router ?? null },
  };
}

/** Every app that was ever registered, with what its runs add up to and its last campaign. */
export async function readIndex(
  database: Database,
): Promise<readonly { readonly campaign: Campaign; readonly summaries: readonly Summary[] }[]> {
  const [campaigns, summaries] = await Promise.all([
    database.replay(statements.selectLastCampaigns, []),
    database.replay(statements.selectAllSummaries, []),
  ]);
  const byApp = Map.groupBy(summaries, ({ app }) => app);
  return campaigns.map((campaign) => ({ campaign, summaries: byApp.get(campaign.app) ?? [] }));
}

/** Every run of an app in the order of registration, page by page, so that a download takes little memory. */
export async function* readRuns(database: Database, app: string, page = 1_000): AsyncGenerator<Run[], void, undefined> {
  let after = first;
  for (;;) {
    const runs = await database.replay(statements.selectRunsAfter, [app, after.at, after.id, page]);
    const last = runs.at(-1);
    if (last === undefined) return;
    yield runs;
    if (runs.length < page) return;
    after = { at: last.registered_at, id: last.id };
  }
}

export interface CampaignPlan {
  readonly app: string;
  readonly models: readonly string[];
  readonly tasks: readonly z.output<typeof campaignTask>[];
  /** Runs of each model on each task. */
  readonly runs: number;
  readonly seed: string;
  readonly heldBackSeed: string;
  readonly heldBackHash: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly attribution: 'marker' | 'app';
}

export interface PlannedRun {
  readonly model: string;
  readonly task: string;
  readonly number: number;
  readonly held_back: boolean;
  readonly task_hash: string;
  readonly instance: string;
}

/** What a run is made on. */
export interface Release {
  readonly commit: string | null;
  readonly image: string | null;
  readonly router: string | null;
}

export interface RunResult {
  readonly passed: boolean;
  readonly score: number;
  readonly latencyMs: number;
  readonly error: ErrorClass | undefined;
  readonly detail: string | undefined;
  readonly outputHash: string | undefined;
}

/** One process that runs campaigns. */
export class BenchWriter {
  readonly #database: Database;
  readonly #runner = randomUUID();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Registers a campaign with all of its runs, before the first one starts. @returns its id */
  async register(plan: CampaignPlan, runs: readonly PlannedRun[]): Promise<string> {
    const { heldBackSeed, heldBackHash, ...fields } = plan;
    const id = randomUUID();
    const campaign = {
      ...fields,
      id,
      held_back_seed: heldBackSeed,
      held_back_hash: heldBackHash,
      runner: this.#runner,
    };
    await this.#database.query(statements.register, [
      JSON.stringify(campaign),
      JSON.stringify(runs.map((run) => ({ ...run, id: randomUUID() }))),
    ]);
    return id;
  }

  /** The campaign of this plan that has not finished, where there is one; without a seed, whatever its seed is. */
  async findUnfinished(
    plan: Pick<CampaignPlan, 'app' | 'models' | 'tasks' | 'runs'> & { readonly seed: string | undefined },
  ): Promise<{ id: string; seed: string; heldBackSeed: string } | undefined> {
    const [campaign] = await this.#database.replay(statements.selectUnfinishedCampaign, [
      plan.app,
      plan.models,
      JSON.stringify(plan.tasks),
      plan.runs,
      plan.seed ?? null,
    ]);
    return campaign === undefined
      ? undefined
      : { id: campaign.id, seed: campaign.seed, heldBackSeed: campaign.held_back_seed };
  }

  /** From now on this process runs the campaign. @returns how many runs were interrupted, and registered again */
  async takeOver(campaign: string): Promise<number> {
    const [row] = await this.#database.query(statements.takeOver, [campaign, this.#runner]);
    return row?.count ?? 0;
  }

  /** Starts the next run. Undefined: all have finished. `taken`, `busy`: another process runs this campaign, or the app. */
  async startNext(campaign: string, release: Release, ms: number): Promise<StartedRun | 'taken' | 'busy' | undefined> {
    const [row] = await this.#database.query(statements.startNext, [
      campaign,
      this.#runner,
      JSON.stringify(release),
      ms,
    ]);
    return row?.started ?? undefined;
  }

  /** Ends what is counted as the run's. @returns how its model calls ended; null for one in progress */
  async endCalls(run: string): Promise<(string | null)[]> {
    const [row] = await this.#database.replay(statements.endCalls, [run]);
    return row?.outcomes ?? [];
  }

  /** @returns false when another process has taken the campaign over */
  async finish(run: string, { latencyMs, outputHash, ...result }: RunResult): Promise<boolean> {
    const fields = { ...result, latency_ms: Math.round(latencyMs), output_hash: outputHash };
    const [row] = await this.#database.query(statements.finish, [run, this.#runner, JSON.stringify(fields)]);
    return row?.finished ?? false;
  }

  /** Looks for costs that were not known yet. @returns how many of the campaign are still not known */
  async settleCosts(campaign: string): Promise<number> {
    await this.#database.query(statements.settleCosts, [1_000]);
    const [row] = await this.#database.query(statements.countPendingCosts, [campaign]);
    return row?.count ?? 0;
  }
}

export interface Visit {
  readonly app: string;
  readonly release: Release;
  /** Requests, the page included. */
  readonly steps: number;
  readonly latencyMs: number;
  /** Why there was no useful answer; undefined where there was one. */
  readonly detail: string | undefined;
}

/** Visits of so many days count. */
export const visitDays = 90;
/** Who waits longer for an answer has gone. */
export const visitLimitMs = 60_000;

const visitSums = z.object({
  app: z.string(),
  n: z.number(),
  answered: z.number(),
  steps: z.number(),
  /** Of those that were answered, in milliseconds. */
  p50: z.number().nullable(),
  p95: z.number().nullable(),
});
/** What the visits of an app add up to. */
export type Visits = z.output<typeof visitSums>;

const insertVisit: Statement<unknown> = {
  name: 'bench-write-visit',
  text: `insert into bench.visit (id, app, app_commit, image, steps, latency_ms, answered, detail)
    values ($1, $2, $3, $4, $5, $6, $7::text is null, $7) on conflict (id) do nothing`,
  row: z.unknown(),
};

/** Steps are those of the last visit: an interface may become simpler. */
const selectVisits: Statement<Visits> = {
  name: 'bench-read-visits',
  text: `select app, count(*)::int as n, count(*) filter (where answered)::int as answered, (array_agg(steps order by at desc))[1] as steps,
      percentile_disc(0.5) within group (order by latency_ms) filter (where answered) as p50,
      percentile_disc(0.95) within group (order by latency_ms) filter (where answered) as p95
    from bench.visit where at > clock_timestamp() - ${visitDays} * interval '1 day' group by app`,
  row: visitSums,
};

/** Every model call of an app without markers is counted for the run in progress, and a visit would be among them. */
const selectIsMeasured: Statement<{ measured: boolean }> = {
  name: 'bench-is-measured',
  text: `select exists (select 1 from bench.assignment where app = $1 and marker = '' and until > clock_timestamp()) as measured`,
  row: z.object({ measured: z.boolean() }),
};

/** Whether a run is in progress that a visit would disturb. */
export async function isMeasured(database: Database, app: string): Promise<boolean> {
  const [row] = await database.replay(selectIsMeasured, [app]);
  return row?.measured ?? false;
}

export async function writeVisit(database: Database, { app, release, steps, latencyMs, detail }: Visit): Promise<void> {
  const { commit, image } = release;
  await database.replay(insertVisit, [randomUUID(), app, commit, image, steps, latencyMs, detail ?? null]);
}

/** Of every app that was visited. */
export function readVisits(database: Database): Promise<Visits[]> {
  return database.replay(selectVisits, []);
}
