// Alerts are complete, and read metrics that some process has.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'vitest';
import { alertGroups } from '../../../../charts/monitoring/all.ts';
import { alertsFile, renderAlerts } from '../../../../charts/generate.ts';
import { listKnownMetrics, listMetrics } from '../../../support/monitoring/metric-names.ts';

const alerts = alertGroups.flatMap((group) => group.alerts);

test('files/alerts.yaml is what npm run generate writes', () => {
  assert.equal(readFileSync(alertsFile, 'utf8'), renderAlerts(), 'stale: run `npm run generate`');
});

test('names are of one kind, and none is there twice', () => {
  for (const { name } of alerts) assert.match(name, /^Moorage([A-Z][a-z]+)+$/);
  assert.equal(new Set(alerts.map(({ name }) => name)).size, alerts.length);
});

test('each says in plain words what it means and what to do', () => {
  for (const { name, summary, meaning, runbook } of alerts) {
    assert.doesNotMatch(summary, /[.]$/, name);
    assert.match(meaning, /[.]$/, name);
    assert.ok(runbook.length > 0 && runbook.every((step) => step.endsWith('.')), name);
    // Prometheus reads annotations as templates; only the summary is meant to be one.
    assert.doesNotMatch([meaning, ...runbook].join(), /\{\{/, name);
  }
});

test('each reads metrics that a process has', () => {
  for (const { name, expr } of alerts) {
    assert.ok(listMetrics(expr).length > 0, name);
    assert.deepEqual(
      listMetrics(expr).filter((metric) => !listKnownMetrics().has(metric)),
      [],
      name,
    );
  }
});

test('each is fired on purpose by a test with real processes', () => {
  const folder = new URL('../../../integration/monitoring/', import.meta.url);
  const files = readdirSync(folder).filter((file) => file.startsWith('firing'));
  const text = files.map((file) => readFileSync(new URL(file, folder), 'utf8')).join();
  // A test, or a row of the table of outages.
  for (const { name } of alerts)
    assert.ok(text.includes(`summaryOf('${name}'`) || text.includes(`alert: '${name}'`), name);
});
