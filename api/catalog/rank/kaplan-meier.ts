// The Kaplan–Meier estimate: which share stays longer than a time, when some have not been followed for so long.

/** So many were followed for a time; at its end they left, or it is not known how they went on. */
export interface Observation {
  readonly time: number;
  readonly left: boolean;
  readonly count: number;
}

export interface Estimate {
  /** Share that stays longer than the time. */
  readonly value: number;
  /** Greenwood's standard error of it. */
  readonly standardError: number;
  /** 95 %. */
  readonly interval: readonly [low: number, high: number];
  /** How many were observed. */
  readonly n: number;
}

const z = 1.959963984540054;

/** Undefined where nobody who still stays was followed for so long. */
export function kaplanMeier(observations: readonly Observation[], time: number): Estimate | undefined {
  const n = observations.reduce((sum, { count }) => sum + count, 0);
  const { value, variance, left, atRisk } = untilTime(observations, time, n);
  const isFollowed = observations.some((one) => one.time >= time) || value === 0;
  if (n === 0 || !isFollowed) return undefined;
  return {
    value,
    standardError: value * Math.sqrt(variance),
    interval: value === 0 || value === 1 ? wilson(value, left + atRisk) : logLog(value, variance),
    n,
  };
}

/** Product and Greenwood's sum over all times at which somebody left; who leaves at a time was still there at it. */
function untilTime(
  observations: readonly Observation[],
  time: number,
  n: number,
): { value: number; variance: number; left: number; atRisk: number } {
  let [value, variance, left, atRisk] = [1, 0, 0, n];
  const byTime = Map.groupBy(observations, (one) => one.time);
  for (const at of [...byTime.keys()].sort((a, b) => a - b)) {
    if (at > time) break;
    const here = byTime.get(at) ?? [];
    const leaving = sum(here.filter((one) => one.left));
    if (leaving > 0) {
      value = leaving === atRisk ? 0 : value * (1 - leaving / atRisk);
      variance += leaving === atRisk ? 0 : leaving / (atRisk * (atRisk - leaving));
      left += leaving;
    }
    // Who was followed to just this time is still at risk after it, as far as the interval at 0 and 1 is concerned.
    atRisk -= at === time ? leaving : sum(here);
  }
  return { value, variance, left, atRisk };
}

function sum(observations: readonly Observation[]): number {
  return observations.reduce((total, { count }) => total + count, 0);
}

/** On the scale of log(-log): it never leaves 0 to 1, and is good with few observations. */
function logLog(value: number, variance: number): [number, number] {
  const width = (z * Math.sqrt(variance)) / Math.abs(Math.log(value));
  return [value ** Math.exp(width), value ** Math.exp(-width)];
}

/** Where all or none left the other has no width: Wilson's, of those who were followed to the end. */
function wilson(value: number, n: number): [number, number] {
  const bound = (z * z) / (n + z * z);
  return value === 0 ? [0, bound] : [1 - bound, 1];
}
