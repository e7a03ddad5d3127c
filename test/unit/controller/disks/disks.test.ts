// The task: asks each node once a look, goes on where one cannot be read, and forgets nodes that are gone.
import assert from 'node:assert/strict';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { test } from 'vitest';
import { createDisksTask } from '../../../../controller/disks/disks.ts';
import type { Pod } from '../../../../controller/objects/kinds.ts';

const on = (hostIP: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: hostIP, namespace: 'n', uid: 'u', resourceVersion: '1', creationTimestamp: '' },
  status: { hostIP },
});

test('each node is asked once a look; one that is out of reach or gone has no sample', async () => {
  const ending = new AbortController();
  const registry = new Registry();
  const asked: string[] = [];
  let first = '';
  const looks = [[on('10.0.0.1'), on('10.0.0.1'), on('10.0.0.2')], [on('10.0.0.3')], []];
  const run = createDisksTask({
    read: async (address) => {
      asked.push(address);
      if (address === '10.0.0.2') throw new Error('out of reach');
      if (address === '10.0.0.3') first = await registry.metrics();
      return [{ of: { node: address, filesystem: 'node' }, size: 10, available: 4 }];
    },
    pods: () => {
      const [pods = [], ...others] = looks.splice(0);
      looks.push(...others);
      if (looks.length === 0) ending.abort();
      return pods;
    },
    intervalMs: 1,
    log: pino({ level: 'silent' }),
    registry,
  });
  await run(ending.signal);
  assert.deepEqual(asked, ['10.0.0.1', '10.0.0.2', '10.0.0.3']);
  assert.deepEqual(first.match(/^moorage_node_filesystem_avail_bytes.*$/gm), [
    'moorage_node_filesystem_avail_bytes{node="10.0.0.1",filesystem="node"} 4',
  ]);
  assert.doesNotMatch(await registry.metrics(), /moorage_node_filesystem_avail_bytes\{/);
});
