// A leader that does not know yet that it was replaced, and that an app was deleted and submitted anew under its name:
// what it decides by its old caches leaves the newer app's pipeline alone.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { readOperatorConfig } from '../../../controller/config.ts';
import type { HostedAppObject, Job } from '../../../controller/objects/kinds.ts';
import type { Caches } from '../../../controller/reconcile/caches.ts';
import { releaseApp, createReconciler } from '../../../controller/reconcile/reconcile.ts';
import { readEnvironment, render, required } from '../../support/chart.ts';
import { awaitStartedJob } from '../../support/operator/stand-in.ts';
import { startWorld, waitFor, type World } from '../../support/operator/world.ts';

let world: World;
/** The app as the old leader knows it, and the pipeline of the one that has its name now. */
let old: HostedAppObject;
let job: Job;

beforeAll(async () => {
  world = await startWorld();
  const operator = world.startOperator();
  await world.submit('twin');
  await awaitStartedJob(world, 'twin');
  old = await waitFor('its status', async () => {
    const app = await world.app('twin');
    return app?.status?.pipeline === undefined ? undefined : app;
  });
  await world.api.kubectl('delete', 'happ', 'twin', '-n', 'moorage-apps', '--timeout=60s');
  await world.submit('twin');
  job = await awaitStartedJob(world, 'twin');
  await operator.end();
});
afterAll(() => world.stop());

async function pipelines(): Promise<(string | undefined)[]> {
  return (await world.jobs('twin')).map(({ metadata }) =>
    metadata.deletionTimestamp === undefined ? metadata.uid : 'deleted',
  );
}

test("releasing the old app does not delete the new one's pipeline", async () => {
  const leaving = { ...old, metadata: { ...old.metadata, deletionTimestamp: new Date().toISOString() } };
  // Taking the finalizer off is refused, since the app of this name is another one.
  await assert.rejects(releaseApp(world.client, leaving, 'moorage-builds', AbortSignal.timeout(10_000)), {
    status: 409,
  });
  assert.deepEqual(await pipelines(), [job.metadata.uid]);
});

test("a reconcile of the old app neither deletes the new one's pipeline nor writes its status", async () => {
  const { installation: config } = readOperatorConfig(readEnvironment(await render(required), 'operator'));
  const none = { get: () => undefined, listByIndex: () => [], list: () => [] };
  // What the old leader's caches hold: the old app, and of the new one only the Job.
  const caches = {
    apps: { ...none, get: () => old },
    jobs: { ...none, listByIndex: () => [job], list: () => [job] },
    pipelinePods: none,
    deployments: none,
    services: none,
    policies: none,
    claims: none,
    pods: none,
    routes: none,
    taskJobs: none,
    cronJobs: none,
    gateways: none,
  } satisfies Record<keyof Caches, object> as unknown as Caches;
  const lookups = { start: () => undefined, take: () => undefined, forget: () => undefined };
  const reconcile = createReconciler({
    client: world.client,
    caches,
    config: { ...config, gitHosts: { allowed: [world.git.host], insecure: [world.git.host] } },
    recorder: { record: () => undefined, flush: () => Promise.resolve() },
    metrics: { recordEnd: () => undefined, recordStage: () => undefined },
    polls: lookups,
    probes: lookups,
    pages: lookups,
  });
  const before = await world.app('twin');
  const context = { signal: AbortSignal.timeout(10_000), log: console as never, failures: 0 };
  await assert.rejects(reconcile('moorage-apps/twin', context), { status: 409 });
  assert.deepEqual(await pipelines(), [job.metadata.uid]);
  assert.deepEqual((await world.app('twin'))?.status, before?.status);
});
