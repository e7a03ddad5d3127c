// The rules as promtool sees them: well formed, and each alert fires by the series that it is for and not by others.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { stringify } from 'yaml';
import { alertGroups } from '../../../charts/monitoring/all.ts';
import { renderRules, type Alert } from '../../../charts/monitoring/alert.ts';
import { renderAlerts } from '../../../charts/generate.ts';
import { alertCases, type AlertCase } from '../../support/monitoring/alert-cases.ts';
import { promtool } from '../../support/monitoring/programs.ts';

const alerts = alertGroups.flatMap((group) => group.alerts);
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'moorage-rules-'));
  await writeFile(join(folder, 'alerts.yaml'), renderAlerts());
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test('promtool reports no problems in the rules', async () => {
  assert.match(await promtool('check', 'rules', join(folder, 'alerts.yaml')), /SUCCESS: \d+ rules found/);
});

test('every alert has a test case', () => {
  assert.deepEqual(alertCases.map(({ alert }) => alert).toSorted(), alerts.map(({ name }) => name).toSorted());
});

function buildInput(series: Readonly<Record<string, string>>): object[] {
  return Object.entries(series).map(([name, values]) => ({ series: name, values }));
}

/** What promtool is to expect: with every label and annotation, or nothing. */
function unitTests({ severity, meaning, runbook }: Alert, { alert, fires, ended, quiet }: AlertCase): object[] {
  const expected = {
    exp_labels: { severity, ...fires.labels },
    exp_annotations: {
      summary: fires.summary,
      description: meaning,
      runbook: runbook.map((step, index) => `${index + 1}. ${step}`).join('\n'),
    },
  };
  return [
    { ...fires, expects: [expected] },
    ...(ended === undefined ? [] : [{ ...fires, at: ended, expects: [] }]),
    { ...quiet, expects: [] },
  ].map(({ series, at, expects }) => ({
    interval: '1m',
    input_series: buildInput(series),
    alert_rule_test: [{ eval_time: at, alertname: alert, exp_alerts: expects }],
  }));
}

for (const one of alertCases) {
  test(`${one.alert} fires when it should, and only then`, async () => {
    const alert = alerts.find(({ name }) => name === one.alert) ?? assert.fail('there is no such alert');
    const file = join(folder, `${one.alert}.test.yaml`);
    const tests = unitTests(alert, one);
    // The rule alone: promtool would evaluate all of them for each test.
    const rules = `${one.alert}.yaml`;
    await writeFile(join(folder, rules), renderRules([{ name: 'one', title: 'One', alerts: [alert] }]));
    await writeFile(file, stringify({ rule_files: [rules], evaluation_interval: '1m', tests }));
    assert.match(await promtool('test', 'rules', file), /SUCCESS/);
  });
}

test('errors caused by an outage with an alert fire no second one', async () => {
  const up = (component: string): Record<string, string> => ({
    [`process_start_time_seconds{job="moorage-${component}"}`]: '1x90',
  });
  const errors = {
    'moorage_http_request_duration_seconds_count{status="200"}': '0+540x90',
    'moorage_http_request_duration_seconds_count{status="503"}': '0+60x90',
    'moorage_worker_tasks{state="waiting"}': '3x90',
    'moorage_builds_total{result="faulted"}': '0+1x90',
    moorage_receipts_links_behind_seconds: '700x90',
    moorage_ledger_oldest_pending_seconds: '2000x90',
  };
  const running = { ...up('workers'), ...up('registry-proxy'), moorage_database_up: '1x90' };
  const [workers, proxy] = ['process_start_time_seconds{job="moorage-workers"}', 'moorage-registry-proxy'];
  const cases: [Record<string, string>, string[]][] = [
    [{ ...running, moorage_database_up: '0x90' }, ['MoorageApiErrors', 'MoorageReceiptsBehind', 'MoorageCostsPending']],
    [
      Object.fromEntries(Object.entries(running).filter(([name]) => name !== workers)),
      ['MoorageApiErrors', 'MoorageWorkersBusy'],
    ],
    [Object.fromEntries(Object.entries(running).filter(([name]) => !name.includes(proxy))), ['MoorageBuildsFailing']],
  ];
  const file = join(folder, 'outages.test.yaml');
  const tests = cases.map(([series, names]) => ({
    interval: '1m',
    input_series: buildInput({ ...series, ...errors }),
    alert_rule_test: names.map((alertname) => ({ eval_time: '80m', alertname, exp_alerts: [] })),
  }));
  await writeFile(file, stringify({ rule_files: ['alerts.yaml'], evaluation_interval: '1m', tests }));
  assert.match(await promtool('test', 'rules', file), /SUCCESS/);
});
