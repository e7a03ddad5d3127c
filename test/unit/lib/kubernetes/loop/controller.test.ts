// The controller loop: what brings a key, what each outcome leads to, and how it ends.
import assert from 'node:assert/strict';
import { Registry } from 'prom-client';
import { test, type TestContext } from 'vitest';
import {
  ApiError,
  createController,
  createStore,
  done,
  ignoreStatus,
  createLabelMapping,
  LeadershipLostError,
  createOwnerMapping,
  requeueAfter,
  StallingError,
  WaitingError,
  createWatch,
  type Controller,
  type ControllerOptions,
  type KubeObject,
  type Reconcile,
  type WritableStore,
} from '../../../../../lib/kubernetes/index.ts';
import { FakeClock } from '../../../../support/kubernetes/fake-clock.ts';
import { waitUntil } from '../../../../support/kubernetes/until.ts';

function object(name: string, version = 1, more: Partial<KubeObject['metadata']> = {}): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Thing',
    metadata: {
      name,
      namespace: 'apps',
      uid: `uid-${name}`,
      resourceVersion: String(version),
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...more,
    },
  };
}

interface Bench {
  store: WritableStore<KubeObject>;
  clock: FakeClock;
  registry: Registry;
  controller: Controller;
  seen: string[];
  end: (reason?: Error) => Promise<void>;
}

function bench(t: TestContext, reconcile: Reconcile, options: Partial<ControllerOptions> = {}): Bench {
  const [store, clock, registry, seen] = [createStore(), new FakeClock(), new Registry(), [] as string[]];
  const controller = createController({
    name: 'things',
    watches: [createWatch(store)],
    clock,
    registry,
    reconcile: (key, context) => {
      seen.push(key);
      return reconcile(key, context);
    },
    ...options,
  });
  const ending = new AbortController();
  const running = controller.run(ending.signal);
  const end = async (reason?: Error): Promise<void> => {
    ending.abort(reason);
    await running;
  };
  t.onTestFinished(() => end());
  return { store, clock, registry, controller, seen, end };
}

const ok: Reconcile = () => Promise.resolve(done);
const fails =
  (error: Error): Reconcile =>
  () =>
    Promise.reject(error);

test('nothing is reconciled before the cache is full; then everything once, and again when it changes', async (t) => {
  const { store, seen, controller } = bench(t, ok);
  store.set(object('early'));
  controller.enqueue('apps/early');
  await new Promise(setImmediate);
  assert.deepEqual(seen, []);
  store.replace([object('a'), object('b')]);
  await waitUntil(() => seen.length === 3);
  assert.deepEqual(seen.toSorted(), ['apps/a', 'apps/b', 'apps/early']);
  store.set(object('a', 2));
  await waitUntil(() => seen.length === 4);
  store.remove(object('a', 2));
  await waitUntil(() => seen.length === 5);
  assert.deepEqual(seen.slice(3), ['apps/a', 'apps/a']);
});

test('a requeue comes after its time, unless a change comes first', async (t) => {
  const { store, seen, clock, controller } = bench(t, () => Promise.resolve(requeueAfter(5000)));
  store.replace([object('a')]);
  await waitUntil(() => seen.length === 1 && controller.idle);
  clock.advance(4999);
  assert.ok(controller.idle);
  clock.advance(1);
  await waitUntil(() => seen.length === 2);
});

test('StallingError stops, WaitingError returns in time, other errors back off', async (t) => {
  const cases: [Error, string, number | undefined][] = [
    [new StallingError('SpecInvalid', 'fix it'), 'stalled', undefined],
    [new WaitingError('NotYet', 'wait', 7000), 'waiting', 7000],
    [new Error('boom'), 'error', 5],
    [new ApiError(429, 'TooManyRequests', 'slow', 30), 'error', 30_000],
    [new ApiError(409, 'Conflict', 'changed'), 'error', 5],
  ];
  for (const [error, result, wait] of cases) {
    const { store, seen, clock, registry, controller, end } = bench(t, fails(error), { resyncMs: 0 });
    store.replace([object('a')]);
    await waitUntil(() => seen.length === 1 && controller.idle);
    if (wait !== undefined) clock.advance(wait - 1);
    else clock.advance(100_000_000);
    await new Promise(setImmediate);
    assert.equal(seen.length, 1, `${error.message}: too early`);
    clock.advance(1);
    if (wait !== undefined) await waitUntil(() => seen.length === 2);
    assert.match(
      await registry.metrics(),
      new RegExp(`moorage_reconcile_total\\{controller="things",result="${result}"\\} `),
    );
    await end();
  }
});

test('the wait doubles with each failure until a success, and the reconciler gets the number of failures', async (t) => {
  const reported: number[] = [];
  let healthy = false;
  const { store, seen, clock, controller } = bench(t, (_key, { failures }) => {
    reported.push(failures);
    return healthy ? Promise.resolve(done) : Promise.reject(new Error('boom'));
  });
  store.replace([object('a')]);
  for (const wait of [5, 10, 20, 40]) {
    const before = seen.length;
    await waitUntil(() => seen.length === before + (wait === 5 ? 1 : 0) && controller.idle);
    const at = seen.length;
    clock.advance(wait - 1);
    await new Promise(setImmediate);
    assert.equal(seen.length, at);
    clock.advance(1);
    await waitUntil(() => seen.length === at + 1 && controller.idle);
  }
  healthy = true;
  clock.advance(80);
  await waitUntil(() => seen.length === 6 && controller.idle);
  assert.deepEqual(reported, [0, 1, 2, 3, 4, 5]);
  controller.enqueue('apps/a');
  await waitUntil(() => reported.length === 7);
  assert.equal(reported[6], 0);
});

test('treats a synchronous throw like any error, and the worker continues', async (t) => {
  let first = true;
  const { store, seen, clock, controller } = bench(
    t,
    () => {
      if (!first) return Promise.resolve(done);
      first = false;
      throw new Error('boom');
    },
    { workers: 1 },
  );
  store.replace([object('a')]);
  await waitUntil(() => seen.length === 1 && controller.idle);
  clock.advance(5);
  await waitUntil(() => seen.length === 2);
});

test('workers work side by side, up to their number', async (t) => {
  const gates: (() => void)[] = [];
  const { store, controller, seen } = bench(
    t,
    () =>
      new Promise((resolve) =>
        gates.push(() => {
          resolve(done);
        }),
      ),
    { workers: 3 },
  );
  store.replace(Array.from({ length: 10 }, (_, index) => object(`t${index}`)));
  await waitUntil(() => seen.length === 3);
  await new Promise(setImmediate);
  assert.equal(seen.length, 3);
  const ended = (): boolean => seen.length === 10 && gates.length === 0;
  while (!ended()) {
    gates.shift()?.();
    await new Promise(setImmediate);
  }
  await waitUntil(() => controller.idle);
});

test('a change during a resync is reconciled before the rest, even if no reconcile waits for anything', async (t) => {
  const { store, seen, controller } = bench(t, ok, { resyncMs: 0 });
  store.replace(Array.from({ length: 500 }, (_, index) => object(`app-${index}`)));
  await waitUntil(() => seen.length === 500 && controller.idle);
  controller.resync();
  setImmediate(() => {
    store.set(object('app-499', 2));
  });
  await waitUntil(() => controller.idle);
  const place = seen.slice(500).indexOf('apps/app-499');
  assert.ok(place >= 0 && place < 50, `reconciled after ${place} others`);
});

test('the resync enqueues every own key about as often as configured', async (t) => {
  const children = createStore();
  const own = createStore();
  const { clock, seen, controller } = bench(t, ok, {
    resyncMs: 60_000,
    watches: [createWatch(own), createWatch(children, createOwnerMapping('Thing'))],
  });
  own.replace([object('a'), object('b')]);
  children.replace([]);
  await waitUntil(() => seen.length === 2 && controller.idle);
  clock.advance(53_999);
  await new Promise(setImmediate);
  assert.equal(seen.length, 2);
  clock.advance(12_001);
  await waitUntil(() => seen.length === 4);
});

test('a child brings its owner, by reference or by label; an update brings the old owner too', async (t) => {
  const owner = (name: string): Partial<KubeObject['metadata']> => ({
    ownerReferences: [
      { apiVersion: 'v1', kind: 'Thing', name, uid: '1', controller: true },
      { apiVersion: 'v1', kind: 'Other', name: 'x', uid: '2', controller: true },
    ],
  });
  const [byOwner, byName] = [createStore(), createStore()];
  const { seen, controller } = bench(t, ok, {
    watches: [
      createWatch(byOwner, createOwnerMapping('Thing')),
      createWatch(byName, createLabelMapping('app', 'apps')),
    ],
  });
  byOwner.replace([object('child', 1, owner('a'))]);
  byName.replace([object('job', 1, { namespace: 'builds', labels: { app: 'b' } }), object('stray', 1)]);
  await waitUntil(() => seen.length === 2 && controller.idle);
  byOwner.set(object('child', 2, owner('c')));
  await waitUntil(() => seen.length === 4);
  assert.deepEqual(seen.toSorted(), ['apps/a', 'apps/a', 'apps/b', 'apps/c']);
});

test('a change of status alone can be passed over', async (t) => {
  const store = createStore();
  const { seen, controller } = bench(t, ok, { watches: [createWatch(store, undefined, { isChange: ignoreStatus })] });
  store.replace([object('a', 1, { generation: 1 })]);
  await waitUntil(() => seen.length === 1 && controller.idle);
  store.set(object('a', 2, { generation: 1 }));
  assert.ok(controller.idle);
  store.set(object('a', 3, { generation: 1, annotations: { poke: '1' } }));
  await waitUntil(() => seen.length === 2 && controller.idle);
  store.set(object('a', 4, { generation: 2, annotations: { poke: '1' } }));
  await waitUntil(() => seen.length === 3 && controller.idle);
  store.set(object('a', 5, { generation: 2, annotations: { poke: '1' }, deletionTimestamp: '2026-01-02T00:00:00Z' }));
  await waitUntil(() => seen.length === 4);
});

test('lets reconciles in progress finish at shutdown, starts no new ones, and aborts them at the limit', async (t) => {
  let finish = (): void => undefined;
  let cut: AbortSignal | undefined;
  const hold: Reconcile = (_key, { signal }) =>
    new Promise((resolve, reject) => {
      cut = signal;
      finish = () => {
        resolve(done);
      };
      signal.addEventListener('abort', () => {
        reject(new Error('cut'));
      });
    });
  const first = bench(t, hold, { workers: 1 });
  first.store.replace([object('a'), object('b')]);
  await waitUntil(() => first.seen.length === 1);
  const ended = first.end();
  await new Promise(setImmediate);
  first.clock.advance(14_999);
  assert.equal(cut?.aborted, false);
  finish();
  await ended;
  assert.deepEqual(first.seen, ['apps/a']);
  assert.equal(first.clock.pending, 0);

  const second = bench(t, hold);
  second.store.replace([object('a')]);
  await waitUntil(() => second.seen.length === 1);
  const late = second.end();
  await new Promise(setImmediate);
  second.clock.advance(15_000);
  await late;
  assert.equal(cut.aborted, true);
  assert.match(await second.registry.metrics(), /result="cut"\} 1/);
});

test('aborts reconciles in progress immediately if leadership is lost', async (t) => {
  const { store, seen, end } = bench(
    t,
    (_key, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          reject(new Error('cut'));
        });
      }),
  );
  store.replace([object('a')]);
  await waitUntil(() => seen.length === 1);
  await end(new LeadershipLostError('another leads'));
});

test('reports how long a reconcile has run', async (t) => {
  let finish = (): void => undefined;
  const { store, seen, clock, controller } = bench(
    t,
    () =>
      new Promise((resolve) => {
        finish = () => {
          resolve(done);
        };
      }),
  );
  store.replace([object('a')]);
  await waitUntil(() => seen.length === 1);
  clock.advance(1234);
  assert.equal(controller.getLongestReconcileMs(), 1234);
  assert.equal(controller.idle, false);
  finish();
  await waitUntil(() => controller.idle);
  assert.equal(controller.getLongestReconcileMs(), 0);
});
