// The real operator against a real API server: an app with a database, which waits for it, finds it, and takes it along
// when it is deleted. With the rights of the chart's service account: it reads no Secret.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { claims, deployments, policies, secrets, services } from '../../../controller/objects/kinds.ts';
import { annotations, labels } from '../../../crds/names.ts';
import { applyStatus } from '../../../lib/kubernetes/index.ts';
import {
  acceptRoute,
  buildWell,
  awaitDeployment,
  formatImage,
  rollOut,
  awaitStartedJob,
} from '../../support/operator/stand-in.ts';
import { listAll, startWorld, waitFor, type World } from '../../support/operator/world.ts';

const apps = 'moorage-apps';
let world: World;
beforeAll(async () => {
  world = await startWorld();
  world.startOperator();
});
afterAll(() => world.stop());

const template = z.looseObject({
  template: z.looseObject({
    spec: z.looseObject({
      hostAliases: z.array(z.object({ ip: z.string(), hostnames: z.array(z.string()) })),
      containers: z.array(z.looseObject({ env: z.array(z.looseObject({ name: z.string() })) })),
    }),
  }),
});

test('an app with a database waits for it, then connects to it; the password never changes', async () => {
  await world.submit('shop', {
    services: [{ name: 'db', type: 'postgres' }],
    run: { env: [{ name: 'DSN', value: '${{services.db.url}}?sslmode=disable' }] },
  });
  const job = await awaitStartedJob(world, 'shop');
  await buildWell(world.client, job, job.metadata.annotations?.[annotations.commit] ?? '', formatImage(job, 'a'));
  const selector = `${labels.app}=shop,${labels.component}=service`;
  const databaseDeployment = await waitFor('the Deployment of the database', async () =>
    (await listAll(world.client, deployments, apps, selector)).at(0),
  );
  await waitFor('the app to wait for it', async () =>
    (await world.app('shop'))?.status?.conditions?.some(({ reason }) => reason === 'ServicesStarting'),
  );
  assert.equal(await world.client.get(deployments, { name: 'shop', namespace: apps }), undefined);
  assert.equal((await listAll(world.client, claims, apps, selector)).length, 1);
  assert.equal((await listAll(world.client, policies, apps, selector)).length, 1);
  const [service] = await listAll(world.client, services, apps, selector);
  const password = (await listAll(world.client, secrets, apps, selector)).map(({ data }) => data?.['password']);
  assert.match(Buffer.from(password[0] ?? '', 'base64').toString(), /^[0-9a-f]{40}$/);
  const { generation = 1 } = databaseDeployment.metadata;
  const up = {
    observedGeneration: generation,
    replicas: 1,
    updatedReplicas: 1,
    readyReplicas: 1,
    availableReplicas: 1,
  };
  await applyStatus(world.client, deployments, databaseDeployment.metadata, up, { fieldManager: 'stand-in' });
  const own = await awaitDeployment(world, 'shop', formatImage(job, 'a'));
  const { spec } = template.parse(own.spec).template;
  assert.deepEqual(spec.hostAliases, [{ ip: service?.spec?.clusterIP, hostnames: ['db'] }]);
  const env = new Map(spec.containers[0]?.env.map(({ name, value }) => [name, value]));
  assert.equal(env.get('DSN'), 'postgresql://app:$(MOORAGE_DB_PASSWORD)@db:5432/app?sslmode=disable');
  await rollOut(world.client, own);
  await acceptRoute(world, 'shop');
  await waitFor('the app to be live', async () => (await world.app('shop'))?.status?.phase === 'Live');
  assert.deepEqual((await world.app('shop'))?.status?.services, [{ name: 'db', type: 'postgres', ready: true }]);
  assert.deepEqual(
    (await listAll(world.client, secrets, apps, selector)).map(({ data }) => data?.['password']),
    password,
  );
});

test('rejects a service type without an image by name', async () => {
  await world.submit('search', { services: [{ name: 'index', type: 'meilisearch' }] });
  const job = await awaitStartedJob(world, 'search');
  await buildWell(world.client, job, job.metadata.annotations?.[annotations.commit] ?? '', formatImage(job, 'b'));
  const rejection = await waitFor('the rejection', async () => (await world.app('search'))?.status?.rejection);
  assert.deepEqual(rejection.rule, 'services/unavailable');
  assert.match(rejection.message, /index is of type meilisearch/);
});
