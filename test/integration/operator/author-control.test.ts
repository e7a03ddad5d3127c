// What an author controls through the API, against a real API server: the API's rights and policies let it write the
// control of an app, and the real operator pins, deploys, rebuilds, suspends and deletes accordingly.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { createControlWriter, type WriteControl } from '../../../api/apps/author/control.ts';
import { createAccessKey, hashAccessKey, hashAccessPassword } from '../../../crds/access.ts';
import { deployments, hostedApps, routes, type HostedAppObject } from '../../../controller/objects/kinds.ts';
import { annotations, formatRebuildRequest } from '../../../crds/names.ts';
import { toPublicStatus } from '../../../crds/public-status.ts';
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
import { listEvents, startWorld, waitFor, type World } from '../../support/operator/world.ts';

const name = 'steered';
let world: World;
let api: Client;
let writeControl: WriteControl;
let write: (...rest: Parameters<WriteControl> extends [unknown, ...infer Rest] ? Rest : never) => Promise<void>;
/** Commits in the order in which they went live, and the images of them. */
const commits: string[] = [];
const images: string[] = [];

beforeAll(async () => {
  world = await startWorld();
  world.startOperator();
  api = await createClientAs(world.api, 'system:serviceaccount:moorage-system:moorage-api');
  writeControl = createControlWriter({ client: api, apps: { waitForApp: () => Promise.resolve() } });
  write = async (change, request) => {
    await writeControl(await readApp(), change, request);
  };
});
afterAll(async () => {
  api.close();
  await world.stop();
});

async function readApp(): Promise<HostedAppObject> {
  return (await world.app(name)) ?? assert.fail(`no ${name}`);
}

function requestPoll(): Record<string, string> {
  return { [annotations.poll]: new Date().toISOString() };
}

async function awaitStatus(
  what: string,
  isReached: (status: NonNullable<HostedAppObject['status']>) => boolean | Promise<boolean>,
): Promise<HostedAppObject> {
  let last: HostedAppObject['status'];
  return waitFor(what, async () => {
    const app = await readApp();
    last = app.status;
    return (await isReached(last ?? {})) && app;
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}; status ${JSON.stringify(last)}`);
  });
}

/** Builds the commit of the Job that starts next, and has it serve. */
async function goLive(character: string): Promise<void> {
  const job = await awaitStartedJob(world, name);
  const commit = job.metadata.annotations?.[annotations.commit] ?? '';
  await buildWell(world.client, job, commit, formatImage(job, character));
  commits.push(commit);
  images.push(formatImage(job, character));
  await serve(commits.length - 1);
}

/** Rolls out each version of the Deployment that runs this image, until its commit serves. */
async function serve(index: number): Promise<void> {
  let rolledOut: number | undefined;
  await awaitStatus(`commit ${index} serving`, async ({ phase, served }) => {
    const deployment = await awaitDeployment(world, name, images[index] ?? '');
    if (deployment.metadata.generation !== rolledOut) {
      await rollOut(world.client, deployment);
      await acceptRoute(world, name);
      rolledOut = deployment.metadata.generation;
    }
    return phase === 'Live' && served?.commit === commits[index];
  });
}

async function awaitReplicas(count: number): Promise<void> {
  await waitFor(
    `${count} replicas`,
    async () => (await world.client.get(deployments, { name, namespace: 'moorage-apps' }))?.spec?.replicas === count,
  );
}

function describeBuilt({ status }: HostedAppObject): string {
  const built = status?.conditions?.find(({ type }) => type === 'Built');
  return `${built?.status} ${built?.reason}: ${built?.message}`;
}

test('a pinned release runs without a build, and a newer commit waits until the next deploy', async () => {
  await world.submit(name);
  await goLive('a');
  await world.git.commit('second');
  await write(() => ({}), requestPoll);
  await goLive('b');
  await write(() => ({ release: commits[0] }));
  await serve(0);
  const third = await world.git.commit('third');
  await write(() => ({}), requestPoll);
  const pinned = await awaitStatus('the third commit known', ({ source }) => source?.commit === third);
  const [short, newest] = [commits[0], third].map((commit) => commit?.slice(0, 7));
  assert.equal(
    describeBuilt(pinned),
    `True Pinned: Commit ${short} is pinned; the newest commit ${newest} is not deployed until the next deploy.`,
  );
  assert.deepEqual(toPublicStatus(pinned).pinned, { commit: commits[0], newest: third });
  assert.equal((await world.jobs(name)).length, 2);

  await write(() => ({ release: undefined }), requestPoll);
  const job = await awaitStartedJob(world, name);
  assert.equal(job.metadata.annotations?.[annotations.commit], third);
  const building = await readApp();
  assert.equal(building.status?.built?.commit, commits[0]);
  assert.equal(building.status?.served?.commit, commits[0]);
  await goLive('c');
});

test('the newest commit is deployed again without a build if its release is kept', async () => {
  await write(() => ({ release: commits[1] }));
  await serve(1);
  const jobs = (await world.jobs(name)).map(({ metadata }) => metadata.uid).sort();
  await write(() => ({ release: undefined }), requestPoll);
  await serve(2);
  assert.deepEqual((await world.jobs(name)).map(({ metadata }) => metadata.uid).sort(), jobs);
});

test('a rebuild without the cache builds the same commit again', async () => {
  const value = formatRebuildRequest(new Date(), true);
  await write(
    () => ({}),
    () => ({ [annotations.poll]: value, [annotations.rebuild]: value }),
  );
  const job = await awaitStartedJob(world, name);
  assert.equal(job.metadata.annotations?.[annotations.commit], commits[2]);
  assert.match(job.metadata.annotations?.[annotations.reason] ?? '', /rebuild requested/);
  assert.match(JSON.stringify(job.spec), /\\"noCache\\":true/);
  await goLive('d');
});

test('the route of a protected app leads to the activator until the app is opened again', async () => {
  const readBackends = async (): Promise<(string | undefined)[]> => {
    const { spec } = z
      .looseObject({
        spec: z.looseObject({
          rules: z.array(z.looseObject({ backendRefs: z.array(z.looseObject({ name: z.string() })) })),
        }),
      })
      .parse(await world.client.get(routes, { name, namespace: 'moorage-apps' }));
    return spec.rules.map(({ backendRefs }) => backendRefs[0]?.name);
  };
  assert.deepEqual(await readBackends(), [name]);
  const accessPassword = await hashAccessPassword('a pass phrase');
  const accessKeys = [{ name: 'team', hash: hashAccessKey(createAccessKey()), createdAt: new Date().toISOString() }];
  await write(() => ({ access: 'password', accessPassword, accessKeys }));
  await waitFor('the route to the activator', async () => (await readBackends())[0] === 'moorage-activator');
  await acceptRoute(world, name);
  await awaitStatus('the route accepted for this generation', async ({ conditions }) => {
    const routed = conditions?.find(({ type }) => type === 'Routed');
    return routed?.status === 'True' && routed.observedGeneration === (await readApp()).metadata.generation;
  });
  await write(() => ({ access: undefined, accessPassword: undefined, accessKeys: undefined }));
  await waitFor('the route to the app', async () => (await readBackends())[0] === name);
  assert.equal((await readApp()).spec.control?.access, undefined);
  await acceptRoute(world, name);
});

test('attack: the API server stores neither another mode, nor a password or a key that is not hashed', async () => {
  const createdAt = new Date().toISOString();
  const wrong = [
    { access: 'oidc' },
    { access: 'public' },
    { access: 'password', accessPassword: 'a pass phrase' },
    { access: 'key', accessKeys: [{ name: 'team', hash: createAccessKey(), createdAt }] },
    { access: 'key', accessKeys: [{ name: 'Team', hash: 'a'.repeat(64), createdAt }] },
  ];
  for (const control of wrong)
    await assert.rejects(
      api.patch(
        hostedApps,
        { name, namespace: 'moorage-apps' },
        { spec: { control } },
        {
          type: 'application/merge-patch+json',
          fieldManager: 'moorage-api',
        },
      ),
      /is invalid|Unsupported value/,
      JSON.stringify(control),
    );
  assert.equal((await readApp()).spec.control?.access, undefined);
});

test('a suspended app runs nothing, and runs again when it is resumed', async () => {
  await write(() => ({ suspended: true }));
  await awaitStatus('the suspension', ({ phase }) => phase === 'Suspended');
  await awaitReplicas(0);
  await write(() => ({ suspended: undefined }));
  await awaitReplicas(1);
  await serve(3);
  assert.equal((await readApp()).spec.control?.suspended, undefined);
});

test('a deleted app is suspended, and can be restored', async () => {
  await write(() => ({ deleteAfter: new Date(Date.now() + 3_600_000).toISOString() }));
  const deleted = await awaitStatus('the suspension', ({ phase }) => phase === 'Suspended');
  assert.match(JSON.stringify(toPublicStatus(deleted)), /deleted the app/);
  await awaitReplicas(0);
  await write(() => ({ deleteAfter: undefined }));
  await awaitReplicas(1);
  await serve(3);
});

test('a deleted app is gone when its time has come, or as soon as the operator sees that it has', async () => {
  for (const [leaver, ms] of [
    ['leaver', 3_000],
    ['late', -3_600_000],
  ] as const) {
    await world.submit(leaver);
    const app = await waitFor(`${leaver} seen`, async () => {
      const found = await world.app(leaver);
      return found?.status?.phase !== undefined && found;
    });
    await writeControl(app, () => ({ deleteAfter: new Date(Date.now() + ms).toISOString() }));
    await waitFor('its end', async () => (await world.app(leaver)) === undefined);
    await waitFor('the event', async () =>
      (await listEvents(world, 'moorage-apps')).some(
        ({ reason, regarding }) => reason === 'DeletedByAuthor' && regarding?.name === leaver,
      ),
    );
  }
});

test('attack: the API cannot change anything else of an app along with its control', async () => {
  await world.submit('other');
  const { metadata } = (await world.app('other')) ?? assert.fail();
  for (const patch of [
    { spec: { control: { release: 'a'.repeat(40) }, suspend: true } },
    { spec: { control: { release: 'HEAD' } } },
    { metadata: { annotations: { [annotations.rebuild]: 'x y' } } },
    { metadata: { annotations: { [annotations.wake]: '1' } } },
  ])
    await assert.rejects(
      api.patch(hostedApps, metadata, patch, {
        type: 'application/merge-patch+json',
      }),
      JSON.stringify(patch),
    );
});
