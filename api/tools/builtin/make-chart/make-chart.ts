// The tool make_chart: draws a chart from a Vega-Lite or Vega specification, or from the plain form (type, labels and
// values, or several series), which becomes a Vega-Lite specification.
import { z } from 'zod';
import { jsonField, listField } from '../../engine/reading.ts';
import { requireOne } from '../../inputs/fields.ts';
import type { ToolDependencies } from '../../tool.ts';
import { toArtifact, pictureFields, scaleField, type Picture } from '../../svg/picture.ts';
import { defineTool, type Tool } from '../../tool.ts';
import type { Workers, WorkerCall } from '../../engine/workers/workers.ts';
import type { PictureOptions } from '../../svg/draw.ts';
import { makePicture } from '../../svg/picture.ts';
import { readPart } from '../../../http/index.ts';
import { wrapText } from '../../svg/text-width.ts';
import {
  buildCategorySpec,
  buildHistogramSpec,
  buildPieSpec,
  buildScatterSpec,
  createFieldProblem,
  type PlainData,
  type PlainSeries,
  type PlainValue,
} from './plain-specs.ts';

const labelText = z.string().max(1_000);

export function createMakeChartTool({ workers }: ToolDependencies): Tool {
  return defineTool({
    name: 'make_chart',
    title: 'Make a chart',
    description:
      'Draws a chart from type, labels and values (or series), or from a Vega-Lite specification (Vega if its $schema says so) with its data in data.values: nothing is loaded. Unknown fields and properties, missing data and empty marks are rejected by name, free of charge. Returns a PNG or SVG file of up to 8000 pixels per side before scaling.',
    input: z.strictObject({
      type: chartType.optional().describe('Kind of a plain chart. Default: bar.'),
      labels: listField(z.unknown()).optional().describe('Names or dates, one per value.'),
      values: listField(z.unknown()).optional().describe('Numbers or null; for scatter also [[x, y], …].'),
      series: listField(z.unknown())
        .optional()
        .describe('{"name": [1, 2]} or [{"name": …, "values": [1, 2]}], instead of values.'),
      title: labelText.optional().describe('Title.'),
      x_label: labelText.optional().describe('Title of the x axis.'),
      y_label: labelText.optional().describe('Title of the y axis.'),
      spec: jsonField(z.record(z.string(), z.unknown(), { error: 'must be a Vega-Lite specification: a JSON object' }))
        .optional()
        .describe(
          'Vega-Lite specification with its data, as a JSON object (not as text); alternative to type, labels and values.',
        ),
      format: z.enum(['svg', 'png']).default('png').describe('Picture format: png (default) or svg.'),
      scale: scaleField,
    }),
    aliases: {
      vega: 'spec',
      vega_lite: 'spec',
      specification: 'spec',
      chart: 'spec',
      kind: 'type',
      chart_type: 'type',
      categories: 'labels',
      data: 'values',
      datasets: 'series',
      xlabel: 'x_label',
      ylabel: 'y_label',
      x_title: 'x_label',
      y_title: 'y_label',
    },
    output: z.object({
      ...pictureFields,
      language: z.enum(['vega-lite', 'vega']).describe('Language the specification was read as.'),
    }),
    example: {
      spec: {
        data: {
          values: [
            { month: 'Jan', sales: 28 },
            { month: 'Feb', sales: 55 },
            { month: 'Mar', sales: 43 },
          ],
        },
        mark: 'bar',
        encoding: { x: { field: 'month', type: 'ordinal', sort: null }, y: { field: 'sales', type: 'quantitative' } },
      },
    },
    price: '0.0001',
    artifacts: ['image/png', 'image/svg+xml'],
    openWorld: false,
    async run({ spec, format, scale, ...plain }, context) {
      const given = Object.fromEntries(Object.entries(plain).filter(([, value]) => value !== undefined));
      const isPlain = Object.keys(given).length > 0;
      requireOne(['spec', isPlain ? (Object.keys(given)[0] ?? 'values') : 'values'], { spec, ...given });
      const { made, language } = await drawChart(workers, { spec: spec ?? given, isPlain }, { format, scale }, context);
      const { width, height, warnings } = made;
      return { result: { format, width, height, warnings, language }, artifact: toArtifact(made, 'chart') };
    },
  });
}

const chartWorker = new URL('worker.ts', import.meta.url);

export interface ChartSource {
  readonly spec: Readonly<Record<string, unknown>>;
  /** Whether it is known to be the plain form; otherwise this is detected. */
  readonly isPlain?: boolean;
}

/**
 * Draws a chart in a worker; also used for charts on slides. @throws Problem (invalid-request, unprocessable,
 * tool-limit)
 */
export async function drawChart(
  workers: Workers,
  { spec: given, isPlain = false }: ChartSource,
  options: PictureOptions,
  call: WorkerCall,
): Promise<{ made: Picture; language: 'vega' | 'vega-lite' }> {
  const plain = isPlain ? given : readPlainForm(given);
  const spec = plain === undefined ? given : toVegaLite(plain);
  const { $schema } = spec;
  const language = typeof $schema === 'string' && /\/schema\/vega\/v\d/.test($schema) ? 'vega' : 'vega-lite';
  const task = { module: chartWorker, input: { spec, language, ...options }, timeoutMs: 10_000 };
  return { made: await makePicture(workers, task, call, options), language };
}

const chartTypes = [
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

/** Other accepted names. */
const typeSynonyms: Readonly<Record<string, ChartType>> = {
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

const chartType = z.preprocess((given) => {
  if (typeof given !== 'string') return given;
  const word = given
    .trim()
    .toLowerCase()
    .replaceAll(/[\s-]+/g, '_');
  return typeSynonyms[word] ?? word;
}, z.enum(chartTypes));

const plainLabel = z.union([z.string(), z.number(), z.boolean()]).transform(String);
const plainNumber = z.union([
  z.number(),
  z.null(),
  z
    .string()
    .regex(/^\s*-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i, 'is not a number')
    .transform(Number),
]);
const plainPoint = z.union([
  z.tuple([plainNumber, plainNumber]).transform(([x, y]) => ({ x, y })),
  z.object({ x: plainNumber, y: plainNumber }),
]);
/** Numbers, or points of a scatter chart. */
const plainValues = z
  .array(z.union([plainNumber, plainPoint], { error: 'must be a number, null, or a point [x, y]' }))
  .max(20_000);
const oneSeries = z.strictObject({
  name: plainLabel.optional(),
  label: plainLabel.optional(),
  values: plainValues.optional(),
  data: plainValues.optional(),
});

const shortText = z.string().trim().max(1_000).optional();
const plainChart = z.strictObject({
  type: chartType.default('bar'),
  labels: z.array(plainLabel).max(5_000).optional(),
  values: z.union([plainValues, z.record(z.string(), plainNumber)]).optional(),
  series: z.union([z.array(oneSeries).min(1).max(40), z.record(z.string(), plainValues)]).optional(),
  title: shortText,
  x_label: shortText,
  y_label: shortText,
});
type PlainChart = z.output<typeof plainChart>;

/** @throws Problem (invalid-request) that names the field */
export function toVegaLite(given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const chart = readPart('query', plainChart, normalizeRows(given));
  const { type } = chart;
  const data = readPlainData(chart);
  const { series } = data;
  const all = series.flatMap((each) => each.values);
  if (all.every((value) => value === null || (typeof value === 'object' && (value.x === null || value.y === null))))
    throw createFieldProblem(
      series[0]?.field ?? 'values',
      'has no number, so nothing would be drawn',
      'Send at least one number.',
    );
  const title =
    chart.title === undefined
      ? {}
      : { title: { text: wrapText(chart.title, 560, 15), fontSize: 15, anchor: 'start', offset: 12 } };
  const config = {
    view: { stroke: null },
    axis: { titleFontSize: 12, labelFontSize: 11 },
    legend: { labelFontSize: 11 },
  };
  return { ...title, config, ...buildBody(type, data) };
}

/** Also accepts rows of label and value instead of two lists, and a single series without a name. */
function normalizeRows(given: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { values: rows, series } = given;
  if (Array.isArray(series) && series.length > 0 && series.every((each) => typeof each === 'number' || each === null))
    return normalizeRows({ ...given, series: undefined, values: series });
  if (given['labels'] !== undefined || !Array.isArray(rows) || rows.length === 0) return given;
  const read = z.array(z.strictObject({ label: plainLabel, value: plainNumber })).safeParse(rows);
  if (!read.success) return given;
  return { ...given, labels: read.data.map((row) => row.label), values: read.data.map((row) => row.value) };
}

/** Detects the plain form, also as Chart.js writes it, instead of a specification. */
export function readPlainForm(spec: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> | undefined {
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

function buildBody(type: ChartType, data: PlainData): Record<string, unknown> {
  if (type === 'pie' || type === 'donut') return buildPieSpec(type, data);
  if (type === 'histogram') return buildHistogramSpec(data);
  return type === 'scatter' ? buildScatterSpec(data) : buildCategorySpec(type, data);
}

function readPlainData(chart: PlainChart): PlainData {
  const { series, labels } = readSeries(chart);
  assertSeriesFit(chart.type, series, labels);
  return { series, labels, titles: { x: chart.x_label, y: chart.y_label } };
}

function readSeries({ values: given, series: many, labels }: PlainChart): Pick<PlainData, 'series' | 'labels'> {
  if (given === undefined && many === undefined)
    throw createFieldProblem('values', 'is missing, and so is series', seriesFix);
  if (given !== undefined && many !== undefined)
    throw createFieldProblem('series', 'cannot be combined with values', seriesFix);
  if (many !== undefined) return { series: toSeriesList(many), labels };
  if (Array.isArray(given)) return { series: [createSingleSeries(given)], labels };
  if (labels !== undefined)
    throw createFieldProblem(
      'values',
      'is an object whose names are labels, and labels is sent too',
      'Send values as a list, or leave labels out.',
    );
  const entries = Object.entries(given as Record<string, number | null>);
  return { series: [createSingleSeries(entries.map(([, value]) => value))], labels: entries.map(([name]) => name) };
}

const seriesFix =
  'Send values, a list of numbers, for one series, or series, such as {"2025": [1, 2], "2026": [3, 4]}, for several.';

const createSingleSeries = (given: readonly PlainValue[]): PlainSeries => ({
  name: undefined,
  values: given,
  field: 'values',
});

function toSeriesList(many: NonNullable<PlainChart['series']>): PlainSeries[] {
  if (!Array.isArray(many))
    return Object.entries(many).map(([name, inner]) => ({
      name,
      values: inner as readonly PlainValue[],
      field: `series.${name}`,
    }));
  return many.map(({ name, label: other, values: inner, data }, index) => {
    const field = `series[${index}].values`;
    const found = inner ?? data;
    if (found === undefined)
      throw createFieldProblem(field, 'is missing', 'Send each series as {"name": "…", "values": [1, 2, 3]}.');
    return { name: name ?? other ?? `Series ${index + 1}`, values: found, field };
  });
}

/** Checks that each series has as many values as labels, and that names are distinct. */
function assertSeriesFit(type: ChartType, series: readonly PlainSeries[], labels: readonly string[] | undefined): void {
  const twice = series.find(({ name }, index) => series.findIndex((other) => other.name === name) !== index);
  if (twice !== undefined)
    throw createFieldProblem(
      'series',
      `has two series named ${JSON.stringify(twice.name)}`,
      'Name each series differently.',
    );
  for (const { values: inner, field } of series) {
    if (inner.length === 0)
      throw createFieldProblem(field, 'is empty, so nothing would be drawn', 'Send at least one number.');
    if (labels !== undefined && type !== 'histogram' && labels.length !== inner.length)
      throw createFieldProblem(
        field,
        `has ${inner.length} values, and labels has ${labels.length}`,
        'Send as many values as labels; null where a value is missing.',
      );
    if (type !== 'scatter' && inner.some((value) => typeof value === 'object' && value !== null))
      throw createFieldProblem(
        field,
        'has points of x and y, which only scatter draws',
        'Send numbers, or set type to scatter.',
      );
  }
}
