// Reports statements that are ready and payouts, of which authors are notified. Both follow from what is stored, so a process
// that is killed loses none.
import { z } from 'zod';
import type { AuthorNews } from '../../apps/index.ts';
import { type Database, formatMoney, money, prefixStatements } from '../../billing/index.ts';
import { getMonthEnd } from './statement.ts';

const dayMs = 86_400_000;
const defineStatement = prefixStatements('author-news');
const now = 'coalesce($1::timestamptz, clock_timestamp())';

/** Of an author who is frozen, nothing is shown. */
const statements = {
  payouts: defineStatement(
    'payouts',
    `select id::text, author, (-amount)::text as amount, posted_at as at from revenue.line
      where kind = 'payout' and posted_at > ${now} - interval '7 days' and not revenue.is_frozen(author) order by id`,
    z.object({ id: z.string(), author: z.string(), amount: money, at: z.date() }),
  ),
  /** A month is ready when it has ended and its last day is posted. */
  months: defineStatement(
    'months',
    `with month as (
        select (date_trunc('month', ${now} at time zone 'utc') - interval '1 month')::date as first,
          ledger.day_start(date_trunc('month', ${now} at time zone 'utc')::date) as ended)
      select l.author, to_char(m.first, 'YYYY-MM') as month, m.ended as at,
        coalesce(sum(l.amount) filter (where l.kind <> 'payout'), 0)::text as amount
      from month m join revenue.line l on l.month = m.first join revenue.progress p on p.received_until >= m.ended
      where m.ended > ${now} - interval '7 days' and not revenue.is_frozen(l.author)
      group by l.author, m.first, m.ended order by l.author`,
    z.object({ author: z.string(), month: z.string(), amount: money, at: z.date() }),
  ),
} as const;

/** Lists statements and payouts of the last week. @param disputeDays days after the end of a month */
export async function listAuthorNews(
  database: Database,
  disputeDays: number,
  at: Date | null = null,
): Promise<AuthorNews[]> {
  const [payouts, months] = await Promise.all([
    database.replay(statements.payouts, [at]),
    database.replay(statements.months, [at]),
  ]);
  return [
    ...months.map(({ author, month, amount, at: ended }): AuthorNews => {
      const disputesUntil = new Date(getMonthEnd(month).getTime() + disputeDays * dayMs);
      return {
        author,
        kind: 'statement',
        subject: month,
        at: ended,
        amountUsd: formatMoney(amount),
        month,
        disputesUntil,
      };
    }),
    ...payouts.map(({ id, author, amount, at: paid }): AuthorNews => ({
      ...{ author, kind: 'payout', subject: id, at: paid, amountUsd: formatMoney(amount) },
    })),
  ];
}
