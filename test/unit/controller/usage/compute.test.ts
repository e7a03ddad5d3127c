// What the operator reports of the use of apps: named by container, and again until it is taken.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { test } from 'vitest';
import type { Pod } from '../../../../controller/objects/kinds.ts';
import { createComputeReporter, toComputeSamples } from '../../../../controller/usage/compute.ts';
import type { UsageSample } from '../../../../controller/usage/usage.ts';
import { computeReport, type ComputeSample } from '../../../../crds/reports.ts';

const started = Date.UTC(2026, 0, 1);
const pod = (name: string, app: string | undefined, restartCount = 0): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name,
    namespace: 'moorage-apps',
    uid: `uid-${name}`,
    resourceVersion: '1',
    creationTimestamp: '',
    ...(app === undefined ? {} : { labels: { 'moorage.dev/app': app } }),
  },
  status: {
    phase: 'Running',
    containerStatuses: [
      {
        name: name.includes('db') ? 'service' : 'app',
        ready: true,
        restartCount,
        state: { running: { startedAt: '2026-01-01T00:00:00Z' } },
      },
    ],
  },
});
const sample = (name: string, at: number, cpuSeconds = 1.234_567_8): UsageSample => ({
  pod: name,
  container: name.includes('db') ? 'service' : 'app',
  cpuSeconds,
  memoryBytes: 1_024,
  at: started + at,
});

test('identifies a container by its pod and start time, and ignores samples from before its start', () => {
  const pods = [pod('web-1', 'web', 2), pod('web-db-1', 'web'), pod('stray', undefined)];
  const samples = toComputeSamples(pods, [
    sample('web-1', 30_000),
    sample('web-db-1', 30_000),
    sample('stray', 30_000),
    sample('gone', 30_000),
  ]);
  assert.deepEqual(
    samples.map(({ container, app, cpu_us }) => [container, app, cpu_us]),
    [
      ['uid-web-1/app/2', 'web', 1_234_568],
      ['uid-web-db-1/service/0', 'web', 1_234_568],
    ],
  );
  assert.deepEqual(computeReport.parse({ samples }), { samples });
  assert.deepEqual(toComputeSamples(pods, [sample('web-1', 999)]), []);
});

test('resends unsent samples with the next scrape, and drops the oldest beyond the limit', async () => {
  const bodies: ComputeSample[][] = [];
  let isAway = true;
  const server = createServer((request, response) => {
    void request.toArray().then((chunks: Buffer[]) => {
      assert.equal(request.headers.authorization, 'Bearer token');
      if (!isAway) bodies.push(computeReport.parse(JSON.parse(Buffer.concat(chunks).toString())).samples);
      response.writeHead(isAway ? 503 : 204).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  assert.ok(typeof address === 'object' && address !== null);
  const registry = new Registry();
  const report = createComputeReporter({
    url: `http://127.0.0.1:${address.port}/compute`,
    token: 'token',
    log: pino({ level: 'silent' }),
    registry,
    waitingLimit: 2,
  });
  const pods = [pod('web-1', 'web')];
  for (const at of [1_000, 2_000]) await report(pods, [sample('web-1', at)]);
  isAway = false;
  await report(pods, [sample('web-1', 3_000)]);
  await report(pods, [sample('web-1', 4_000)]);
  server.close();
  assert.deepEqual(
    bodies.map((samples) => samples.map(({ at }) => Date.parse(at) - started)),
    [[2_000, 3_000], [4_000]],
  );
  assert.match(await registry.metrics(), /moorage_compute_report_failures_total 2\n/);
});
