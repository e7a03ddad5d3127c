// The watch over disks: who is woken when space runs out and when there is some again, and what the metrics say.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import type { Pod } from '../../../../controller/objects/kinds.ts';
import {
  createDiskMetrics,
  createSpace,
  createSpaceMetrics,
  findShortage,
  parseDisks,
  refusalMs,
  type FileSystem,
  type NodeDisks,
  type Space,
} from '../../../../controller/space/space.ts';
import { omitUndefined } from '../../../../lib/values.ts';

const gib = 1024 ** 3;
const pod = (name: string, hostIP: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'moorage-builds', uid: name, resourceVersion: '1', creationTimestamp: '' },
  status: { hostIP },
});

interface Lab {
  readonly space: Space;
  readonly registry: Registry;
  readonly woken: string[];
  free: number;
}

function lab(proxyUrl: string): Lab {
  const registry = new Registry();
  const made: Omit<Lab, 'space'> = { registry, woken: [], free: 50 * gib };
  const space = createSpace({
    read: (address) =>
      address === '10.0.0.2'
        ? Promise.reject(new Error('out of reach'))
        : Promise.resolve({
            name: 'a',
            fileSystems: { node: { free: made.free, capacity: 100 * gib } },
            claims: new Map(),
          }),
    listPods: () => [pod('a', '10.0.0.1'), pod('b', '10.0.0.1'), pod('c', '10.0.0.2')],
    proxyUrl,
    reserve: { bytes: 5 * gib },
    intervalMs: 2,
    log: pino({ level: 'silent' }),
    metrics: createSpaceMetrics(registry),
    disks: createDiskMetrics(registry, 'moorage-system'),
  });
  space.watchChanges(() => ['queue']).start((key) => made.woken.push(key));
  return Object.assign(made, { space });
}

test('ignores an unreachable node, and wakes builds when space runs out and when it returns', async () => {
  const made = lab('http://127.0.0.1:1');
  const ending = new AbortController();
  const running = made.space.run(ending.signal);
  const free = async (): Promise<string | undefined> =>
    /^moorage_node_filesystem_avail_bytes\{node="a",filesystem="node"\} (\d+)$/m.exec(
      await made.registry.metrics(),
    )?.[1];
  await expect.poll(free).toBe(String(50 * gib));
  assert.deepEqual([made.space.explainShortage(), made.woken], [undefined, []]);
  made.free = gib;
  await expect.poll(() => made.space.explainShortage()).toMatch(/the node has 1 GiB free/);
  assert.match(await made.registry.metrics(), /^moorage_disk_short 1$/m);
  assert.deepEqual(made.woken, ['queue']);
  made.free = 6 * gib;
  await expect.poll(() => made.space.explainShortage()).toBe(undefined);
  assert.deepEqual(made.woken, ['queue', 'queue']);
  assert.match(await made.registry.metrics(), /^moorage_disk_short 0$/m);
  ending.abort();
  await running;
});

test('holds builds after the registry refused a push, until the proxy has seen one succeed', async () => {
  let refusal: object | undefined = { at: new Date().toISOString(), message: 'full' };
  const proxy = createServer((request, response) => {
    response.end(JSON.stringify(request.url === '/space' ? { refusal } : {}));
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const { port } = z.object({ port: z.int() }).parse(proxy.address());
  const made = lab(`http://127.0.0.1:${port}`);
  const ending = new AbortController();
  const running = made.space.run(ending.signal);
  await vi.waitFor(() => {
    assert.match(made.space.explainShortage() ?? '', /no space left for the last push/);
  });
  refusal = undefined;
  await expect.poll(() => made.space.explainShortage()).toBe(undefined);
  ending.abort();
  await running;
  proxy.close();
  proxy.closeAllConnections();
});

// When builds wait for disk space, and what is reported then.

const disk = (free: number, capacity = 100): FileSystem => ({ free: free * gib, capacity: capacity * gib });
const toFileSystems = ([node, images]: FileSystem[]): NodeDisks['fileSystems'] => omitUndefined({ node, images });
const nodes = (...own: FileSystem[][]): Map<string, NodeDisks> =>
  new Map(
    own.map((each, index) => [
      `10.0.0.${index}`,
      { name: `node-${index}`, fileSystems: toFileSystems(each), claims: new Map() },
    ]),
  );
const reserve = { bytes: 5 * gib };

test('holds builds if a node is below the reserve, with figures and suggestions', () => {
  assert.equal(findShortage({ nodes: nodes([disk(5)]) }, reserve, 0), undefined);
  assert.match(
    findShortage({ nodes: nodes([disk(2.1)]) }, reserve, 0) ?? '',
    /^the node has 2\.1 GiB free, and 5 GiB are kept free\. Delete apps .*enlarge the disk\.$/,
  );
  assert.match(findShortage({ nodes: nodes([disk(0.25)]) }, reserve, 0) ?? '', /has 256 MiB free/);
});

test('counts the file system of images as well as that of pods', () => {
  assert.match(findShortage({ nodes: nodes([disk(50), disk(1)]) }, reserve, 0) ?? '', /has 1 GiB free/);
});

test('computes a share of the disk', () => {
  assert.equal(findShortage({ nodes: nodes([disk(11)]) }, { share: 0.1 }, 0), undefined);
  assert.match(findShortage({ nodes: nodes([disk(9)]) }, { share: 0.1 }, 0) ?? '', /9 GiB free, and 10 GiB are kept/);
});

test('needs one node with space, and does not wait if nothing is known', () => {
  assert.equal(findShortage({ nodes: nodes([disk(1)], [disk(20)]) }, reserve, 0), undefined);
  assert.match(
    findShortage({ nodes: nodes([disk(1)], [disk(2)]) }, reserve, 0) ?? '',
    /^none of the 2 nodes.* 2 GiB free/,
  );
  assert.equal(findShortage({ nodes: new Map() }, reserve, 0), undefined);
});

test("counts the registry's volume if its claim is known", () => {
  const held = new Map([
    [
      '10.0.0.1',
      { name: 'a', fileSystems: toFileSystems([disk(50)]), claims: new Map([['registry/data', disk(1, 20)]]) },
    ],
  ]);
  assert.match(
    findShortage({ nodes: held, registryClaim: 'registry/data' }, reserve, 0) ?? '',
    /^the volume of the registry has 1 GiB free/,
  );
  assert.equal(findShortage({ nodes: held, registryClaim: 'registry/other' }, reserve, 0), undefined);
});

test('waits for a while after the registry refused a push, then tries one', () => {
  const readings = { nodes: nodes([disk(50)]), refusedAt: 1_000 };
  assert.match(findShortage(readings, reserve, 2_000) ?? '', /no space left for the last push/);
  assert.equal(findShortage(readings, reserve, 1_000 + refusalMs), undefined);
});

// What a kubelet says of its disks: those of the node, and the volumes of the installation's own namespace.

/** As Kubernetes 1.35 answers at /stats/summary, without what is not about disks. */
const answer = {
  node: {
    nodeName: 'moorage',
    startTime: '2026-11-23T02:12:44Z',
    fs: {
      time: '2026-11-23T05:38:39Z',
      availableBytes: 199_562_584_064,
      capacityBytes: 270_553_174_016,
      usedBytes: 57_257_607_168,
      inodesFree: 16_000_000,
    },
    runtime: {
      imageFs: { availableBytes: 40_000, capacityBytes: 100_000, usedBytes: 60_000 },
      containerFs: { availableBytes: 40_000, capacityBytes: 100_000 },
    },
  },
  pods: [
    { podRef: { name: 'no-volumes' } },
    {
      podRef: { name: 'moorage-postgres-0', namespace: 'moorage-system' },
      volume: [
        { name: 'config', availableBytes: 1, capacityBytes: 1 },
        {
          name: 'data',
          availableBytes: 4_000,
          capacityBytes: 5_000,
          pvcRef: { name: 'data-moorage-postgres-0', namespace: 'moorage-system' },
        },
        { name: 'new', pvcRef: { name: 'not-measured-yet', namespace: 'moorage-system' } },
      ],
    },
    { volume: [{ availableBytes: 1, capacityBytes: 2, pvcRef: { name: 'of-an-app', namespace: 'moorage-apps' } }] },
  ],
};

const read = parseDisks(JSON.stringify(answer));

test('reads both file systems of the node, and the measured volumes', () => {
  assert.deepEqual(read, {
    name: 'moorage',
    fileSystems: {
      node: { free: 199_562_584_064, capacity: 270_553_174_016 },
      images: { free: 40_000, capacity: 100_000 },
    },
    claims: new Map([
      ['moorage-system/data-moorage-postgres-0', { free: 4_000, capacity: 5_000 }],
      ['moorage-apps/of-an-app', { free: 1, capacity: 2 }],
    ]),
  });
});

test('reads no disks from a kubelet that has not measured yet', () => {
  const disks = parseDisks(JSON.stringify({ node: { nodeName: 'new' } }));
  assert.deepEqual(disks, { name: 'new', fileSystems: {}, claims: new Map() });
});

test('reads what the containers of apps have written, where it is measured', () => {
  const startTime = '2026-11-23T05:00:00Z';
  const containers = [
    { name: 'app', startTime, rootfs: { usedBytes: 40_960, inodesUsed: 12 }, logs: { usedBytes: 1 } },
    { name: 'sidecar', startTime, rootfs: { usedBytes: 1 } },
  ];
  const fresh = [{ name: 'app', startTime, rootfs: {} }];
  const pods = [
    { podRef: { name: 'hello-1', namespace: 'moorage-apps' }, containers },
    { podRef: { name: 'hello-2', namespace: 'moorage-apps' }, containers: fresh },
    { containers },
  ];
  assert.deepEqual(
    [...(parseDisks(JSON.stringify({ node: { nodeName: 'n' }, pods })).layers ?? [])],
    [
      [
        'moorage-apps/hello-1',
        new Map([
          ['app', { bytes: 40_960, startedAt: startTime }],
          ['sidecar', { bytes: 1, startedAt: startTime }],
        ]),
      ],
    ],
  );
});

test('rejects a response with another shape', () => {
  assert.throws(() => parseDisks('{"node":{}}'), /nodeName/);
});

test("exports metrics of one namespace's volumes, from the last measurement", async () => {
  const registry = new Registry();
  const metrics = createDiskMetrics(registry, 'moorage-system');
  metrics.replaceSamples([read]);
  const samples = (await registry.metrics()).match(/^moorage_\w+_avail_bytes\{.*$/gm);
  assert.deepEqual(samples, [
    'moorage_node_filesystem_avail_bytes{node="moorage",filesystem="node"} 199562584064',
    'moorage_node_filesystem_avail_bytes{node="moorage",filesystem="images"} 40000',
    'moorage_volume_avail_bytes{claim="data-moorage-postgres-0"} 4000',
  ]);
  metrics.replaceSamples([]);
  assert.doesNotMatch(await registry.metrics(), /_avail_bytes\{/);
});
