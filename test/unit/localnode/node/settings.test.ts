// How a node is shared out between the platform, builds and apps.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { computeAppsQuota } from '../../../../localnode/node/settings.ts';
import { listAppsWithoutRoom, listAppsWithoutSpace } from '../../../../cli/node/status.ts';

const gibibyte = 1024 ** 3;

const noTools = { cpuMilli: 0, memoryMebibytes: 0 };

test('reserves what the platform, three builds and tool services request', () => {
  assert.deepEqual(computeAppsQuota({ cpuMilli: 60, memoryMebibytes: 1888 }, 2, 24 * gibibyte), [
    String.raw`apps.quota.requests\.cpu=565m`,
    String.raw`apps.quota.requests\.memory=17568Mi`,
  ]);
  assert.deepEqual(computeAppsQuota(noTools, 2, 24 * gibibyte), [
    String.raw`apps.quota.requests\.cpu=625m`,
    String.raw`apps.quota.requests\.memory=19456Mi`,
  ]);
});

test('reserves nothing on a small machine', () => {
  assert.deepEqual(computeAppsQuota(noTools, 1, 24 * gibibyte), []);
  assert.deepEqual(computeAppsQuota(noTools, 8, 4 * gibibyte), []);
});

test('lists apps that wait for resources, with the cause', () => {
  const condition = { reason: 'WaitingForRoom', message: 'Waiting for room: 1 Insufficient cpu.' };
  const items = [
    { metadata: { name: 'fine' }, status: { conditions: [{ reason: 'Live', message: '' }] } },
    { metadata: { name: 'held' }, status: { conditions: [{ reason: 'Queued', message: '' }, condition] } },
  ];
  assert.deepEqual(listAppsWithoutRoom({ items }), ['held: Waiting for room: 1 Insufficient cpu.']);
  assert.deepEqual(listAppsWithoutSpace({ items }), []);
  const short = { reason: 'WaitingForSpace', message: 'Waiting for disk space.' };
  const held = [{ metadata: { name: 'full' }, status: { conditions: [short] } }];
  assert.deepEqual(listAppsWithoutSpace({ items: held }), ['full: Waiting for disk space.']);
});
