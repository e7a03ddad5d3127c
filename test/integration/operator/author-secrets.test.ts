// The real operator against a real API server, with the rights of the chart: a value that an author sets replaces the pods,
// and the one before is deleted once no pod needs it, also if the operator is killed at any time.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { controlSecretComponent, formatControlSecretName } from '../../../crds/control.ts';
import { annotations, labels } from '../../../crds/names.ts';
import { hostedApps, secrets, type Deployment } from '../../../controller/objects/kinds.ts';
import {
  acceptRoute,
  awaitDeployment,
  awaitStartedJob,
  buildWell,
  formatImage,
  rollOut,
} from '../../support/operator/stand-in.ts';
import { listAll, startWorld, waitFor, type Operator, type World } from '../../support/operator/world.ts';

const namespace = 'moorage-apps';
const name = 'shop';
let world: World;
let operator: Operator;
let uid = '';
beforeAll(async () => {
  world = await startWorld();
  operator = world.startOperator();
  await world.submit(name);
  const job = await awaitStartedJob(world, name);
  await buildWell(world.client, job, job.metadata.annotations?.[annotations.commit] ?? '', formatImage(job, 'a'));
  await rollOut(world.client, await awaitDeployment(world, name, formatImage(job, 'a')));
  await acceptRoute(world, name);
  await waitFor('it to be live', async () => (await world.app(name))?.status?.phase === 'Live');
  ({ uid } = (await world.app(name))?.metadata ?? assert.fail());
});
afterAll(() => world.stop());

const formatName = (version: number): string => formatControlSecretName({ name, uid }, version);

/** What the API does when an author sets values: the Secrets first, then the names. */
async function set(versions: Readonly<Record<string, number>>, orphans: readonly number[] = []): Promise<void> {
  const added = [...Object.values(versions), ...orphans];
  for (const version of added)
    await world.client
      .create(secrets, {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: {
          name: formatName(version),
          namespace,
          labels: { [labels.app]: name, [labels.component]: controlSecretComponent },
        },
        stringData: { value: `value ${version}` },
      })
      .catch((error: unknown) => {
        assert.match(String(error), /already exists/);
      });
  const list = Object.entries(versions).map(([variable, version]) => ({ name: variable, version }));
  const before = (await world.app(name))?.spec.control?.secretVersion ?? 0;
  const control = { secrets: list, secretVersion: Math.max(before, ...added) };
  const ref = { name, namespace };
  await world.client.patch(hostedApps, ref, { spec: { control } }, { type: 'application/merge-patch+json' });
}

/** The Deployment, once its template refers to these versions. */
const awaitVersion = (version: number): Promise<Deployment> => awaitDeployment(world, name, formatName(version));

async function listVersions(): Promise<number[]> {
  const selector = `${labels.app}=${name},${labels.component}=${controlSecretComponent}`;
  const names = new Set((await listAll(world.client, secrets, namespace, selector)).map((each) => each.metadata.name));
  return Array.from({ length: 40 }, (_, version) => version).filter((version) => names.has(formatName(version)));
}

const awaitVersions = (...versions: number[]): Promise<boolean> =>
  waitFor(`the versions ${versions.join(', ')} alone`, async () => {
    const left = await listVersions();
    return left.join() === versions.join() ? true : undefined;
  });

async function restartOperator(): Promise<void> {
  await operator.kill();
  await world.removeLease();
  operator = world.startOperator();
}

test('a value is in the environment by reference, and the one before stays until the rollout is done', async () => {
  await set({ KEY: 1 });
  await rollOut(world.client, await awaitVersion(1));
  await set({ KEY: 3 }, [2]);
  const deployment = await awaitVersion(3);
  const [container] = deployment.spec?.template.spec?.containers ?? [];
  assert.deepEqual(
    container?.env?.find((variable) => variable.name === 'KEY'),
    { name: 'KEY', valueFrom: { secretKeyRef: { name: formatName(3), key: 'value' } } },
  );
  assert.equal(deployment.spec?.strategy?.rollingUpdate?.maxUnavailable, 0);
  await sleep(500);
  assert.deepEqual(await listVersions(), [1, 2, 3], 'a pod with the first one still serves');
  await rollOut(world.client, deployment);
  await awaitVersions(3);
  assert.ok(!JSON.stringify(await world.app(name)).includes('value 3'));
});

test('old versions are deleted whenever the operator is killed in between', async () => {
  for (const [round, delayMs] of [0, 30, 80, 150].entries()) {
    const version = 5 + 2 * round;
    await set({ KEY: version }, [version - 1]);
    const deployment = await awaitVersion(version);
    await rollOut(world.client, deployment);
    await sleep(delayMs);
    await restartOperator();
    await awaitVersions(version);
  }
  await waitFor('the status', async () => (await world.app(name))?.status?.secretVersions?.upTo === 11);
});

test('the value of a name that was removed is deleted after the rollout without it', async () => {
  await set({ KEY: 11, OTHER: 12 });
  await rollOut(world.client, await awaitVersion(12));
  await waitFor('both versions', async () => (await world.app(name))?.status?.secretVersions?.kept.join() === '11,12');
  await set({ OTHER: 12 });
  const deployment = await waitFor('the template without it', async () => {
    const found = await awaitVersion(12);
    return JSON.stringify(found.spec).includes(formatName(11)) ? undefined : found;
  });
  assert.deepEqual(await listVersions(), [11, 12]);
  await rollOut(world.client, deployment);
  await awaitVersions(12);
});
