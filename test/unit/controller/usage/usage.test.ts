// The task: reads each node once, resizes what needs it, and goes on where a node or a write fails.
import assert from 'node:assert/strict';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { test, vi } from 'vitest';
import type { Pod } from '../../../../controller/objects/kinds.ts';
import type { UsageSample } from '../../../../controller/usage/kubelet.ts';
import { createUsageTask } from '../../../../controller/usage/usage.ts';
import { ApiError, type Client } from '../../../../lib/kubernetes/index.ts';

const pod = (name: string, hostIP: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'moorage-apps', uid: `uid-${name}`, resourceVersion: '1', creationTimestamp: '' },
  status: {
    phase: 'Running',
    hostIP,
    containerStatuses: [
      {
        name: 'app',
        ready: true,
        restartCount: 0,
        resources: { requests: { cpu: '10m', memory: '64Mi' }, limits: { cpu: '1', memory: '512Mi' } },
      },
    ],
  },
});

test('each node is asked once a look, and only the pods that need it are resized', async () => {
  const asked: string[] = [];
  const patches: unknown[] = [];
  let looks = 0;
  const ending = new AbortController();
  const sample = (name: string, cpuSeconds: number): UsageSample => ({
    pod: name,
    container: 'app',
    cpuSeconds,
    memoryBytes: 60 * 1024 * 1024,
    at: looks * 30_000,
  });
  const client = {
    patch: (_resource: unknown, ref: { name: string }, body: object, options: { subresource?: string }) => {
      if (ref.name === 'gone') return Promise.reject(new ApiError(404, 'NotFound', 'gone'));
      patches.push([ref.name, options.subresource, body]);
      return Promise.resolve(body);
    },
  } as unknown as Client;
  const registry = new Registry();
  const run = createUsageTask({
    client,
    read: (address) => {
      asked.push(address);
      if (address === '10.0.0.2') return Promise.reject(new Error('out of reach'));
      looks += 1;
      if (looks === 3) ending.abort();
      return Promise.resolve([sample('busy', looks * 15), sample('idle', looks / 100), sample('gone', looks * 15)]);
    },
    pods: () => [pod('busy', '10.0.0.1'), pod('idle', '10.0.0.1'), pod('gone', '10.0.0.1'), pod('far', '10.0.0.2')],
    isFitted: () => true,
    intervalMs: 5,
    log: pino({ level: 'silent' }),
    registry,
  });
  await vi.waitFor(() => run(ending.signal));
  assert.deepEqual(asked.slice(0, 2).toSorted(), ['10.0.0.1', '10.0.0.2']);
  const requests = { cpu: '625m', memory: String(64 * 1024 * 1024) };
  assert.deepEqual(patches[0], [
    'busy',
    'resize',
    { metadata: { uid: 'uid-busy' }, spec: { containers: [{ name: 'app', resources: { requests } }] } },
  ]);
  assert.ok(patches.every((patch) => JSON.stringify(patch).includes('busy')));
  assert.match(await registry.metrics(), /moorage_usage_failures_total [23]\n/);
});
