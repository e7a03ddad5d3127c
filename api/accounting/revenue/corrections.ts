// Posts what the operator records in addition to shares: payouts, refunds, corrections and settled disputes. Each is a separate line.
import {
  type Database,
  formatMoney,
  formatUsd,
  type Money,
  MoneyError,
  negate,
  parseMoney,
  type Transaction,
  zero,
} from '../../billing/index.ts';
import { getFirstDay, monthField, formatMonth } from './statement.ts';
import * as statements from './revenue-queries.ts';

/** A correction or payout that cannot be posted; the message says why. */
export class CorrectionError extends Error {
  override readonly name = 'CorrectionError';
}

export interface Adjustment {
  readonly kind: 'payout' | 'correction' | 'dispute';
  /** Git host and owner. */
  readonly author: string;
  /** USD, with a minus sign for what is taken or paid out. */
  readonly amount: string;
  /** Names it: posted once. */
  readonly id: string;
  readonly reason: string;
  /** Statement that it is for; default the current month. Where that is final, it stands in the current one. */
  readonly month?: string | undefined;
  /** The use or dispute that it is for. */
  readonly event?: string | undefined;
}

/** @returns the line; undefined where it was posted before. @throws MoneyError, CorrectionError */
export async function adjust(
  database: Database,
  { kind, author, amount, id, reason, month, event }: Adjustment,
  now: Date | null = null,
): Promise<string | undefined> {
  const value = parseSignedMoney(amount);
  assertMonth(month);
  return database.transaction(async (transaction) => {
    // Two payouts at once must not pay the same money.
    await transaction.query(statements.lockPosting, []);
    if (kind === 'payout') await assertOwed(transaction, author, id, negate(value));
    const [clock] = await transaction.query(statements.readClock, [now]);
    const [row] = await transaction.query(statements.adjust, [
      toLineKey(kind, author, id),
      kind,
      author,
      getFirstDay(month ?? formatMonth(clock?.now ?? new Date())),
      formatMoney(value),
      event ?? null,
      reason,
      now,
    ]);
    return row?.answer.outcome === 'posted' ? (row.answer.line ?? undefined) : undefined;
  });
}

function assertMonth(month: string | undefined): void {
  if (month !== undefined && !monthField.safeParse(month).success)
    throw new CorrectionError(`${month} is not a month like 2026-11`);
}

/** Rejects a new payout above what is owed. @throws CorrectionError */
async function assertOwed(transaction: Transaction, author: string, id: string, amount: Money): Promise<void> {
  const [freeze] = await transaction.query(statements.frozenAuthors, [author]);
  if (freeze !== undefined)
    throw new CorrectionError(
      `${author} is frozen: it was ${freeze.account} and is ${freeze.found} now. Decide with \`unfreeze\` whose it is`,
    );
  const [known] = await transaction.query(statements.lineByKey, [toLineKey('payout', author, id)]);
  const [row] = await transaction.query(statements.owedAmount, [author]);
  const owed = row?.amount ?? zero;
  if (known === undefined && amount > owed)
    throw new CorrectionError(`${author} is owed ${formatUsd(owed)}, less than ${formatUsd(amount)}`);
}

function toLineKey(kind: Adjustment['kind'], author: string, id: string): string {
  return `${kind}:${author}:${id}`;
}

/** Refunds a call. @returns the line; undefined if the call was already refunded. @throws CorrectionError */
export async function refund(
  database: Database,
  event: string,
  reason: string,
  now: Date | null = null,
): Promise<string | undefined> {
  const [row] = await database.query(statements.refund, [event, reason, now]);
  const { outcome, line, day } = row?.answer ?? { outcome: 'unknown' };
  if (outcome === 'posted') return line ?? undefined;
  if (outcome === 'replayed') return undefined;
  const why: Readonly<Record<string, string>> = {
    unknown: `there is no call of an app with the id ${event}, or it is no longer kept`,
    'not-charged': `nobody was charged for ${event}`,
    'not-posted': `the share of ${String(day)} is not posted yet: run \`post\` for that day first`,
  };
  throw new CorrectionError(why[outcome] ?? outcome);
}

/** Answers a dispute. @returns the line, where an amount is given. @throws MoneyError, CorrectionError */
export async function answerDispute(
  database: Database,
  { dispute, answer, amount }: { dispute: string; answer: string; amount?: string | undefined },
  now: Date | null = null,
): Promise<string | undefined> {
  if (amount !== undefined) parseSignedMoney(amount);
  const [row] = await database.query(statements.disputeById, [dispute]);
  if (row === undefined) throw new CorrectionError(`there is no dispute ${dispute}`);
  const { author, month } = row;
  // The line comes first: if the process is killed in between, the same command continues and posts nothing twice.
  const line =
    amount === undefined
      ? undefined
      : await adjust(
          database,
          { kind: 'dispute', author, amount, id: dispute, reason: answer, month: month.slice(0, 7), event: dispute },
          now,
        );
  await database.query(statements.resolveDispute, [dispute, answer, now]);
  await database.query(statements.settleState, [author, month, now]);
  return line;
}

/** Authors whose account changed at their forge. */
export async function listFrozen(
  database: Database,
): Promise<{ author: string; account: string; found: string; frozen_at: Date }[]> {
  return database.query(statements.frozenAuthors, [null]);
}

/** Decides which account an author is. @throws CorrectionError where they are not frozen, or are neither */
export async function unfreeze(database: Database, author: string, account: string): Promise<void> {
  const [row] = await database.query(statements.unfreeze, [author, account]);
  if (row?.done !== true) throw new CorrectionError(`${author} is not frozen, or was never ${account}: see \`frozen\``);
}

export async function listOwed(database: Database): Promise<{ author: string; amount: Money }[]> {
  return database.query(statements.allOwed, []);
}

export async function listDisputes(
  database: Database,
): Promise<{ id: string; author: string; month: string; line: string | null; message: string }[]> {
  return database.query(statements.openDisputes, []);
}

/** Reads an amount with or without a minus sign. @throws MoneyError */
function parseSignedMoney(text: string): Money {
  const value = text.startsWith('-') ? negate(parseMoney(text.slice(1))) : parseMoney(text);
  if (value === 0n) throw new MoneyError('the amount is 0');
  return value;
}
