// Each end of a build is counted once, with how long its stages took.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { HistoryEntry } from '../../../../crds/hosted-app.ts';
import { annotations } from '../../../../crds/names.ts';
import type { Job, Pod } from '../../../../controller/objects/kinds.ts';
import { countBuildEnds } from '../../../../controller/reconcile/build-ends.ts';
import type { BuildMetrics } from '../../../../controller/reconcile/metrics.ts';

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
    ended: (...call) => calls.push(['ended', ...call]),
    stage: (...call) => calls.push(['stage', ...call]),
  };
  countBuildEnds(metrics, { jobs: [job], pipelinePods: [pod] }, { history: before }, { history: after });
  return calls;
}

test('a new entry is counted with its duration and the stages that have ended', () => {
  const times = { startedAt: '2026-01-01T00:00:10Z', finishedAt: '2026-01-01T00:00:40Z' };
  assert.deepEqual(counted([], [entry(1, 'Succeeded', times)]), [
    ['ended', 'succeeded', 30],
    ['stage', 'queue', 9.5],
    ['stage', 'clone', 3],
    ['stage', 'review', 7],
  ]);
});

test('one that is recorded already is not counted again; one that never started has no duration', () => {
  const old = entry(1, 'Faulted');
  assert.deepEqual(counted([old], [entry(2, 'Superseded'), old]), [['ended', 'superseded', undefined]]);
});
