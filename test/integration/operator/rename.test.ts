// Renames with the real operator, the rights that the chart gives it and the API, and a real API server: routes appear and go, the
// published address moves when its route is reached, and no app takes the route of another one.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { createControlWriter, type ControlChange, type WriteControl } from '../../../api/apps/author/control.ts';
import { deployments, routes, type HostedAppObject, type HttpRoute } from '../../../controller/objects/kinds.ts';
import { annotations } from '../../../crds/names.ts';
import { renameTo } from '../../../crds/slugs.ts';
import type { Client } from '../../../lib/kubernetes/index.ts';
import { createClientAs } from '../../support/kubernetes/api-server.ts';
import {
  acceptRoute,
  awaitDeployment,
  awaitStartedJob,
  buildWell,
  formatImage,
  rollOut,
} from '../../support/operator/stand-in.ts';
import { startWorld, waitFor, type World } from '../../support/operator/world.ts';

const namespace = 'moorage-apps';
let world: World;
let api: Client;
let writeControl: WriteControl;

beforeAll(async () => {
  world = await startWorld();
  world.startOperator();
  api = await createClientAs(world.api, 'system:serviceaccount:moorage-system:moorage-api');
  writeControl = createControlWriter({ client: api, apps: { waitForApp: () => Promise.resolve() } });
});
afterAll(async () => {
  api.close();
  await world.stop();
});

async function readApp(name: string): Promise<HostedAppObject> {
  return (await world.app(name)) ?? assert.fail(`no ${name}`);
}

async function change(name: string, make: (app: HostedAppObject) => ControlChange): Promise<void> {
  const app = await readApp(name);
  await writeControl(app, () => make(app));
}

async function rename(name: string, slug: string, at = new Date()): Promise<void> {
  await change(name, (app) => {
    const { slug: next, formerSlugs } = renameTo(app, slug, at);
    return { slug: next, formerSlugs: [...formerSlugs] };
  });
}

async function goLive(name: string): Promise<void> {
  const job = await awaitStartedJob(world, name);
  const commit = job.metadata.annotations?.[annotations.commit] ?? '';
  await buildWell(world.client, job, commit, formatImage(job, 'a'));
  await rollOut(world.client, await awaitDeployment(world, name, formatImage(job, 'a')));
  await acceptRoute(world, name);
  await waitFor(`${name} to be live`, async () => (await readApp(name)).status?.phase === 'Live');
}

function readRoute(name: string): Promise<HttpRoute | undefined> {
  return world.client.get(routes, { name, namespace });
}

function listOwners(route: HttpRoute | undefined): (string | undefined)[] {
  return (route?.metadata.ownerReferences ?? []).map(({ name }) => name);
}

async function awaitUrl(name: string, url: string): Promise<void> {
  await waitFor(`${name} at ${url}`, async () => (await readApp(name)).status?.url === url).catch(
    async (error: unknown) => {
      throw new Error(`${String(error)}; status ${JSON.stringify((await readApp(name)).status)}`);
    },
  );
}

const formatUrl = (slug: string): string => `https://${slug}.apps.localhost/`;

test('a renamed app gets a route at its new name, and is published there once that is accepted', async () => {
  await world.submit('bakery');
  await goLive('bakery');
  assert.equal((await readApp('bakery')).status?.url, formatUrl('bakery'));
  const before = await world.client.get(deployments, { name: 'bakery', namespace });

  await rename('bakery', 'bread');
  const route = await waitFor('the new route', () => readRoute('bread'));
  assert.deepEqual(listOwners(route), ['bakery']);
  assert.equal((await readApp('bakery')).status?.url, formatUrl('bakery'));
  assert.equal((await readApp('bakery')).status?.served?.commit, (await readApp('bakery')).status?.built?.commit);
  await acceptRoute(world, 'bread');
  await acceptRoute(world, 'bakery');
  await awaitUrl('bakery', formatUrl('bread'));
  assert.deepEqual(listOwners(await readRoute('bakery')), ['bakery']);
  // Pods that do not know their address are not touched.
  const after = await world.client.get(deployments, { name: 'bakery', namespace });
  assert.equal(after?.metadata.generation, before?.metadata.generation);
  assert.equal((await world.jobs('bakery')).length, 1);
});

test('the route of a former name goes when it ends, and its first name stays with the app', async () => {
  await change('bakery', ({ spec }) => ({
    formerSlugs: (spec.control?.formerSlugs ?? []).map(({ name }) => ({ name, until: new Date(0).toISOString() })),
  }));
  await waitFor('the former route to go', async () => (await readRoute('bakery')) === undefined);
  assert.deepEqual(listOwners(await readRoute('bread')), ['bakery']);
});

test('attack: an app that is given the name of another one takes nothing from it', async () => {
  await world.submit('rival');
  await goLive('rival');
  await rename('bakery', 'bakery');
  await waitFor('the first route again', () => readRoute('bakery'));
  for (const slug of ['bread', 'bakery']) {
    await change('rival', () => ({ slug }));
    await waitFor(`the refusal of ${slug}`, async () => {
      const conditions = (await readApp('rival')).status?.conditions ?? [];
      const routed = conditions.find(({ type }) => type === 'Routed');
      return routed?.reason === 'RouteRefused' && routed.message.startsWith(`${slug}.`);
    });
    assert.deepEqual(listOwners(await readRoute(slug)), ['bakery']);
  }
  await change('rival', () => ({ slug: undefined }));
  assert.equal((await readApp('rival')).status?.url, formatUrl('rival'));
});

test('attack: the API server takes no name of another form, and no more than five former ones', async () => {
  const until = new Date().toISOString();
  for (const control of [
    { slug: 'Bread' },
    { slug: 'a.evil.test' },
    { slug: 'a'.repeat(41) },
    { formerSlugs: [{ name: '../x', until }] },
    { formerSlugs: ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => ({ name, until })) },
  ])
    await assert.rejects(
      change('rival', () => control),
      /is invalid|must|Too many|at most/,
      JSON.stringify(control),
    );
});
