// The whole process: caches, leadership, work and probes start together and end in the right order, by signal, fault or force.
import assert from 'node:assert/strict';
import { Registry } from 'prom-client';
import { test, type TestContext } from 'vitest';
import {
  createController,
  createManager,
  defineResource,
  done,
  createWatch,
  type KubeObject,
  type Manager,
  type Shutdown,
  listenForShutdown,
} from '../../../../../lib/kubernetes/index.ts';
import { type Stored, FakeApi } from '../../../../support/kubernetes/fake-api.ts';
import { waitUntil } from '../../../../support/kubernetes/until.ts';

const KIND = 'apis/example.dev/v1/things';
const LEASES = 'apis/coordination.k8s.io/v1/leases';
const things = defineResource<KubeObject>({
  group: 'example.dev',
  version: 'v1',
  kind: 'Thing',
  plural: 'things',
  namespaced: true,
});
const SHORT = { leaseDurationMs: 1000, renewDeadlineMs: 700, retryPeriodMs: 100 };

interface Replica {
  manager: Manager;
  seen: string[];
  /** What happened at the end, in order. */
  order: string[];
  shutdown: AbortController;
  running: Promise<void>;
}

function holder(api: FakeApi): string | undefined {
  return (api.objects(LEASES)[0] as (Stored & { spec: { holderIdentity: string } }) | undefined)?.spec.holderIdentity;
}

/** What `listenForShutdown` gives, without signals and without an exit. */
function shutdownOf(controller: AbortController, order: string[]): Shutdown {
  return {
    signal: controller.signal,
    fail(reason) {
      order.push(`fail: ${reason}`);
      controller.abort();
    },
    finish: () => order.push('finish'),
  };
}

function replica(
  api: FakeApi,
  identity: string | undefined,
  work: () => Promise<void> = () => Promise.resolve(),
): Replica {
  const [seen, order, shutdown, registry] = [[] as string[], [] as string[], new AbortController(), new Registry()];
  const election =
    identity === undefined ? {} : { leaderElection: { namespace: 'system', name: 'operator', identity, ...SHORT } };
  const client = api.client(identity === undefined ? {} : { 'x-identity': identity });
  const manager = createManager({
    client,
    registry,
    healthPort: 0,
    healthHost: '127.0.0.1',
    shutdown: shutdownOf(shutdown, order),
    ...election,
  });
  const mirror = manager.addReflector(things);
  const reconcile = async (key: string): Promise<typeof done> => {
    seen.push(key);
    await work();
    order.push(`done ${key}, lease ${String(holder(api))}`);
    return done;
  };
  manager.add(createController({ name: 'things', registry, watches: [createWatch(mirror.store)], reconcile }));
  return { manager, seen, order, shutdown, running: manager.run() };
}

async function server(t: TestContext): Promise<FakeApi> {
  const api = new FakeApi();
  await api.start();
  t.onTestFinished(() => api.stop());
  return api;
}

test('works immediately without an election, and is ready when its caches are', async (t) => {
  const api = await server(t);
  api.put(KIND, { metadata: { name: 'a', namespace: 'apps' } });
  const one = replica(api, undefined);
  await waitUntil(() => one.seen.length === 1);
  const ready = await fetch(`http://127.0.0.1:${String(one.manager.healthPort)}/readyz`);
  assert.equal(ready.status, 200);
  const text = await (await fetch(`http://127.0.0.1:${String(one.manager.healthPort)}/metrics`)).text();
  assert.match(text, /moorage_cached_objects\{resource="things"\} 1/);
  one.shutdown.abort();
  await one.running;
  assert.equal(one.order.at(-1), 'finish');
});

test('a follower only keeps its cache full, and work in progress ends before the lease is released', async (t) => {
  const api = await server(t);
  api.put(KIND, { metadata: { name: 'a', namespace: 'apps' } });
  let finish = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const one = replica(api, 'one', () => gate);
  await waitUntil(() => one.seen.length === 1);
  const two = replica(api, 'two');
  await waitUntil(
    async () =>
      two.manager.healthPort !== undefined &&
      (await fetch(`http://127.0.0.1:${two.manager.healthPort}/readyz`)).status === 200,
  );
  assert.deepEqual(two.seen, []);
  one.shutdown.abort();
  const renewals = (): number => api.count('PUT', () => true);
  const before = renewals();
  // While it drains it goes on renewing: the lease is not free before the work is done.
  await waitUntil(() => renewals() > before + 1);
  assert.deepEqual([holder(api), two.seen], ['one', []]);
  finish();
  await one.running;
  assert.deepEqual(one.order, ['done apps/a, lease one', 'finish']);
  await waitUntil(() => two.seen.length === 1);
  two.shutdown.abort();
  await two.running;
  assert.equal(holder(api), '');
});

test('a replica that loses the lease fails and ends', async (t) => {
  const api = await server(t);
  const one = replica(api, 'one');
  await waitUntil(() => holder(api) === 'one');
  api.put(LEASES, {
    metadata: { name: 'operator', namespace: 'system' },
    spec: { holderIdentity: 'usurper', leaseDurationSeconds: 600 },
  });
  await one.running;
  assert.match(one.order[0] ?? '', /^fail: Another replica holds the lease: usurper/);
  assert.equal(one.order.at(-1), 'finish');
  assert.equal(holder(api), 'usurper');
});

test('ends the process if a leader task ends or throws', async (t) => {
  const api = await server(t);
  for (const [task, expected] of [
    [() => Promise.resolve(), /task "clean" has ended/],
    [() => Promise.reject(new Error('broken')), /task "clean" failed: broken/],
  ] as const) {
    const [order, shutdown] = [[] as string[], new AbortController()];
    const manager = createManager({
      client: api.client(),
      registry: new Registry(),
      shutdown: shutdownOf(shutdown, order),
    });
    manager.addLeaderTask('clean', task);
    await manager.run();
    assert.match(order[0] ?? '', expected);
  }
});

// A signal that the test runner has no use for.
const signals = ['SIGHUP'] as const;

test('a signal aborts, and finish exits with 0 and removes the handlers', async () => {
  const codes: number[] = [];
  const shutdown = listenForShutdown({ signals, exit: (code) => codes.push(code) });
  process.kill(process.pid, 'SIGHUP');
  await waitUntil(() => shutdown.signal.aborted);
  assert.deepEqual(codes, []);
  shutdown.finish();
  assert.deepEqual(codes, [0]);
  assert.equal(process.listenerCount('SIGHUP'), 0);
});

test('a second signal ends the process immediately', async () => {
  const codes: number[] = [];
  const shutdown = listenForShutdown({ signals, exit: (code) => codes.push(code) });
  process.kill(process.pid, 'SIGHUP');
  await waitUntil(() => shutdown.signal.aborted);
  process.kill(process.pid, 'SIGHUP');
  await waitUntil(() => codes.length === 1);
  assert.deepEqual(codes, [1]);
  shutdown.finish();
});

test('fail aborts with exit code 1', () => {
  const codes: number[] = [];
  const shutdown = listenForShutdown({ signals, exit: (code) => codes.push(code) });
  shutdown.fail('leadership is lost');
  assert.match(String(shutdown.signal.reason), /leadership is lost/);
  shutdown.finish();
  assert.deepEqual(codes, [1]);
});

test('ends the process by force if the shutdown takes too long', async () => {
  const codes: number[] = [];
  const shutdown = listenForShutdown({ signals, limitMs: 600_000, exit: (code) => codes.push(code) });
  shutdown.fail('leadership is lost', 10);
  await waitUntil(() => codes.length === 1);
  assert.deepEqual(codes, [1]);
  shutdown.finish();
});
