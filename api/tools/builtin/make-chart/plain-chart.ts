// The plain form of a chart: a type, labels and values, or several series of them. It becomes a Vega-Lite specification.
import { z } from 'zod';
import { readPart } from '../../../http/index.ts';
import { wrapped } from '../../svg/wrapped-text.ts';
import { categories } from './plain-axes.ts';
import { histogram, pie, scatter } from './plain-shapes.ts';
import { refusal, type PlainData, type Series, type Value } from './series.ts';

export const chartTypes = [
  'bar',
  'horizontal_bar',
  'stacked_bar',
  'line',
  'area',
  'scatter',
  'pie',
  'donut',
  'histogram',
] as const;
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
  const word = given
    .trim()
    .toLowerCase()
    .replaceAll(/[\s-]+/g, '_');
  return synonyms[word] ?? word;
}, z.enum(chartTypes));

const label = z.union([z.string(), z.number(), z.boolean()]).transform(String);
const number = z.union([
  z.number(),
  z.null(),
  z
    .string()
    .regex(/^\s*-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i, 'is not a number')
    .transform(Number),
]);
const pair = z.union([z.tuple([number, number]).transform(([x, y]) => ({ x, y })), z.object({ x: number, y: number })]);
/** Numbers, or points of a scatter. */
const values = z.array(z.union([number, pair], { error: 'must be a number, null, or a point [x, y]' })).max(20_000);
const oneSeries = z.strictObject({
  name: label.optional(),
  label: label.optional(),
  values: values.optional(),
  data: values.optional(),
});

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

/** @throws Problem (invalid-request) that names the field */
export function plainSpec(given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const chart = readPart('query', plainChart, asWritten(given));
  const { type } = chart;
  const data = dataOf(chart);
  const { series } = data;
  const all = series.flatMap((each) => each.values);
  if (all.every((value) => value === null || (typeof value === 'object' && (value.x === null || value.y === null))))
    throw refusal(
      series[0]?.field ?? 'values',
      'has no number, so nothing would be drawn',
      'Send at least one number.',
    );
  const title =
    chart.title === undefined
      ? {}
      : { title: { text: wrapped(chart.title, 560, 15), fontSize: 15, anchor: 'start', offset: 12 } };
  const config = {
    view: { stroke: null },
    axis: { titleFontSize: 12, labelFontSize: 11 },
    legend: { labelFontSize: 11 },
  };
  return { ...title, config, ...bodyOf(type, data) };
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
  if (
    typeof spec['type'] !== 'string' ||
    ['mark', 'marks', 'layer', 'spec', 'concat', 'hconcat', 'vconcat', '$schema'].some((name) => name in spec)
  )
    return undefined;
  const chartJs = z
    .looseObject({ labels: z.unknown(), datasets: z.array(z.looseObject({ label: z.unknown(), data: z.unknown() })) })
    .safeParse(spec['data']);
  if (!chartJs.success) return spec;
  return {
    ...Object.fromEntries(Object.entries(spec).filter(([name]) => name !== 'data')),
    labels: chartJs.data.labels,
    series: chartJs.data.datasets.map(({ label: name, data: own }) => ({
      ...(name === undefined ? {} : { name }),
      values: own,
    })),
  };
}

function bodyOf(type: ChartType, data: PlainData): Record<string, unknown> {
  if (type === 'pie' || type === 'donut') return pie(type, data);
  if (type === 'histogram') return histogram(data);
  return type === 'scatter' ? scatter(data) : categories(type, data);
}

function dataOf(chart: PlainChart): PlainData {
  const { series, labels } = seriesOf(chart);
  checkSeries(chart.type, series, labels);
  return { series, labels, titles: { x: chart.x_label, y: chart.y_label } };
}

function seriesOf({ values: given, series: many, labels }: PlainChart): Pick<PlainData, 'series' | 'labels'> {
  if (given === undefined && many === undefined) throw refusal('values', 'is missing, and so is series', oneOrMany);
  if (given !== undefined && many !== undefined) throw refusal('series', 'cannot be combined with values', oneOrMany);
  if (many !== undefined) return { series: listOf(many), labels };
  if (Array.isArray(given)) return { series: [single(given)], labels };
  if (labels !== undefined)
    throw refusal(
      'values',
      'is an object whose names are labels, and labels is sent too',
      'Send values as a list, or leave labels out.',
    );
  const entries = Object.entries(given as Record<string, number | null>);
  return { series: [single(entries.map(([, value]) => value))], labels: entries.map(([name]) => name) };
}

const oneOrMany =
  'Send values, a list of numbers, for one series, or series, such as {"2025": [1, 2], "2026": [3, 4]}, for several.';

const single = (given: readonly Value[]): Series => ({ name: undefined, values: given, field: 'values' });

function listOf(many: NonNullable<PlainChart['series']>): Series[] {
  if (!Array.isArray(many))
    return Object.entries(many).map(([name, inner]) => ({
      name,
      values: inner as readonly Value[],
      field: `series.${name}`,
    }));
  return many.map(({ name, label: other, values: inner, data }, index) => {
    const field = `series[${index}].values`;
    const found = inner ?? data;
    if (found === undefined)
      throw refusal(field, 'is missing', 'Send each series as {"name": "…", "values": [1, 2, 3]}.');
    return { name: name ?? other ?? `Series ${index + 1}`, values: found, field };
  });
}

/** As many values as labels, and no name twice. */
function checkSeries(type: ChartType, series: readonly Series[], labels: readonly string[] | undefined): void {
  const twice = series.find(({ name }, index) => series.findIndex((other) => other.name === name) !== index);
  if (twice !== undefined)
    throw refusal('series', `has two series named ${JSON.stringify(twice.name)}`, 'Name each series differently.');
  for (const { values: inner, field } of series) {
    if (inner.length === 0) throw refusal(field, 'is empty, so nothing would be drawn', 'Send at least one number.');
    if (labels !== undefined && type !== 'histogram' && labels.length !== inner.length)
      throw refusal(
        field,
        `has ${inner.length} values, and labels has ${labels.length}`,
        'Send as many values as labels; null where a value is missing.',
      );
    if (type !== 'scatter' && inner.some((value) => typeof value === 'object' && value !== null))
      throw refusal(field, 'has points of x and y, which only scatter draws', 'Send numbers, or set type to scatter.');
  }
}
