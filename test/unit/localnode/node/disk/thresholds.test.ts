// At what free space the kubelet acts: images go before builds wait, and builds wait before pods are evicted.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { computeDiskThresholds } from '../../../../../localnode/node/disk/space.ts';

const gibibyte = 1024 ** 3;

test('removes unused images only below 10 GiB of free space, however large the disk', () => {
  assert.deepEqual(computeDiskThresholds(250 * gibibyte), {
    imageGCHighThresholdPercent: 95,
    imageGCLowThresholdPercent: 90,
    eviction: '2Gi',
  });
  assert.deepEqual(computeDiskThresholds(100 * gibibyte), {
    imageGCHighThresholdPercent: 90,
    imageGCLowThresholdPercent: 85,
    eviction: '2Gi',
  });
});

test('does not keep all of a small disk free', () => {
  assert.deepEqual(computeDiskThresholds(16 * gibibyte), {
    imageGCHighThresholdPercent: 50,
    imageGCLowThresholdPercent: 45,
    eviction: '5%',
  });
});
