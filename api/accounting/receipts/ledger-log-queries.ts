// SQL of the signed record. Each statement is parsed once per connection.
import { z } from 'zod';
import { prefixStatements } from '../../billing/index.ts';
import { account, checkpoint, leaf, ledgerDay } from './format/documents.ts';

const defineStatement = prefixStatements('receipts');

const noRow = z.unknown();
const bytes = z.string().transform((hex) => Buffer.from(hex, 'hex'));
const day = z.string();
const formatDay = (column: string): string => `to_char(${column}, 'YYYY-MM-DD')`;

/**
 * A transaction as its leaf has it. Not a function in the database, which whoever changes rows could change too. What
 * JSON writes of times and days depends on no setting of the session.
 */
export const selectLeaf = (transaction: string): string => `(select jsonb_build_object(
    'id', t.id::text, 'reference', t.reference, 'kind', t.kind, 'at', (to_jsonb(t.at at time zone 'utc') #>> '{}') || 'Z',
    'entries', coalesce((
      select jsonb_agg(jsonb_build_object('line', e.line, 'amount', trim_scale(e.amount)::text,
        'account', jsonb_build_object('kind', a.kind, 'owner', a.owner, 'day', nullif(to_jsonb(a.day), '"-infinity"'))) order by e.line)
      from ledger.entry e left join ledger.account a on a.id = e.account_id where e.transaction_id = t.id), '[]'))
    || coalesce((
      select jsonb_build_object('call', jsonb_build_object('hold', u.id, 'caller', u.caller, 'at', (to_jsonb(u.at at time zone 'utc') #>> '{}') || 'Z',
        'kind', u.kind, 'tool', u.tool, 'app', u.app, 'model', u.model, 'cost_source', u.cost_source))
      from ledger.hold h join ledger.usage u on u.at = h.created_at and u.id = h.id::text where h.transaction_id = t.id), '{}')
  from ledger.transaction t where t.id = ${transaction})`;

/** One replica links at a time; the lock goes with the transaction. */
export const lock = defineStatement(
  'lock',
  'select pg_try_advisory_xact_lock(7201133512) as locked',
  z.object({ locked: z.boolean() }),
);

/** The clock of the database, or $1; `settled`: the last day of which no posting is expected to come any more. */
export const clock = defineStatement(
  'clock',
  `select to_jsonb(now at time zone 'utc') #>> '{}' || 'Z' as now, ${formatDay("now at time zone 'utc'")} as today,
      ${formatDay("(now - $2 * interval '1 millisecond') at time zone 'utc' - interval '1 day'")} as settled
    from (select coalesce($1::timestamptz, clock_timestamp()) as now) c`,
  z.object({ now: z.string(), today: day, settled: day }),
);

/** Transactions that wait, the lowest number first. One that waits and is not in the ledger is left waiting. */
export const waiting = defineStatement(
  'waiting',
  `select ${selectLeaf('w.transaction_id')} as leaf, ${formatDay("t.at at time zone 'utc'")} as day
    from receipts.waiting w join ledger.transaction t on t.id = w.transaction_id order by w.transaction_id limit $1`,
  z.object({ leaf, day: day.nullable() }),
);

export const addLinks = defineStatement(
  'add-links',
  `with added as (
    insert into receipts.link (transaction_id, day, position, leaf, hash, chain)
      select i, d, p, l, decode(h, 'hex'), decode(c, 'hex')
      from unnest($1::bigint[], $2::date[], $3::integer[], $4::text[], $5::text[], $6::text[]) as n (i, d, p, l, h, c)
  ) delete from receipts.waiting where transaction_id = any ($1::bigint[])`,
  noRow,
);

/** The ends of the chains behind a sealed day, or of all where $1 is null. */
export const heads = defineStatement(
  'heads',
  `select ${formatDay('d.day')} as day, l.position + 1 as count, encode(l.chain, 'hex') as head
    from (with recursive days as (
        (select day from receipts.link where day > coalesce($1::date, '-infinity') order by day limit 1)
        union all select (select day from receipts.link where day > days.day order by day limit 1) from days where days.day is not null)
      select day from days where day is not null) d
    cross join lateral (select position, chain from receipts.link where day = d.day order by position desc limit 1) l order by 1`,
  z.object({ day, count: z.number(), head: z.string() }),
);

export const hashes = defineStatement(
  'hashes',
  "select encode(hash, 'hex') as hash from receipts.link where day = $1 and position >= $2 order by position limit $3",
  z.object({ hash: bytes }),
);

export const addDay = defineStatement(
  'add-day',
  "insert into receipts.day (day, document, tiles) values ($1, $2::jsonb, decode($3, 'hex'))",
  noRow,
);

export const newestDay = defineStatement(
  'newest-day',
  'select document from receipts.day order by day desc limit 1',
  z.object({ document: ledgerDay }),
);
export const readCheckpoint = defineStatement(
  'checkpoint',
  'select document from receipts.checkpoint',
  z.object({ document: checkpoint }),
);
export const writeCheckpoint = defineStatement(
  'write-checkpoint',
  'insert into receipts.checkpoint (document) values ($1::jsonb) on conflict (one) do update set document = excluded.document',
  noRow,
);

export const days = defineStatement(
  'days',
  "select document from receipts.day where day < coalesce($1::date, 'infinity') order by day desc limit $2",
  z.object({ document: ledgerDay }),
);
export const oneDay = defineStatement(
  'one-day',
  'select document from receipts.day where day = $1',
  z.object({ document: ledgerDay }),
);
export const range = defineStatement(
  'range',
  `select ${formatDay('min(day)')} as first, ${formatDay('max(day)')} as last from receipts.day`,
  z.object({ first: day.nullable(), last: day.nullable() }),
);

/** How far the record is behind. `days`: ended and not sealed, of those that have links or follow a sealed one. */
export const lag = defineStatement(
  'lag',
  `select coalesce(extract(epoch from clock_timestamp() - (select min(since) from receipts.waiting)), 0)::float8 as seconds,
    coalesce(greatest(((clock_timestamp() - $1 * interval '1 millisecond') at time zone 'utc')::date - 1
      - coalesce((select max(day) from receipts.day), (select min(day) - 1 from receipts.link)), 0), 0)::integer as days`,
  z.object({ seconds: z.number(), days: z.number() }),
);

/** Links of some transactions, with the tiles of their days where these are sealed. */
export const linksByTransaction = defineStatement(
  'links-of',
  `select l.leaf, ${formatDay('l.day')} as day, l.position, d.day is not null as sealed
    from receipts.link l left join receipts.day d on d.day = l.day where l.transaction_id = any ($1::bigint[])`,
  z.object({
    leaf: z.string().transform((text) => leaf.parse(JSON.parse(text))),
    day,
    position: z.number(),
    sealed: z.boolean(),
  }),
);
export const tilesByDay = defineStatement(
  'tiles-of',
  `select ${formatDay('day')} as day, encode(tiles, 'hex') as tiles from receipts.day where day = any ($1::date[])`,
  z.object({ day, tiles: bytes }),
);

/** A caller's metered calls of a day, in the order of time, behind a given one. */
export const chargesByCaller = defineStatement(
  'charges',
  `select u.id, to_jsonb(u.at at time zone 'utc') #>> '{}' || 'Z' as at, u.kind, u.tool, u.app, u.model, trim_scale(u.cost)::text as cost,
      u.cost_source as source, h.transaction_id::text as transaction,
      jsonb_build_object('kind', a.kind, 'owner', a.owner, 'day', nullif(to_jsonb(a.day), '"-infinity"')) as account
    from ledger.usage u join ledger.hold h on h.id = case when u.id ~ '^[0-9a-f-]{36}$' then u.id::uuid end join ledger.account a on a.id = h.debit
    where u.caller = $1 and u.kind <> 'visit' and u.at >= ledger.day_start($2::date) and u.at < ledger.day_start($2::date + 1)
      and (u.at, u.id) > ($3::timestamptz, $4) and ($6::text is null or u.request = $6) order by u.at, u.id limit $5`,
  z.object({
    id: z.string(),
    at: z.string(),
    kind: z.string(),
    tool: z.string().nullable(),
    app: z.string().nullable(),
    model: z.string().nullable(),
    cost: z.string().nullable(),
    source: z.string(),
    transaction: z.string().nullable(),
    account,
  }),
);
