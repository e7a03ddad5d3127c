// A dashboard as a page: its panels in Grafana's grid of 24 columns, with the data of a Prometheus.
import type { Dashboard, Panel, Query, Unit } from '../../../charts/monitoring/dashboard.ts';
import { html, trustHtml, type Html } from '../../../api/http/response.ts';
import { drawPanel, type Point } from './chart.ts';
import type { Labels, Prometheus } from './prometheus.ts';

export interface Window {
  /** Seconds since 1970. */
  readonly start: number;
  readonly end: number;
  readonly step: number;
}

type Source = Pick<Prometheus, 'query' | 'queryRange'>;

const pageWidth = 1_440;
const gap = 12;

const style = `
  body { margin: 0; padding: 16px; width: ${pageWidth}px; font: 14px "DejaVu Sans", sans-serif; background: #f4f5f5; color: #222; }
  h1 { font-size: 20px; margin: 0 0 4px; } h2 { font-size: 15px; margin: 16px 0 8px; }
  .row { display: grid; grid-template-columns: repeat(24, 1fr); gap: ${gap}px; }
  .panel { background: #fff; border: 1px solid #d8d9da; border-radius: 3px; padding: 8px; min-width: 0; }
  .panel h3 { font-size: 13px; margin: 0 0 6px; } .none { color: #b00; padding: 24px; }
  .numbers { display: flex; flex-wrap: wrap; gap: 16px; } .number b { display: block; font-size: 30px; color: #1f60c4; }
  .number.bad b { color: #c4162a; } .number.good b { color: #2d7a3e; } .number span { font-size: 12px; color: #555; }`;

/** The page. @returns also the panels that have no data */
export async function dashboardPage(
  { title, about, rows }: Dashboard,
  source: Source,
  window: Window,
): Promise<{ page: string; empty: string[] }> {
  const empty: string[] = [];
  const sections: Html[] = [];
  for (const row of rows) {
    const panels = await Promise.all(
      row.panels.map(async (panel) => {
        const body = panel.kind === 'number' ? await numbers(panel, source) : await chart(panel, source, window);
        if (body === undefined) empty.push(panel.title);
        const span = `grid-column: span ${panel.width}`;
        return html`<div class="panel" style="${span}">
          <h3 title="${panel.description}">${panel.title}</h3>
          ${body ?? html`<div class="none">No data</div>`}
        </div>`;
      }),
    );
    sections.push(
      html`<h2>${row.title}</h2>
        <div class="row">${panels}</div>`,
    );
  }
  const page = html`<!doctype html>
    <meta charset="utf-8" />
    <style>
      ${trustHtml(style)}
    </style>
    <h1>${title}</h1>
    <div>${about}</div>
    ${sections}`;
  return { page: page.toString(), empty };
}

async function chart(panel: Panel, source: Source, window: Window): Promise<Html | undefined> {
  const points = (
    await Promise.all(
      panel.queries.map(async (query) => {
        const series = await source.queryRange(intervals(query.expr, window.step), window);
        return series.flatMap(({ metric, values }) =>
          values.map(([at, value]): Point => ({ time: new Date(at * 1000), series: formatName(query, metric), value })),
        );
      }),
    )
  )
    .flat()
    .filter(({ value }) => Number.isFinite(value));
  if (points.length === 0) return undefined;
  const width = (pageWidth / 24) * panel.width - gap - 24;
  const svg = await drawPanel(panel, points, { width, height: 220, step: window.step });
  return trustHtml(svg);
}

async function numbers(panel: Panel, source: Source): Promise<Html | undefined> {
  const shown = (
    await Promise.all(
      panel.queries.map(async (query) =>
        (await source.query(intervals(query.expr, 30))).map(({ metric, value }) => ({
          name: formatName(query, metric),
          value,
        })),
      ),
    )
  ).flat();
  if (shown.length === 0) return undefined;
  return html`<div class="numbers">
    ${shown.map(
      ({ name, value }) =>
        html`<div class="number ${verdict(panel, value)}">
          <b>${written(panel.unit, value)}</b><span>${name}</span>
        </div>`,
    )}
  </div>`;
}

function intervals(expr: string, step: number): string {
  return expr.replaceAll('$__rate_interval', `${Math.max(10, Math.ceil(4 * step))}s`);
}

function formatName({ legend }: Query, metric: Labels): string {
  return legend.replaceAll(/\{\{([a-z_]+)\}\}/g, (_all, label: string) => metric[label] ?? '');
}

function verdict({ limit }: Panel, value: number): string {
  if (limit === undefined) return '';
  const isBad = limit.worse === 'above' ? value >= limit.value : value < limit.value;
  return isBad ? 'bad' : 'good';
}

function written(unit: Unit, value: number): string {
  switch (unit) {
    case 's':
      return value >= 86_400 ? `${(value / 86_400).toFixed(1)} d` : `${value.toFixed(0)} s`;
    case 'currencyUSD':
      return `$${value}`;
    case 'percentunit':
      return `${(100 * value).toFixed(1)} %`;
    default:
      return String(value);
  }
}
