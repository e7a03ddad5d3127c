// Probes and metrics over HTTP: when they pass, when they fail, and what they say then.
import assert from 'node:assert/strict';
import { Gauge, Registry } from 'prom-client';
import { test, type TestContext } from 'vitest';
import {
  createReflectorLivenessCheck,
  createReflectorSyncCheck,
  startHealthServer,
  createWorkerLivenessCheck,
  type HealthCheck,
} from '../../../../../lib/kubernetes/index.ts';

async function served(
  t: TestContext,
  liveness: HealthCheck[],
  readiness: HealthCheck[],
): Promise<(path: string) => Promise<{ status: number; text: string }>> {
  const registry = new Registry();
  new Gauge({ name: 'moorage_test', help: 'A test.', registers: [registry] }).set(7);
  const server = await startHealthServer({ port: 0, host: '127.0.0.1', registry, liveness, readiness });
  t.onTestFinished(() => server.close());
  return async (path) => {
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`);
    return { status: response.status, text: await response.text() };
  };
}

test('liveness fails with a reflector that neither hears nor tries, and with a worker that is stuck', async (t) => {
  let [silence, work] = [0, 0];
  const reflector = { resource: { plural: 'things' }, store: { hasSynced: true }, getLastTurnAgeMs: () => silence };
  const controller = { name: 'things', getLongestReconcileMs: () => work };
  const get = await served(t, [createReflectorLivenessCheck(reflector), createWorkerLivenessCheck(controller)], []);
  assert.deepEqual(await get('/healthz'), { status: 200, text: 'ok watch-things\nok workers-things\nok\n' });
  silence = 900_001;
  assert.deepEqual(await get('/healthz'), {
    status: 503,
    text: 'failed watch-things: nothing was heard or tried for 900 s (limit 900 s)\nok workers-things\nfailed\n',
  });
  [silence, work] = [0, 600_001];
  assert.deepEqual(await get('/healthz?verbose'), {
    status: 503,
    text: 'ok watch-things\nfailed workers-things: a reconcile has run for 600 s (limit 600 s)\nfailed\n',
  });
});

test('readiness waits for the caches and for nothing else', async (t) => {
  const store = { hasSynced: false };
  const get = await served(
    t,
    [],
    [createReflectorSyncCheck({ resource: { plural: 'things' }, store, getLastTurnAgeMs: () => 0 })],
  );
  assert.deepEqual(await get('/readyz'), {
    status: 503,
    text: 'failed cache-things: waiting for the first list\nfailed\n',
  });
  assert.equal((await get('/healthz')).status, 200);
  store.hasSynced = true;
  assert.equal((await get('/readyz')).status, 200);
});

test('metrics are served in the text format; other paths are not found', async (t) => {
  const get = await served(t, [], []);
  assert.match((await get('/metrics')).text, /^moorage_test 7$/m);
  assert.equal((await get('/')).status, 404);
});

test('a port that is taken is an error', async (t) => {
  const registry = new Registry();
  const first = await startHealthServer({ port: 0, host: '127.0.0.1', registry, liveness: [], readiness: [] });
  t.onTestFinished(() => first.close());
  await assert.rejects(
    startHealthServer({ port: first.port, host: '127.0.0.1', registry, liveness: [], readiness: [] }),
    { code: 'EADDRINUSE' },
  );
});
