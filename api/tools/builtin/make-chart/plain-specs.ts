// Builds the Vega-Lite specification of a plain chart: with names or dates along one axis, or scatter, histogram, pie
// and donut.
import type { FieldError } from '../../../../lib/problem.ts';
import { createValidationProblem } from '../../../http/index.ts';
import { measureTextWidth } from '../../svg/text-width.ts';
import { wrapText } from '../../svg/text-width.ts';

/** A number, or a point of a scatter. */
export type PlainValue = number | null | { readonly x: number | null; readonly y: number | null };

export interface PlainSeries {
  readonly name: string | undefined;
  readonly values: readonly PlainValue[];
  /** Its field in the call, for error messages. */
  readonly field: string;
}

export interface PlainData {
  readonly series: readonly PlainSeries[];
  readonly labels: readonly string[] | undefined;
  readonly titles: { readonly x: string | undefined; readonly y: string | undefined };
}

export function createFieldProblem(
  field: string,
  message: string,
  fix: string,
): ReturnType<typeof createValidationProblem> {
  return createValidationProblem([{ in: 'query', field, message, fix } satisfies FieldError]);
}

type CategoryChart = 'bar' | 'horizontal_bar' | 'stacked_bar' | 'line' | 'area';
type SpecFields = Record<string, unknown>;

/** Width in pixels beyond which a name on the left is wrapText. */
const maxLabelWidth = 260;
const isoDate = /^\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?)?$/;

/** Layout of a chart with names. */
interface CategoryPlan {
  readonly kind: CategoryChart;
  readonly isBar: boolean;
  /** Whether names lie on the left. */
  readonly isFlat: boolean;
  readonly isTime: boolean;
  readonly longest: number;
  /** With line breaks, as drawn. */
  readonly labels: readonly string[] | undefined;
  readonly series: readonly PlainSeries[];
  /** Number of bars per name. */
  readonly barsPerName: number;
}

export function buildCategorySpec(kind: CategoryChart, { series, labels, titles }: PlainData): SpecFields {
  const plan = planCategories(kind, series, labels);
  const { isFlat } = plan;
  // x_label titles the axis below, unless the chart was turned so that its names fit.
  const [nameTitle, valueTitle] = kind === 'horizontal_bar' ? [titles.y, titles.x] : [titles.x, titles.y];
  const name = buildNameChannel(plan, nameTitle);
  const value = {
    field: 'value',
    type: 'quantitative',
    title: toTitle(valueTitle),
    stack: kind === 'stacked_bar' || (kind === 'area' && series.length > 1) ? 'zero' : null,
  };
  const rows = toRows(plan);
  return {
    data: { values: rows },
    ...chooseSize(plan),
    mark: chooseMark(kind, rows.length / series.length),
    encoding: { ...(isFlat ? { y: name, x: value } : { x: name, y: value }), ...buildSeriesColor(plan) },
  };
}

function planCategories(
  kind: CategoryChart,
  series: readonly PlainSeries[],
  labels: readonly string[] | undefined,
): CategoryPlan {
  assertDistinct(labels);
  const isBar = kind.endsWith('bar');
  const widths = (labels ?? []).map((each) => measureTextWidth(each, 11));
  const longest = Math.max(0, ...widths);
  const isFlat = kind === 'horizontal_bar' || (isBar && shouldLieFlat(longest, widths.length));
  return {
    kind,
    isBar,
    isFlat,
    isTime: !isBar && isDates(labels),
    longest,
    labels: isFlat ? labels?.map((each) => [wrapText(each, maxLabelWidth, 11)].flat().join('\n')) : labels,
    series,
    barsPerName: isBar && kind !== 'stacked_bar' ? series.length : 1,
  };
}

function assertDistinct(labels: readonly string[] | undefined): void {
  const twice = labels?.find((each, index) => labels.indexOf(each) !== index);
  if (twice === undefined) return;
  throw createFieldProblem(
    'labels',
    `has ${JSON.stringify(twice)} twice, which would be drawn on one spot`,
    'Name each label differently, or add the values up.',
  );
}

/** Whether names are too wide, or too many, to stand below. */
const shouldLieFlat = (longest: number, count: number): boolean => longest > 110 || (longest > 40 && count > 16);

function isDates(labels: readonly string[] | undefined): boolean {
  if (labels === undefined || labels.length < 2) return false;
  return labels.every((each) => isoDate.test(each) && !Number.isNaN(Date.parse(each)));
}

function toRows({ series, labels }: CategoryPlan): SpecFields[] {
  return series.flatMap(({ name = '', values }) =>
    values.map((value, index) => ({ label: labels?.[index] ?? index + 1, value, series: name })),
  );
}

function buildNameChannel({ isTime, isFlat, labels, longest }: CategoryPlan, title: string | undefined): SpecFields {
  const own = isTime || labels === undefined ? {} : buildLabelAxis(labels, longest, isFlat);
  return {
    field: 'label',
    type: isTime ? 'temporal' : 'ordinal',
    sort: null,
    title: toTitle(title),
    axis: { grid: false, ...own },
    ...(isTime ? { scale: { type: 'utc' } } : {}),
  };
}

function buildSeriesColor({ series, barsPerName, isFlat }: CategoryPlan): SpecFields {
  if (series.length < 2) return {};
  const offset = barsPerName > 1 ? { [isFlat ? 'yOffset' : 'xOffset']: { field: 'series', sort: null } } : {};
  return { color: buildColor(series), ...offset };
}

function buildColor(series: readonly PlainSeries[]): Record<string, unknown> {
  return {
    field: 'series',
    type: 'nominal',
    sort: null,
    title: null,
    scale: { scheme: series.length > 10 ? 'tableau20' : 'tableau10' },
  };
}

type ChartTitle = string | string[] | null;

function toTitle(text: string | undefined): ChartTitle {
  return text === undefined ? null : wrapText(text, 280, 12);
}

function buildLabelAxis(labels: readonly string[], longest: number, isFlat: boolean): Record<string, unknown> {
  if (isFlat) return { labelExpr: "split(datum.label, '\\n')" };
  const room = Math.max(28, 520 / Math.max(1, labels.length));
  return { labelAngle: longest + 6 < room ? 0 : labels.length > 25 ? -90 : -45 };
}

function chooseSize({ isBar, isFlat, labels, series, barsPerName }: CategoryPlan): SpecFields {
  const count = labels?.length ?? series[0]?.values.length ?? 0;
  const lines = Math.max(1, ...(labels ?? []).map((each) => each.split('\n').length));
  const step = Math.max(isFlat ? 8 + 14 * lines : 28, 14 * barsPerName + 8);
  if (isFlat) return { width: 480, height: { step } };
  const isNarrow = count * step < 520;
  return { width: isBar && !isNarrow ? { step } : Math.max(320, Math.min(560, count * 60)), height: 300 };
}

function chooseMark(type: string, count: number): Record<string, unknown> {
  if (type === 'line') return { type: 'line', point: count <= 60, strokeWidth: 2 };
  if (type === 'area') return { type: 'area', line: true, opacity: 0.7 };
  return { type: 'bar', cornerRadiusEnd: 2 };
}

export function buildScatterSpec({ series, labels, titles }: PlainData): Record<string, unknown> {
  const xs = labels?.map(Number);
  const wrong = labels?.find((_, index) => !Number.isFinite(xs?.[index]));
  if (wrong !== undefined)
    throw createFieldProblem(
      'labels',
      `has ${JSON.stringify(wrong)}, and a scatter needs numbers there`,
      'Send numbers as labels, or values as points: [[x, y], …].',
    );
  const rows = series.flatMap(({ name = '', values: inner }) =>
    inner.map((value, index) => ({
      series: name,
      ...(typeof value === 'object' && value !== null ? value : { x: xs?.[index] ?? index + 1, y: value }),
    })),
  );
  const axis = (field: 'x' | 'y', title: string | undefined): Record<string, unknown> => ({
    field,
    type: 'quantitative',
    title: toTitle(title),
    scale: { zero: false, nice: true },
  });
  return {
    data: { values: rows },
    width: 480,
    height: 320,
    mark: { type: 'point', filled: true, size: 45, opacity: 0.75 },
    encoding: {
      x: axis('x', titles.x),
      y: axis('y', titles.y),
      ...(series.length > 1 ? { color: buildColor(series) } : {}),
    },
  };
}

export function buildHistogramSpec({ series, titles }: PlainData): Record<string, unknown> {
  if (series.length > 1)
    throw createFieldProblem(
      'series',
      `has ${series.length} series, and a histogram draws one`,
      'Send values, or call once for each.',
    );
  return {
    data: { values: (series[0]?.values ?? []).map((value) => ({ value })) },
    width: 480,
    height: 300,
    mark: { type: 'bar' },
    encoding: {
      x: { field: 'value', type: 'quantitative', bin: { maxbins: 30 }, title: toTitle(titles.x) },
      y: {
        aggregate: 'count',
        type: 'quantitative',
        title: toTitle(titles.y ?? 'Count'),
        axis: { tickMinStep: 1 },
      },
    },
  };
}

const maxSlices = 20;

/** Shares are in the legend, which has room for them however thin a slice is. */
export function buildPieSpec(type: 'pie' | 'donut', { series, labels }: PlainData): Record<string, unknown> {
  const [only] = series;
  if (only === undefined || series.length > 1)
    throw createFieldProblem(
      'series',
      `has ${series.length} series, and a ${type} draws one`,
      'Send values, or set type to bar.',
    );
  const numbers = only.values.map((value) => (typeof value === 'number' ? value : 0));
  const total = numbers.reduce((sum, value) => sum + value, 0);
  const negative = numbers.find((value) => value < 0);
  if (negative !== undefined)
    throw createFieldProblem(
      only.field,
      `has ${negative}, and a ${type} cannot show negative values`,
      'Set type to bar.',
    );
  if (total === 0)
    throw createFieldProblem(
      only.field,
      'has only zeros, so nothing would be drawn',
      'Send at least one number above 0.',
    );
  if (numbers.length > maxSlices)
    throw createFieldProblem(
      only.field,
      `has ${numbers.length} slices; a ${type} has at most ${maxSlices}`,
      'Add small ones up, or set type to bar.',
    );
  const rows = numbers.map((value, index) => ({
    label: `${labels?.[index] ?? String(index + 1)} – ${((100 * value) / total).toFixed(1).replace(/\.0$/, '')} %`,
    value,
    order: index,
  }));
  return {
    data: { values: rows },
    width: 300,
    height: 300,
    mark: { type: 'arc', stroke: 'white', ...(type === 'donut' ? { innerRadius: 75 } : {}) },
    encoding: {
      theta: { field: 'value', type: 'quantitative', stack: true },
      order: { field: 'order', type: 'quantitative' },
      color: {
        field: 'label',
        type: 'nominal',
        sort: null,
        title: null,
        scale: { scheme: rows.length > 10 ? 'tableau20' : 'tableau10' },
      },
    },
  };
}
