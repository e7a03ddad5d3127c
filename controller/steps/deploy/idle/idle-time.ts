// How long an unused app is kept awake when it is left to us: the ski rental problem. Staying awake costs a little each
// second (rent), putting it to rest costs one wake (buy), and nobody knows when the next use comes.
//
// The break-even time B is the idle time that costs as much as a wake: B = worth × wake. Rest after exactly B, and no
// sequence of gaps costs more than twice what one who knows the future pays. With enough gaps of the app itself the
// time T is the one that would have cost least over them,
//
//   cost(T) = Σ over gaps g of (g ≤ T ? g : T + B),
//
// among B/2 ≤ T ≤ 2B: within these bounds the worst sequence costs at most three times the best (B/2: 1.5 B against
// 0.5 B; 2B: 3 B against B), however little the past says of the future.

/** A second that a person waits for a wake is worth this many seconds of an idle pod. */
const worth = 60;
const leastSeconds = 60;
const maximumSeconds = 3_600;
/** Fewer gaps say too little. */
const enoughGaps = 10;
/** Without a measured wake. */
const usualMs = 5_000;

/** The idle time in seconds that costs as much as a wake. @param wakeMs how long wakes of the app take */
export function breakEvenSeconds(wakeMs = usualMs): number {
  return Math.min(maximumSeconds, Math.max(leastSeconds, Math.round((worth * wakeMs) / 1000)));
}

/** The idle time to rest after, in seconds. @param gaps past times without use, in seconds */
export function chooseIdleSeconds(gaps: readonly number[], wakeMs?: number): number {
  const even = breakEvenSeconds(wakeMs);
  if (gaps.length < enoughGaps) return even;
  const [least, maximum] = [Math.ceil(even / 2), even * 2];
  // Between two gaps the cost only grows, so the best is at a bound or at a gap itself.
  const candidates = [even, least, maximum, ...gaps.filter((gap) => gap > least && gap < maximum)];
  const cost = (after: number): number => gaps.reduce((sum, gap) => sum + (gap <= after ? gap : after + even), 0);
  // Of those that cost the same the shortest, which frees the node sooner.
  return candidates.toSorted((one, other) => cost(one) - cost(other) || one - other)[0] ?? even;
}
