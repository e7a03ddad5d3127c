// Latency by model as SVG: a dot at the median, a line to the 95th percentile.
import { type Html, html } from '../../http/index.ts';
import type { ModelResult } from '../data.ts';
import type { Visit } from '../visit.ts';
import { fixed } from './scatter.ts';
import { linear } from './scale.ts';

const width = 520;
const row = 34;
const frame = { left: 150, right: width - 24, top: 12 };
/** Letters of a name that there is room for. */
const longestName = 20;

interface Row {
  readonly name: string;
  readonly median: number;
  readonly p95: number;
}

/** The models whose latency was measured. */
export function timed(models: readonly ModelResult[]): Row[] {
  return models.flatMap(({ model, latency_ms: latency }) =>
    typeof latency?.p50 === 'number' && typeof latency.p95 === 'number'
      ? [{ name: model, median: latency.p50 / 1_000, p95: latency.p95 / 1_000 }]
      : [],
  );
}

export function latencyPlot(rows: readonly Row[], { text, format }: Visit): Html {
  const bottom = frame.top + rows.length * row;
  const height = bottom + 52;
  const x = linear(Math.max(...rows.map(({ p95 }) => p95)), [frame.left, frame.right]);
  return html`<svg
    class="plot"
    viewBox="0 0 ${width} ${height}"
    role="img"
    aria-labelledby="latency-title latency-about"
  >
    <title id="latency-title">${text.bench.latencyPlot}</title>
    <desc id="latency-about">${text.bench.latencyAbout(format.integer(rows.length))}</desc>
    ${x.ticks.map(
      (tick) =>
        html`<path class="line" d="M${fixed(x.at(tick))} ${frame.top}V${bottom}" />
          <text class="tick" x="${fixed(x.at(tick))}" y="${bottom + 18}" text-anchor="middle"
            >${format.decimal(tick)}</text
          >`,
    )}
    ${rows.map(({ name, median, p95 }, index) => {
      const y = frame.top + (index + 0.5) * row;
      return html`<text class="name" x="${frame.left - 12}" y="${y + 4}" text-anchor="end">${cut(name)}</text>
        <path
          class="whisker"
          d="M${fixed(x.at(median))} ${y}H${fixed(x.at(p95))}M${fixed(x.at(p95))} ${y - 5}V${y + 5}"
        />
        <circle class="dot" cx="${fixed(x.at(median))}" cy="${y}" r="5" />`;
    })}
    <text class="axis" x="${(frame.left + frame.right) / 2}" y="${height - 8}" text-anchor="middle">
      ${text.bench.latencyX}
    </text>
  </svg>`;
}

function cut(name: string): string {
  return name.length <= longestName ? name : `${name.slice(0, longestName - 1)}…`;
}
