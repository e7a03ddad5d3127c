// What a kubelet says of its disks: those of the node, and the volumes of the installation's own namespace.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { parseSummary } from '../../../../controller/disks/kubelet-summary.ts';

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

test('both file systems of the node, and the measured volumes of one namespace', () => {
  assert.deepEqual(parseSummary(answer, 'moorage-system'), [
    { of: { node: 'moorage', filesystem: 'node' }, size: 270_553_174_016, available: 199_562_584_064 },
    { of: { node: 'moorage', filesystem: 'images' }, size: 100_000, available: 40_000 },
    { of: { claim: 'data-moorage-postgres-0' }, size: 5_000, available: 4_000 },
  ]);
});

test('a kubelet that has not measured yet has no disks', () => {
  assert.deepEqual(parseSummary({ node: { nodeName: 'new' } }, 'moorage-system'), []);
});

test('an answer of another form is refused', () => {
  assert.throws(() => parseSummary({ node: {} }, 'moorage-system'), /nodeName/);
});
