// Which apps have a busy worker, and whether that is known: by the pods of apps and what their containers use.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { Pod } from '../../../../controller/objects/kinds.ts';
import { pickPodFields } from '../../../../controller/reconcile/caches.ts';
import { busyMilli, createWorkerRecord } from '../../../../controller/usage/busy-workers.ts';
import type { Use } from '../../../../controller/usage/usage.ts';
import { annotations, labels } from '../../../../crds/names.ts';

const listed = [
  { name: 'web', image: 'i', port: 80, route: { path: '/', stripPath: false } },
  { name: 'worker', image: 'i' },
];

function pod(name: string, { trial, components = listed }: { trial?: string; components?: object[] } = {}): Pod {
  // As the operator's cache has it.
  return pickPodFields({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...{ name, namespace: 'moorage-apps', uid: name, resourceVersion: '1', creationTimestamp: '' },
      labels: { [labels.app]: 'hello', [labels.component]: trial === undefined ? 'app' : 'trial' },
      annotations: {
        [annotations.components]: JSON.stringify(components),
        ...(trial === undefined ? {} : { [annotations.trial]: trial }),
      },
    },
    status: {
      phase: 'Running',
      containerStatuses: ['web', 'worker'].map((each) => ({ name: each, ready: true, restartCount: 0 })),
    },
  });
}

const uses =
  (milli: Readonly<Record<string, number>>, at: number) =>
  (of: string, container: string): Use | undefined => {
    const cpuMilli = milli[`${of}/${container}`];
    return cpuMilli === undefined ? undefined : { cpuMilli, memoryBytes: 0, at };
  };

test('remembers when a worker was last busy, and reports it once for each time that it becomes busy', () => {
  const record = createWorkerRecord(100);
  const pods = [pod('a')];
  const observe = (milli: number, at: number): string[] => record.observe(pods, uses({ 'a/worker': milli }, at), at);
  assert.deepEqual(observe(busyMilli - 1, 1_000), []);
  assert.deepEqual(observe(busyMilli, 1_030), ['hello']);
  assert.deepEqual(observe(900, 1_060), []);
  assert.deepEqual(observe(3, 1_090), []);
  assert.deepEqual(record.find('hello', 1_100), { busyAt: 1_060, measuredAt: 1_090, isKnown: true });
  assert.deepEqual(observe(900, 1_120), ['hello']);
});

test('leaves out pages and APIs, whose use are requests, and trials of other releases', () => {
  const record = createWorkerRecord(100);
  const milli = { 'a/web': 900, 'a/worker': 2, 'b/worker': 900 };
  assert.deepEqual(record.observe([pod('a'), pod('b', { trial: 'true' })], uses(milli, 50), 50), []);
  assert.equal(record.find('hello', 60).busyAt, undefined);
  const withoutWorker = [pod('c', { components: [...listed.slice(0, 1)] })];
  record.observe(withoutWorker, uses({ 'c/worker': 900 }, 80), 80);
  assert.equal(record.find('hello', 90).isKnown, false);
});

test('knows nothing of an app before all its workers were measured, and nothing recent once they are not any more', () => {
  const record = createWorkerRecord(100);
  assert.deepEqual(record.find('hello', 7), { busyAt: undefined, measuredAt: 7, isKnown: false });
  const pods = [pod('a'), pod('b')];
  record.observe(pods, uses({}, 0), 1_000);
  assert.deepEqual(record.find('other', 5_000), { busyAt: undefined, measuredAt: 1_000, isKnown: false });
  record.observe(pods, uses({ 'a/worker': 900 }, 1_030), 1_030);
  assert.deepEqual(record.find('hello', 5_000), { busyAt: 1_030, measuredAt: 1_000, isKnown: false });
  record.observe(pods, uses({ 'a/worker': 1, 'b/worker': 1 }, 1_060), 1_060);
  assert.equal(record.find('hello', 1_160).isKnown, true);
  assert.equal(record.find('hello', 1_161).isKnown, false);
});
