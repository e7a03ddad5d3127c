// Events: shown as the API wants them, repeats counted, floods cut, and never an error for the reconciler.
import assert from 'node:assert/strict';
import { test, type TestContext } from 'vitest';
import { createEventRecorder, type EventRecorder, type KubeObject } from '../../../../lib/kubernetes/index.ts';
import type { Stored } from '../../../support/kubernetes/fake-api.ts';
import { FakeApi, send, status } from '../../../support/kubernetes/fake-api.ts';
import { FakeClock } from '../../../support/kubernetes/fake-clock.ts';
import { waitUntil } from '../../../support/kubernetes/until.ts';

const KIND = 'apis/events.k8s.io/v1/events';

interface Event extends Stored {
  reason: string;
  note: string;
  type: string;
  series?: { count: number; lastObservedTime: string };
  regarding: { uid: string; name: string };
}

function about(name: string, namespace?: string): KubeObject {
  const scope = namespace === undefined ? {} : { namespace };
  return {
    apiVersion: 'example.dev/v1',
    kind: 'Thing',
    metadata: { name, ...scope, uid: `uid-${name}`, resourceVersion: '5', creationTimestamp: '2026-01-01T00:00:00Z' },
  };
}

async function made(
  t: TestContext,
): Promise<{ api: FakeApi; clock: FakeClock; recorder: EventRecorder; events: () => Event[] }> {
  const api = new FakeApi();
  const client = await api.start();
  t.onTestFinished(() => api.stop());
  const clock = new FakeClock();
  const recorder = createEventRecorder({ client, clock, controller: 'example.dev/operator', instance: 'pod-1' });
  return { api, clock, recorder, events: () => api.objects(KIND) as Event[] };
}

const ready = { type: 'Normal', reason: 'Ready', message: 'It runs.' } as const;

test('an event names what happened, the object and the reporter', async (t) => {
  const { recorder, events } = await made(t);
  recorder.record(about('a', 'apps'), ready);
  await recorder.flush();
  const [event] = events();
  assert.match(event?.metadata.name ?? '', /^a\.[0-9a-f]{16}$/);
  assert.equal(event?.metadata.namespace, 'apps');
  const { eventTime, reportingController, reportingInstance, action, reason, type, note, regarding } = event;
  assert.deepEqual(
    { eventTime, reportingController, reportingInstance, action, reason, type, note, regarding },
    {
      eventTime: '2026-01-01T00:00:00.000000Z',
      reportingController: 'example.dev/operator',
      reportingInstance: 'pod-1',
      action: 'Reconcile',
      reason: 'Ready',
      type: 'Normal',
      note: 'It runs.',
      regarding: {
        apiVersion: 'example.dev/v1',
        kind: 'Thing',
        name: 'a',
        namespace: 'apps',
        uid: 'uid-a',
        resourceVersion: '5',
      },
    },
  );
});

test('repeats become a count on the first event, sent together; after a while a repeat is a new event', async (t) => {
  const { api, clock, recorder, events } = await made(t);
  for (let repeat = 0; repeat < 500; repeat += 1) recorder.record(about('a', 'apps'), ready);
  await recorder.flush();
  assert.deepEqual(
    events().map(({ series }) => series?.count),
    [500],
  );
  assert.equal(api.requests.length, 2);
  clock.advance(360_001);
  recorder.record(about('a', 'apps'), ready);
  await recorder.flush();
  assert.equal(events().length, 2);
});

test('sends the counts of a long series less and less often', async (t) => {
  const { api, clock, recorder } = await made(t);
  for (let second = 0; second < 300; second += 1) {
    recorder.record(about('a', 'apps'), ready);
    clock.advance(1000);
  }
  await recorder.flush();
  const patches = api.requests.filter(({ method }) => method === 'PATCH').length;
  assert.ok(patches >= 5 && patches <= 12, `${patches} patches in 300 s`);
});

test('different events about one object stop at the burst, and come again slowly', async (t) => {
  const { clock, recorder, events } = await made(t);
  const flood = (from: number): void => {
    for (let n = from; n < from + 100; n += 1)
      recorder.record(about('a', 'apps'), { ...ready, message: `number ${n}` });
  };
  flood(0);
  recorder.record(about('b', 'apps'), ready);
  await recorder.flush();
  assert.equal(events().length, 26);
  clock.advance(300_000);
  flood(100);
  await recorder.flush();
  assert.equal(events().length, 27);
});

test('cuts a long message to the API limit without splitting a character', async (t) => {
  const { recorder, events } = await made(t);
  recorder.record(about('a', 'apps'), { ...ready, message: 'é'.repeat(2000) });
  recorder.record(about('x'.repeat(253), 'apps'), ready);
  await recorder.flush();
  const [event, long] = events();
  assert.ok(Buffer.byteLength(event?.note ?? '') <= 1024);
  assert.match(event?.note ?? '', /^é+…$/);
  assert.ok((long?.metadata.name.length ?? 999) <= 253);
});

test('keeps events about cluster-scoped objects in default', async (t) => {
  const { recorder, events } = await made(t);
  recorder.record(about('node'), ready);
  await recorder.flush();
  assert.equal(events()[0]?.metadata.namespace, 'default');
});

test('never throws at the reconciler, and retries a transient fault once', async (t) => {
  const { api, clock, recorder, events } = await made(t);
  const codes = [403, 503];
  api.faults.push((_request, response) => {
    const code = codes.shift();
    if (code !== undefined) send(response, code, status(code, 'Nope', 'no'));
    return code !== undefined;
  });
  recorder.record(about('a', 'apps'), { ...ready, message: 'refused' });
  recorder.record(about('a', 'apps'), { ...ready, message: 'delayed' });
  const flushed = recorder.flush();
  await waitUntil(() => clock.pending === 1);
  clock.advance(2000);
  await flushed;
  assert.deepEqual(
    events().map(({ note }) => note),
    ['delayed'],
  );
});
