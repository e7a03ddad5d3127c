// The cache: indexes, changes as they happened, and objects that cannot be changed behind its back.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import {
  listControllerUids,
  createLabelIndexer,
  createStore,
  toObjectKey,
  parseObjectKey,
  type Change,
  type KubeObject,
} from '../../../../../lib/kubernetes/index.ts';

function object(
  name: string,
  uid: string,
  version: number,
  labels: Record<string, string> = {},
  namespace = 'apps',
): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Thing',
    metadata: {
      name,
      namespace,
      uid,
      resourceVersion: String(version),
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels,
    },
  };
}

/** Keeps what the changes say, and fails on a change that cannot follow from the ones before. */
class Replay {
  readonly objects = new Map<string, KubeObject>();

  readonly take = (change: Change<KubeObject>): void => {
    const key = toObjectKey(change.object);
    const known = this.objects.get(key);
    if (change.type === 'added') assert.equal(known, undefined, `${key} added twice`);
    else assert.equal(known?.metadata.uid, change.object.metadata.uid, `${key} ${change.type} with another UID`);
    if (change.type === 'updated') assert.equal(change.old, known);
    if (change.type === 'deleted') this.objects.delete(key);
    else this.objects.set(key, change.object);
  };
}

const objects = fc
  .uniqueArray(
    fc.record({
      name: fc.constantFrom('a', 'b', 'c', 'd'),
      uid: fc.constantFrom('1', '2'),
      version: fc.integer({ min: 1, max: 5 }),
      app: fc.constantFrom('x', 'y'),
    }),
    { selector: ({ name }) => name },
  )
  .map((list) => list.map(({ name, uid, version, app }) => object(name, `${name}${uid}`, version, { app })));

const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant('replace' as const), objects }),
    fc.record({ do: fc.constantFrom('set' as const, 'remove' as const), objects }),
  ),
  { maxLength: 12 },
);

test('replaying the reported changes gives the cache, and the indexes match it', () => {
  const property = fc.property(steps, (list) => {
    const faults: unknown[] = [];
    const store = createStore({ indexers: { app: createLabelIndexer('app') }, onError: (error) => faults.push(error) });
    const replay = new Replay();
    store.subscribe(replay.take);
    for (const step of list) {
      if (step.do === 'replace') store.replace(step.objects);
      else for (const one of step.objects) store[step.do](one);
      assert.deepEqual(faults, []);
      assert.deepEqual(new Map(store.list().map((one) => [toObjectKey(one), one])), replay.objects);
      for (const app of ['x', 'y']) {
        const expected = store.list().filter((one) => one.metadata.labels?.['app'] === app);
        assert.deepEqual(
          store.listByIndex('app', app).map(toObjectKey).toSorted(),
          expected.map(toObjectKey).toSorted(),
        );
      }
      if (step.do === 'replace')
        assert.deepEqual(store.list().map(toObjectKey).toSorted(), step.objects.map(toObjectKey).toSorted());
    }
  });
  fc.assert(property, { numRuns: 500 });
});

test('reports an object of the same name with another UID as deleted, then added', () => {
  const store = createStore();
  const reported: string[] = [];
  store.replace([object('a', 'old', 1)]);
  store.subscribe(({ type, object: { metadata } }) => reported.push(`${type} ${metadata.uid}`));
  store.replace([object('a', 'new', 9)]);
  assert.deepEqual(reported, ['added old', 'deleted old', 'added new']);
});

test('ignores a late delete of a replaced object', () => {
  const store = createStore();
  store.set(object('a', 'new', 9));
  store.remove(object('a', 'old', 1));
  assert.equal(store.get('apps/a')?.metadata.uid, 'new');
});

test('an object that has not changed is reported only once', () => {
  const store = createStore();
  let reported = 0;
  store.subscribe(() => {
    reported += 1;
  });
  store.replace([object('a', '1', 1)]);
  store.replace([object('a', '1', 1)]);
  assert.equal(reported, 1);
});

test('throws if a reconciler changes a cached object', () => {
  const store = createStore();
  store.set(object('a', '1', 1, { app: 'x' }));
  const cached = store.get('apps/a');
  assert.throws(() => {
    Object.assign(cached?.metadata.labels ?? {}, { app: 'y' });
  }, TypeError);
  const loose = createStore({ freeze: false });
  loose.set(object('a', '1', 1, { app: 'x' }));
  assert.equal(Object.isFrozen(loose.get('apps/a')), false);
});

test('reports a subscriber that throws, and still notifies the others', () => {
  const faults: unknown[] = [];
  const store = createStore({ onError: (error) => faults.push(error) });
  let reported = 0;
  store.subscribe(() => {
    throw new Error('bad mapping');
  });
  const stop = store.subscribe(() => {
    reported += 1;
  });
  store.set(object('a', '1', 1));
  assert.equal(reported, 1);
  assert.match(String(faults[0]), /bad mapping/);
  stop();
  store.set(object('a', '1', 2));
  assert.equal(reported, 1);
});

test('an index that does not exist is an error that names those that do', () => {
  const store = createStore({ indexers: { app: createLabelIndexer('app') } });
  assert.throws(() => store.listByIndex('owner', 'x'), /no index "owner"; it has: app/);
});

test('children are found by the UID of the owner that controls them', () => {
  const store = createStore({ indexers: { owner: listControllerUids } });
  const child = object('a', '1', 1);
  child.metadata.ownerReferences = [
    { apiVersion: 'v1', kind: 'App', name: 'app', uid: 'boss', controller: true },
    { apiVersion: 'v1', kind: 'App', name: 'other', uid: 'friend' },
  ];
  store.set(child);
  assert.equal(store.listByIndex('owner', 'boss').length, 1);
  assert.equal(store.listByIndex('owner', 'friend').length, 0);
});

test('a cache has synced after its first full list, even an empty one', async () => {
  const store = createStore();
  const waiting = store.waitUntilSynced();
  assert.equal(store.hasSynced, false);
  const impatient = new AbortController();
  const aborted = store.waitUntilSynced(impatient.signal);
  impatient.abort(new Error('enough'));
  await assert.rejects(aborted, /enough/);
  store.replace([]);
  await waiting;
  assert.equal(store.hasSynced, true);
});

test('listing a namespace leaves out the others; keys and references convert both ways', () => {
  const store = createStore();
  store.replace([object('a', '1', 1), object('a', '2', 2, {}, 'other')]);
  assert.deepEqual(
    store.list('other').map(({ metadata }) => metadata.uid),
    ['2'],
  );
  assert.equal(store.size, 2);
  for (const ref of [{ name: 'a' }, { namespace: 'n', name: 'a' }])
    assert.deepEqual(parseObjectKey(toObjectKey(ref)), ref);
});
