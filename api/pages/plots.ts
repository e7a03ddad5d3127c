// Plots of benchmarks as SVG: quality against cost per success, and latency by model, with their scales and labels.
import { type Html, html } from '../http/index.ts';
import type { ModelView } from '../catalog/index.ts';
import type { Visit } from './visit.ts';

const [width, height] = [520, 360];
/** The right margin fits half of the last amount below the axis, like $0.00000025. */
const frame = { left: 52, right: width - 40, top: 16, bottom: height - 52 };

interface Dot {
  readonly name: string;
  readonly cost: number;
  readonly rate: number;
  readonly interval: readonly [number, number] | undefined;
}

/** Selects the models that can be drawn: those with a rate and a cost per success. */
export function selectDrawable(models: readonly ModelView[]): Dot[] {
  return models.flatMap(({ model, quality: { rate, interval }, cost_per_success_usd: cost }) =>
    typeof rate === 'number' && typeof cost === 'number' && cost >= 0
      ? [{ name: model, cost, rate, interval: interval ?? undefined }]
      : [],
  );
}

export function renderScatterPlot(dots: readonly Dot[], visit: Visit): Html {
  const { text, format } = visit;
  const x = chooseScale(
    dots.map(({ cost }) => cost),
    [frame.left, frame.right],
  );
  const y = createLinearScale(1, [frame.bottom, frame.top]);
  const points = dots.map(({ name, cost, rate }) => ({ name, x: x.toCoordinate(cost), y: y.toCoordinate(rate) }));
  return html`<svg
    class="plot"
    viewBox="0 0 ${width} ${height}"
    role="img"
    aria-labelledby="scatter-title scatter-about"
  >
    <title id="scatter-title">${text.bench.scatter}</title>
    <desc id="scatter-about">${text.bench.scatterAbout(format.integer(dots.length))}</desc>
    ${renderGrid(x, y, visit)}
    ${dots.map(({ cost, interval }) =>
      interval === undefined
        ? ''
        : html`<path
            class="whisker"
            d="${formatWhisker(x.toCoordinate(cost), y.toCoordinate(interval[0]), y.toCoordinate(interval[1]))}"
          />`,
    )}
    ${points.map((point) => html`<circle class="dot" cx="${formatCoordinate(point.x)}" cy="${formatCoordinate(point.y)}" r="5" />`)}
    ${placeLabels(points, width).map(
      (label) =>
        html`<text
          class="name"
          x="${formatCoordinate(label.x)}"
          y="${formatCoordinate(label.y)}"
          text-anchor="${label.anchor}"
          >${label.name}</text
        >`,
    )}
    <text class="axis" x="${(frame.left + frame.right) / 2}" y="${height - 8}" text-anchor="middle">
      ${text.bench.scatterX}
    </text>
    <text
      class="axis"
      x="14"
      y="${(frame.top + frame.bottom) / 2}"
      text-anchor="middle"
      transform="rotate(-90 14 ${(frame.top + frame.bottom) / 2})"
    >
      ${text.bench.scatterY}
    </text>
  </svg>`;
}

function renderGrid(x: Scale, y: Scale, { format }: Visit): Html {
  return html`${y.ticks.map(
    (tick) =>
      html`<path class="line" d="M${frame.left} ${formatCoordinate(y.toCoordinate(tick))}H${frame.right}" />
        <text class="tick" x="${frame.left - 8}" y="${formatCoordinate(y.toCoordinate(tick) + 4)}" text-anchor="end"
          >${format.percent(tick)}</text
        >`,
  )}
  ${x.ticks.map(
    (tick) =>
      html`<path class="line" d="M${formatCoordinate(x.toCoordinate(tick))} ${frame.top}V${frame.bottom}" />
        <text class="tick" x="${formatCoordinate(x.toCoordinate(tick))}" y="${frame.bottom + 18}" text-anchor="middle"
          >${format.money(tick)}</text
        >`,
  )}`;
}

function formatWhisker(x: number, low: number, high: number): string {
  const [left, right] = [formatCoordinate(x - 4), formatCoordinate(x + 4)];
  return `M${formatCoordinate(x)} ${formatCoordinate(low)}V${formatCoordinate(high)}M${left} ${formatCoordinate(low)}H${right}M${left} ${formatCoordinate(high)}H${right}`;
}

/** Rounds to a tenth of a unit, which is finer than a screen shows. */
export function formatCoordinate(value: number): string {
  return String(Math.round(value * 10) / 10);
}

const latencyWidth = 520;
const row = 34;
const latencyFrame = { left: 150, right: latencyWidth - 24, top: 12 };
/** Characters of a name that fit. */
const longestName = 20;

interface Row {
  readonly name: string;
  readonly median: number;
  readonly p95: number;
}

/** Selects the models whose latency was measured. */
export function selectTimed(models: readonly ModelView[]): Row[] {
  return models.flatMap(({ model, latency_ms: latency }) =>
    typeof latency.p50 === 'number' && typeof latency.p95 === 'number'
      ? [{ name: model, median: latency.p50 / 1_000, p95: latency.p95 / 1_000 }]
      : [],
  );
}

export function renderLatencyPlot(rows: readonly Row[], { text, format }: Visit): Html {
  const bottom = latencyFrame.top + rows.length * row;
  const height = bottom + 52;
  const x = createLinearScale(Math.max(...rows.map(({ p95 }) => p95)), [latencyFrame.left, latencyFrame.right]);
  return html`<svg
    class="plot"
    viewBox="0 0 ${latencyWidth} ${height}"
    role="img"
    aria-labelledby="latency-title latency-about"
  >
    <title id="latency-title">${text.bench.latencyPlot}</title>
    <desc id="latency-about">${text.bench.latencyAbout(format.integer(rows.length))}</desc>
    ${x.ticks.map(
      (tick) =>
        html`<path class="line" d="M${formatCoordinate(x.toCoordinate(tick))} ${latencyFrame.top}V${bottom}" />
          <text class="tick" x="${formatCoordinate(x.toCoordinate(tick))}" y="${bottom + 18}" text-anchor="middle"
            >${format.decimal(tick)}</text
          >`,
    )}
    ${rows.map(({ name, median, p95 }, index) => {
      const y = latencyFrame.top + (index + 0.5) * row;
      return html`<text class="name" x="${latencyFrame.left - 12}" y="${y + 4}" text-anchor="end">${cut(name)}</text>
        <path
          class="whisker"
          d="M${formatCoordinate(x.toCoordinate(median))} ${y}H${formatCoordinate(x.toCoordinate(p95))}M${formatCoordinate(x.toCoordinate(p95))} ${y - 5}V${y + 5}"
        />
        <circle class="dot" cx="${formatCoordinate(x.toCoordinate(median))}" cy="${y}" r="5" />`;
    })}
    <text class="axis" x="${(latencyFrame.left + latencyFrame.right) / 2}" y="${height - 8}" text-anchor="middle">
      ${text.bench.latencyX}
    </text>
  </svg>`;
}

function cut(name: string): string {
  return name.length <= longestName ? name : `${name.slice(0, longestName - 1)}…`;
}

/** Maps values to positions, with ticks at round values. */
export interface Scale {
  readonly ticks: readonly number[];
  toCoordinate(value: number): number;
}

export type Range = readonly [start: number, end: number];

interface ScaleOptions {
  /** About how many steps it has. */
  readonly count?: number;
  /** Whether its ticks are whole numbers, as for things that are counted. */
  readonly isWhole?: boolean;
}

/** Creates a scale from zero to a round value not below the highest one. */
export function createLinearScale(
  highest: number,
  [start, end]: Range,
  { count = 5, isWhole = false }: ScaleOptions = {},
): Scale {
  const rounded = roundStep((highest > 0 ? highest : 1) / count);
  const step = isWhole ? Math.ceil(rounded) : rounded;
  const steps = Math.max(1, Math.ceil(highest / step - 1e-9));
  const top = step * steps;
  return {
    ticks: Array.from({ length: steps + 1 }, (_none, index) => Number((index * step).toPrecision(12))),
    toCoordinate: (value) => start + (Math.min(Math.max(value, 0), top) / top) * (end - start),
  };
}

/** Creates a scale by powers of ten, with ticks at 1, 2 and 5 if they fit. All values are above zero. */
export function createLogarithmicScale(lowest: number, highest: number, [start, end]: Range): Scale {
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
    toCoordinate: (value) => start + ((Math.log10(value) - low) / (high - low)) * (end - start),
  };
}

/** The widest spread that a linear scale still shows well. */
const linearSpread = 20;

/** Chooses a linear scale if the values are close together, otherwise a logarithmic one. */
export function chooseScale(values: readonly number[], range: Range): Scale {
  const [lowest, highest] = [Math.min(...values), Math.max(...values)];
  return lowest > 0 && highest / lowest > linearSpread
    ? createLogarithmicScale(lowest, highest, range)
    : createLinearScale(highest, range);
}

function roundStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 2.5, 5].find((one) => one * power >= rough * (1 - 1e-9)) ?? 10;
  return factor * power;
}

export interface Point {
  readonly name: string;
  readonly x: number;
  readonly y: number;
}

export interface Label extends Point {
  readonly anchor: 'start' | 'end' | 'middle';
}

interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** Approximate width of a letter of a label, and the height of its line. */
const letterWidth = 6.6;
const labelHeight = 14;
const labelGap = 8;

/**
 * Places names next to their points so that, if possible, they cover neither each other nor a point.
 * @param width of the plot, which no label leaves
 */
export function placeLabels(points: readonly Point[], width: number): Label[] {
  const taken: Box[] = points.map(({ x, y }) => ({ left: x - 5, right: x + 5, top: y - 5, bottom: y + 5 }));
  return points.map((point) => {
    const candidates = listPositions(point);
    const fits = candidates.filter((label) => {
      const { left, right } = measureLabel(label);
      return left >= 0 && right <= width;
    });
    const free = fits.find((label) => taken.every((box) => !isOverlapping(box, measureLabel(label))));
    const chosen = free ?? fits[0] ?? candidates[0] ?? { ...point, anchor: 'start' };
    taken.push(measureLabel(chosen));
    return chosen;
  });
}

function listPositions({ name, x, y }: Point): Label[] {
  const lines = [0, -labelHeight, labelHeight, -2 * labelHeight, 2 * labelHeight];
  return lines.flatMap((line): Label[] => [
    { name, x: x + labelGap, y: y + 4 + line, anchor: 'start' },
    { name, x: x - labelGap, y: y + 4 + line, anchor: 'end' },
  ]);
}

function measureLabel({ name, x, y, anchor }: Label): Box {
  const wide = name.length * letterWidth;
  const left = anchor === 'start' ? x : x - wide;
  return { left, right: left + wide, top: y - labelHeight + 3, bottom: y + 3 };
}

function isOverlapping(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}
