// Stores the result of each day, and claims the next day that is due.
import { z } from 'zod';
import { type Database, prefixStatements } from '../../billing/index.ts';
import { type Reconciliation, reconciliation } from './result.ts';

const defineStatement = prefixStatements('reconciliation');

const stored = z
  .object({ explanation: z.string().nullable(), result: z.unknown() })
  .transform(({ explanation, result }): Reconciliation =>
    reconciliation.parse({ ...z.looseObject({}).parse(result), explanation }),
  );

/** An explanation of what is another difference by now is dropped. A day that has ended does not become the current day again. */
const write = defineStatement(
  'write',
  `insert into reconciliation.day as d (day, made_at, is_complete, waits, events, usd, result) values ($1, $2, $3, $4, $5, $6, $7::jsonb)
    on conflict (day) do update set made_at = excluded.made_at, is_complete = excluded.is_complete, waits = excluded.waits,
      explanation = case when (d.events, d.usd) = (excluded.events, excluded.usd) then d.explanation end,
      events = excluded.events, usd = excluded.usd, result = excluded.result
    returning explanation, result`,
  stored,
);
const selectDay = defineStatement('read', 'select explanation, result from reconciliation.day where day = $1', stored);
const list = defineStatement(
  'list',
  'select explanation, result from reconciliation.day where day < $1 order by day desc limit $2',
  stored,
);
const explain = defineStatement(
  'explain',
  'update reconciliation.day set explanation = $2 where day = $1 and events + usd > 0 returning explanation, result',
  stored,
);
const claim = defineStatement(
  'claim',
  'select reconciliation.claim_due($1, $2, $3, $4, $5)::text as day',
  z.object({ day: z.string().nullable() }),
);
const release = defineStatement('release', 'delete from reconciliation.claim where day = $1', z.unknown());

/** What the metrics show: unexplained differences of the last days by comparison, and where the newest day ends. */
const standing = defineStatement(
  'standing',
  `select c ->> 'name' as comparison, sum((c -> 'unexplained' ->> 'events')::bigint)::float8 as events, sum((c -> 'unexplained' ->> 'usd')::numeric)::float8 as usd
    from reconciliation.day d, jsonb_array_elements(d.result -> 'comparisons') c
    where d.is_complete and d.explanation is null and d.day > (clock_timestamp() at time zone 'utc')::date - $1::integer group by 1`,
  z.object({ comparison: z.string(), events: z.number(), usd: z.number() }),
);
const until = defineStatement(
  'until',
  `select extract(epoch from ledger.day_start(coalesce(
      (select max(day) + 1 from reconciliation.day where is_complete),
      (select (applied_at at time zone 'utc')::date from moorage_migration where name = '023-reconciliation.sql'))))::float8 as seconds`,
  z.object({ seconds: z.number().nullable() }),
);

/** When days are compared. */
export interface Schedule {
  /** How long after midnight: records of the last calls are still on their way. */
  readonly afterMs: number;
  /** How often a day that waits for something is compared again. */
  readonly againMs: number;
  /** How many days back. */
  readonly days: number;
  /** How long one comparison may take, before another replica begins it. */
  readonly leaseMs: number;
}

export class ReconciliationStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Replaces an earlier result of that day. @returns it with the explanation that still applies */
  async write(made: Omit<Reconciliation, 'explanation'>): Promise<Reconciliation> {
    const { day, made_at, complete, waits, unexplained } = made;
    const [row] = await this.#database.replay(write, [
      day,
      made_at,
      complete,
      waits,
      unexplained.events,
      unexplained.usd,
      JSON.stringify(made),
    ]);
    if (row === undefined) throw new Error('the database returned no row');
    return row;
  }

  async read(day: string): Promise<Reconciliation | undefined> {
    return (await this.#database.replay(selectDay, [day]))[0];
  }

  /** Days before this one, the newest first. */
  async list(before: string | undefined, limit: number): Promise<Reconciliation[]> {
    return this.#database.replay(list, [before ?? 'infinity', limit]);
  }

  /** Stores the operator's explanation of a difference. @returns undefined if the day has none */
  async explain(day: string, explanation: string): Promise<Reconciliation | undefined> {
    return (await this.#database.replay(explain, [day, explanation]))[0];
  }

  /** The next day that is due, for this replica alone; release it afterwards. */
  async claimDue({ afterMs, againMs, days, leaseMs }: Schedule, at?: Date): Promise<string | undefined> {
    const [row] = await this.#database.query(claim, [afterMs, againMs, days, leaseMs, at ?? null]);
    return row?.day ?? undefined;
  }

  async release(day: string): Promise<void> {
    await this.#database.replay(release, [day]);
  }

  /** Unexplained differences of the last days, by comparison. */
  async readState(days: number): Promise<z.output<(typeof standing)['row']>[]> {
    return this.#database.query(standing, [days]);
  }

  /** The end of the newest day that was compared, or the day on which that began to be done; in seconds since 1970. */
  async readEnd(): Promise<number | undefined> {
    return (await this.#database.query(until, []))[0]?.seconds ?? undefined;
  }
}
