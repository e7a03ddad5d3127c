// Scales of plots: from values to positions, with ticks at round values.

export interface Scale {
  readonly ticks: readonly number[];
  at(value: number): number;
}

export type Range = readonly [start: number, end: number];

/** From zero to a round value not below the highest one. */
export function linear(highest: number, [start, end]: Range, count = 5): Scale {
  const step = roundStep((highest > 0 ? highest : 1) / count);
  const steps = Math.max(1, Math.ceil(highest / step - 1e-9));
  const top = step * steps;
  return {
    ticks: Array.from({ length: steps + 1 }, (_none, index) => Number((index * step).toPrecision(12))),
    at: (value) => start + (Math.min(Math.max(value, 0), top) / top) * (end - start),
  };
}

/** By powers of ten, with ticks at 1, 2 and 5 where there is room for them. All values are above zero. */
export function logarithmic(lowest: number, highest: number, [start, end]: Range): Scale {
  const [low, high] = [
    Math.floor(Math.log10(lowest)),
    Math.max(Math.ceil(Math.log10(highest)), Math.floor(Math.log10(lowest)) + 1),
  ];
  const decades = Array.from({ length: high - low + 1 }, (_none, index) =>
    Number((10 ** (low + index)).toPrecision(6)),
  );
  const between = high - low > 2 ? [] : decades.slice(0, -1).flatMap((decade) => [2 * decade, 5 * decade]);
  return {
    ticks: [...decades, ...between.map((tick) => Number(tick.toPrecision(6)))].sort((a, b) => a - b),
    at: (value) => start + ((Math.log10(value) - low) / (high - low)) * (end - start),
  };
}

/** The widest spread that a linear scale still shows well. */
const linearSpread = 20;

/** Linear where the values are near each other, else logarithmic. */
export function scaleOf(values: readonly number[], range: Range): Scale {
  const [lowest, highest] = [Math.min(...values), Math.max(...values)];
  return lowest > 0 && highest / lowest > linearSpread ? logarithmic(lowest, highest, range) : linear(highest, range);
}

function roundStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 2.5, 5].find((one) => one * power >= rough * (1 - 1e-9)) ?? 10;
  return factor * power;
}
