// One comparison: lines with two sides, the differences between them by cause, and the check that these add up.
import { formatMoney, type Money, negate, sumMoney, zero } from '../../billing/index.ts';
import {
  type ApartKind,
  type ComparisonName,
  type ComparisonResult,
  type DifferenceKind,
  differenceKinds,
  type LineName,
} from './result.ts';

/** So many, and what they cost together. */
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
  /** What is on neither side. */
  readonly apart?: readonly (Sum & { readonly kind: ApartKind })[];
  /** Why a side cannot be read; what can be is compared all the same. */
  readonly notKnown?: string | undefined;
}

/** The most that is listed of one comparison. */
const listed = 100;

export const nothing: Sum = { events: 0, usd: zero };

/** How many, of what has no cost. */
export function counted(events: number): Sum {
  return { events, usd: zero };
}

/** Closes a comparison: what its differences do not account for is one more, so nothing can hide between them. */
export function concluded({ name, lines, differences: found, apart = [], notKnown }: Comparison): ComparisonResult {
  const rest = less(less(total(lines.map(({ left }) => left)), total(lines.map(({ right }) => right))), total(found));
  const differences: readonly Difference[] =
    rest.events === 0 && rest.usd === zero ? found : [...found, { kind: 'unaccounted', ...rest }];
  const unexplained = differences.filter((difference) => !isExplained(difference));
  const explained = differences.filter(isExplained);
  return {
    name,
    outcome: outcomeOf(unexplained.length, explained.length, notKnown !== undefined),
    reason: notKnown ?? null,
    lines: lines.map(({ name: line, of, left, right }) => ({
      name: line,
      of: of ?? null,
      left: written(left),
      right: written(right),
    })),
    differences: [...unexplained, ...explained].slice(0, listed).map((difference) => ({
      kind: difference.kind,
      explained: isExplained(difference),
      subject: difference.subject ?? null,
      detail: difference.detail ?? null,
      ...written(difference),
    })),
    left_off: Math.max(0, differences.length - listed),
    apart: apart.filter(({ events }) => events > 0).map(({ kind, ...sum }) => ({ kind, ...written(sum) })),
    explained: written(sizeOf(explained)),
    unexplained: written(sizeOf(unexplained)),
  };
}

function outcomeOf(unexplained: number, explained: number, isNotKnown: boolean): ComparisonResult['outcome'] {
  if (unexplained > 0) return 'different';
  if (isNotKnown) return 'not_known';
  return explained > 0 ? 'explained' : 'equal';
}

function isExplained({ kind }: Difference): boolean {
  return differenceKinds[kind] === 'explained';
}

export function total(sums: readonly Sum[]): Sum {
  return {
    events: sums.reduce((events, one) => events + one.events, 0),
    usd: sumMoney(sums.map(({ usd }) => usd)),
  };
}

export function less(left: Sum, right: Sum): Sum {
  return { events: left.events - right.events, usd: sumMoney([left.usd, negate(right.usd)]) };
}

/** The other way round: what only the right side has. */
export function minus({ events, usd }: Sum): Sum {
  return { events: -events, usd: negate(usd) };
}

/** Absolute figures, so that two faults cannot cancel out. One that changes neither number nor money still counts as one. */
function sizeOf(differences: readonly Difference[]): Sum {
  return total(
    differences.map(({ events, usd }) => ({
      events: events === 0 && usd === zero ? 1 : Math.abs(events),
      usd: usd < zero ? negate(usd) : usd,
    })),
  );
}

function written({ events, usd }: Sum): { events: number; usd: string } {
  return { events, usd: formatMoney(usd) };
}
