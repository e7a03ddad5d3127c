// Keeps first visits of apps, and reads what they add up to.
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Database, Statement } from '../../../billing/index.ts';
import type { Release } from './writing.ts';

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

const visits = z.object({
  app: z.string(),
  n: z.number(),
  answered: z.number(),
  steps: z.number(),
  /** Of those that were answered, in milliseconds. */
  p50: z.number().nullable(),
  p95: z.number().nullable(),
});
/** What the visits of an app add up to. */
export type Visits = z.output<typeof visits>;

const write: Statement<unknown> = {
  name: 'bench-write-visit',
  text: `insert into bench.visit (id, app, app_commit, image, steps, latency_ms, answered, detail)
    values ($1, $2, $3, $4, $5, $6, $7::text is null, $7) on conflict (id) do nothing`,
  row: z.unknown(),
};

/** Steps are those of the last visit: an interface may become simpler. */
const read: Statement<Visits> = {
  name: 'bench-read-visits',
  text: `select app, count(*)::int as n, count(*) filter (where answered)::int as answered, (array_agg(steps order by at desc))[1] as steps,
      percentile_disc(0.5) within group (order by latency_ms) filter (where answered) as p50,
      percentile_disc(0.95) within group (order by latency_ms) filter (where answered) as p95
    from bench.visit where at > clock_timestamp() - ${visitDays} * interval '1 day' group by app`,
  row: visits,
};

/** Every model call of an app without markers is counted for the run in progress, and a visit would be among them. */
const measured: Statement<{ measured: boolean }> = {
  name: 'bench-is-measured',
  text: `select exists (select 1 from bench.assignment where app = $1 and marker = '' and until > clock_timestamp()) as measured`,
  row: z.object({ measured: z.boolean() }),
};

/** Whether a run is in progress that a visit would disturb. */
export async function isMeasured(database: Database, app: string): Promise<boolean> {
  const [row] = await database.replay(measured, [app]);
  return row?.measured ?? false;
}

export async function writeVisit(database: Database, { app, release, steps, latencyMs, detail }: Visit): Promise<void> {
  const { commit, image } = release;
  await database.replay(write, [randomUUID(), app, commit, image, steps, latencyMs, detail ?? null]);
}

/** Of every app that was visited. */
export function readVisits(database: Database): Promise<Visits[]> {
  return database.replay(read, []);
}
