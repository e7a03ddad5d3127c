// Reads a statement from the database, at one point in time.
import type { Database } from '../../../billing/index.ts';
import { capped, disputes, lines, losses, opening, readClock, stateOf } from '../store/statements.ts';
import { endOf, firstDay } from './month.ts';
import { lineView, sumsOf, type StatementView } from './view.ts';

export interface StatementRequest {
  /** Git host and owner. */
  readonly author: string;
  readonly month: string;
  /** Like https://moorage.localhost. */
  readonly baseUrl: string;
  readonly disputeDays: number;
  readonly eventsUrl: (line: string) => string;
  readonly now?: Date | null;
}

/** @throws the driver's error */
export async function readStatement(database: Database, request: StatementRequest): Promise<StatementView> {
  const { author, month, baseUrl, disputeDays, eventsUrl, now = null } = request;
  const first = firstDay(month);
  return database.transaction(async (transaction) => {
    await transaction.script('set transaction isolation level repeatable read, read only');
    const [clock] = await transaction.query(readClock, [now]);
    const rows = await transaction.query(lines, [author, first]);
    const [before] = await transaction.query(opening, [author, first]);
    const [state] = await transaction.query(stateOf, [author, first]);
    const disputed = await transaction.query(disputes, [author, first]);
    const notAccrued = await transaction.query(capped, [author, first]);
    const lost = await transaction.query(losses, [first]);
    if (before === undefined || clock === undefined) throw new Error('the database returned no row');
    return {
      type: 'statement',
      issuer: baseUrl,
      author,
      month,
      state: state?.state ?? 'open',
      disputes_until: new Date(endOf(month).getTime() + disputeDays * 86_400_000).toISOString(),
      currency: 'USD',
      ...sumsOf(before.amount, rows),
      lines: rows.map((row) => lineView(row, eventsUrl)),
      disputes: disputed.map(({ id, line, message, opened_at, resolved_at, resolution }) => ({
        id,
        line,
        message,
        opened_at: opened_at.toISOString(),
        resolved_at: resolved_at?.toISOString() ?? null,
        resolution,
      })),
      capped: notAccrued,
      losses: lost.map(({ gateway, requests, after_at, before_at }) => ({
        gateway,
        requests: Number(requests),
        after_at: after_at.toISOString(),
        before_at: before_at.toISOString(),
      })),
      made_at: clock.now.toISOString(),
    };
  });
}
