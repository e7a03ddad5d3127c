// How an app did over time, on its author's page: a plot of each measure as SVG, and a table of the same values.
import type { z } from 'zod';
import { figureRanges, type figuresView } from '../apps/index.ts';
import { formatUsd } from '../billing/index.ts';
import { type Html, html } from '../http/index.ts';
import type { ManageContent } from './manage-content.ts';
import { formatOrMissing, renderMissing, renderTable } from './parts.ts';
import { createLinearScale, formatCoordinate } from './plots.ts';
import type { Visit } from './visit.ts';

type Figures = z.output<typeof figuresView>;
type Bucket = Figures['buckets'][number];
type Measure = Exclude<keyof Figures['total'], 'model_costs_pending'>;
type FigureRange = Figures['range'];

const bucketMs: Readonly<Record<Figures['bucket'], number>> = { hour: 3_600_000, day: 86_400_000 };
/** Buckets of a whole range. A younger app has fewer, which are drawn at the right end. */
const slots: Readonly<Record<FigureRange, number>> = { '24h': 24, '7d': 168, '30d': 30 };

/** The range in the address of the page; 24h for any other. */
export function readFigureRange(text: string | undefined): FigureRange {
  return figureRanges.find((range) => range === text) ?? '24h';
}

export function renderFigures({ figures, slug }: Pick<ManageContent, 'figures' | 'slug'>, visit: Visit): Html {
  if (figures === undefined) return html``;
  const { text, format } = visit;
  const words = text.manage.figures;
  const path = `/apps/${encodeURIComponent(slug)}/manage`;
  const links = figureRanges.map((range) => {
    const href = `${visit.link(path, { range })}#figures`;
    return range === figures.range
      ? html`<a class="button" href="${href}" aria-current="true">${words.ranges[range]}</a>`
      : html`<a class="button quiet" href="${href}">${words.ranges[range]}</a>`;
  });
  return html`<section aria-labelledby="figures">
    <h2 id="figures">${words.title}</h2>
    <nav class="actions" aria-label="${words.range}">${links}</nav>
    ${
      figures.buckets.length === 0
        ? html`<p class="empty">${words.none} ${format.dateTime(figures.since)}</p>`
        : html`<p>${words.lead[figures.bucket]}</p>
            <div class="plots small">${listPlots(figures, visit).map((plot) => renderPlot(plot, visit))}</div>
            <details>
              <summary>${words.table}</summary>
              ${renderValues(figures, visit)} ${renderEarnings(figures, visit)}
            </details>`
    }
  </section>`;
}

/** How the values of a measure are written. */
function createFormat(measure: Measure, { format }: Visit): (value: number) => string {
  switch (measure) {
    case 'requests':
    case 'errors_4xx':
    case 'errors_5xx':
      return format.integer;
    case 'latency_ms':
      return format.duration;
    case 'cpu_cores':
      return formatCores;
    case 'memory_mib':
      return format.decimal;
    case 'model_cost_usd':
    case 'earnings_usd':
      return format.money;
  }
}

/** Ticks may be thousands. */
function createTickFormat(measure: Measure, visit: Visit): (value: number) => string {
  return isCount(measure) ? visit.format.compact : createFormat(measure, visit);
}

/** Two significant digits: idle apps use thousandths. */
function formatCores(value: number): string {
  return value === 0 || value >= 0.0001 ? String(Number(value.toPrecision(2))) : '<0.0001';
}

interface Plot {
  readonly measure: Measure;
  /** By time; null where there is nothing to draw. */
  readonly values: readonly (number | null)[];
  /** Whether the time was not measured. */
  readonly gaps: readonly boolean[];
  /** Labels of the axis, by index. */
  readonly labels: ReadonlyMap<number, string>;
  readonly by: Figures['bucket'];
  /** The lowest value that the scale reaches. */
  readonly least: number;
  /** Whether the ticks are whole numbers. */
  readonly isWhole: boolean;
  /** Sum or mean. */
  readonly total: Html | string;
  /** Why there are no values. */
  readonly missing: string | undefined;
}

function listPlots(figures: Figures, visit: Visit): Plot[] {
  const { buckets, bucket: by, range, total, unmeasured, earnings } = figures;
  const before = Array.from({ length: slots[range] - buckets.length }, () => null);
  const first = Date.parse(buckets[0]?.start ?? figures.since);
  const earlier = before.map((_none, index) => new Date(first - (before.length - index) * bucketMs[by]).toISOString());
  const labels = selectLabels([...earlier, ...buckets.map(({ start }) => start)], by);
  const words = visit.text.manage.figures;
  const explain = (measured: keyof typeof unmeasured): string | undefined =>
    unmeasured[measured] === undefined ? undefined : words.unmeasured[measured];
  const plot = (measure: Exclude<Measure, 'earnings_usd'>, least: number, missing?: string): Plot => {
    const values = [...before, ...buckets.map((bucket) => toNumber(bucket[measure]))];
    // Without requests there is no latency to measure.
    const source = measure === 'latency_ms' ? 'requests' : measure;
    const gaps = [...before.map(() => true), ...buckets.map((bucket) => bucket[source] === null)];
    return {
      ...{ measure, values, gaps, labels, by, least, missing },
      ...{ isWhole: isCount(measure), total: renderTotal(total, measure, visit) },
    };
  };
  return [
    plot('requests', 3, explain('requests')),
    plot('errors_4xx', 3, explain('requests')),
    plot('errors_5xx', 3, explain('requests')),
    plot('latency_ms', 10, explain('requests')),
    plot('cpu_cores', 0.001, explain('compute')),
    plot('memory_mib', 10, explain('compute')),
    plot('model_cost_usd', chooseLeastAmount(buckets.map(({ model_cost_usd: cost }) => cost))),
    {
      ...{ measure: 'earnings_usd', by: 'day', isWhole: false },
      missing: explain('earnings') ?? (earnings.length === 0 ? words.noDay : undefined),
      least: chooseLeastAmount(earnings.map(({ earnings_usd: amount }) => amount)),
      values: earnings.map(({ earnings_usd: value }) => toNumber(value)),
      gaps: earnings.map(({ earnings_usd: value }) => value === null),
      labels: selectLabels(
        earnings.map(({ day }) => day),
        'day',
      ),
      total: renderTotal(total, 'earnings_usd', visit),
    },
  ];
}

function isCount(measure: Measure): boolean {
  return measure === 'requests' || measure === 'errors_4xx' || measure === 'errors_5xx';
}

/** USD. Finer ticks would not fit next to the plot; without any amount, a cent is enough. */
function chooseLeastAmount(amounts: readonly (string | null)[]): number {
  return amounts.some((amount) => Number(amount) > 0) ? 0.0001 : 0.01;
}

function toNumber(value: number | string | null): number | null {
  return value === null ? null : Number(value);
}

/** The sum or the mean; of money every digit. */
function renderTotal(total: Figures['total'], measure: Measure, visit: Visit): Html | string {
  if (measure === 'model_cost_usd') return renderCost(total, visit);
  const value = total[measure];
  if (value === null) return renderMissing(visit);
  return typeof value === 'string' ? formatUsd(value) : createFormat(measure, visit)(value);
}

const maximumLabels = 5;

/** Labels for at most five buckets: hours of a day, days of a week or month. They are the same in all languages. */
function selectLabels(starts: readonly string[], by: Figures['bucket']): ReadonlyMap<number, string> {
  const isLong = by === 'hour' && starts.length > slots['24h'];
  const candidates = starts.flatMap((start, index): [number, string][] => {
    const hour = Number(start.slice(11, 13));
    if (by === 'day' || (isLong && hour === 0)) return [[index, start.slice(5, 10)]];
    return !isLong && hour % 6 === 0 ? [[index, start.slice(11, 16)]] : [];
  });
  const step = Math.ceil(candidates.length / maximumLabels);
  return new Map(candidates.filter((_label, index) => index % step === 0));
}

const [width, height] = [360, 170];
/** The left margin fits amounts like $10,000.00 and $0.00005. */
const frame = { left: 68, right: width - 12, top: 12, bottom: height - 30 };

function renderPlot(plot: Plot, visit: Visit): Html {
  const { measure, values, labels, by, least, isWhole, total, missing } = plot;
  const words = visit.text.manage.figures;
  const title = words.measures[measure];
  const known = values.flatMap((value) => value ?? []);
  if (missing !== undefined && known.length === 0)
    return html`<figure>
      <figcaption>${title}</figcaption>
      <p class="empty">${missing}</p>
    </figure>`;
  const highest = Math.max(0, ...known);
  const format = createTickFormat(measure, visit);
  const scale = createLinearScale(Math.max(highest, least), [frame.bottom, frame.top], { count: 3, isWhole });
  const slot = (frame.right - frame.left) / values.length;
  const toX = (index: number): number => frame.left + index * slot;
  const id = `figure-${measure.replaceAll('_', '-')}`;
  return html`<figure>
    <figcaption>${title} <span class="total">${total}</span></figcaption>
    <svg class="plot" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="${id}-title ${id}-about">
      <title id="${id}-title">${title}</title>
      <desc id="${id}-about">${words.about[by](createFormat(measure, visit)(highest))}</desc>
      <path class="gap" d="${drawGaps(plot.gaps, toX)}" />
      ${scale.ticks.map((tick) => {
        const y = formatCoordinate(scale.toCoordinate(tick));
        return html`<path class="line" d="M${frame.left} ${y}H${frame.right}" />
          <text class="tick" x="${frame.left - 6}" y="${Number(y) + 4}" text-anchor="end"
            >${tick === 0 ? '0' : format(tick)}</text
          >`;
      })}
      <path class="bar" d="${drawBars(values, toX, (value) => scale.toCoordinate(value))}" />
      ${[...labels].map(
        ([index, label]) =>
          html`<text class="tick" x="${formatCoordinate(toX(index + 0.5))}" y="${height - 10}" text-anchor="middle"
            >${label}</text
          >`,
      )}
    </svg>
  </figure>`;
}

/** A few days make no wall. */
const widestBar = 24;
const maximumSeparateBars = 60;

function drawBars(
  values: readonly (number | null)[],
  toX: (index: number) => number,
  toY: (value: number) => number,
): string {
  // Between two bars a fifth of a slot is left free, unless they are hair-thin.
  const part = values.length > maximumSeparateBars ? 1 : 0.8;
  const half = Math.min(widestBar, part * (toX(1) - toX(0))) / 2;
  return values
    .map((value, index) => {
      const middle = toX(index + 0.5);
      return value === null || value <= 0 ? '' : drawBox(middle - half, middle + half, toY(value));
    })
    .join('');
}

function drawGaps(gaps: readonly boolean[], toX: (index: number) => number): string {
  return gaps.map((isGap, index) => (isGap ? drawBox(toX(index), toX(index + 1), frame.top) : '')).join('');
}

function drawBox(left: number, right: number, top: number): string {
  const [x, end, y] = [left, right, top].map(formatCoordinate);
  return `M${x} ${frame.bottom}V${y}H${end}V${frame.bottom}Z`;
}

function renderValues({ buckets, bucket: by }: Figures, visit: Visit): Html {
  const { text, format } = visit;
  const words = text.manage.figures;
  const measures = ['requests', 'errors_4xx', 'errors_5xx', 'latency_ms', 'cpu_cores', 'memory_mib'] as const;
  const columns = [...measures, 'model_cost_usd' as const].map((measure) => ({
    title: words.measures[measure],
    number: true,
  }));
  const rows = buckets.map((bucket) => [
    by === 'day' ? format.date(bucket.start) : format.dateTime(bucket.start),
    ...measures.map((measure) => formatOrMissing(bucket[measure], createFormat(measure, visit), visit)),
    renderCost(bucket, visit),
  ]);
  return renderTable(words.table, [{ title: text.manage.at }, ...columns], rows);
}

type Cost = Pick<Bucket, 'model_cost_usd' | 'model_costs_pending'>;

function renderCost({ model_cost_usd: cost, model_costs_pending: pending }: Cost, visit: Visit): Html | string {
  if (cost === null) return renderMissing(visit);
  const known = formatUsd(cost);
  if (pending === null || pending === 0) return known;
  return html`${known} <small>${visit.text.manage.figures.pending(visit.format.integer(pending))}</small>`;
}

function renderEarnings({ earnings }: Figures, visit: Visit): Html {
  const words = visit.text.manage.figures;
  if (earnings.length === 0) return html``;
  return renderTable(
    words.measures.earnings_usd,
    [{ title: words.day }, { title: words.measures.earnings_usd, number: true }],
    earnings.map(({ day, earnings_usd: amount }) => [
      visit.format.date(day),
      amount === null ? renderMissing(visit) : formatUsd(amount),
    ]),
  );
}
