// Plain charts with names, or dates, along one axis, as Vega-Lite.
import { textWidth } from '../../svg/text-width.ts';
import { wrapped } from '../../svg/wrapped-text.ts';
import { refusal, type PlainData, type Series } from './series.ts';

type Kind = 'bar' | 'horizontal_bar' | 'stacked_bar' | 'line' | 'area';
type Fields = Record<string, unknown>;

/** Pixels beyond which a name on the left is wrapped. */
const broadest = 260;
const isoDate = /^\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?)?$/;

/** How a chart with names is laid out. */
interface Plan {
  readonly kind: Kind;
  readonly isBar: boolean;
  /** Names lie on the left. */
  readonly isFlat: boolean;
  readonly isTime: boolean;
  readonly longest: number;
  /** As they are drawn. */
  readonly labels: readonly string[] | undefined;
  readonly series: readonly Series[];
  /** Bars that stand beside each other at one name. */
  readonly beside: number;
}

export function categories(kind: Kind, { series, labels, titles }: PlainData): Fields {
  const plan = planOf(kind, series, labels);
  const { isFlat } = plan;
  // x_label is what stands below, unless a chart was turned for its names to fit.
  const [nameTitle, valueTitle] = kind === 'horizontal_bar' ? [titles.y, titles.x] : [titles.x, titles.y];
  const name = nameOf(plan, nameTitle);
  const value = {
    field: 'value',
    type: 'quantitative',
    title: titleOf(valueTitle),
    stack: kind === 'stacked_bar' || (kind === 'area' && series.length > 1) ? 'zero' : null,
  };
  const rows = rowsOf(plan);
  return {
    data: { values: rows },
    ...sizeOf(plan),
    mark: markOf(kind, rows.length / series.length),
    encoding: { ...(isFlat ? { y: name, x: value } : { x: name, y: value }), ...seriesColor(plan) },
  };
}

function planOf(kind: Kind, series: readonly Series[], labels: readonly string[] | undefined): Plan {
  refuseTwice(labels);
  const isBar = kind.endsWith('bar');
  const widths = (labels ?? []).map((each) => textWidth(each, 11));
  const longest = Math.max(0, ...widths);
  const isFlat = kind === 'horizontal_bar' || (isBar && asksToBeFlat(longest, widths.length));
  return {
    kind,
    isBar,
    isFlat,
    isTime: !isBar && isDates(labels),
    longest,
    labels: isFlat ? labels?.map((each) => [wrapped(each, broadest, 11)].flat().join('\n')) : labels,
    series,
    beside: isBar && kind !== 'stacked_bar' ? series.length : 1,
  };
}

function refuseTwice(labels: readonly string[] | undefined): void {
  const twice = labels?.find((each, index) => labels.indexOf(each) !== index);
  if (twice === undefined) return;
  throw refusal(
    'labels',
    `has ${JSON.stringify(twice)} twice, which would be drawn on one spot`,
    'Name each label differently, or add the values up.',
  );
}

/** Names are too broad, or too many, to stand below. */
const asksToBeFlat = (longest: number, count: number): boolean => longest > 110 || (longest > 40 && count > 16);

function isDates(labels: readonly string[] | undefined): boolean {
  if (labels === undefined || labels.length < 2) return false;
  return labels.every((each) => isoDate.test(each) && !Number.isNaN(Date.parse(each)));
}

function rowsOf({ series, labels }: Plan): Fields[] {
  return series.flatMap(({ name = '', values }) =>
    values.map((value, index) => ({ label: labels?.[index] ?? index + 1, value, series: name })),
  );
}

function nameOf({ isTime, isFlat, labels, longest }: Plan, title: string | undefined): Fields {
  const own = isTime || labels === undefined ? {} : nameAxis(labels, longest, isFlat);
  return {
    field: 'label',
    type: isTime ? 'temporal' : 'ordinal',
    sort: null,
    title: titleOf(title),
    axis: { grid: false, ...own },
    ...(isTime ? { scale: { type: 'utc' } } : {}),
  };
}

function seriesColor({ series, beside, isFlat }: Plan): Fields {
  if (series.length < 2) return {};
  const offset = beside > 1 ? { [isFlat ? 'yOffset' : 'xOffset']: { field: 'series', sort: null } } : {};
  return { color: colorOf(series), ...offset };
}

export function colorOf(series: readonly Series[]): Record<string, unknown> {
  return {
    field: 'series',
    type: 'nominal',
    sort: null,
    title: null,
    scale: { scheme: series.length > 10 ? 'tableau20' : 'tableau10' },
  };
}

export type Title = string | string[] | null;

export function titleOf(text: string | undefined): Title {
  return text === undefined ? null : wrapped(text, 280, 12);
}

function nameAxis(labels: readonly string[], longest: number, isFlat: boolean): Record<string, unknown> {
  if (isFlat) return { labelExpr: "split(datum.label, '\\n')" };
  const room = Math.max(28, 520 / Math.max(1, labels.length));
  return { labelAngle: longest + 6 < room ? 0 : labels.length > 25 ? -90 : -45 };
}

function sizeOf({ isBar, isFlat, labels, series, beside }: Plan): Fields {
  const count = labels?.length ?? series[0]?.values.length ?? 0;
  const lines = Math.max(1, ...(labels ?? []).map((each) => each.split('\n').length));
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
