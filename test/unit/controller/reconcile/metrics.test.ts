// Apps by public status, and those that are not Ready by reason.
import assert from 'node:assert/strict';
import { Registry } from 'prom-client';
import { test } from 'vitest';
import type { HostedAppObject, Job, Pod } from '../../../../controller/objects/kinds.ts';
import {
  countApps,
  countBuildEnds,
  registerAppMetrics,
  type BuildMetrics,
} from '../../../../controller/reconcile/metrics.ts';
import type { HistoryEntry } from '../../../../crds/hosted-app.ts';
import { annotations } from '../../../../crds/names.ts';

const app = (status: object): HostedAppObject => ({ spec: {}, status }) as unknown as HostedAppObject;
const ready = (status: string, reason: string): object => ({ conditions: [{ type: 'Ready', status, reason }] });
const served = { url: 'https://a.test', served: { image: 'i', commit: 'c', since: '2026-01-01T00:00:00Z' } };

const apps = [
  app({}),
  app({ ...served, ...ready('True', 'Live') }),
  app({ ...served, ...ready('False', 'ReviewRejected') }),
  app({ rejection: { rule: 'r', message: 'm', fix: 'f' }, ...ready('False', 'ReviewRejected') }),
];

test('counts an app without a status as in the pipeline, and one that serves as live, whatever its newest commit', () => {
  assert.deepEqual(countApps(apps), {
    statuses: { live: 2, in_pipeline: 1, rejected: 1 },
    reasons: new Map([['ReviewRejected', 2]]),
  });
});

test('stops exporting a reason in the same scrape in which it disappears', async () => {
  const registry = new Registry();
  let now = apps;
  registerAppMetrics(registry, () => countApps(now));
  assert.match(await registry.metrics(), /moorage_apps_not_ready\{reason="ReviewRejected"\} 2/);
  now = apps.slice(0, 2);
  const text = await registry.metrics();
  assert.match(text, /moorage_apps\{status="live"\} 1/);
  assert.doesNotMatch(text, /reason="ReviewRejected"/);
});

// Each end of a build is counted once, with how long its stages took.

const metadata = { namespace: 'builds', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };
const job: Job = {
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { ...metadata, name: 'a-1', uid: 'job', annotations: { [annotations.queuedAt]: '2026-01-01T00:00:00.5Z' } },
  status: { startTime: '2026-01-01T00:00:10Z' },
};
const terminated = (name: string, from: number, to: number): object => ({
  name,
  state: { terminated: { exitCode: 0, startedAt: `2026-01-01T00:00:${from}Z`, finishedAt: `2026-01-01T00:00:${to}Z` } },
});
const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    ...metadata,
    name: 'a-1-x',
    uid: 'pod',
    ownerReferences: [{ uid: 'job', kind: 'Job', name: 'a-1', apiVersion: 'batch/v1' }],
  },
  status: {
    initContainerStatuses: [terminated('clone', 12, 15), terminated('review', 15, 22)],
    containerStatuses: [{ name: 'build', state: { running: {} } }],
  },
} as unknown as Pod;
const entry = (number: number, result: HistoryEntry['result'], more: Partial<HistoryEntry> = {}): HistoryEntry => ({
  number,
  job: `a-${number}`,
  commit: 'c',
  reason: 'r',
  result,
  ...more,
});

function counted(before: HistoryEntry[], after: HistoryEntry[]): unknown[] {
  const calls: unknown[] = [];
  const metrics: BuildMetrics = {
    recordEnd: (...call) => calls.push(['ended', ...call]),
    recordStage: (...call) => calls.push(['stage', ...call]),
  };
  countBuildEnds(metrics, { jobs: [job], pipelinePods: [pod] }, { history: before }, { history: after });
  return calls;
}

test('counts a new entry with its duration and its finished stages', () => {
  const times = { startedAt: '2026-01-01T00:00:10Z', finishedAt: '2026-01-01T00:00:40Z' };
  assert.deepEqual(counted([], [entry(1, 'Succeeded', times)]), [
    ['ended', 'succeeded', 30],
    ['stage', 'queue', 9.5],
    ['stage', 'clone', 3],
    ['stage', 'review', 7],
  ]);
});

test('does not count a recorded entry again, and gives one that never started no duration', () => {
  const old = entry(1, 'Faulted');
  assert.deepEqual(counted([old], [entry(2, 'Superseded'), old]), [['ended', 'superseded', undefined]]);
});
