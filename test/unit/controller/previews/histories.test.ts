// 500 random histories of a repository and its app: references come, move and go, events are lost, repeated and late, the operator
// is killed between two writes, its cache is old, and the git server fails. In the end there is a preview of each reference that
// has one, and no other.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { annotations, labels } from '../../../../crds/names.ts';
import { formatPreviewName, type PreviewReference } from '../../../../crds/previews.ts';
import type { HostedAppObject } from '../../../../controller/objects/kinds.ts';
import { listWantedNames, PreviewWorld } from '../../../support/operator/preview-world.ts';

const reference = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 1, max: 8 }).map((number) => `refs/pull/${number}/head`) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 3 }).map((number) => `refs/merge-requests/${number}/head`) },
  {
    weight: 2,
    arbitrary: fc.constantFrom('refs/heads/feature/a', 'refs/heads/feature/b', 'refs/heads/other', 'refs/heads/main'),
  },
);

const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('push' as const), reference, event: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('remove' as const), reference, event: fc.boolean() }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'late-event' as const }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('work' as const), rounds: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('crash' as const), writes: fc.integer({ min: 0, max: 3 }) }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'stale-cache' as const }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'git-fails' as const }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('pass' as const), minutes: fc.integer({ min: 1, max: 30 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('switch' as const), on: fc.boolean() }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'suspend' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'recreate' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'end-deleted' as const }) },
);

const history = fc.record({
  limit: fc.integer({ min: 1, max: 5 }),
  steps: fc.array(step, { minLength: 10, maxLength: 60 }),
});

test('leaves no orphan and misses no preview, in 500 random histories', async () => {
  let previews = 0;
  await fc.assert(
    fc.asyncProperty(history, async ({ limit, steps }) => {
      const world = new PreviewWorld(limit);
      for (const each of steps) await world.take(each);
      await world.settle();
      const found = world.cluster.listPreviews('hello');
      assert.deepEqual(found.map(({ metadata }) => metadata.name).sort(), listWantedNames(world).sort());
      for (const preview of found) assertShows(preview, world.references);
      previews += found.length;
    }),
    { numRuns: 500 },
  );
  // Otherwise the histories would prove little.
  assert.ok(previews > 300, `${previews} previews at the end of all histories`);
});

function assertShows({ metadata, spec }: HostedAppObject, references: ReadonlyMap<string, string>): void {
  const { app = '', reference: shown = '' } = spec.previewOf ?? {};
  assert.equal(metadata.name, formatPreviewName(app, shown));
  assert.equal(spec.source.revision, references.get(shown));
}

test('removes the previews of an app that is gone, and of a namesake before it', async () => {
  const world = new PreviewWorld(3);
  const show: PreviewReference = { name: 'refs/pull/1/head', commit: '1'.repeat(40) };
  world.references.set(show.name, show.commit);
  await world.settle();
  const [before] = world.cluster.listPreviews('hello');
  assert.ok(before);
  world.recreateApp();
  await world.settle();
  const [after] = world.cluster.listPreviews('hello');
  assert.ok(after);
  assert.notEqual(after.metadata.uid, before.metadata.uid);
  world.deleteApp();
  await world.settle();
  assert.deepEqual(world.cluster.list(), []);
});

test('looks again as soon as a hook asks for it, and otherwise at the interval', async () => {
  const world = new PreviewWorld(3);
  await world.settle();
  world.references.set('refs/pull/1/head', '1'.repeat(40));
  await world.work(3);
  assert.equal(world.cluster.listPreviews('hello').length, 0);
  world.cluster.set('hello', (app) => ({
    ...app,
    metadata: { ...app.metadata, annotations: { [annotations.poll]: 'now' } },
  }));
  await world.work(3);
  assert.equal(world.cluster.listPreviews('hello').length, 1);
});

test('keeps the name of another app, and changes nothing about it', async () => {
  const world = new PreviewWorld(3);
  const name = 'hello--pr-1';
  world.cluster.put({
    ...{ apiVersion: 'moorage.dev/v1alpha1', kind: 'HostedApp', metadata: { name, namespace: 'moorage-apps' } },
    spec: { source: { repo: 'https://github.com/someone/else' } },
  });
  world.references.set('refs/pull/1/head', '1'.repeat(40));
  await world.settle();
  assert.equal(world.cluster.get(name)?.spec.source.repo, 'https://github.com/someone/else');
  assert.equal(world.cluster.get(name)?.metadata.labels?.[labels.app], undefined);
});

test.each([
  ['no activator', { canSleep: false, limit: 5 }],
  ['a limit of 0', { canSleep: true, limit: 0 }],
])('makes no preview with %s', async (_what, limits) => {
  const world = new PreviewWorld(3, limits);
  world.references.set('refs/pull/1/head', '1'.repeat(40));
  await world.settle();
  assert.deepEqual(world.cluster.listPreviews('hello'), []);
});

test('attack: a moorage.yaml of another branch than the default one switches no previews on', async () => {
  const world = new PreviewWorld(3);
  world.cluster.set('hello', (app) => ({
    ...app,
    spec: { ...app.spec, source: { ...app.spec.source, revision: 'feature/stranger' } },
  }));
  world.references.set('refs/pull/1/head', '1'.repeat(40));
  await world.settle();
  assert.deepEqual(world.cluster.listPreviews('hello'), []);
});
