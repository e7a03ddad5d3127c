// Writes benchmarks: registers campaigns, starts and finishes runs.
import { randomUUID } from 'node:crypto';
import type { Database } from '../../../billing/index.ts';
import type { z } from 'zod';
import type { campaignTask, ErrorClass, StartedRun } from './shapes.ts';
import * as statements from './statements.ts';

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
  async unfinished(
    plan: Pick<CampaignPlan, 'app' | 'models' | 'tasks' | 'runs'> & { readonly seed: string | undefined },
  ): Promise<{ id: string; seed: string; heldBackSeed: string } | undefined> {
    const [found] = await this.#database.replay(statements.unfinishedCampaign, [
      plan.app,
      plan.models,
      JSON.stringify(plan.tasks),
      plan.runs,
      plan.seed ?? null,
    ]);
    return found === undefined ? undefined : { id: found.id, seed: found.seed, heldBackSeed: found.held_back_seed };
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
    const [row] = await this.#database.query(statements.pendingCosts, [campaign]);
    return row?.count ?? 0;
  }
}
