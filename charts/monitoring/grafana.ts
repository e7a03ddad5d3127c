// Dashboards as Grafana reads them.
import { colors } from './colors.ts';
import type { Dashboard, Panel, Query } from './panel.ts';

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
