// At what free space the kubelet acts: images go before builds wait, and builds wait before pods are evicted.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { computeDiskThresholds } from '../../../../../localnode/node/disk/space.ts';

const gibibyte = 1024 ** 3;

test('unused images go while 10 GiB are free, however big the disk is', () => {
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

test('a small disk is not all kept free', () => {
  assert.deepEqual(computeDiskThresholds(16 * gibibyte), {
    imageGCHighThresholdPercent: 50,
    imageGCLowThresholdPercent: 45,
    eviction: '5%',
  });
});
