// Facts about an app in the database, as gateways, the operator, model calls and the posting of shares leave them.
import { z } from 'zod';
import { recordBatch, recordUses, rollUp, type UsageEvent } from '../../../api/accounting/metering/usage-store.ts';
import { addSamples } from '../../../api/accounting/metering/compute-receiver.ts';
import type { Database, Statement } from '../../../api/billing/database/database.ts';
import { addUses } from '../catalog/uses.ts';

const hourMs = 3_600_000;
const define = (name: string, text: string): Statement<unknown> => ({ name: `test-${name}`, text, row: z.unknown() });

const insertShare = define(
  'share',
  `with posted as (insert into ledger.transaction (reference, kind, at) values ($1, 'share', now()) returning id)
    insert into revenue.line (key, author, month, kind, app, day, item, share_ppm, amount, transaction_id, posted_at)
      select $1, $3, date_trunc('month', $4::date), 'share', $2, $4::date, 'use', 700000, $5::numeric, id, now() from posted`,
);
const insertCompute = define(
  'compute',
  `insert into metering.compute_hour
      select c.app, to_timestamp(c.hour / 1000), s.seconds * c.cores, s.seconds * c."memoryMib" * 1048576
    from jsonb_to_recordset($1::jsonb) as c (app text, hour float8, cores float8, "memoryMib" float8),
      lateral (select least(3600, extract(epoch from $2::timestamptz) - c.hour / 1000) as seconds) s`,
);
const setPosted = define(
  'posted',
  "update revenue.progress set received_until = $1::timestamptz - interval '5 minutes'",
);
const setMetered = define('metered', 'update metering.instance set first_received_at = $1');

export interface Share {
  readonly app: string;
  readonly author: string;
  readonly day: string;
  readonly amount: string;
}

/** Adds lines of statements, as if all days before that of `now` were posted. */
export async function addShares(database: Database, shares: readonly Share[], now: Date): Promise<void> {
  for (const { app, author, day, amount } of shares)
    await database.query(insertShare, [`share:${app}:${author}:${day}`, app, author, day, amount]);
  await database.query(setPosted, [`${now.toISOString().slice(0, 10)}T00:00:00Z`]);
}

/** Records visits, of a gateway that has sent its access log since a time, and sums them up. */
export async function addVisits(database: Database, visits: readonly UsageEvent[], meteredFrom: Date): Promise<void> {
  const at = BigInt(meteredFrom.getTime()) * 1_000_000n;
  await recordBatch(database, 'gateway', [{ counter: 1n, startNs: at, endNs: at, isLost: true, event: undefined }]);
  await database.query(setMetered, [meteredFrom]);
  await recordUses(database, visits);
  await database.query(rollUp, []);
}

/** An hour in which an app ran from its beginning to its end. */
export interface ComputeHour {
  readonly app: string;
  /** Milliseconds since 1970. */
  readonly hour: number;
  readonly cores: number;
  readonly memoryMib: number;
}

/** Adds samples of the operator, five minutes between two: with more, memory would not count in full. */
export async function addComputeHours(database: Database, hours: readonly ComputeHour[], now: Date): Promise<void> {
  const samples = hours.flatMap(({ app, hour, cores, memoryMib }) =>
    Array.from({ length: 12 }, (_none, index) => 5 * (index + 1))
      .map((minute) => ({
        ...{ container: `${app}-${hour}`, app, started_at: new Date(hour).toISOString() },
        at: new Date(hour + minute * 60_000).toISOString(),
        ...{ cpu_us: Math.round(cores * minute * 60_000_000), memory_bytes: memoryMib * 2 ** 20 },
      }))
      .filter((sample) => Date.parse(sample.at) <= now.getTime()),
  );
  await addSamples(database, samples, now);
}

/** A month of an app that is used by day and sleeps at night, in which it failed for some hours. */
export async function addMonth(database: Database, app: string, author: string, now: Date): Promise<void> {
  const newest = Math.floor(now.getTime() / hourMs);
  const hours = Array.from({ length: 720 }, (_none, index) => newest - index).filter((hour) => hour % 24 > 5);
  const meteredFrom = newest - 600;
  const metered = hours.filter((hour) => hour >= meteredFrom);
  const visits = metered.flatMap((hour) =>
    Array.from({ length: 1 + ((hour * 7) % 6) }, (_none, index): UsageEvent => {
      const status =
        newest - hour > 20 && newest - hour < 24 && index % 2 === 0 ? 502 : (hour + index) % 9 === 5 ? 404 : 200;
      return {
        ...{ id: `${app}-${hour}-${index}`, kind: 'visit', app, class: status === 502 ? 'failed' : 'use', status },
        ...{ at: new Date(hour * hourMs + index * 1_000), latencyMs: 40 + ((hour * 13 + index * 29) % 160) },
      };
    }),
  );
  await addVisits(database, visits, new Date(meteredFrom * hourMs));
  // As sums, since samples of a month take seconds.
  const compute = hours.map((hour): ComputeHour => ({
    ...{ app, hour: hour * hourMs, cores: 0.01 + ((hour * 5) % 9) / 100, memoryMib: 180 + ((hour * 3) % 40) },
  }));
  await database.query(insertCompute, [JSON.stringify(compute), now]);
  await addUses(
    database,
    hours.flatMap((hour) => ({
      ...({ kind: 'v1', app, cost: hour === newest ? null : `0.00${10 + ((hour * 17) % 60)}` } as const),
      hours: (now.getTime() - hour * hourMs) / hourMs,
    })),
  );
  const shares = Array.from({ length: 30 }, (_none, index) => ({
    ...{ app, author, day: new Date(now.getTime() - (index + 1) * 24 * hourMs).toISOString().slice(0, 10) },
    amount: `0.0${20 + ((index * 7) % 30)}`,
  }));
  await addShares(database, shares, now);
}
