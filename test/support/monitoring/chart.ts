// Draws the series of a panel as SVG, much as Grafana would.
import * as vega from 'vega';
import { compile, type TopLevelSpec } from 'vega-lite';
import { colors, type Panel, type Unit } from '../../../charts/monitoring/dashboard.ts';

/** One value of a named series. */
export interface Point {
  readonly time: Date;
  readonly series: string;
  readonly value: number;
}

/** Neither green nor red, which mean something. */
const palette = ['#3274d9', '#b877d9', '#e0b400', '#00a3a3', '#8a5a44', '#f28cb1', '#5c6bc0', '#9e9d24', '#607d8b'];

/** How an axis writes a value, as an expression of Vega; `datum.value` is the number. */
const axisLabels: Readonly<Record<Unit, string>> = {
  short: "format(datum.value, ',~r')",
  s: "datum.value >= 3600 ? format(datum.value / 3600, '.3~g') + ' h' : datum.value >= 60 ? format(datum.value / 60, '.3~g') + ' min' : datum.value == 0 ? '0 s' : datum.value < 1 ? format(datum.value * 1000, '~g') + ' ms' : format(datum.value, '~g') + ' s'",
  bytes: "format(datum.value / 1048576, '.0f') + ' MiB'",
  percentunit: "format(datum.value, '~%')",
  reqps: "format(datum.value, '~g') + '/s'",
  currencyUSD: "'$' + format(datum.value, '~g')",
};

/** @returns SVG of these points, `step` seconds apart */
export async function drawPanel(
  panel: Panel,
  points: readonly Point[],
  { width, height, step }: { readonly width: number; readonly height: number; readonly step: number },
): Promise<string> {
  const view = new vega.View(vega.parse(compile(readSpec(panel, points, { width, height, step })).spec), {
    renderer: 'none',
  });
  try {
    return await view.toSVG();
  } finally {
    view.finalize();
  }
}

function readSpec(
  { kind, unit, limit }: Panel,
  points: readonly Point[],
  { width, height, step }: { readonly width: number; readonly height: number; readonly step: number },
): TopLevelSpec {
  const names = [...new Set(points.map(({ series }) => series))].sort();
  const times = points.map(({ time }) => time.getTime());
  const steps = Math.max(1, (Math.max(...times) - Math.min(...times)) / 1000 / step);
  // A limit far above what is drawn would press it flat.
  const highest = Math.max(0, ...points.map(({ value }) => value));
  const isLimitSeen = limit !== undefined && (limit.worse === 'below' || limit.value <= 3 * highest);
  const mark =
    kind === 'bars'
      ? { type: 'bar' as const, width: Math.max(1, (width - 80) / steps - 1) }
      : { type: 'line' as const, strokeWidth: 1.5, interpolate: 'linear' as const };
  return {
    $schema: 'https://vega.github.io/schema/vega-lite/v6.json',
    width,
    height,
    autosize: { type: 'fit', contains: 'padding' },
    background: 'transparent',
    data: { values: points.map(({ time, series, value }) => ({ time: time.getTime(), series, value })) },
    layer: [
      {
        mark,
        encoding: {
          x: { field: 'time', type: 'temporal', title: null, axis: { format: '%H:%M:%S', grid: false, tickCount: 5 } },
          y: {
            field: 'value',
            type: 'quantitative',
            title: null,
            ...(kind === 'bars' ? { stack: 'zero' as const } : {}),
            // All zero would be drawn in the middle.
            scale: highest === 0 ? { domain: [0, 1] } : { domainMin: 0, nice: true },
            axis: { labelExpr: axisLabels[unit], tickCount: 4, gridColor: '#e6e6e6' },
          },
          color: {
            field: 'series',
            type: 'nominal',
            title: null,
            scale: {
              domain: names,
              range: names.map((name, index) => colors[name] ?? palette[index % palette.length] ?? 'gray'),
            },
            legend: { orient: 'bottom', columns: Math.max(1, Math.floor(width / 230)), labelLimit: 210 },
          },
        },
      },
      ...(isLimitSeen
        ? [
            {
              data: { values: [{ limit: limit.value }] },
              mark: { type: 'rule' as const, color: '#d62728', strokeDash: [4, 4] },
              encoding: { y: { field: 'limit', type: 'quantitative' as const } },
            },
          ]
        : []),
    ],
    config: { view: { stroke: null }, font: 'DejaVu Sans', axis: { labelFontSize: 11 }, legend: { labelFontSize: 11 } },
  };
}
