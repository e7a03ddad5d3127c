// SQL of revenue. Each statement is parsed once per connection; amounts are decimal text.
import { z } from 'zod';
import { money, prefixStatements } from '../../billing/index.ts';

const defineStatement = prefixStatements('revenue');

const countRow = z.object({ count: z.number().int() });
const bigintText = z.string().transform(BigInt);
const selectNow = (parameter: string): string => `coalesce(${parameter}::timestamptz, clock_timestamp())`;

/** $1: host and owner. $2: kind of forge and number of the account. */
export const noteAccount = defineStatement(
  'note-account',
  'select revenue.note_account($1, $2, $3) as outcome',
  z.object({ outcome: z.enum(['bound', 'frozen', 'known']) }),
);
export const frozenAuthors = defineStatement(
  'frozen',
  'select author, account, other as found, frozen_at from revenue.account where frozen_at is not null and ($1::text is null or author = $1) order by author',
  z.object({ author: z.string(), account: z.string(), found: z.string(), frozen_at: z.coerce.date() }),
);
/** The author of an app on a day, where they are frozen. */
export const frozenHost = defineStatement(
  'frozen-host',
  'select h.author from revenue.hosted_on($1, $2) h where revenue.is_frozen(h.author)',
  z.object({ author: z.string() }),
);
export const unfreeze = defineStatement(
  'unfreeze',
  'select revenue.unfreeze($1, $2) as done',
  z.object({ done: z.boolean() }),
);

export const recordVersion = defineStatement(
  'record-version',
  'insert into revenue.price_version (version, effective_from, content) values ($1, $2, $3::jsonb) on conflict do nothing',
  z.unknown(),
);
export const versions = defineStatement(
  'versions',
  'select version, content from revenue.price_version order by effective_from',
  z.object({ version: z.string(), content: z.unknown() }),
);

/** $1: [{app, author, share_ppm, submitter}]. */
export const noteHosted = defineStatement(
  'note-hosted',
  'select revenue.note_hosted($1::jsonb, $2) as count',
  countRow,
);
/** The apps with the fewest visits first: what they leave of the budget goes to the others. */
export const daysToPost = defineStatement(
  'days-to-post',
  `select p.app, p.day::text from revenue.days_to_post($1) p
    left join lateral (select sum(uses) as uses from metering.day m where m.app = p.app and m.day = p.day and m.kind = 'visit' and m.class = 'use') m on true
    order by p.day, m.uses nulls first, p.app`,
  z.object({ app: z.string(), day: z.string() }),
);
export const postDay = defineStatement(
  'post-day',
  'select revenue.post_day($1, $2, $3, $4::numeric, $5, $6, $7, $8, $9, $10::numeric, $11) as count',
  countRow,
);
/** Uses that are received from now on belong to later runs, except those of today, which none has posted yet. */
export const markPosted = defineStatement(
  'mark-posted',
  `update revenue.progress set received_until = least($1::timestamptz, ledger.day_start((${selectNow('$2')} at time zone 'utc')::date)) - interval '5 minutes'`,
  z.unknown(),
);
export const readClock = defineStatement(
  'clock',
  `select ${selectNow('$1')} as now`,
  z.object({ now: z.coerce.date() }),
);
export const lockPosting = defineStatement(
  'lock',
  'select pg_advisory_xact_lock(7201133517) is null as locked',
  z.unknown(),
);
export const closeMonths = defineStatement('close', 'select revenue.close_months($1, $2) as count', countRow);

export const lines = defineStatement(
  'lines',
  `select id::text, kind, app, day::text, item, price_version, uses::text, gross::text, share_ppm, amount::text, events, event, reason,
      transaction_id::text, posted_at
    from revenue.line where author = $1 and month = $2 order by id`,
  z.object({
    id: z.string(),
    kind: z.enum(['share', 'late', 'refund', 'dispute', 'correction', 'payout']),
    app: z.string().nullable(),
    day: z.string().nullable(),
    item: z.enum(['use', 'call']).nullable(),
    price_version: z.string().nullable(),
    uses: bigintText,
    gross: money,
    share_ppm: z.int().nullable(),
    amount: money,
    events: z.string().nullable(),
    event: z.string().nullable(),
    reason: z.string().nullable(),
    transaction_id: z.string(),
    posted_at: z.coerce.date(),
  }),
);
export type LineRow = z.output<typeof lines.row>;

/** What an author had at the beginning of a month. */
export const opening = defineStatement(
  'opening',
  'select coalesce(sum(amount), 0)::text as amount from revenue.line where author = $1 and month < $2',
  z.object({ amount: money }),
);
export const statementState = defineStatement(
  'state',
  'select state, changed_at from revenue.statement where author = $1 and month = $2',
  z.object({ state: z.enum(['open', 'disputed', 'adjusted', 'final']), changed_at: z.coerce.date() }),
);
export const months = defineStatement(
  'months',
  `select to_char(l.month, 'YYYY-MM') as month, coalesce(max(s.state), 'open') as state, count(*)::int as lines,
      coalesce(sum(l.amount) filter (where l.kind <> 'payout'), 0)::text as earned, coalesce(-sum(l.amount) filter (where l.kind = 'payout'), 0)::text as paid
    from revenue.line l left join revenue.statement s on s.author = l.author and s.month = l.month
    where l.author = $1 group by l.month order by l.month desc limit 120`,
  z.object({ month: z.string(), state: z.string(), lines: z.int(), earned: money, paid: money }),
);
export const disputes = defineStatement(
  'disputes',
  'select id, line::text, message, opened_at, resolved_at, resolution from revenue.dispute where author = $1 and month = $2 order by opened_at, id',
  z.object({
    id: z.string(),
    line: z.string().nullable(),
    message: z.string(),
    opened_at: z.coerce.date(),
    resolved_at: z.coerce.date().nullable(),
    resolution: z.string().nullable(),
  }),
);
/** Requests that a gateway lost between the beginning and the end of a month: uses may be missing. */
export const losses = defineStatement(
  'losses',
  `select gateway, sum(requests)::bigint::text as requests, min(after_at) as after_at, max(before_at) as before_at
    from metering.loss where before_at >= ledger.day_start($1::date) and after_at < ledger.day_start(($1::date + interval '1 month')::date)
    group by gateway order by gateway`,
  z.object({ gateway: z.string(), requests: bigintText, after_at: z.coerce.date(), before_at: z.coerce.date() }),
);

/** Days of a month of which not every visit accrued. */
export const cappedDays = defineStatement(
  'capped',
  `select app, day::text, uses::int, accrued::int, over_visitor::int, over_network::int, over_app::int, over_budget::int
    from revenue.visits where author = $1 and day >= $2::date and day < $2::date + interval '1 month' and accrued < uses order by day, app`,
  z.object({
    app: z.string(),
    day: z.string(),
    uses: z.int(),
    accrued: z.int(),
    over_visitor: z.int(),
    over_network: z.int(),
    over_app: z.int(),
    over_budget: z.int(),
  }),
);

/** The uses of the day of a line, in the order of its digest: $1 line, $2 author, $3 to $7 prices of the day, $8 and $9 after which, $10 how many. */
export const events = defineStatement(
  'events',
  `select c.id, to_char(c.at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at_text from revenue.line l, revenue.hosted_on(l.app, l.day) h,
      lateral revenue.counted(l.app, l.day, h.submitter, (select accrued from revenue.visits v where v.app = l.app and v.day = l.day),
        $3::numeric, $4, $5, $6, $7) c
    where l.id = $1 and l.author = $2 and c.item = l.item and ($8::text is null or (c.at, c.id) > (($8::text)::timestamptz, $9::text))
    order by c.at, c.id limit $10`,
  z.object({ id: z.string(), at_text: z.string() }),
);
export const lineById = defineStatement(
  'line',
  'select month::text, app, day::text, item, events from revenue.line where id = $1 and author = $2',
  z.object({
    month: z.string(),
    app: z.string().nullable(),
    day: z.string().nullable(),
    item: z.string().nullable(),
    events: z.string().nullable(),
  }),
);

export const openDispute = defineStatement(
  'open-dispute',
  `with state as (
      insert into revenue.statement (author, month, state, changed_at) values ($2, $3, 'disputed', ${selectNow('$6')})
      on conflict (author, month) do update set state = 'disputed', changed_at = excluded.changed_at where revenue.statement.state <> 'final' returning 1)
    insert into revenue.dispute (id, author, month, line, message, opened_at)
      select $1, $2, $3, $4, $5, ${selectNow('$6')} from state returning id`,
  z.object({ id: z.string() }),
);
export const disputeById = defineStatement(
  'dispute',
  'select author, month::text from revenue.dispute where id::text = $1',
  z.object({ author: z.string(), month: z.string() }),
);
export const openDisputes = defineStatement(
  'open-disputes',
  "select id, author, to_char(month, 'YYYY-MM') as month, line::text, message from revenue.dispute where resolved_at is null order by opened_at",
  z.object({
    id: z.string(),
    author: z.string(),
    month: z.string(),
    line: z.string().nullable(),
    message: z.string(),
  }),
);
export const resolveDispute = defineStatement(
  'resolve-dispute',
  `update revenue.dispute set resolved_at = ${selectNow('$3')}, resolution = $2 where id::text = $1 and resolved_at is null`,
  z.unknown(),
);
export const settleState = defineStatement(
  'settle-state',
  `update revenue.statement s set state = 'adjusted', changed_at = ${selectNow('$3')} where author = $1 and month = $2 and state = 'disputed'
    and not exists (select from revenue.dispute d where d.author = s.author and d.month = s.month and d.resolved_at is null)`,
  z.unknown(),
);

const outcomeRow = z.object({
  answer: z.object({ outcome: z.string(), line: z.string().nullish(), day: z.string().optional() }),
});
export const refund = defineStatement('refund', 'select revenue.refund($1, $2, $3) as answer', outcomeRow);
export const adjust = defineStatement(
  'adjust',
  'select revenue.adjust($1, $2, $3, $4, $5::numeric, $6, $7, $8) as answer',
  outcomeRow,
);
export const owedAmount = defineStatement(
  'owed',
  'select revenue.owed($1)::text as amount',
  z.object({ amount: money }),
);
export const lineByKey = defineStatement(
  'line-by-key',
  'select id::text from revenue.line where key = $1',
  z.object({ id: z.string() }),
);
export const allOwed = defineStatement(
  'all-owed',
  `select a.owner as author, (-sum(e.amount))::text as amount from ledger.account a join ledger.entry e on e.account_id = a.id
    where a.kind = 'author' group by 1 having sum(e.amount) <> 0 order by 1`,
  z.object({ author: z.string(), amount: money }),
);
