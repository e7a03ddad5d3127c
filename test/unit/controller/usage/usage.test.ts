// The task: reads each node once, resizes what needs it, and goes on where a node or a write fails.
import assert from 'node:assert/strict';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { test, vi } from 'vitest';
import type { Pod } from '../../../../controller/objects/kinds.ts';
import {
  createUsageTask,
  improveRequests,
  measureUse,
  parseUsage,
  resizePod,
  type UsageSample,
  type Use,
} from '../../../../controller/usage/usage.ts';
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

test('queries each node once per scrape, and resizes only the pods that need it', async () => {
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
    listPods: () => [pod('busy', '10.0.0.1'), pod('idle', '10.0.0.1'), pod('gone', '10.0.0.1'), pod('far', '10.0.0.2')],
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

test('fits each component of a pod to its own use, also one that starts before the others', async () => {
  const resources = { requests: { cpu: '10m', memory: '64Mi' }, limits: { cpu: '1', memory: '512Mi' } };
  const container = (name: string): NonNullable<NonNullable<Pod['status']>['containerStatuses']>[number] => ({
    ...{ name, ready: true, restartCount: 0, resources },
  });
  const bare = pod('several', '10.0.0.1');
  const components = JSON.stringify(['api', 'web', 'worker'].map((name) => ({ name, image: 'i' })));
  const several: Pod = {
    ...bare,
    metadata: { ...bare.metadata, annotations: { 'moorage.dev/components': components } },
    status: {
      ...bare.status,
      initContainerStatuses: [container('api')],
      containerStatuses: [container('web'), container('worker'), container('injected')],
    },
  };
  const patches: unknown[] = [];
  const seen: unknown[] = [];
  let looks = 0;
  const stop = new AbortController();
  const run = createUsageTask({
    client: {
      patch: (_resource: unknown, _ref: unknown, body: object) => {
        patches.push(body);
        return Promise.resolve(body);
      },
    } as unknown as Client,
    read: () => {
      looks += 1;
      if (looks === 3) stop.abort();
      const used = { api: 15, web: 0.2, worker: 6, injected: 15 };
      return Promise.resolve(
        Object.entries(used).map(([container, seconds]): UsageSample => ({
          ...{ pod: 'several', container, cpuSeconds: looks * seconds, memoryBytes: 50 * mebibyte, at: looks * 30_000 },
        })),
      );
    },
    listPods: () => [several],
    isFitted: () => true,
    observe: (pods, findUse) => {
      seen.push(pods.map(({ metadata: { name } }) => Math.round(findUse(name, 'worker')?.cpuMilli ?? -1)));
    },
    intervalMs: 5,
    log: pino({ level: 'silent' }),
    registry: new Registry(),
  });
  await vi.waitFor(() => run(stop.signal));
  assert.deepEqual(seen, [[-1], [200], [200]], 'one sample says nothing yet');
  const fitted = (name: string, cpu: string): object => ({
    ...{ name, resources: { requests: { cpu, memory: String(64 * mebibyte) } } },
  });
  assert.deepEqual(patches[0], {
    metadata: { uid: 'uid-several' },
    spec: { initContainers: [fitted('api', '625m')], containers: [fitted('worker', '250m')] },
  });
});

test('names the container to resize, and whether it is one that starts before the others', async () => {
  const bodies: unknown[] = [];
  const client = {
    patch: (_resource: unknown, _ref: unknown, body: object) => {
      bodies.push(body);
      return Promise.resolve(body);
    },
  } as unknown as Client;
  const bare = pod('several', '10.0.0.1');
  const status = { name: 'api', ready: true, restartCount: 0 };
  const several: Pod = { ...bare, status: { ...bare.status, initContainerStatuses: [status] } };
  const requests = { cpu: '20m', memory: '64Mi' };
  await resizePod(client, several, { api: requests, web: requests }, new AbortController().signal);
  assert.deepEqual(bodies, [
    {
      metadata: { uid: 'uid-several' },
      spec: {
        initContainers: [{ name: 'api', resources: { requests } }],
        containers: [{ name: 'web', resources: { requests } }],
      },
    },
  ]);
});

// What the kubelet prints, and what is read of it.

const text = `# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the container in core-seconds
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="app",namespace="moorage-apps",pod="hello-1"} 12.5 1763814000123
container_cpu_usage_seconds_total{container="app",namespace="moorage-apps",pod="young-1"} 0.01 1763814000200
container_cpu_usage_seconds_total{container="app",namespace="elsewhere",pod="hello-1"} 99 1763814000123
container_cpu_usage_seconds_total{container="build",namespace="moorage-apps",pod="hello-1"} 99 1763814000123
container_memory_working_set_bytes{container="app",namespace="moorage-apps",pod="hello-1"} 4.194304e+07 1763814000123
container_cpu_usage_seconds_total{container="service",namespace="moorage-apps",pod="hello-db-1"} 3 1763814000125
container_memory_working_set_bytes{container="service",namespace="moorage-apps",pod="hello-db-1"} 1024 1763814000125
container_memory_working_set_bytes{container="app",namespace="elsewhere",pod="hello-1"} 1 1763814000123
pod_cpu_usage_seconds_total{namespace="moorage-apps",pod="hello-1"} 13 1763814000123
scrape_error 0
`;

test("reads only the namespace's apps and their services, and only with both figures", () => {
  assert.deepEqual(parseUsage(text, 'moorage-apps'), [
    { pod: 'hello-1', container: 'app', cpuSeconds: 12.5, memoryBytes: 41_943_040, at: 1_763_814_000_123 },
    { pod: 'hello-db-1', container: 'service', cpuSeconds: 3, memoryBytes: 1_024, at: 1_763_814_000_125 },
  ]);
});

test('ignores anything else', () => {
  assert.deepEqual(parseUsage('<html>', 'moorage-apps'), []);
  assert.deepEqual(parseUsage(`container_cpu_usage_seconds_total{${'a'.repeat(100_000)}`, 'moorage-apps'), []);
});

// Requests follow the use: up at once, down once it is settled, and within the limits.

const mebibyte = 1024 * 1024;
const limits = { cpuMilli: 1000, memoryBytes: 512 * mebibyte };
const initial = { cpuMilli: 10, memoryBytes: 64 * mebibyte };
/** Uses half a minute apart. */
const uses = (...each: readonly (readonly [number, number])[]): Use[] =>
  each.map(([cpuMilli, memory], index) => ({ at: index * 30_000, cpuMilli, memoryBytes: memory * mebibyte }));

test('computes the usage between two samples, and none across a restart', () => {
  const sample = { pod: 'a', container: 'app', cpuSeconds: 10, memoryBytes: 5, at: 1_000 };
  assert.deepEqual(measureUse(sample, { ...sample, cpuSeconds: 13, memoryBytes: 7, at: 31_000 }), {
    at: 31_000,
    cpuMilli: 100,
    memoryBytes: 7,
  });
  assert.equal(measureUse(sample, { ...sample, cpuSeconds: 1, at: 31_000 }), undefined);
  assert.equal(measureUse(sample, sample), undefined);
});

test("raises a busy app's requests immediately, and never above its limit", () => {
  assert.deepEqual(improveRequests(uses([400, 60]), initial, limits), { cpuMilli: 500, memoryBytes: 64 * mebibyte });
  assert.deepEqual(improveRequests(uses([990, 500]), initial, limits), limits);
});

test("lowers an idle app's requests only after a minute, and never to zero", () => {
  assert.equal(improveRequests(uses([0.1, 12], [0.1, 12]), initial, limits), undefined);
  assert.deepEqual(improveRequests(uses([0.1, 12], [0.1, 12], [0.1, 12]), initial, limits), {
    cpuMilli: 2,
    memoryBytes: 16 * mebibyte,
  });
});

test('uses the busiest remembered sample, and skips small changes', () => {
  assert.equal(improveRequests(uses([9, 50], [1, 40], [1, 40]), initial, limits), undefined);
  assert.equal(improveRequests([], initial, limits), undefined);
});
