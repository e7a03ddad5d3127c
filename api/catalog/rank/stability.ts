// How many requests each app answers without a server error: read now and then from the sums by day, kept in memory.
import { z } from 'zod';
import type { Database, LedgerHandle, Statement } from '../../billing/index.ts';
import { type Interval, computeWilsonInterval } from '../bench/statistics.ts';
import { answeredWell, answeredWrong } from '../projects/telemetry.ts';

/** For how many whole days, today aside. */
export const steadyDays = 30;
/** Below this a rate says little; and one day may be the one on which all went wrong, or none. */
export const leastRequests = 100;
export const leastDays = 3;

const requests = z.object({
  app: z.string(),
  days: z.number(),
  answered: z.coerce.number(),
  failed: z.coerce.number(),
});
/** What an app answered on how many days, and how much of it with a server error. */
export type Requests = Omit<z.output<typeof requests>, 'app'>;

/** Of all apps, by the index day_at. */
export const selectRequests: Statement<z.output<typeof requests>> = {
  name: 'catalog-stability',
  text: `select app, count(distinct day)::int as days, sum(uses)::text as answered,
      coalesce(sum(uses) filter (where ${answeredWrong}), 0)::text as failed
    from metering.day, (select (clock_timestamp() at time zone 'utc')::date as today) t
    where day >= t.today - ${steadyDays} and day < t.today and app <> '' and (${answeredWell} or ${answeredWrong}) group by app`,
  row: requests,
};

const selectIsMetered: Statement<{ is_metered: boolean }> = {
  name: 'catalog-metered',
  text: 'select exists (select from metering.instance) as is_metered',
  row: z.object({ is_metered: z.boolean() }),
};

/** Share of requests that an app answered without a server error. */
export interface AnsweredShare {
  readonly value: number;
  /** 95 %. */
  readonly interval: Interval;
  readonly n: number;
}

export type Stability = { readonly estimate: AnsweredShare } | { readonly reason: string; readonly n: number };

const noDatabase =
  'Traffic is summed up in a database, and none is configured. The operator of this installation can set DATABASE_URL.';
const notRead = 'The traffic of apps has not been read yet.';
const unmetered = 'No gateway has sent its access log yet.';
const tooFew = `Fewer than ${leastRequests} requests on ${leastDays} days in the last ${steadyDays} days.`;

export class Stabilities {
  #requests: ReadonlyMap<string, Requests> | undefined;
  #missing = notRead;

  set(requestsBySlug: ReadonlyMap<string, Requests>): void {
    this.#requests = requestsBySlug;
  }

  setMissing(reason: string): void {
    this.#requests = undefined;
    this.#missing = reason;
  }

  getStability(slug: string): Stability {
    if (this.#requests === undefined) return { reason: this.#missing, n: 0 };
    return computeStability(this.#requests.get(slug) ?? { days: 0, answered: 0, failed: 0 });
  }
}

function computeStability({ days, answered, failed }: Requests): Stability {
  const interval = computeWilsonInterval(answered - failed, answered);
  if (answered < leastRequests || days < leastDays || interval === undefined) return { reason: tooFew, n: answered };
  return { estimate: { value: (answered - failed) / answered, interval, n: answered } };
}

/** Reads the sums. @throws the driver's error */
export async function readStabilities(database: Database, stabilities: Stabilities): Promise<void> {
  const [known] = await database.query(selectIsMetered, []);
  if (known?.is_metered !== true) {
    // Calls that an app failed to answer are in no ledger.
    stabilities.setMissing(unmetered);
    return;
  }
  const rows = await database.query(selectRequests, []);
  stabilities.set(new Map(rows.map(({ app, ...counts }) => [app, counts])));
}

export interface StabilityOptions {
  readonly ledger: Pick<LedgerHandle, 'opened'>;
  readonly everyMs?: number;
}

/** Reads about every quarter of an hour, from when the database is open. */
export function startStability({ ledger, everyMs = 900_000 }: StabilityOptions): Stabilities {
  const stabilities = new Stabilities();
  void ledger.opened.then((opened) => {
    if (opened === undefined) {
      stabilities.setMissing(noDatabase);
      return;
    }
    opened.repeat('read stability', everyMs, async () => {
      await readStabilities(opened.database, stabilities);
      return 0;
    });
  });
  return stabilities;
}
