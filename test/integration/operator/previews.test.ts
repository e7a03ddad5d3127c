// Previews with the real operator and a real API server: what they may have, who may make them, and that they follow the references
// of the repository whatever happens to the operator.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { deployments, hostedApps, routes, type HostedAppObject } from '../../../controller/objects/kinds.ts';
import { annotations, group, kind, labels, version } from '../../../crds/names.ts';
import { apply, deleteObject, type Client, type Manifest } from '../../../lib/kubernetes/index.ts';
import { createClientAs } from '../../support/kubernetes/api-server.ts';
import { awaitStartedJob, buildWell, formatImage } from '../../support/operator/stand-in.ts';
import { listAll, startWorld, waitFor, type Operator, type World } from '../../support/operator/world.ts';

const name = 'shown';
const namespace = 'moorage-apps';
const limit = 2;
let world: World;
let running: Operator;
let operator: Client;
let api: Client;

beforeAll(async () => {
  world = await startWorld();
  running = world.startOperator();
  operator = await createClientAs(world.api, 'system:serviceaccount:moorage-system:moorage-operator');
  api = await createClientAs(world.api, 'system:serviceaccount:moorage-system:moorage-api');
  await world.submit(name, {
    previews: { pullRequests: true, branches: ['feature/*'], limit },
    run: {
      env: [{ name: 'GREETING', value: 'correct horse battery' }],
      secrets: [{ name: 'PAYMENT_KEY', secret: 'payments', key: 'key' }],
    },
    models: { enabled: true, dailyBudgetUsd: '3' },
    services: [{ name: 'db', type: 'postgres', disk: '5Gi' }],
  });
});
afterAll(async () => {
  operator.close();
  api.close();
  await world.stop();
});

const listPreviews = (): Promise<HostedAppObject[]> =>
  listAll(world.client, hostedApps, namespace, `${labels.app}=${name}`);

async function requestLook(): Promise<void> {
  const patch = { metadata: { annotations: { [annotations.poll]: new Date().toISOString() } } };
  await world.client.patch(hostedApps, { name, namespace }, patch, { type: 'application/merge-patch+json' });
}

/** Waits until there are exactly these previews, by reference and commit. */
async function awaitPreviews(expected: ReadonlyMap<string, string>): Promise<HostedAppObject[]> {
  return waitFor(`previews of ${[...expected.keys()].join(', ')}`, async () => {
    const found = await listPreviews();
    assert.ok(found.length <= limit, `${found.length} previews`);
    const shown = new Map(found.map(({ spec }) => [spec.previewOf?.reference ?? '', spec.source.revision ?? '']));
    const isEqual = shown.size === expected.size && [...expected].every(([each, commit]) => shown.get(each) === commit);
    return isEqual && found;
  });
}

test('builds and runs a pull request without anything of the app, and not to be listed by search engines', async () => {
  const commit = await world.git.setReference('refs/pull/12/head');
  await requestLook();
  const [preview] = await awaitPreviews(new Map([['refs/pull/12/head', commit]]));
  assert.ok(preview);
  assert.equal(preview.metadata.name, 'shown--pr-12');
  assert.doesNotMatch(JSON.stringify(preview.spec), /correct horse|payments|PAYMENT_KEY/);
  assert.equal(preview.spec.services?.[0]?.disk, '1Gi');
  const job = await awaitStartedJob(world, preview.metadata.name);
  assert.equal(job.metadata.annotations?.[annotations.commit], commit);
  assert.equal(job.metadata.annotations[annotations.submitter], 'moorage-apps/shown/previews');
  await buildWell(world.client, job, commit, formatImage(job, 'a'));
  const ref = { name: preview.metadata.name, namespace };
  const route = await waitFor('the route', () => world.client.get(routes, ref));
  assert.match(JSON.stringify(route), /"name":"X-Robots-Tag","value":"noindex"/);
  for (const deployment of await listAll(world.client, deployments, namespace, `${labels.app}=${ref.name}`))
    assert.doesNotMatch(JSON.stringify(deployment), /payments|PAYMENT_KEY|correct horse|OPENAI_API_KEY/);
});

test('follows the references over kills, lost hooks and more references than the limit', async () => {
  const expected = new Map<string, string>();
  const set = async (reference: string, isThere: boolean): Promise<void> => {
    const commit = await world.git.setReference(reference, isThere);
    if (isThere) expected.set(reference, commit);
    else expected.delete(reference);
  };
  await set('refs/pull/12/head', true);
  await set('refs/heads/feature/a', true);
  await requestLook();
  await awaitPreviews(expected);
  await running.kill();
  // No hook reports this: a push, a request that is gone, and one that came and went.
  await set('refs/heads/feature/a', true);
  await set('refs/pull/12/head', false);
  await set('refs/pull/13/head', true);
  await set('refs/pull/14/head', true);
  await set('refs/pull/14/head', false);
  await world.removeLease();
  running = world.startOperator();
  await awaitPreviews(expected);
  // One more than the limit: the older request has to go.
  await set('refs/pull/15/head', true);
  expected.delete('refs/pull/13/head');
  await requestLook();
  await awaitPreviews(expected);
});

const apiVersion = `${group}/${version}`;

function buildPreview(preview: string): Manifest {
  const owner = { apiVersion, kind, name, uid: 'uid', controller: true };
  return {
    ...{ apiVersion, kind },
    metadata: { name: preview, namespace, labels: { [labels.app]: name }, ownerReferences: [owner] },
    spec: {
      source: { repo: world.git.url, revision: 'a'.repeat(40) },
      models: { enabled: false, dailyBudgetUsd: '0' },
      agents: { enabled: false },
      author: { share: '0' },
      previewOf: { app: name, reference: 'refs/pull/99/head' },
    },
  };
}

const dryRun = (client: Client, manifest: Manifest): Promise<unknown> =>
  apply(client, hostedApps, manifest, { dryRun: true });

test('attack: the operator creates previews alone, and the API none', async () => {
  await dryRun(operator, buildPreview('shown--pr-99'));
  const other = buildPreview('shown--pr-99');
  await assert.rejects(
    dryRun(operator, { ...other, metadata: { ...other.metadata, ownerReferences: [] } }),
    /owned by the app that it shows/,
  );
  const plain = { ...buildPreview('plain'), spec: { source: { repo: 'https://github.com/o/n' } } };
  await assert.rejects(dryRun(operator, plain), /creates no app/);
  await assert.rejects(dryRun(world.client, buildPreview('plain')), /the name of a preview/);
  const [preview] = await listPreviews();
  assert.ok(preview);
  const patch = { metadata: { annotations: { [annotations.rebuild]: 'now' } } };
  const type = 'application/merge-patch+json';
  await assert.rejects(api.patch(hostedApps, preview.metadata, patch, { type }), /changes no preview/);
});

test('removes every preview when they are switched off, and when the app is deleted', async () => {
  const type = 'application/merge-patch+json';
  const change = (previews: object): Promise<unknown> =>
    world.client.patch(hostedApps, { name, namespace }, { spec: { previews } }, { type });
  await change({ pullRequests: false, branches: [] });
  await awaitPreviews(new Map());
  await change({ pullRequests: true });
  await waitFor('a preview', async () => (await listPreviews()).length > 0);
  const app = await world.app(name);
  assert.ok(app);
  await deleteObject(world.client, hostedApps, app);
  await awaitPreviews(new Map());
});
