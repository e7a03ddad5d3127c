// Quality against cost per success as SVG: a dot for each model, with the interval of its quality.
import { type Html, html } from '../../http/index.ts';
import type { ModelResult } from '../data.ts';
import type { Visit } from '../visit.ts';
import { placeLabels } from './labels.ts';
import { linear, type Scale, scaleOf } from './scale.ts';

const [width, height] = [520, 360];
/** Room at the right for half of the last amount below the axis, like $0.00000025. */
const frame = { left: 52, right: width - 40, top: 16, bottom: height - 52 };

interface Dot {
  readonly name: string;
  readonly cost: number;
  readonly rate: number;
  readonly interval: readonly [number, number] | undefined;
}

/** The models that can be drawn: those with a rate and a cost per success. */
export function drawable(models: readonly ModelResult[]): Dot[] {
  return models.flatMap(({ model, quality: { rate, interval }, cost_per_success_usd: cost }) =>
    typeof rate === 'number' && typeof cost === 'number' && cost >= 0
      ? [{ name: model, cost, rate, interval: interval ?? undefined }]
      : [],
  );
}

export function scatter(dots: readonly Dot[], visit: Visit): Html {
  const { text, format } = visit;
  const x = scaleOf(
    dots.map(({ cost }) => cost),
    [frame.left, frame.right],
  );
  const y = linear(1, [frame.bottom, frame.top]);
  const points = dots.map(({ name, cost, rate }) => ({ name, x: x.at(cost), y: y.at(rate) }));
  return html`<svg
    class="plot"
    viewBox="0 0 ${width} ${height}"
    role="img"
    aria-labelledby="scatter-title scatter-about"
  >
    <title id="scatter-title">${text.bench.scatter}</title>
    <desc id="scatter-about">${text.bench.scatterAbout(format.integer(dots.length))}</desc>
    ${grid(x, y, visit)}
    ${dots.map(({ cost, interval }) =>
      interval === undefined
        ? ''
        : html`<path class="whisker" d="${whisker(x.at(cost), y.at(interval[0]), y.at(interval[1]))}" />`,
    )}
    ${points.map((point) => html`<circle class="dot" cx="${fixed(point.x)}" cy="${fixed(point.y)}" r="5" />`)}
    ${placeLabels(points, width).map(
      (label) =>
        html`<text class="name" x="${fixed(label.x)}" y="${fixed(label.y)}" text-anchor="${label.anchor}"
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

function grid(x: Scale, y: Scale, { format }: Visit): Html {
  return html`${y.ticks.map(
    (tick) =>
      html`<path class="line" d="M${frame.left} ${fixed(y.at(tick))}H${frame.right}" />
        <text class="tick" x="${frame.left - 8}" y="${fixed(y.at(tick) + 4)}" text-anchor="end"
          >${format.percent(tick)}</text
        >`,
  )}
  ${x.ticks.map(
    (tick) =>
      html`<path class="line" d="M${fixed(x.at(tick))} ${frame.top}V${frame.bottom}" />
        <text class="tick" x="${fixed(x.at(tick))}" y="${frame.bottom + 18}" text-anchor="middle"
          >${format.money(tick)}</text
        >`,
  )}`;
}

function whisker(x: number, low: number, high: number): string {
  const [left, right] = [fixed(x - 4), fixed(x + 4)];
  return `M${fixed(x)} ${fixed(low)}V${fixed(high)}M${left} ${fixed(low)}H${right}M${left} ${fixed(high)}H${right}`;
}

/** A tenth of a unit is finer than a screen shows. */
export function fixed(value: number): string {
  return String(Math.round(value * 10) / 10);
}
