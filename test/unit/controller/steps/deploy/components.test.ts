// Releases of several components: their identity, their state in the status, and what is still run of them.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { chooseFallback, findRecord, toRelease } from '../../../../../controller/steps/deploy/releases.ts';
import { findCurrentRelease } from '../../../../../controller/steps/deploy/trial.ts';
import { annotations } from '../../../../../crds/names.ts';
import type { ReleaseRecord } from '../../../../../crds/status.ts';
import {
  config,
  createApplied,
  createSnapshot,
  decideStatus,
  digest,
  first,
  formatTime,
} from '../../../../support/operator/scenario.ts';
import {
  components,
  compositePod,
  createComposite,
  createCrashing,
  listImages,
} from '../../../../support/operator/components.ts';

const release = { image: digest('a'), commit: first, port: 3000, components: listImages({ web: 'a', api: 'c' }) };
const record: ReleaseRecord = { ...release, readyAt: formatTime(-900), servedSeconds: 900, bestSeconds: 900 };

test('two releases of a commit differ if only the image of one component does', () => {
  const other = { ...release, components: listImages({ web: 'a', api: 'd' }) };
  const releases = [record];
  assert.equal(findRecord({ releases }, release), record);
  assert.equal(findRecord({ releases }, other), undefined);
  assert.equal(chooseFallback({ releases }, other), record, 'so a rollback can bring it back');
  assert.deepEqual(toRelease(record).components, release.components);
});

test('a pod belongs to the release of all its images, and the record keeps them', () => {
  const of = createComposite(first);
  const deployment = createApplied(decideStatus(createSnapshot(of)).decision, 'Deployment');
  const { releases } = decideStatus(createSnapshot(of, { deployment, pods: [compositePod(deployment)] })).status;
  assert.deepEqual(releases?.[0]?.components, of.status?.built?.components);
  const rebuilt = createComposite(first, {
    images: listImages({ web: 'a', api: 'd', worker: 'd' }, { web: 3000, api: 8000 }),
  });
  const later = decideStatus(createSnapshot(rebuilt, { deployment, pods: [compositePod(deployment)] })).status;
  assert.equal(later.history?.[0]?.release, undefined);
  assert.deepEqual(
    later.releases?.map((each) => each.components?.find(({ name }) => name === 'api')?.image),
    [digest('c')],
  );
});

test('with a volume, an image of another component is tried before it replaces the one that serves', () => {
  const list = [{ ...components[0], volumes: [{ name: 'data', path: '/data' }] }, ...components.slice(1)];
  const of = createComposite(first, { list });
  const noted = { [annotations.release]: JSON.stringify({ ...release, settings: undefined }) };
  const deployment = createApplied(decideStatus(createSnapshot(of)).decision, 'Deployment');
  const snapshot = createSnapshot(of, {
    deployment: { ...deployment, metadata: { ...deployment.metadata, annotations: noted } },
  });
  const known = { releases: [record] };
  assert.equal(findCurrentRelease(snapshot, known, release), undefined);
  const other = { ...release, components: listImages({ web: 'a', api: 'd' }) };
  assert.equal(findCurrentRelease(snapshot, known, other)?.image, release.image);
});

test('reports the state of each component, and the one that failed as the rejection', () => {
  const of = createComposite(first);
  const deployment = createApplied(decideStatus(createSnapshot(of)).decision, 'Deployment', {
    ...{ observedGeneration: 2, replicas: 1, updatedReplicas: 1 },
  });
  const pod = compositePod(deployment, { worker: createCrashing(1, 'RuntimeError: no queue') });
  const { status } = decideStatus(createSnapshot(of, { deployment, pods: [pod] }));
  assert.deepEqual(
    status.components?.map(({ name, kind, ready, restarts }) => [name, kind, ready, restarts]),
    [
      ['api', 'web', true, 0],
      ['worker', 'worker', false, 4],
      ['web', 'web', true, 0],
    ],
  );
  assert.match(status.components[1]?.message ?? '', /^Component worker crashed with exit code 1/);
  assert.equal(status.rejection?.rule, 'run/crashed');
  assert.match(status.rejection.message, /^Component worker crashed/);
  assert.match(status.rejection.log ?? '', /no queue/);
});

test('an app of one process reports no components', () => {
  const of = createComposite(first, { list: [] });
  assert.equal(decideStatus(createSnapshot(of)).status.components, undefined);
});

test('keeps what was built while components of the spec are not built yet', () => {
  const list = [...components, { name: 'extra', kind: 'worker', path: 'extra' }];
  const of = createComposite(first, { list });
  const { decision } = decideStatus(createSnapshot(of, { config }));
  const deployment = createApplied(decision, 'Deployment');
  const { containers, initContainers } = deployment.spec?.template.spec ?? {};
  assert.deepEqual(
    [...(initContainers ?? []), ...(containers ?? [])].map(({ name }) => name),
    ['api', 'worker', 'web'],
  );
});
