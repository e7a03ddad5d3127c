// Dashboards are what is generated, fit Grafana's grid, and read metrics that some process has.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'vitest';
import { z } from 'zod';
import { dashboards } from '../../../../charts/monitoring/all.ts';
import { dashboardsFolder, renderDashboards } from '../../../../charts/generate.ts';
import { listKnownMetrics, listMetrics } from '../../../support/monitoring/metric-names.ts';

const panels = dashboards.flatMap(({ rows }) => rows.flatMap((row) => row.panels));
const rendered = z.object({
  panels: z.array(z.looseObject({ gridPos: z.object({ x: z.int(), y: z.int(), w: z.int(), h: z.int() }) })),
});

test('manifests/dashboards has what npm run generate writes, and nothing else', () => {
  const texts = renderDashboards();
  assert.deepEqual(readdirSync(dashboardsFolder).sort(), [...texts.keys()].sort());
  for (const [file, text] of texts)
    assert.equal(readFileSync(new URL(file, dashboardsFolder), 'utf8'), text, `${file} is stale: npm run generate`);
});

test('no two panels of a dashboard overlap, and none leaves its 24 columns', () => {
  for (const [file, text] of renderDashboards()) {
    const cells = rendered
      .parse(JSON.parse(text))
      .panels.flatMap(({ gridPos: { x, y, w, h } }) =>
        Array.from({ length: w * h }, (_none, index) => [x + (index % w), y + Math.floor(index / w)] as const),
      );
    assert.equal(new Set(cells.map(String)).size, cells.length, file);
    assert.ok(
      cells.every(([column]) => column < 24),
      file,
    );
  }
});

test('each panel has a title, a description and queries with legends', () => {
  for (const { title, description, queries } of panels) {
    assert.match(description, /[.]$/, title);
    assert.ok(queries.length > 0 && queries.every(({ legend }) => legend !== ''), title);
  }
});

test('each query reads metrics that a process has', () => {
  for (const { title, queries } of panels)
    for (const { expr } of queries) {
      assert.ok(listMetrics(expr).length > 0, title);
      assert.deepEqual(
        listMetrics(expr).filter((metric) => !listKnownMetrics().has(metric)),
        [],
        title,
      );
    }
});

test('every metric of our own is on a dashboard or in an alert, or is left out on purpose', async () => {
  const { alertGroups } = await import('../../../../charts/monitoring/all.ts');
  const read = new Set(
    [...panels.flatMap(({ queries }) => queries), ...alertGroups.flatMap(({ alerts }) => alerts)]
      .flatMap(({ expr }) => listMetrics(expr))
      .map((name) => name.replace(/_(bucket|sum|count)$/, '')),
  );
  const missing = [...listKnownMetrics()].filter(
    (name) => name.startsWith('moorage_') && !/_(bucket|sum|count)$/.test(name) && !read.has(name),
  );
  assert.deepEqual(missing.sort(), leftOut.toSorted());
});

/** For a look at one process in trouble; a histogram's own name is none of a series. */
const leftOut = [
  'moorage_active_workers',
  'moorage_build_duration_seconds',
  'moorage_lists_total',
  'moorage_queue_depth',
  'moorage_reconcile_retries_total',
  'moorage_watch_restarts_total',
];
