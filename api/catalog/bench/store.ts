// Reads and writes benchmarks in the database: campaigns, runs, and first visits.
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Database, Statement } from '../../billing/index.ts';
import type { Campaign, campaignTask, ErrorClass, Run, StartedRun, Summary } from './statements.ts';
import * as statements from './statements.ts';

/** Everything stored about one app's benchmarks, except its individual runs. */
export interface AppRecords {
  readonly summaries: readonly Summary[];
  /** The newest first. */
  readonly campaigns: readonly Campaign[];
  /** Runs that have not finished, by state. */
  readonly unfinished: Readonly<Partial<Record<'registered' | 'running' | 'interrupted', number>>>;
  readonly release: { readonly commit: string | null; readonly image: string | null; readonly router: string | null };
}

/** Maximum campaigns that a benchmark lists. */
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
    unfinished: Object.fromEntries(unfinished.map(({ state, count }) => [state, count])),
    release: { commit: release?.app_commit ?? null, image: release?.image ?? null, router: release?.router ?? null },
  };
}

/** Reads every app that was ever registered, with its last campaign and the sums of its runs. */
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

/** Reads every run of an app in order of registration, page by page, so that a download needs little memory. */
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

/** The versions that a run or visit was made with. */
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

  /** Finds an unfinished campaign of this plan; without a seed in the plan, one with any seed. */
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

  /** Makes this process run the campaign. @returns how many runs were interrupted, and registered again */
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

  /** Stops attributing model calls to the run. @returns the outcome of each of its calls; null for one in progress */
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

  /** Looks up costs that were not known yet. @returns how many of the campaign's are still unknown */
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

/** Days for which a visit counts. */
export const visitDays = 90;
/** A visitor does not wait longer than this for an answer. */
export const visitLimitMs = 60_000;

const visitSums = z.object({
  app: z.string(),
  n: z.number(),
  answered: z.number(),
  steps: z.number(),
  /** Percentiles of the answered visits, in milliseconds. */
  p50: z.number().nullable(),
  p95: z.number().nullable(),
});
/** The visits of one app, summed up. */
export type Visits = z.output<typeof visitSums>;

const insertVisit: Statement<unknown> = {
  name: 'bench-write-visit',
  text: `insert into bench.visit (id, app, app_commit, image, steps, latency_ms, answered, detail)
    values ($1, $2, $3, $4, $5, $6, $7::text is null, $7) on conflict (id) do nothing`,
  row: z.unknown(),
};

/** Takes the steps of the last visit, since an interface may become simpler. */
const selectVisits: Statement<Visits> = {
  name: 'bench-read-visits',
  text: `select app, count(*)::int as n, count(*) filter (where answered)::int as answered, (array_agg(steps order by at desc))[1] as steps,
      percentile_disc(0.5) within group (order by latency_ms) filter (where answered) as p50,
      percentile_disc(0.95) within group (order by latency_ms) filter (where answered) as p95
    from bench.visit where at > clock_timestamp() - ${visitDays} * interval '1 day' group by app`,
  row: visitSums,
};

/** Without markers, every model call of the app is attributed to the run in progress, including those of a visit. */
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

/** Reads the sums for every visited app. */
export function readVisits(database: Database): Promise<Visits[]> {
  return database.replay(selectVisits, []);
}
