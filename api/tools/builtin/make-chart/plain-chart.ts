// The plain form of a chart: a type, labels and values, or several series of them. It becomes a Vega-Lite specification.
import { z } from 'zod';
import type { FieldError } from '../../../../lib/problem.ts';
import { invalid, readPart } from '../../../http/index.ts';
import { textWidth } from '../../svg/text-width.ts';

export const chartTypes = ['bar', 'horizontal_bar', 'stacked_bar', 'line', 'area', 'scatter', 'pie', 'donut', 'histogram'] as const;
type ChartType = (typeof chartTypes)[number];

/** Other words for the same chart. */
const synonyms: Readonly<Record<string, ChartType>> = {
  column: 'bar',
  bars: 'bar',
  bar_chart: 'bar',
  grouped_bar: 'bar',
  barh: 'horizontal_bar',
  hbar: 'horizontal_bar',
  bar_horizontal: 'horizontal_bar',
  stacked: 'stacked_bar',
  lines: 'line',
  line_chart: 'line',
  point: 'scatter',
  points: 'scatter',
  scatterplot: 'scatter',
  scatter_plot: 'scatter',
  pie_chart: 'pie',
  doughnut: 'donut',
  hist: 'histogram',
};

export const chartType = z.preprocess((given) => {
  if (typeof given !== 'string') return given;
  const word = given.trim().toLowerCase().replaceAll(/[\s-]+/g, '_');
  return synonyms[word] ?? word;
}, z.enum(chartTypes));

const label = z.union([z.string(), z.number(), z.boolean()]).transform(String);
const number = z.union([z.number(), z.null(), z.string().regex(/^\s*-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i, 'is not a number').transform(Number)]);
const pair = z.union([
  z.tuple([number, number]).transform(([x, y]) => ({ x, y })),
  z.object({ x: number, y: number }),
]);
/** Numbers, or points of a scatter. */
const values = z.array(z.union([number, pair], { error: 'must be a number, null, or a point [x, y]' })).max(20_000);
const oneSeries = z.strictObject({ name: label.optional(), label: label.optional(), values: values.optional(), data: values.optional() });

const short = z.string().trim().max(1_000).optional();
const plainChart = z.strictObject({
  type: chartType.default('bar'),
  labels: z.array(label).max(5_000).optional(),
  values: z.union([values, z.record(z.string(), number)]).optional(),
  series: z.union([z.array(oneSeries).min(1).max(40), z.record(z.string(), values)]).optional(),
  title: short,
  x_label: short,
  y_label: short,
});
type PlainChart = z.output<typeof plainChart>;

type Value = z.output<typeof values>[number];
interface Series {
  readonly name: string | undefined;
  readonly values: readonly Value[];
  readonly field: string;
}
interface Point {
  readonly label: string | number;
  readonly value: number | null;
  readonly series: string;
  readonly order: number;
}

/** @throws Problem (invalid-request) that names the field */
export function plainSpec(given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const chart = readPart('query', plainChart, asWritten(given));
  const { type } = chart;
  const { labels, series } = seriesOf(chart);
  const all = series.flatMap((each) => each.values);
  if (all.every((value) => value === null || (typeof value === 'object' && (value.x === null || value.y === null))))
    throw refusal(series[0]?.field ?? 'values', 'has no number, so nothing would be drawn', 'Send at least one number.');
  const title = chart.title === undefined ? {} : { title: { text: wrapped(chart.title, 560, 15), fontSize: 15, anchor: 'start', offset: 12 } };
  const config = { view: { stroke: null }, axis: { titleFontSize: 12, labelFontSize: 11 }, legend: { labelFontSize: 11 } };
  return { ...title, config, ...body(type, series, labels, chart) };
}

/** Rows of label and value, which are as natural as two lists; an only series without a name. */
function asWritten(given: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { values: rows, series } = given;
  if (Array.isArray(series) && series.length > 0 && series.every((each) => typeof each === 'number' || each === null))
    return asWritten({ ...given, series: undefined, values: series });
  if (given['labels'] !== undefined || !Array.isArray(rows) || rows.length === 0) return given;
  const read = z.array(z.strictObject({ label, value: number })).safeParse(rows);
  if (!read.success) return given;
  return { ...given, labels: read.data.map((row) => row.label), values: read.data.map((row) => row.value) };
}

/** The plain form in place of a specification, also as Chart.js writes it. */
export function plainIn(spec: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> | undefined {
  if (typeof spec['type'] !== 'string' || ['mark', 'marks', 'layer', 'spec', 'concat', 'hconcat', 'vconcat', '$schema'].some((name) => name in spec)) return undefined;
  const chartJs = z.looseObject({ labels: z.unknown(), datasets: z.array(z.looseObject({ label: z.unknown(), data: z.unknown() })) }).safeParse(spec['data']);
  if (!chartJs.success) return spec;
  const { data, options, ...rest } = spec;
  void data;
  void options;
  return { ...rest, labels: chartJs.data.labels, series: chartJs.data.datasets.map(({ label: name, data: own }) => ({ ...(name === undefined ? {} : { name }), values: own })) };
}

function body(type: ChartType, series: readonly Series[], labels: readonly string[] | undefined, chart: PlainChart): Record<string, unknown> {
  if (type === 'pie' || type === 'donut') return pie(type, series, labels);
  if (type === 'histogram') return histogram(series, chart);
  if (type === 'scatter') return scatter(series, labels, chart);
  return categories(type, series, labels, chart);
}

function seriesOf(chart: PlainChart): { labels: readonly string[] | undefined; series: readonly Series[] } {
  const { values: given, series: many } = chart;
  if ((given === undefined) === (many === undefined))
    throw refusal(
      given === undefined ? 'values' : 'series',
      given === undefined ? 'is missing, and so is series' : 'cannot be combined with values',
      'Send values, a list of numbers, for one series, or series, such as {"2025": [1, 2], "2026": [3, 4]}, for several.',
    );
  const named = many === undefined ? undefined : listOf(many);
  if (named !== undefined) return checked(chart, named, chart.labels);
  if (Array.isArray(given)) return checked(chart, [{ name: undefined, values: given, field: 'values' }], chart.labels);
  if (chart.labels !== undefined)
    throw refusal('values', 'is an object whose names are labels, and labels is sent too', 'Send values as a list, or leave labels out.');
  const entries = Object.entries(given as Record<string, number | null>);
  return checked(chart, [{ name: undefined, values: entries.map(([, value]) => value), field: 'values' }], entries.map(([name]) => name));
}

function listOf(many: NonNullable<PlainChart['series']>): Series[] {
  if (!Array.isArray(many)) return Object.entries(many).map(([name, inner]) => ({ name, values: inner as readonly Value[], field: `series.${name}` }));
  return many.map(({ name, label: other, values: inner, data }, index) => {
    const field = `series[${index}].values`;
    const found = inner ?? data;
    if (found === undefined) throw refusal(field, 'is missing', 'Send each series as {"name": "…", "values": [1, 2, 3]}.');
    return { name: name ?? other ?? `Series ${index + 1}`, values: found, field };
  });
}

/** As many values as labels, and no name twice. */
function checked({ type = 'bar' }: PlainChart, series: readonly Series[], labels: readonly string[] | undefined): ReturnType<typeof seriesOf> {
  const twice = series.find(({ name }, index) => series.findIndex((other) => other.name === name) !== index);
  if (twice !== undefined) throw refusal('series', `has two series named ${JSON.stringify(twice.name)}`, 'Name each series differently.');
  for (const { values: inner, field } of series) {
    if (inner.length === 0) throw refusal(field, 'is empty, so nothing would be drawn', 'Send at least one number.');
    if (labels !== undefined && type !== 'histogram' && labels.length !== inner.length)
      throw refusal(field, `has ${inner.length} values, and labels has ${labels.length}`, 'Send as many values as labels; null where a value is missing.');
    if (type !== 'scatter' && inner.some((value) => typeof value === 'object' && value !== null))
      throw refusal(field, 'has points of x and y, which only scatter draws', 'Send numbers, or set type to scatter.');
  }
  return { labels, series };
}

/** Rows of a chart with names along one axis. Names that come twice stay apart by their order. */
function pointsOf(series: readonly Series[], labels: readonly string[] | undefined): Point[] {
  return series.flatMap(({ name = '', values: inner }) =>
    inner.map((value, index) => ({ label: labels?.[index] ?? index + 1, value: value as number | null, series: name, order: index })),
  );
}

const isoDate = /^\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?)?$/;

function categories(type: 'bar' | 'horizontal_bar' | 'stacked_bar' | 'line' | 'area', series: readonly Series[], labels: readonly string[] | undefined, chart: PlainChart): Record<string, unknown> {
  const isBar = type.endsWith('bar');
  const twice = labels?.find((each, index) => labels.indexOf(each) !== index);
  if (twice !== undefined) throw refusal('labels', `has ${JSON.stringify(twice)} twice, which would be drawn on one spot`, 'Name each label differently, or add the values up.');
  const broadest = 260;
  const longest = Math.max(0, ...(labels ?? []).map((each) => textWidth(each, 11)));
  // Names lie flat on the left where they are too broad, or too many, to stand below.
  const isFlat = type === 'horizontal_bar' || (isBar && (longest > 110 || (longest > 40 && (labels?.length ?? 0) > 16)));
  const isTime = !isBar && labels !== undefined && labels.length > 1 && labels.every((each) => isoDate.test(each) && !Number.isNaN(Date.parse(each)));
  const shown = isFlat ? labels?.map((each) => [wrapped(each, broadest, 11)].flat().join('\n')) : labels;
  const points = pointsOf(series, shown);
  const lines = Math.max(1, ...(shown ?? []).map((each) => each.split('\n').length));
  const isMany = series.length > 1;
  const [nameTitle, valueTitle] = axisTitles(chart, type === 'horizontal_bar');
  const name = {
    field: 'label',
    type: isTime ? 'temporal' : 'ordinal',
    sort: null,
    title: nameTitle,
    axis: { grid: false, ...(isTime || labels === undefined ? {} : nameAxis(labels, longest, isFlat)) },
    ...(isTime ? { scale: { type: 'utc' } } : {}),
  };
  const value = { field: 'value', type: 'quantitative', title: valueTitle, stack: type === 'stacked_bar' || (type === 'area' && isMany) ? 'zero' : null };
  const color = isMany ? { color: colorOf(series), ...(isBar && type !== 'stacked_bar' ? { [isFlat ? 'yOffset' : 'xOffset']: { field: 'series', sort: null } } : {}) } : {};
  return {
    data: { values: points },
    ...sizeOf(isBar, isFlat, labels?.length ?? series[0]?.values.length ?? 0, isMany && type !== 'stacked_bar' ? series.length : 1, lines),
    mark: markOf(type, points.length / series.length),
    encoding: { ...(isFlat ? { y: name, x: value } : { x: name, y: value }), ...color },
  };
}

/** Titles of names and of values: x_label is what stands below, unless a chart was turned for its names to fit. */
function axisTitles({ x_label: x, y_label: y }: PlainChart, isTurned: boolean): [Title, Title] {
  return isTurned ? [titleOf(y), titleOf(x)] : [titleOf(x), titleOf(y)];
}

type Title = string | string[] | null;
const titleOf = (text: string | undefined): Title => (text === undefined ? null : wrapped(text, 280, 12));

function nameAxis(labels: readonly string[], longest: number, isFlat: boolean): Record<string, unknown> {
  if (isFlat) return { labelExpr: "split(datum.label, '\\n')" };
  const room = Math.max(28, 520 / Math.max(1, labels.length));
  return { labelAngle: longest + 6 < room ? 0 : labels.length > 25 ? -90 : -45 };
}

function sizeOf(isBar: boolean, isFlat: boolean, count: number, beside: number, lines: number): Record<string, unknown> {
  const step = Math.max(isFlat ? 8 + 14 * lines : 28, 14 * beside + 8);
  if (isFlat) return { width: 480, height: { step } };
  const isNarrow = count * step < 520;
  return { width: isBar && !isNarrow ? { step } : Math.max(320, Math.min(560, count * 60)), height: 300 };
}

function markOf(type: string, count: number): Record<string, unknown> {
  if (type === 'line') return { type: 'line', point: count <= 60, strokeWidth: 2 };
  if (type === 'area') return { type: 'area', line: true, opacity: 0.7 };
  return { type: 'bar', cornerRadiusEnd: 2 };
}

function colorOf(series: readonly Series[]): Record<string, unknown> {
  return { field: 'series', type: 'nominal', sort: null, title: null, scale: { scheme: series.length > 10 ? 'tableau20' : 'tableau10' } };
}

function scatter(series: readonly Series[], labels: readonly string[] | undefined, chart: PlainChart): Record<string, unknown> {
  const xs = labels?.map(Number);
  const wrong = labels?.find((_, index) => !Number.isFinite(xs?.[index]));
  if (wrong !== undefined)
    throw refusal('labels', `has ${JSON.stringify(wrong)}, and a scatter needs numbers there`, 'Send numbers as labels, or values as points: [[x, y], …].');
  const rows = series.flatMap(({ name = '', values: inner }) =>
    inner.map((value, index) => ({ series: name, ...(typeof value === 'object' && value !== null ? value : { x: xs?.[index] ?? index + 1, y: value }) })),
  );
  const axis = (field: 'x' | 'y', title: string | undefined): Record<string, unknown> => ({ field, type: 'quantitative', title: titleOf(title), scale: { zero: false, nice: true } });
  return {
    data: { values: rows },
    width: 480,
    height: 320,
    mark: { type: 'point', filled: true, size: 45, opacity: 0.75 },
    encoding: { x: axis('x', chart.x_label), y: axis('y', chart.y_label), ...(series.length > 1 ? { color: colorOf(series) } : {}) },
  };
}

function histogram(series: readonly Series[], chart: PlainChart): Record<string, unknown> {
  if (series.length > 1) throw refusal('series', `has ${series.length} series, and a histogram draws one`, 'Send values, or call once for each.');
  return {
    data: { values: (series[0]?.values ?? []).map((value) => ({ value })) },
    width: 480,
    height: 300,
    mark: { type: 'bar' },
    encoding: {
      x: { field: 'value', type: 'quantitative', bin: { maxbins: 30 }, title: titleOf(chart.x_label) },
      y: { aggregate: 'count', type: 'quantitative', title: titleOf(chart.y_label ?? 'Count'), axis: { tickMinStep: 1 } },
    },
  };
}

const maxSlices = 20;

/** The share stands in the legend, where no slice is too thin for it. */
function pie(type: 'pie' | 'donut', series: readonly Series[], labels: readonly string[] | undefined): Record<string, unknown> {
  const [only] = series;
  if (only === undefined || series.length > 1) throw refusal('series', `has ${series.length} series, and a ${type} draws one`, 'Send values, or set type to bar.');
  const numbers = only.values.map((value) => (typeof value === 'number' ? value : 0));
  const total = numbers.reduce((sum, value) => sum + value, 0);
  const negative = numbers.find((value) => value < 0);
  if (negative !== undefined) throw refusal(only.field, `has ${negative}, and a ${type} cannot show negative values`, 'Set type to bar.');
  if (total === 0) throw refusal(only.field, 'has only zeros, so nothing would be drawn', 'Send at least one number above 0.');
  if (numbers.length > maxSlices) throw refusal(only.field, `has ${numbers.length} slices; a ${type} has at most ${maxSlices}`, 'Add small ones up, or set type to bar.');
  const rows = numbers.map((value, index) => ({
    label: `${labels?.[index] ?? String(index + 1)} – ${(100 * value / total).toFixed(1).replace(/\.0$/, '')} %`,
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
      color: { field: 'label', type: 'nominal', sort: null, title: null, scale: { scheme: rows.length > 10 ? 'tableau20' : 'tableau10' } },
    },
  };
}

/** Lines of a text that is broader than a chart. */
export function wrapped(text: string, width: number, size: number): string | string[] {
  const lines = text.split('\n').flatMap((line) => wrapLine(line, width, size));
  return lines.length > 1 ? lines : (lines[0] ?? '');
}

function wrapLine(line: string, width: number, size: number): string[] {
  if (textWidth(line, size, true) <= width) return [line];
  const lines: string[] = [];
  let current = '';
  // Words, and single letters of scripts without spaces.
  for (const part of line.split(/(?<=\s)|(?<=[\u2E80-\u9FFF\u3040-\u30FF\uAC00-\uD7A3\u0E00-\u0E7F])/u)) {
    if (current !== '' && textWidth(current + part, size, true) > width) {
      lines.push(current.trimEnd());
      current = '';
    }
    current += part;
  }
  return [...lines, current.trimEnd()];
}

function refusal(field: string, message: string, fix: string): ReturnType<typeof invalid> {
  return invalid([{ in: 'query', field, message, fix } satisfies FieldError]);
}
