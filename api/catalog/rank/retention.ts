// Estimates how many callers of each app stay, from the calls in the ledger.
import { z } from 'zod';
import type { Database, LedgerHandle, Statement } from '../../billing/index.ts';
import { normalQuantile } from '../bench/statistics.ts';

/** Number of days that callers are followed. */
export const followedDays = 90;
/** Days without a call after which a caller has left. */
export const absenceDays = 7;
/** The share that is estimated is of those who stay longer than this. */
export const stayDays = 7;

export type Retention = { readonly estimate: Estimate } | { readonly reason: string; readonly n: number };

export interface RetentionOptions {
  readonly ledger: Pick<LedgerHandle, 'opened'>;
  /** For tests: how often callers are counted, and how often retention is estimated. */
  readonly everyMs?: number;
  readonly estimateMs?: number;
}

const noDatabase =
  'Calls are recorded in a ledger, and none is configured. The operator of this installation can set DATABASE_URL.';
const notRead = 'The calls in the ledger have not been read yet.';
const noCaller = 'Nobody has called this app through the API long enough ago.';
const tooEarly = `No caller of this app has been followed for ${stayDays} days yet.`;

export class Retentions {
  #observations: ReadonlyMap<string, readonly Observation[]> | undefined;
  #missing = notRead;
  readonly #estimates = new Map<string, Retention>();

  set(observations: ReadonlyMap<string, readonly Observation[]>): void {
    this.#observations = observations;
    this.#estimates.clear();
  }

  setMissing(reason: string): void {
    this.#missing = reason;
  }

  getRetention(slug: string): Retention {
    if (this.#observations === undefined) return { reason: this.#missing, n: 0 };
    const known = this.#estimates.get(slug) ?? estimateRetention(this.#observations.get(slug) ?? []);
    this.#estimates.set(slug, known);
    return known;
  }
}

/** Estimates retention from observations in hours. */
export function estimateRetention(observations: readonly Observation[]): Retention {
  const n = observations.reduce((sum, { count }) => sum + count, 0);
  if (n === 0) return { reason: noCaller, n };
  const estimate = estimateKaplanMeier(observations, stayDays * 24);
  return estimate === undefined ? { reason: tooEarly, n } : { estimate };
}

/** Counts callers about once a minute and estimates about every quarter of an hour, from when the database is open. */
export function startRetention({ ledger, everyMs = 60_000, estimateMs = 900_000 }: RetentionOptions): Retentions {
  const retentions = new Retentions();
  void ledger.opened.then((opened) => {
    if (opened === undefined) {
      retentions.setMissing(noDatabase);
      return;
    }
    const callers = new Callers(opened.database);
    let estimatedAt = Number.NEGATIVE_INFINITY;
    opened.repeat('count callers', everyMs, async () => {
      await callers.update();
      if (performance.now() - estimatedAt < estimateMs) return 0;
      retentions.set(await callers.readObservations());
      estimatedAt = performance.now();
      return 0;
    });
  });
  return retentions;
}

const day = 86_400_000;
/** Uses are recorded with a delay, so the last minutes are read again. */
const overlapMs = 600_000;

/** `since` is null where the ledger has no call. */
const selectBounds: Statement<{ since: Date | null; now: Date }> = {
  name: 'catalog-callers-bounds',
  text: `select case when known is not null then greatest(known, t.now - ${followedDays} * interval '1 day') end as since, t.now
    from (select clock_timestamp() as now) t, (select coalesce(
      (select max(last_at) from catalog.caller), (select min(at) from ledger.usage where kind = 'app')) as known) k`,
  row: z.object({ since: z.coerce.date().nullable(), now: z.coerce.date() }),
};

/** Sent twice it changes nothing. By the index usage_app_call; in one order, so that two processes do not deadlock. */
export const upsertCallers: Statement<unknown> = {
  name: 'catalog-callers-read',
  text: `insert into catalog.caller as known (app, caller, first_at, last_at)
    select app, caller, min(at), max(at) from ledger.usage
      where kind = 'app' and app is not null and caller is not null and at >= $1 and at <= $2 group by app, caller order by app, caller
    on conflict (app, caller) do update set first_at = least(known.first_at, excluded.first_at), last_at = greatest(known.last_at, excluded.last_at)
      where excluded.last_at > known.last_at or excluded.first_at < known.first_at`,
  row: z.unknown(),
};

const deleteCallers: Statement<unknown> = {
  name: 'catalog-callers-forget',
  text: `delete from catalog.caller where (app, caller) in (
    select app, caller from catalog.caller where last_at < clock_timestamp() - ${followedDays} * interval '1 day' limit 5000 for update skip locked)`,
  row: z.unknown(),
};

/** Apps per statement, so that no result is large. */
const appsAtOnce = 500;
const selectLastApp: Statement<{ last: string | null }> = {
  name: 'catalog-callers-apps',
  text: `select max(app) as last from (select distinct app from catalog.caller where app > $1 order by app limit ${appsAtOnce}) apps`,
  row: z.object({ last: z.string().nullable() }),
};

/**
 * Whether a caller has left is known of those whose first call is at least the absence ago: they left after their last
 * call if nothing followed it, and are followed until an absence ago otherwise. In whole hours; longer stays are cut off.
 */
export const selectObservations: Statement<{ app: string; hours: number[]; left: boolean[]; callers: number[] }> = {
  name: 'catalog-callers-observe',
  text: `select app, array_agg(hours) as hours, array_agg(is_left) as left, array_agg(callers) as callers from (
      select app, least(hours, ${stayDays * 24})::int as hours, is_left and hours <= ${stayDays * 24} as is_left, count(*)::int as callers
      from (
        select app, last_at < cut as is_left, round(extract(epoch from least(last_at, cut) - first_at) / 3600) as hours
        from catalog.caller, (select coalesce($1::timestamptz, clock_timestamp()) - ${absenceDays} * interval '1 day' as cut) t
        where first_at <= cut and app > $2 and app <= $3) followed
      group by 1, 2, 3) counted
    group by app`,
  row: z.object({
    app: z.string(),
    hours: z.array(z.number()),
    left: z.array(z.boolean()),
    callers: z.array(z.number()),
  }),
};

export class Callers {
  readonly #database: Database;
  #readUntil: Date | undefined;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Reads the calls since the last update, one day per statement, and deletes callers absent for longer than `followedDays`. */
  async update(): Promise<void> {
    const [bound] = await this.#database.query(selectBounds, []);
    const since = this.#readUntil ?? bound?.since;
    if (bound === undefined || since === null || since === undefined) return;
    const { now } = bound;
    let from = new Date(since.getTime() - overlapMs);
    while (from < now) {
      const until = new Date(Math.min(from.getTime() + day, now.getTime()));
      await this.#database.replay(upsertCallers, [from, until]);
      from = until;
    }
    this.#readUntil = now;
    await this.#database.replay(deleteCallers, []);
  }

  /** Observations by app, in hours. */
  async readObservations(now: Date | null = null): Promise<ReadonlyMap<string, readonly Observation[]>> {
    const observations = new Map<string, readonly Observation[]>();
    for (let after = ''; ;) {
      const [row] = await this.#database.query(selectLastApp, [after]);
      const last = row?.last ?? null;
      if (last === null) return observations;
      for (const { app, hours, left, callers } of await this.#database.query(selectObservations, [now, after, last]))
        observations.set(
          app,
          hours.map((time, index) => ({ time, left: left[index] === true, count: callers[index] ?? 0 })),
        );
      after = last;
    }
  }
}

/** So many were followed for a time; at its end they left, or it is not known how they went on. */
export interface Observation {
  readonly time: number;
  readonly left: boolean;
  readonly count: number;
}

export interface Estimate {
  /** Share that stays longer than the time. */
  readonly value: number;
  /** Greenwood's standard error of it. */
  readonly standardError: number;
  /** 95 %. */
  readonly interval: readonly [low: number, high: number];
  /** How many were observed. */
  readonly n: number;
}

/** Returns undefined if no remaining caller was followed that long. */
export function estimateKaplanMeier(observations: readonly Observation[], time: number): Estimate | undefined {
  const n = observations.reduce((sum, { count }) => sum + count, 0);
  const { value, variance, left, atRisk } = multiplyUntil(observations, time, n);
  const isFollowed = observations.some((one) => one.time >= time) || value === 0;
  if (n === 0 || !isFollowed) return undefined;
  return {
    value,
    standardError: value * Math.sqrt(variance),
    interval:
      value === 0 || value === 1 ? computeWilsonBounds(value, left + atRisk) : computeLogLogInterval(value, variance),
    n,
  };
}

/** Product and Greenwood's sum over all times at which somebody left; who leaves at a time was still there at it. */
function multiplyUntil(
  observations: readonly Observation[],
  time: number,
  n: number,
): { value: number; variance: number; left: number; atRisk: number } {
  let [value, variance, left, atRisk] = [1, 0, 0, n];
  const byTime = Map.groupBy(observations, (one) => one.time);
  for (const at of [...byTime.keys()].sort((a, b) => a - b)) {
    if (at > time) break;
    const here = byTime.get(at) ?? [];
    const leaving = countCallers(here.filter((one) => one.left));
    if (leaving > 0) {
      value = leaving === atRisk ? 0 : value * (1 - leaving / atRisk);
      variance += leaving === atRisk ? 0 : leaving / (atRisk * (atRisk - leaving));
      left += leaving;
    }
    // Callers followed to exactly this time stay at risk, for the interval at 0 and 1.
    atRisk -= at === time ? leaving : countCallers(here);
  }
  return { value, variance, left, atRisk };
}

function countCallers(observations: readonly Observation[]): number {
  return observations.reduce((total, { count }) => total + count, 0);
}

/** On the scale of log(-log): it never leaves 0 to 1, and is good with few observations. */
function computeLogLogInterval(value: number, variance: number): [number, number] {
  const width = (normalQuantile * Math.sqrt(variance)) / Math.abs(Math.log(value));
  return [value ** Math.exp(width), value ** Math.exp(-width)];
}

/** Where all or none left the other has no width: Wilson's, of those who were followed to the end. */
function computeWilsonBounds(value: number, n: number): [number, number] {
  const bound = normalQuantile ** 2 / (n + normalQuantile ** 2);
  return value === 0 ? [0, bound] : [1 - bound, 1];
}
