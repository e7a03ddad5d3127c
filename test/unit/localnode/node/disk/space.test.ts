// What `up` says of a disk that is too small.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { describeShortage, type Growth } from '../../../../../localnode/node/disk/space.ts';

const gibibyte = 1024 ** 3;

function growth(folder: string, gibibytes: number, on: { device: number; free: number }): Growth {
  return { folder, gibibytes, fix: `move ${folder}`, device: on.device, freeBytes: on.free * gibibyte };
}

test('adds up folders on the same file system', () => {
  const disk = { device: 1, free: 20 };
  assert.equal(describeShortage([growth('/cache', 10, disk), growth('/state', 8, disk)]), undefined);
  assert.equal(
    describeShortage([growth('/cache', 10, disk), growth('/state', 9, disk)]),
    'not enough disk space: 20.0 GiB free, 21 GiB needed (10 GiB for /cache, 9 GiB for /state, 2 GiB to spare): ' +
      'free some space, or move /cache, or move /state',
  );
});

test('checks each file system separately, and keeps 2 GiB free if nothing is to be written', () => {
  const [first, second] = [
    { device: 1, free: 15 },
    { device: 2, free: 1 },
  ];
  assert.equal(
    describeShortage([growth('/cache', 10, first), growth('/state', 0, second)]),
    'not enough disk space: 1.0 GiB free, 2 GiB needed (2 GiB to spare): free some space',
  );
  assert.equal(describeShortage([growth('/cache', 10, first), growth('/state', 0, { device: 2, free: 2 })]), undefined);
});
