// Plain charts without an axis of names: scatter, histogram, pie and donut, as Vega-Lite.
import { refusal, type PlainData } from './series.ts';
import { colorOf, titleOf } from './plain-axes.ts';

export function scatter({ series, labels, titles }: PlainData): Record<string, unknown> {
  const xs = labels?.map(Number);
  const wrong = labels?.find((_, index) => !Number.isFinite(xs?.[index]));
  if (wrong !== undefined)
    throw refusal(
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
    title: titleOf(title),
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
      ...(series.length > 1 ? { color: colorOf(series) } : {}),
    },
  };
}

export function histogram({ series, titles }: PlainData): Record<string, unknown> {
  if (series.length > 1)
    throw refusal(
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
      x: { field: 'value', type: 'quantitative', bin: { maxbins: 30 }, title: titleOf(titles.x) },
      y: {
        aggregate: 'count',
        type: 'quantitative',
        title: titleOf(titles.y ?? 'Count'),
        axis: { tickMinStep: 1 },
      },
    },
  };
}

const maxSlices = 20;

/** The share stands in the legend, where no slice is too thin for it. */
export function pie(type: 'pie' | 'donut', { series, labels }: PlainData): Record<string, unknown> {
  const [only] = series;
  if (only === undefined || series.length > 1)
    throw refusal('series', `has ${series.length} series, and a ${type} draws one`, 'Send values, or set type to bar.');
  const numbers = only.values.map((value) => (typeof value === 'number' ? value : 0));
  const total = numbers.reduce((sum, value) => sum + value, 0);
  const negative = numbers.find((value) => value < 0);
  if (negative !== undefined)
    throw refusal(only.field, `has ${negative}, and a ${type} cannot show negative values`, 'Set type to bar.');
  if (total === 0)
    throw refusal(only.field, 'has only zeros, so nothing would be drawn', 'Send at least one number above 0.');
  if (numbers.length > maxSlices)
    throw refusal(
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
