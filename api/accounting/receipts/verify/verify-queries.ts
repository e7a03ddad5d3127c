// Reads what the verification of a database needs. Calls no function of the database: an attacker who changed rows may have changed it too.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { prefixStatements, type Transaction } from '../../../billing/index.ts';
import { selectLeaf } from '../ledger-log-queries.ts';

const defineStatement = prefixStatements('verify');

/** One moment of the database, for as long as it takes. */
export const oneMoment =
  "set transaction isolation level repeatable read, read only; set local statement_timeout = 0; set local datestyle = 'iso'";

/** Links behind a given one, at most so many, each with its transaction as the ledger has it now. */
export const links = defineStatement(
  'links',
  `select l.day::text as day, l.position, l.transaction_id::text as id, l.leaf, encode(l.hash, 'hex') as hash, encode(l.chain, 'hex') as chain,
      ${selectLeaf('l.transaction_id')} as ledger, (select (kept_from + 2)::text from metering.progress) as uses_from
    from receipts.link l where (l.day, l.position) > ($1::date, $2::integer) order by l.day, l.position limit $3`,
  z.object({
    day: z.string(),
    position: z.number(),
    id: z.string(),
    leaf: z.string(),
    hash: z.string(),
    chain: z.string(),
    ledger: z.unknown(),
    uses_from: z.string(),
  }),
);
export type LinkRow = z.output<typeof links.row>;

export const days = defineStatement(
  'days',
  "select day::text as day, document, encode(tiles, 'hex') as tiles from receipts.day order by day",
  z.object({ day: z.string(), document: z.unknown(), tiles: z.string() }),
);
export type DayRow = z.output<typeof days.row>;

export const checkpoint = defineStatement(
  'checkpoint',
  'select document from receipts.checkpoint',
  z.object({ document: z.unknown() }),
);

/** The last day that has to be sealed by now. */
export const due = defineStatement(
  'due',
  "select ((coalesce($1::timestamptz, clock_timestamp()) - interval '1 hour') at time zone 'utc' - interval '1 day')::date::text as day",
  z.object({ day: z.string() }),
);

const findingRow = z.object({ what: z.string() });

/** Transactions that are not in the record and do not wait for it, and the reverse; entries of no transaction. */
export const strays = defineStatement(
  'strays',
  `select format('transaction %s (%s): it is in the ledger and was never linked: it was inserted by hand, or its link was deleted', t.id, t.reference) as what
      from ledger.transaction t where not exists (select from receipts.link where transaction_id = t.id)
        and not exists (select from receipts.waiting where transaction_id = t.id)
    union all select format('transaction %s: it was deleted before it was linked', w.transaction_id)
      from receipts.waiting w where not exists (select from ledger.transaction where id = w.transaction_id)
    union all select format('transaction %s: it waits to be linked since %s', w.transaction_id, w.since)
      from receipts.waiting w join ledger.transaction t on t.id = w.transaction_id
      where w.since < coalesce($1::timestamptz, clock_timestamp()) - interval '1 hour'
    union all select format('transaction %s: it is linked and waits to be linked', w.transaction_id)
      from receipts.waiting w join receipts.link l using (transaction_id)
    union all select distinct format('transaction %s: it has entries and is not in the ledger', e.transaction_id)
      from ledger.entry e where not exists (select from ledger.transaction where id = e.transaction_id)
        and not exists (select from receipts.link where transaction_id = e.transaction_id)`,
  findingRow,
);

export const audit = defineStatement('audit', 'select fault as what from ledger.audit()', findingRow);

export const chainAt = defineStatement(
  'chain-at',
  "select encode(chain, 'hex') as chain from receipts.link where day = $1 and position = $2",
  z.object({ chain: z.string() }),
);

/** The fields in the order in which revenue.digest has them. */
export const statementLines = defineStatement(
  'lines-of-statements',
  `select l.id::text, l.key, array[l.key, l.author, to_char(l.month, 'YYYY-MM'), l.kind, coalesce(l.app, ''), coalesce(to_char(l.day, 'YYYY-MM-DD'), ''),
      coalesce(l.item, ''), coalesce(l.price_version, ''), l.uses::text, trim_scale(l.gross)::text, coalesce(l.share_ppm::text, ''),
      trim_scale(l.amount)::text, coalesce(l.events, ''), coalesce(l.event, ''), coalesce(l.reason, '')] as fields,
    t.reference, trim_scale(l.amount)::text as amount, (select trim_scale(-sum(e.amount))::text from ledger.entry e
      join ledger.account a on a.id = e.account_id where e.transaction_id = l.transaction_id and a.kind = 'author' and a.owner = l.author) as posted
    from revenue.line l left join ledger.transaction t on t.id = l.transaction_id order by l.id`,
  z.object({
    id: z.string(),
    key: z.string(),
    fields: z.array(z.string()),
    reference: z.string().nullable(),
    amount: z.string(),
    posted: z.string().nullable(),
  }),
);
export const postingsWithoutLine = defineStatement(
  'postings-without-line',
  `select t.id::text, t.reference from ledger.transaction t
    where t.kind in ('share', 'late', 'refund', 'dispute', 'correction', 'payout') and not exists (select from revenue.line l where l.transaction_id = t.id) order by t.id`,
  z.object({ id: z.string(), reference: z.string() }),
);

/** Every line that says something else than its transaction, and every posting whose line is gone, in words. */
export async function findLineFaults(transaction: Pick<Transaction, 'query'>): Promise<string[]> {
  const lines = await transaction.query(statementLines, []);
  const missing = await transaction.query(postingsWithoutLine, []);
  return [
    ...lines.flatMap(({ id, key, fields, reference, amount, posted }) => {
      const digest = createHash('sha256').update(fields.join('\n')).digest('hex');
      if (reference !== `${key}:${digest}`)
        return [`line ${id} of a statement (${key}) was changed since it was posted`];
      return amount === posted
        ? []
        : [
            `line ${id} of a statement (${key}) is worth ${amount}, its transaction gives the author ${posted ?? 'nothing'}`,
          ];
    }),
    ...missing.map(
      ({ id, reference }) => `the line of transaction ${id} (${reference}) was deleted from its statement`,
    ),
  ];
}
