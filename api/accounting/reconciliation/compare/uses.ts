// Compares uses with the requests that gateways counted, and with their sums by hour and day.
import { z } from 'zod';
import type { Statement, Transaction } from '../../../billing/index.ts';
import { type Comparison, type Day, type Difference, type Line, toCount } from '../comparison.ts';

const bigint = z.coerce.number().int();

/** Runs that were heard of in the day. Their figures are of the whole run: a gateway's counter knows no days. */
const runs: Statement<{
  instance: string;
  gateway: string;
  counted: number;
  events: number;
  refused: number;
  missing: number;
  lost: number;
  difference: number;
}> = {
  name: 'reconciliation-runs',
  text: `select r.instance::text, r.gateway, r.counted::text, r.events::text, r.refused::text, r.missing::text, r.lost::text, r.difference::text
    from metering.reconciliation r join metering.instance i on i.id = r.instance
    where i.last_received_at >= $1 and i.first_received_at < $2 order by i.id`,
  row: z.object({
    instance: z.string(),
    gateway: z.string(),
    counted: bigint,
    events: bigint,
    refused: bigint,
    missing: bigint,
    lost: bigint,
    difference: bigint,
  }),
};

const losses: Statement<{
  instance: string;
  first: string;
  last: string;
  requests: number;
  after_at: Date;
  before_at: Date;
}> = {
  name: 'reconciliation-losses',
  text: `select l.instance::text, l.first::text, l.last::text, l.requests::text, l.after_at, l.before_at
    from metering.loss l where l.instance = any ($1::bigint[]) and l.before_at >= $2 and l.before_at < $3 order by l.gap, l.first`,
  row: z.object({
    instance: z.string(),
    first: z.string(),
    last: z.string(),
    requests: bigint,
    after_at: z.date(),
    before_at: z.date(),
  }),
};

export async function compareGateway(transaction: Transaction, { from, to }: Day): Promise<Comparison> {
  const gatewayRuns = await transaction.query(runs, [from, to]);
  const lost = await transaction.query(losses, [gatewayRuns.map(({ instance }) => instance), from, to]);
  return {
    name: 'gateway',
    lines: gatewayRuns.map((run) => ({
      name: 'run',
      of: formatRun(run),
      left: toCount(run.counted),
      right: toCount(run.events),
    })),
    differences: gatewayRuns.flatMap((run) => {
      const ofRun = lost.filter(({ instance }) => instance === run.instance);
      const before = run.lost - ofRun.reduce((sum, { requests }) => sum + requests, 0);
      return [
        ...ofRun.map((loss): Difference => ({
          kind: 'lost',
          subject: `${formatRun(run)}, requests ${loss.first} to ${loss.last}`,
          detail: `between ${loss.after_at.toISOString()} and ${loss.before_at.toISOString()}`,
          ...toCount(loss.requests),
        })),
        ...toDifferences('lost_before', run, before),
        ...toDifferences('missing', run, run.missing),
        ...toDifferences('refused', run, run.refused),
        ...toDifferences('unaccounted_requests', run, run.difference),
      ];
    }),
  };
}

function toDifferences(
  kind: Difference['kind'],
  run: { gateway: string; instance: string },
  events: number,
): Difference[] {
  return events === 0 ? [] : [{ kind, subject: formatRun(run), ...toCount(events) }];
}

function formatRun({ gateway, instance }: { gateway: string; instance: string }): string {
  return `${gateway}, run ${instance}`;
}

/** Sums that are not those of what they are made of; all figures are compared, uses are counted. */
const differingSum = z.object({ subject: z.string(), left: bigint, right: bigint });
const figures = ['uses', 'bytes_in', 'bytes_out', 'latency_ms', 'timed'];
const differs = `(${figures.map((name) => `l.${name}`).join(', ')}) is distinct from (${figures.map((name) => `r.${name}`).join(', ')})`;
const keys = 'app, kind, class, status_class';
const sums = figures.map((name) => `sum(${name}) as ${name}`).join(', ');
const formatSubject = (prefix: string): string =>
  `concat_ws(' ', ${prefix}nullif(app, ''), kind, class, case when status_class > 0 then status_class || 'xx' end)`;

const hours: Statement<z.output<typeof differingSum>> = {
  name: 'reconciliation-hours',
  text: `with l as (
      select date_trunc('hour', at, 'UTC') as hour, coalesce(app, '') as app, kind, class, coalesce(status / 100, 0)::smallint as status_class, count(*) as uses,
        coalesce(sum(bytes_in), 0) as bytes_in, coalesce(sum(bytes_out), 0) as bytes_out, coalesce(sum(latency_ms), 0) as latency_ms, count(latency_ms) as timed
      from ledger.usage where at >= $1 and at < $2 group by 1, 2, 3, 4, 5
    ), r as (select * from metering.hour where hour >= $1 and hour < $2)
    select ${formatSubject(`to_char(hour at time zone 'utc', 'HH24:MI'), `)} as subject, coalesce(l.uses, 0)::text as left, coalesce(r.uses, 0)::text as right
    from l full join r using (hour, ${keys}) where ${differs} order by 1`,
  row: differingSum,
};

const days: Statement<z.output<typeof differingSum>> = {
  name: 'reconciliation-days',
  text: `with l as (select ${keys}, ${sums} from metering.hour where hour >= $1 and hour < $2 group by ${keys}),
    r as (select * from metering.day where day = ($1::timestamptz at time zone 'utc')::date)
    select ${formatSubject('')} as subject, coalesce(l.uses, 0)::text as left, coalesce(r.uses, 0)::text as right
    from l full join r using (${keys}) where ${differs} order by 1`,
  row: differingSum,
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
  // This includes the current day: its last hour is summed as far as it is recorded.
  const end = new Date(from.getTime() + 86_400_000);
  const [row] = await transaction.query(totals, [from, end]);
  if (row === undefined) throw new Error('the database returned no row');
  const lines: Line[] = [
    { name: 'days', left: toCount(row.hours), right: toCount(row.days) },
    { name: 'visits', left: toCount(row.recorded), right: toCount(row.visits) },
  ];
  const differences: Difference[] = (await transaction.query(days, [from, end])).map(toDifference);
  // These two figures are of all time: what was gone on the day before is reported there.
  const gone = row.recorded - row.visits;
  if (gone !== row.gone_before) differences.push({ kind: 'uses_gone', ...toCount(gone - row.gone_before) });
  if (row.gone_before !== 0) differences.push({ kind: 'gone_before', ...toCount(row.gone_before) });
  if (row.is_kept) {
    lines.unshift({ name: 'hours', left: toCount(row.raw), right: toCount(row.hours) });
    differences.unshift(...(await transaction.query(hours, [from, end])).map(toDifference));
  }
  return {
    name: 'sums',
    lines,
    differences,
    notKnown: row.is_kept ? undefined : 'The single uses of this day are no longer kept.',
  };
}

function toDifference(row: z.output<typeof differingSum>): Difference {
  return { kind: 'sum_differs', subject: row.subject, ...toCount(row.left - row.right) };
}
