// What the HostedApp sets wins over the author's moorage.yaml, also at its default; apps of an earlier version's CRD.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { stringify } from 'yaml';
import { buildDefinition, describeSpec } from '../../../crds/definition.ts';
import { readSettings, resolveSpec } from '../../../crds/effective-settings.ts';
import type { HostedAppSpec } from '../../../crds/hosted-app.ts';
import { deployments } from '../../../controller/objects/kinds.ts';
import { annotations } from '../../../crds/names.ts';
import {
  createCloneEnd,
  completeJob,
  awaitDeployment,
  formatImage,
  createBuildEnd,
  createReviewEnd,
  awaitStartedJob,
  writePod,
} from '../../support/operator/stand-in.ts';
import { startWorld, waitFor, type World } from '../../support/operator/world.ts';

const apps = 'moorage-apps';
const crd = new URL('../../../crds/hostedapps.yaml', import.meta.url).pathname;
let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.stop());

/** Builds the newest commit of an app, whose moorage.yaml has these settings. */
async function build(name: string, settings: object): Promise<void> {
  const job = await awaitStartedJob(world, name);
  const commit = job.metadata.annotations?.[annotations.commit] ?? '';
  const image = formatImage(job, 'a');
  await writePod(
    world.client,
    job,
    [createCloneEnd(commit), createReviewEnd({ settings }), createBuildEnd(image)],
    'Succeeded',
  );
  await completeJob(world.client, job);
  await awaitDeployment(world, name, image);
}

async function patch(name: string, spec: object): Promise<void> {
  await world.api.kubectl('patch', 'happ', name, '-n', apps, '--type=merge', '-p', JSON.stringify({ spec }));
}

/** The memory that a replica gets. */
async function readMemory(name: string): Promise<unknown> {
  const deployment = await world.client.get(deployments, { name, namespace: apps });
  return deployment?.spec?.template.spec?.containers[0]?.resources?.limits?.['memory'];
}

async function waitForMemory(name: string, memory: string): Promise<void> {
  await waitFor(`${name} to have ${memory}`, async () => (await readMemory(name)) === memory);
}

/** The settings of an app, as the API reads them. */
async function readResolved(name: string): Promise<HostedAppSpec> {
  const app = (await world.app(name)) ?? assert.fail();
  return resolveSpec(app, readSettings(app.status?.built?.settings));
}

test("an app of an earlier version's CRD keeps applied fields and loses those that the API server filled in", async () => {
  const former = buildDefinition() as { spec: { versions: { schema: { openAPIV3Schema: { properties: object } } }[] } };
  Object.assign(former.spec.versions[0]?.schema.openAPIV3Schema.properties ?? {}, { spec: describeSpec() });
  const file = `${world.api.kubeconfig}.crd.yaml`;
  await writeFile(file, stringify(former, { aliasDuplicateObjects: false }));
  await world.api.kubectl('apply', '--server-side', '--force-conflicts', '-f', file);
  await waitFor('the former CRD', async () => {
    await world.submit('probe');
    const filled = (await world.app('probe'))?.spec.run?.resources?.memory === '512Mi';
    await world.api.kubectl('delete', 'happ', 'probe', '-n', apps);
    return filled;
  });
  await world.submit('created', { agents: { openapi: '/mine.json' } });
  for (const [name, ...flags] of [['applied'], ['server-side', '--server-side']] as const) {
    const manifest = `${world.api.kubeconfig}.${name}.yaml`;
    const spec = { source: { repo: world.git.url }, run: { resources: { memory: '512Mi' } } };
    const metadata = { name, namespace: apps };
    await writeFile(manifest, stringify({ apiVersion: 'moorage.dev/v1alpha1', kind: 'HostedApp', metadata, spec }));
    await world.api.kubectl('apply', ...flags, '-f', manifest);
  }
  assert.equal((await world.app('server-side'))?.spec.agents?.enabled, false, 'filled in by the former CRD');
  await world.api.kubectl('apply', '--server-side', '--force-conflicts', '-f', crd);
  await waitFor('the CRD of today', async () => {
    await world.submit('probe');
    const filled = (await world.app('probe'))?.spec.run?.resources?.memory !== undefined;
    await world.api.kubectl('delete', 'happ', 'probe', '-n', apps);
    return !filled;
  });
  // Until the operator has removed them, the former defaults count as not set.
  const author = { run: { resources: { memory: '1Gi' } } };
  assert.equal(resolveSpec((await world.app('created')) ?? assert.fail(), author).run.resources.memory, '1Gi');

  world.startOperator();
  for (const name of ['created', 'applied', 'server-side'])
    await waitFor(
      `${name} to lose the defaults`,
      async () => (await world.app(name))?.spec.build?.strategy === undefined,
    );
  const memory = async (name: string): Promise<unknown> => (await world.app(name))?.spec.run?.resources;
  assert.deepEqual(await memory('created'), {});
  assert.deepEqual((await world.app('created'))?.spec.agents, { openapi: '/mine.json' });
  assert.deepEqual(await memory('applied'), { memory: '512Mi' });
  assert.deepEqual(await memory('server-side'), { memory: '512Mi' });
  await build('applied', author);
  await waitForMemory('applied', '512Mi');
  await build('created', author);
  await waitForMemory('created', '1Gi');
});

test('kubectl pins a default against moorage.yaml, and without the pin the file decides again', async () => {
  await world.submit('pinned');
  await build('pinned', { run: { resources: { memory: '1Gi' } }, agents: { enabled: true } });
  await waitForMemory('pinned', '1Gi');
  // The Deployment is applied before the status is written.
  await waitFor('the status of pinned', async () => (await readResolved('pinned')).agents.enabled);

  await patch('pinned', { run: { resources: { memory: '512Mi' } }, agents: { enabled: false } });
  await waitForMemory('pinned', '512Mi');
  assert.equal((await readResolved('pinned')).agents.enabled, false);
  const effective = await waitFor('the status to name the HostedApp', async () => {
    const shown = (await world.app('pinned'))?.status?.effective;
    return shown?.some(({ from }) => from === 'HostedApp') === true ? shown : undefined;
  });
  assert.deepEqual(effective, [
    { field: 'run.resources.memory', value: '512Mi', from: 'HostedApp' },
    { field: 'agents.enabled', value: 'false', from: 'HostedApp' },
  ]);

  await patch('pinned', { run: { resources: { memory: null } }, agents: { enabled: null } });
  await waitForMemory('pinned', '1Gi');
  assert.equal((await readResolved('pinned')).agents.enabled, true);
});
