// Reads benchmarks: what runs add up to, campaigns, and every run for the downloads.
import type { Database } from '../../../billing/index.ts';
import type { Campaign, Run, Summary } from './shapes.ts';
import * as statements from './statements.ts';

/** All that is known of one app, without its single runs. */
export interface AppRecords {
  readonly summaries: readonly Summary[];
  /** The newest first. */
  readonly campaigns: readonly Campaign[];
  /** Runs that have not finished, by state. */
  readonly unfinished: Readonly<Partial<Record<'registered' | 'running' | 'interrupted', number>>>;
  readonly release: { readonly commit: string | null; readonly image: string | null; readonly router: string | null };
}

/** Campaigns that a benchmark lists. */
const listedCampaigns = 20;
const first = { at: new Date(0), id: '00000000-0000-0000-0000-000000000000' };

export async function readApp(database: Database, app: string): Promise<AppRecords> {
  const [summaries, campaigns, unfinished, [release]] = await Promise.all([
    database.replay(statements.summariesOf, [app]),
    database.replay(statements.campaignsOf, [app, listedCampaigns]),
    database.replay(statements.unfinishedRuns, [app]),
    database.replay(statements.lastRelease, [app]),
  ]);
  return {
    summaries,
    campaigns,
    unfinished: Object.fromEntries(unfinished.map(({ state, count }) => [state, count])),
    release: { commit: release?.app_commit ?? null, image: release?.image ?? null, router: release?.router ?? null },
  };
}

/** Every app that was ever registered, with what its runs add up to and its last campaign. */
export async function readIndex(
  database: Database,
): Promise<readonly { readonly campaign: Campaign; readonly summaries: readonly Summary[] }[]> {
  const [campaigns, summaries] = await Promise.all([
    database.replay(statements.lastCampaigns, []),
    database.replay(statements.allSummaries, []),
  ]);
  const byApp = Map.groupBy(summaries, ({ app }) => app);
  return campaigns.map((campaign) => ({ campaign, summaries: byApp.get(campaign.app) ?? [] }));
}

/** Every run of an app in the order of registration, page by page, so that a download takes little memory. */
export async function* everyRun(database: Database, app: string, page = 1_000): AsyncGenerator<Run[], void, undefined> {
  let after = first;
  for (;;) {
    const runs = await database.replay(statements.runsAfter, [app, after.at, after.id, page]);
    const last = runs.at(-1);
    if (last === undefined) return;
    yield runs;
    if (runs.length < page) return;
    after = { at: last.registered_at, id: last.id };
  }
}
