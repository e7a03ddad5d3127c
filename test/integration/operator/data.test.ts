// The data of a deleted app: kept for a while, found again by an app of the same name and repository, and by no other.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { hashBuildInputs } from '../../../controller/steps/build/job.ts';
import {
  claims,
  deployments,
  hostedApps,
  jobs,
  pods,
  policies,
  routes,
  secrets,
  services,
  type PersistentVolumeClaim,
} from '../../../controller/objects/kinds.ts';
import { hostedApp } from '../../../crds/hosted-app.ts';
import { annotations, labels } from '../../../crds/names.ts';
import {
  apply,
  applyStatus,
  deleteObject,
  computeHash,
  type KubeObject,
  type Resource,
} from '../../../lib/kubernetes/index.ts';
import { buildWell, awaitDeployment, formatImage, awaitStartedJob } from '../../support/operator/stand-in.ts';
import { listAll, startWorld, waitFor, type Operator, type World } from '../../support/operator/world.ts';

const apps = 'moorage-apps';
const spec = {
  services: [{ name: 'db', type: 'postgres' }],
  run: {
    volumes: [{ name: 'data', path: '/data' }],
    env: [{ name: 'SESSION_SECRET', value: '${{secret}}' }],
  },
};
let world: World;
let operator: Operator;
beforeAll(async () => {
  world = await startWorld();
  operator = world.startOperator();
});
afterAll(() => world.stop());

/**
 * What the garbage collector would do, which this world lacks: removes what belonged to an app that is gone. Owners are
 * listed after what they own, since another test may make both at any time.
 */
async function collectGarbage(): Promise<void> {
  const kinds: readonly Resource[] = [deployments, services, policies, routes, claims, secrets];
  const owned = await Promise.all(
    kinds.map(async (resource) => ({ resource, objects: await listAll(world.client, resource, apps) })),
  );
  const existing = new Set((await listAll(world.client, hostedApps, apps)).map(({ metadata }) => metadata.uid));
  for (const { resource, objects } of owned)
    for (const object of objects) {
      const owners = (object.metadata.ownerReferences ?? []).filter(({ kind }) => kind === 'HostedApp');
      if (owners.length === 0 || owners.some(({ uid }) => existing.has(uid))) continue;
      await deleteObject(world.client, resource, object);
    }
  const buildPods = await listAll(world.client, pods, 'moorage-builds');
  const builds = new Set((await listAll(world.client, jobs, 'moorage-builds')).map(({ metadata }) => metadata.uid));
  for (const pod of buildPods)
    if (!pod.metadata.ownerReferences?.some(({ uid }) => builds.has(uid)))
      await deleteObject(world.client, pods, pod, { gracePeriodSeconds: 0 });
}

interface Data {
  /** UID of each claim, by name. */
  readonly claims: Readonly<Record<string, string>>;
  /** Content of each Secret, by name. */
  readonly secrets: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

async function objectsOf<T extends KubeObject>(resource: Resource<T>, app: string): Promise<T[]> {
  return listAll(world.client, resource, apps, `${labels.app}=${app}`);
}

async function dataOf(app: string): Promise<Data> {
  return {
    claims: Object.fromEntries((await objectsOf(claims, app)).map(({ metadata }) => [metadata.name, metadata.uid])),
    secrets: Object.fromEntries(
      (await objectsOf(secrets, app))
        .filter(({ metadata }) => metadata.labels?.[labels.component] !== 'models')
        .map(({ metadata, data }) => [metadata.name, data ?? {}]),
    ),
  };
}

const template = z.looseObject({
  template: z.looseObject({
    spec: z.looseObject({
      volumes: z.array(z.looseObject({ persistentVolumeClaim: z.object({ claimName: z.string() }).optional() })),
      containers: z.array(
        z.looseObject({
          env: z.array(
            z.looseObject({
              valueFrom: z.looseObject({ secretKeyRef: z.looseObject({ name: z.string() }) }).optional(),
            }),
          ),
        }),
      ),
    }),
  }),
});

/** Names of the claims that the pods of an app and of its database mount, and of the Secrets that they read. */
async function namesUsed(app: string): Promise<{ claims: Set<string>; secrets: Set<string> }> {
  const used = { claims: new Set<string>(), secrets: new Set<string>() };
  for (const { spec: deployed } of await objectsOf(deployments, app)) {
    const { volumes, containers } = template.parse(deployed).template.spec;
    for (const { persistentVolumeClaim } of volumes)
      if (persistentVolumeClaim !== undefined) used.claims.add(persistentVolumeClaim.claimName);
    for (const { valueFrom } of containers.flatMap(({ env }) => env))
      if (valueFrom !== undefined) used.secrets.add(valueFrom.secretKeyRef.name);
  }
  return used;
}

/** Brings an app as far as its Deployment, past its database. */
async function deploy(app: string, settings: object = spec): Promise<void> {
  await world.submit(app, settings as Parameters<World['submit']>[1]);
  const job = await awaitStartedJob(world, app);
  const image = formatImage(job, 'a');
  await buildWell(world.client, job, job.metadata.annotations?.[annotations.commit] ?? '', image);
  await readyServices(app);
  await awaitDeployment(world, app, image);
}

async function readyServices(app: string): Promise<void> {
  const selector = `${labels.app}=${app},${labels.component}=service`;
  const serviceDeployment = await waitFor(`the Deployment of a service of ${app}`, async () =>
    (await listAll(world.client, deployments, apps, selector)).at(0),
  );
  const counts = { replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 };
  const status = { observedGeneration: serviceDeployment.metadata.generation ?? 1, ...counts };
  await applyStatus(world.client, deployments, serviceDeployment.metadata, status, { fieldManager: 'stand-in' });
}

async function remove(app: string): Promise<void> {
  const object = await world.app(app);
  assert.ok(object);
  await deleteObject(world.client, hostedApps, object);
  await waitFor(`${app} to be gone`, async () => (await world.app(app)) === undefined);
  await collectGarbage();
}

const merge = { type: 'application/merge-patch+json' };

const isMarked = ({ metadata }: PersistentVolumeClaim): boolean =>
  metadata.annotations?.[annotations.deleteAfter] !== undefined;

test.concurrent('an app that is deleted and applied again keeps its volumes and its passwords', async () => {
  await deploy('shop');
  const before = await dataOf('shop');
  assert.equal(Object.keys(before.claims).length, 2);
  assert.equal(Object.keys(before.secrets).length, 2);
  await remove('shop');
  assert.deepEqual(await dataOf('shop'), before, 'claims and Secrets are kept');
  const kept = await objectsOf(claims, 'shop');
  const times = kept.map(({ metadata }) => Date.parse(metadata.annotations?.[annotations.deleteAfter] ?? ''));
  for (const time of times) assert.ok(Math.abs(time - Date.now() - 7 * 86_400_000) < 600_000, 'for seven days');

  await deploy('shop');
  assert.deepEqual(await dataOf('shop'), before, 'nothing new is made');
  const used = await namesUsed('shop');
  assert.deepEqual([...used.claims].sort(), Object.keys(before.claims).sort());
  for (const secret of Object.keys(before.secrets)) assert.ok(used.secrets.has(secret), secret);
  await waitFor('the claims to be in use again', async () => !(await objectsOf(claims, 'shop')).some(isMarked));
});

test.concurrent('an app with the same name and another repository gets none of them', async () => {
  await deploy('wiki');
  const before = await dataOf('wiki');
  await remove('wiki');
  await deploy('wiki', { ...spec, source: { repo: world.git.otherOwnerUrl } });
  const used = await namesUsed('wiki');
  for (const claim of Object.keys(before.claims)) assert.ok(!used.claims.has(claim), claim);
  for (const secret of Object.keys(before.secrets)) assert.ok(!used.secrets.has(secret), secret);
  const after = await dataOf('wiki');
  const values = Object.values(before.secrets).flatMap((each) => Object.values(each));
  for (const [name, content] of Object.entries(after.secrets))
    if (before.secrets[name] === undefined)
      for (const value of Object.values(content)) assert.ok(!values.includes(value), 'no password is shared');

  await remove('wiki');
  await deploy('wiki');
  assert.deepEqual([...(await namesUsed('wiki')).claims].sort(), Object.keys(before.claims).sort());
});

test.concurrent('an app deleted with orphaned dependents keeps them too', async () => {
  await deploy('notes');
  const before = await dataOf('notes');
  const object = await world.app('notes');
  assert.ok(object);
  const dropFinalizers = (): Promise<unknown> =>
    world.client.patch(hostedApps, object.metadata, { metadata: { finalizers: [] } }, merge);
  await dropFinalizers();
  await deleteObject(world.client, hostedApps, object, { propagation: 'Orphan' });
  await dropFinalizers().catch(() => undefined);
  await waitFor('notes to be gone', async () => (await world.app('notes')) === undefined);
  for (const job of await world.jobs('notes')) await deleteObject(world.client, jobs, job);
  await collectGarbage();
  await deploy('notes');
  assert.deepEqual((await dataOf('notes')).claims, before.claims);
  assert.deepEqual([...(await namesUsed('notes')).claims].sort(), Object.keys(before.claims).sort());
});

test('an app of an earlier version keeps its data on upgrade, and when it is applied again later', async () => {
  await operator.end();
  await world.submit('old', spec);
  const made = hostedApp.parse(await world.app('old'));
  const { uid } = made.metadata;
  const commit = await world.git.commit('old');
  const built = { image: `registry.test/apps/old.${uid}@sha256:${'a'.repeat(64)}`, commit };
  await applyStatus(world.client, hostedApps, made.metadata, {
    observedGeneration: 1,
    source: { commit, reference: 'refs/heads/main' },
    built: { ...built, inputsHash: hashBuildInputs(made).hash },
  });
  // As the earlier version named and owned them.
  const owner = { apiVersion: made.apiVersion, kind: made.kind, name: 'old', uid, controller: true };
  const hash = createHash('sha256').update([uid, 'old', 'db', 'postgres'].join('\n')).digest('hex');
  for (const [name, component] of [
    [`old-data-${computeHash(['old', 'data']).slice(0, 8)}`, 'app'],
    [`service-old-db-${hash.slice(0, 30)}`, 'service'],
  ] as const)
    await apply(world.client, claims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: {
        name,
        namespace: apps,
        labels: { [labels.app]: 'old', [labels.component]: component },
        ownerReferences: [owner],
      },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    });
  const before = (await dataOf('old')).claims;

  operator = world.startOperator();
  await readyServices('old');
  await awaitDeployment(world, 'old', built.image);
  assert.deepEqual((await dataOf('old')).claims, before, 'no claim is made beside them');
  assert.deepEqual([...(await namesUsed('old')).claims].sort(), Object.keys(before).sort());
  await waitFor('the claims to be owned by nobody', async () =>
    (await objectsOf(claims, 'old')).every(({ metadata }) => (metadata.ownerReferences ?? []).length === 0),
  );
  const passwords = (await dataOf('old')).secrets;

  await remove('old');
  assert.deepEqual((await dataOf('old')).claims, before);
  await deploy('old');
  assert.deepEqual((await dataOf('old')).claims, before);
  assert.deepEqual([...(await namesUsed('old')).claims].sort(), Object.keys(before).sort());
  assert.deepEqual((await dataOf('old')).secrets, passwords);
});

test('the data is deleted after the grace period, unless the policy is Retain', async () => {
  await Promise.all([deploy('brief'), deploy('lasting', { ...spec, deletionPolicy: 'Retain' }), deploy('other')]);
  const lasting = await dataOf('lasting');
  await operator.end();
  operator = world.startOperator({ MOORAGE_APPS_KEEP_DATA_FOR: '3s' });
  await Promise.all(['brief', 'lasting'].map(remove));
  await waitFor('the data to be deleted', async () => {
    // No controller takes off the finalizer by which claims in use are protected.
    for (const { metadata } of await objectsOf(claims, 'brief'))
      if (metadata.deletionTimestamp !== undefined)
        await world.client.patch(claims, metadata, { metadata: { finalizers: null } }, merge);
    const { claims: left, secrets: passwords } = await dataOf('brief');
    return Object.keys(left).length === 0 && Object.keys(passwords).length === 0;
  });
  assert.deepEqual(await dataOf('lasting'), lasting);
  assert.equal(Object.keys((await dataOf('other')).claims).length, 2);
});
