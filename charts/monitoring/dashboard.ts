// Defines what a dashboard and its panels show, and renders them as Grafana reads them.

/** Units by Grafana's names. */
export type Unit = 'short' | 's' | 'bytes' | 'percentunit' | 'reqps' | 'currencyUSD';

export interface Query {
  /** PromQL. `$__rate_interval` is at least four scrapes. */
  readonly expr: string;
  /** Name of each series, with labels as {{label}}. */
  readonly legend: string;
}

export interface Panel {
  readonly title: string;
  /** What a reader sees here, and what is normal. */
  readonly description: string;
  /** lines: over time; bars: over time, stacked; number: the newest value of each series. */
  readonly kind: 'lines' | 'bars' | 'number';
  readonly unit: Unit;
  readonly queries: readonly Query[];
  /** Columns of 24. */
  readonly width: 4 | 6 | 8 | 12 | 24;
  /** From this value on it is coloured as bad; for `worse: 'below'`, from this value down. */
  readonly limit?: { readonly value: number; readonly worse: 'above' | 'below' };
}

export interface Dashboard {
  /** Name of its file, and its identity in Grafana: moorage-<name>. */
  readonly name: string;
  readonly title: string;
  readonly about: string;
  readonly rows: readonly { readonly title: string; readonly panels: readonly Panel[] }[];
}

/** Chosen by the reader at the head of the dashboard. */
const datasource = { type: 'prometheus', uid: '${datasource}' };
const columns = 24;
const heights = { row: 1, number: 4, chart: 8 } as const;

interface Position {
  readonly h: number;
  readonly w: number;
  readonly x: number;
  readonly y: number;
}

/** The JSON of a dashboard, by Grafana's schema 39 (Grafana 10.2 and newer). */
export function renderDashboard(dashboard: Dashboard): string {
  const rendered = {
    uid: `moorage-${dashboard.name}`,
    title: dashboard.title,
    description: dashboard.about,
    tags: ['moorage'],
    schemaVersion: 39,
    editable: true,
    graphTooltip: 1,
    time: { from: 'now-6h', to: 'now' },
    refresh: '1m',
    timezone: 'browser',
    links: [{ type: 'dashboards', title: 'Moorage', tags: ['moorage'], asDropdown: false, icon: 'external link' }],
    templating: {
      list: [{ name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus' }],
    },
    panels: buildPanels(dashboard),
  };
  return `${JSON.stringify(rendered, undefined, 2)}\n`;
}

function buildPanels({ rows }: Dashboard): object[] {
  const panels: object[] = [];
  let y = 0;
  const add = (panel: object, gridPos: Position): void => {
    panels.push({ id: panels.length + 1, ...panel, gridPos });
  };
  for (const { title, panels: rowPanels } of rows) {
    add({ type: 'row', title, collapsed: false, panels: [] }, { h: heights.row, w: columns, x: 0, y });
    y += heights.row;
    let x = 0;
    let lineHeight = 0;
    for (const panel of rowPanels) {
      if (x + panel.width > columns) {
        [x, y, lineHeight] = [0, y + lineHeight, 0];
      }
      const h = panel.kind === 'number' ? heights.number : heights.chart;
      add(buildPanel(panel), { h, w: panel.width, x, y });
      x += panel.width;
      lineHeight = Math.max(lineHeight, h);
    }
    y += lineHeight;
  }
  return panels;
}

function buildPanel(panel: Panel): object {
  return {
    type: panel.kind === 'number' ? 'stat' : 'timeseries',
    title: panel.title,
    description: panel.description,
    datasource,
    targets: panel.queries.map((query, index) => buildTarget(query, index, panel.kind === 'number')),
    fieldConfig: {
      defaults: {
        unit: panel.unit,
        ...(panel.kind === 'number' ? {} : { min: 0, custom: buildLineStyle(panel) }),
        color: { mode: panel.kind === 'number' ? 'thresholds' : 'palette-classic' },
        thresholds: buildThresholds(panel),
      },
      overrides: panel.kind === 'bars' ? colored : [],
    },
    options: panel.kind === 'number' ? numberOptions : chartOptions,
  };
}

function buildTarget({ expr, legend }: Query, index: number, isNumber: boolean): object {
  return {
    refId: String.fromCharCode('A'.charCodeAt(0) + index),
    datasource,
    expr,
    legendFormat: legend,
    ...(isNumber ? { instant: true, range: false } : { range: true }),
  };
}

/** Red from the limit on; a line of a chart is drawn there. */
function buildThresholds({ limit }: Panel): object {
  if (limit === undefined) return { mode: 'absolute', steps: [{ color: 'blue', value: null }] };
  const [first, then] = limit.worse === 'above' ? ['green', 'red'] : ['red', 'green'];
  return {
    mode: 'absolute',
    steps: [
      { color: first, value: null },
      { color: then, value: limit.value },
    ],
  };
}

function buildLineStyle({ kind, limit }: Panel): object {
  const thresholdsStyle = { mode: limit === undefined ? 'off' : 'dashed' };
  return kind === 'bars'
    ? { drawStyle: 'bars', fillOpacity: 80, lineWidth: 0, stacking: { mode: 'normal', group: 'A' }, thresholdsStyle }
    : { drawStyle: 'line', fillOpacity: 5, lineWidth: 1, showPoints: 'never', thresholdsStyle };
}

/** Colours of series whose name says whether they are good or bad. All others have those of the palette. */
export const colors: Readonly<Record<string, string>> = {
  ...assignColor('#56a64b', 'succeeded', 'live', 'answered', '2xx'),
  ...assignColor('#c4162a', 'faulted', 'failed', '5xx', 'broken', 'unreachable', 'timeout', 'fault'),
  ...assignColor('#ff9830', 'rejected', '4xx'),
  ...assignColor('#8f8f8f', 'superseded', '3xx'),
};

function assignColor(color: string, ...names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, color]));
}

const colored = Object.entries(colors).map(([name, fixedColor]) => ({
  matcher: { id: 'byName', options: name },
  properties: [{ id: 'color', value: { mode: 'fixed', fixedColor } }],
}));
const numberOptions = {
  reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
  colorMode: 'value',
  graphMode: 'none',
  textMode: 'auto',
};
const chartOptions = {
  legend: { displayMode: 'list', placement: 'bottom', showLegend: true },
  tooltip: { mode: 'multi', sort: 'desc' },
};
