// Sums of uses by hour and day against the uses themselves; and all visits in the sums against those that gateways' runs
// recorded, which finds uses that are gone from both.
import { z } from 'zod';
import type { Statement, Transaction } from '../../../billing/index.ts';
import { type Comparison, counted, type Difference, type Line } from '../comparison.ts';
import type { Day } from '../day.ts';

const bigint = z.coerce.number().int();

/** Sums that are not those of what they are made of; all figures are compared, uses are counted. */
const differing = z.object({ subject: z.string(), left: bigint, right: bigint });
const figures = ['uses', 'bytes_in', 'bytes_out', 'latency_ms', 'timed'];
const differs = `(${figures.map((name) => `l.${name}`).join(', ')}) is distinct from (${figures.map((name) => `r.${name}`).join(', ')})`;
const keys = 'app, kind, class, status_class';
const sums = figures.map((name) => `sum(${name}) as ${name}`).join(', ');
const subject = (prefix: string): string =>
  `concat_ws(' ', ${prefix}nullif(app, ''), kind, class, case when status_class > 0 then status_class || 'xx' end)`;

const hours: Statement<z.output<typeof differing>> = {
  name: 'reconciliation-hours',
  text: `with l as (
      select date_trunc('hour', at, 'UTC') as hour, coalesce(app, '') as app, kind, class, coalesce(status / 100, 0)::smallint as status_class, count(*) as uses,
        coalesce(sum(bytes_in), 0) as bytes_in, coalesce(sum(bytes_out), 0) as bytes_out, coalesce(sum(latency_ms), 0) as latency_ms, count(latency_ms) as timed
      from ledger.usage where at >= $1 and at < $2 group by 1, 2, 3, 4, 5
    ), r as (select * from metering.hour where hour >= $1 and hour < $2)
    select ${subject(`to_char(hour at time zone 'utc', 'HH24:MI'), `)} as subject, coalesce(l.uses, 0)::text as left, coalesce(r.uses, 0)::text as right
    from l full join r using (hour, ${keys}) where ${differs} order by 1`,
  row: differing,
};

const days: Statement<z.output<typeof differing>> = {
  name: 'reconciliation-days',
  text: `with l as (select ${keys}, ${sums} from metering.hour where hour >= $1 and hour < $2 group by ${keys}),
    r as (select * from metering.day where day = ($1::timestamptz at time zone 'utc')::date)
    select ${subject('')} as subject, coalesce(l.uses, 0)::text as left, coalesce(r.uses, 0)::text as right
    from l full join r using (${keys}) where ${differs} order by 1`,
  row: differing,
};

const totals: Statement<{
  raw: number;
  hours: number;
  days: number;
  recorded: number;
  visits: number;
  gone_before: number;
  is_kept: boolean;
}> = {
  name: 'reconciliation-sums',
  text: `select (select count(*) from ledger.usage where at >= $1 and at < $2)::text as raw,
      (select coalesce(sum(uses), 0) from metering.hour where hour >= $1 and hour < $2)::text as hours,
      (select coalesce(sum(uses), 0) from metering.day where day = ($1::timestamptz at time zone 'utc')::date)::text as days,
      (select coalesce(sum(events), 0) from metering.instance)::text as recorded,
      (select coalesce(sum(uses), 0) from metering.day where kind = 'visit')::text as visits,
      coalesce((
        select (line -> 'left' ->> 'events')::bigint - (line -> 'right' ->> 'events')::bigint
        from reconciliation.day d, jsonb_path_query(d.result, '$.comparisons[*].lines[*] ? (@.name == "visits")') line
        where d.day < ($1::timestamptz at time zone 'utc')::date and d.is_complete order by d.day desc limit 1), 0)::text as gone_before,
      ($1::timestamptz at time zone 'utc')::date >= (select kept_from from metering.progress) as is_kept`,
  row: z.object({
    raw: bigint,
    hours: bigint,
    days: bigint,
    recorded: bigint,
    visits: bigint,
    gone_before: bigint,
    is_kept: z.boolean(),
  }),
};

/** The sums have to be up to date, within the same transaction. */
export async function compareSums(transaction: Transaction, { from }: Day): Promise<Comparison> {
  // Of the day that goes on as well: the last hour is summed up as far as it has come.
  const end = new Date(from.getTime() + 86_400_000);
  const [row] = await transaction.query(totals, [from, end]);
  if (row === undefined) throw new Error('the database returned no row');
  const lines: Line[] = [
    { name: 'days', left: counted(row.hours), right: counted(row.days) },
    { name: 'visits', left: counted(row.recorded), right: counted(row.visits) },
  ];
  const differences: Difference[] = (await transaction.query(days, [from, end])).map(asDifference);
  // These two figures are of all time: what was gone on the day before is reported there.
  const gone = row.recorded - row.visits;
  if (gone !== row.gone_before) differences.push({ kind: 'uses_gone', ...counted(gone - row.gone_before) });
  if (row.gone_before !== 0) differences.push({ kind: 'gone_before', ...counted(row.gone_before) });
  if (row.is_kept) {
    lines.unshift({ name: 'hours', left: counted(row.raw), right: counted(row.hours) });
    differences.unshift(...(await transaction.query(hours, [from, end])).map(asDifference));
  }
  return {
    name: 'sums',
    lines,
    differences,
    notKnown: row.is_kept ? undefined : 'The single uses of this day are no longer kept.',
  };
}

function asDifference(row: z.output<typeof differing>): Difference {
  return { kind: 'sum_differs', subject: row.subject, ...counted(row.left - row.right) };
}
