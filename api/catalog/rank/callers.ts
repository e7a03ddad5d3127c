// Who called which app first and last: kept up to date from the uses in the ledger, and the observations made of it.
import { z } from 'zod';
import type { Database, Statement } from '../../billing/index.ts';
import type { Observation } from './kaplan-meier.ts';

/** For how long callers are followed. */
export const followedDays = 90;
/** A caller who has not called for so long has left. */
export const absenceDays = 7;
/** The share that is estimated is of those who stay longer than this. */
export const stayDays = 7;

const day = 86_400_000;
/** Uses are written after they happen; what comes late is read again. */
const overlapMs = 600_000;

/** `since` is null where the ledger has no call. */
const bounds: Statement<{ since: Date | null; now: Date }> = {
  name: 'catalog-callers-bounds',
  text: `select case when known is not null then greatest(known, t.now - ${followedDays} * interval '1 day') end as since, t.now
    from (select clock_timestamp() as now) t, (select coalesce(
      (select max(last_at) from catalog.caller), (select min(at) from ledger.usage where kind = 'app')) as known) k`,
  row: z.object({ since: z.coerce.date().nullable(), now: z.coerce.date() }),
};

/** Sent twice it changes nothing. By the index usage_app_call; in one order, so that two processes do not deadlock. */
export const readCalls: Statement<unknown> = {
  name: 'catalog-callers-read',
  text: `insert into catalog.caller as known (app, caller, first_at, last_at)
    select app, caller, min(at), max(at) from ledger.usage
      where kind = 'app' and app is not null and caller is not null and at >= $1 and at <= $2 group by app, caller order by app, caller
    on conflict (app, caller) do update set first_at = least(known.first_at, excluded.first_at), last_at = greatest(known.last_at, excluded.last_at)
      where excluded.last_at > known.last_at or excluded.first_at < known.first_at`,
  row: z.unknown(),
};

const forget: Statement<unknown> = {
  name: 'catalog-callers-forget',
  text: `delete from catalog.caller where (app, caller) in (
    select app, caller from catalog.caller where last_at < clock_timestamp() - ${followedDays} * interval '1 day' limit 5000 for update skip locked)`,
  row: z.unknown(),
};

/** Apps are read so many at once, so that no answer is large. */
const appsAtOnce = 500;
const lastApp: Statement<{ last: string | null }> = {
  name: 'catalog-callers-apps',
  text: `select max(app) as last from (select distinct app from catalog.caller where app > $1 order by app limit ${appsAtOnce}) apps`,
  row: z.object({ last: z.string().nullable() }),
};

/**
 * Whether a caller has left is known of those whose first call is at least the absence ago: they left after their last
 * call if nothing followed it, and are followed until an absence ago otherwise. In whole hours; longer stays are cut off.
 */
export const observe: Statement<{ app: string; hours: number[]; left: boolean[]; callers: number[] }> = {
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

  /** Reads the calls since the last time, a day at once, and forgets who has been away for long. */
  async update(): Promise<void> {
    const [bound] = await this.#database.query(bounds, []);
    const since = this.#readUntil ?? bound?.since;
    if (bound === undefined || since === null || since === undefined) return;
    const { now } = bound;
    let from = new Date(since.getTime() - overlapMs);
    while (from < now) {
      const until = new Date(Math.min(from.getTime() + day, now.getTime()));
      await this.#database.replay(readCalls, [from, until]);
      from = until;
    }
    this.#readUntil = now;
    await this.#database.replay(forget, []);
  }

  /** Observations by app, in hours. */
  async observations(now: Date | null = null): Promise<ReadonlyMap<string, readonly Observation[]>> {
    const observations = new Map<string, readonly Observation[]>();
    for (let after = ''; ;) {
      const [row] = await this.#database.query(lastApp, [after]);
      const last = row?.last ?? null;
      if (last === null) return observations;
      for (const { app, hours, left, callers } of await this.#database.query(observe, [now, after, last]))
        observations.set(
          app,
          hours.map((time, index) => ({ time, left: left[index] === true, count: callers[index] ?? 0 })),
        );
      after = last;
    }
  }
}
