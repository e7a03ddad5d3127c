// What a kubelet says of its disks: those of the node, and the volumes of the installation's own namespace.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Registry } from 'prom-client';
import { diskMetrics } from '../../../../controller/space/disk-metrics.ts';
import { parseDisks } from '../../../../controller/space/kubelet.ts';

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

test('both file systems of the node, and the volumes that are measured', () => {
  assert.deepEqual(read, {
    name: 'moorage',
    own: {
      node: { free: 199_562_584_064, capacity: 270_553_174_016 },
      images: { free: 40_000, capacity: 100_000 },
    },
    claims: new Map([
      ['moorage-system/data-moorage-postgres-0', { free: 4_000, capacity: 5_000 }],
      ['moorage-apps/of-an-app', { free: 1, capacity: 2 }],
    ]),
  });
});

test('a kubelet that has not measured yet has no disks', () => {
  const disks = parseDisks(JSON.stringify({ node: { nodeName: 'new' } }));
  assert.deepEqual(disks, { name: 'new', own: {}, claims: new Map() });
});

test('an answer of another form is refused', () => {
  assert.throws(() => parseDisks('{"node":{}}'), /nodeName/);
});

test('metrics are of the volumes of one namespace, and of what was seen last', async () => {
  const registry = new Registry();
  const metrics = diskMetrics(registry, 'moorage-system');
  metrics.seen([read]);
  const samples = (await registry.metrics()).match(/^moorage_\w+_avail_bytes\{.*$/gm);
  assert.deepEqual(samples, [
    'moorage_node_filesystem_avail_bytes{node="moorage",filesystem="node"} 199562584064',
    'moorage_node_filesystem_avail_bytes{node="moorage",filesystem="images"} 40000',
    'moorage_volume_avail_bytes{claim="data-moorage-postgres-0"} 4000',
  ]);
  metrics.seen([]);
  assert.doesNotMatch(await registry.metrics(), /_avail_bytes\{/);
});
