// Builds a comparison: lines with two sides and the differences by cause, and checks that these add up.
import {
  type Database,
  formatMoney,
  type Money,
  negate,
  sumMoney,
  type Transaction,
  zero,
} from '../../billing/index.ts';
import {
  type ApartKind,
  type ComparisonName,
  type ComparisonResult,
  type DifferenceKind,
  differenceKinds,
  type LineName,
} from './result.ts';

/** A number of events and their total cost. */
export interface Sum {
  readonly events: number;
  readonly usd: Money;
}

export interface Line {
  readonly name: LineName;
  /** Whose it is, where there are several of the name. */
  readonly of?: string;
  readonly left: Sum;
  readonly right: Sum;
}

/** Left less right, of one thing or of one cause. */
export interface Difference extends Sum {
  readonly kind: DifferenceKind;
  readonly subject?: string;
  readonly detail?: string;
}

export interface Comparison {
  readonly name: ComparisonName;
  readonly lines: readonly Line[];
  readonly differences: readonly Difference[];
  /** Events that are on neither side. */
  readonly apart?: readonly (Sum & { readonly kind: ApartKind })[];
  /** Why a side cannot be read; what can be is compared all the same. */
  readonly notKnown?: string | undefined;
}

/** Maximum number of differences listed per comparison. */
const maxListed = 100;

export const zeroSum: Sum = { events: 0, usd: zero };

/** How many, of what has no cost. */
export function toCount(events: number): Sum {
  return { events, usd: zero };
}

/** Closes a comparison: what its differences do not account for is one more, so nothing can hide between them. */
export function concludeComparison({
  name,
  lines,
  differences: knownDifferences,
  apart = [],
  notKnown,
}: Comparison): ComparisonResult {
  const rest = subtract(
    subtract(addSums(lines.map(({ left }) => left)), addSums(lines.map(({ right }) => right))),
    addSums(knownDifferences),
  );
  const differences: readonly Difference[] =
    rest.events === 0 && rest.usd === zero ? knownDifferences : [...knownDifferences, { kind: 'unaccounted', ...rest }];
  const unexplained = differences.filter((difference) => !isExplained(difference));
  const explained = differences.filter(isExplained);
  return {
    name,
    outcome: decideOutcome(unexplained.length, explained.length, notKnown !== undefined),
    reason: notKnown ?? null,
    lines: lines.map(({ name: line, of, left, right }) => ({
      name: line,
      of: of ?? null,
      left: formatSum(left),
      right: formatSum(right),
    })),
    differences: [...unexplained, ...explained].slice(0, maxListed).map((difference) => ({
      kind: difference.kind,
      explained: isExplained(difference),
      subject: difference.subject ?? null,
      detail: difference.detail ?? null,
      ...formatSum(difference),
    })),
    left_off: Math.max(0, differences.length - maxListed),
    apart: apart.filter(({ events }) => events > 0).map(({ kind, ...sum }) => ({ kind, ...formatSum(sum) })),
    explained: formatSum(computeSize(explained)),
    unexplained: formatSum(computeSize(unexplained)),
  };
}

function decideOutcome(unexplained: number, explained: number, isNotKnown: boolean): ComparisonResult['outcome'] {
  if (unexplained > 0) return 'different';
  if (isNotKnown) return 'not_known';
  return explained > 0 ? 'explained' : 'equal';
}

function isExplained({ kind }: Difference): boolean {
  return differenceKinds[kind] === 'explained';
}

export function addSums(sums: readonly Sum[]): Sum {
  return {
    events: sums.reduce((events, one) => events + one.events, 0),
    usd: sumMoney(sums.map(({ usd }) => usd)),
  };
}

export function subtract(left: Sum, right: Sum): Sum {
  return { events: left.events - right.events, usd: sumMoney([left.usd, negate(right.usd)]) };
}

/** Negates a sum, for what only the right side has. */
export function negateSum({ events, usd }: Sum): Sum {
  return { events: -events, usd: negate(usd) };
}

/** Absolute figures, so that two faults cannot cancel out. One that changes neither number nor money still counts as one. */
function computeSize(differences: readonly Difference[]): Sum {
  return addSums(
    differences.map(({ events, usd }) => ({
      events: events === 0 && usd === zero ? 1 : Math.abs(events),
      usd: usd < zero ? negate(usd) : usd,
    })),
  );
}

function formatSum({ events, usd }: Sum): { events: number; usd: string } {
  return { events, usd: formatMoney(usd) };
}

export interface Day {
  /** Like 2026-11-23. */
  readonly day: string;
  /** Its beginning, and its end or now. */
  readonly from: Date;
  readonly to: Date;
  readonly isComplete: boolean;
}

const dayMs = 86_400_000;

/** A day as it is at a time. @throws RangeError for what is no day, or has not begun */
export function parseDay(day: string, now: Date): Day {
  const from = new Date(`${day}T00:00:00.000Z`);
  if (!/^\d{4}-\d\d-\d\d$/.test(day) || Number.isNaN(from.getTime()) || !from.toISOString().startsWith(day))
    throw new RangeError(`"${day}" is not a day: write it as 2026-11-23`);
  if (from > now) throw new RangeError(`${day} has not begun yet (UTC)`);
  const end = new Date(from.getTime() + dayMs);
  return { day, from, to: end < now ? end : now, isComplete: end <= now };
}

/** The day (UTC) of a time. */
export function formatDay(time: Date): string {
  return time.toISOString().slice(0, 10);
}

/** A day of uses is read for longer than other statements may last. */
export function runInSnapshot<T>(database: Database, work: (transaction: Transaction) => Promise<T>): Promise<T> {
  return database.transaction(
    async (transaction) => {
      await transaction.script('set transaction isolation level repeatable read; set local statement_timeout = 0');
      return work(transaction);
    },
    { lasting: true },
  );
}
