// The watch over disks: who is woken when space runs out and when there is some again, and what the metrics say.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import type { Pod } from '../../../../controller/objects/kinds.ts';
import { diskMetrics } from '../../../../controller/space/disk-metrics.ts';
import { spaceMetrics } from '../../../../controller/space/metrics.ts';
import { createSpace, type Space } from '../../../../controller/space/space.ts';

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
        : Promise.resolve({ name: 'a', own: { node: { free: made.free, capacity: 100 * gib } }, claims: new Map() }),
    pods: () => [pod('a', '10.0.0.1'), pod('b', '10.0.0.1'), pod('c', '10.0.0.2')],
    proxyUrl,
    reserve: { bytes: 5 * gib },
    intervalMs: 2,
    log: pino({ level: 'silent' }),
    metrics: spaceMetrics(registry),
    disks: diskMetrics(registry, 'moorage-system'),
  });
  space.changes(() => ['queue']).start((key) => made.woken.push(key));
  return Object.assign(made, { space });
}

test('a node that is out of reach hinders nothing; builds are woken when space ends, and when it is back', async () => {
  const made = lab('http://127.0.0.1:1');
  const ending = new AbortController();
  const running = made.space.run(ending.signal);
  const free = async (): Promise<string | undefined> =>
    /^moorage_node_filesystem_avail_bytes\{node="a",filesystem="node"\} (\d+)$/m.exec(
      await made.registry.metrics(),
    )?.[1];
  await expect.poll(free).toBe(String(50 * gib));
  assert.deepEqual([made.space.shortage(), made.woken], [undefined, []]);
  made.free = gib;
  await expect.poll(() => made.space.shortage()).toMatch(/the node has 1 GiB free/);
  assert.match(await made.registry.metrics(), /^moorage_disk_short 1$/m);
  assert.deepEqual(made.woken, ['queue']);
  made.free = 6 * gib;
  await expect.poll(() => made.space.shortage()).toBe(undefined);
  assert.deepEqual(made.woken, ['queue', 'queue']);
  assert.match(await made.registry.metrics(), /^moorage_disk_short 0$/m);
  ending.abort();
  await running;
});

test('a registry that refused a push holds builds until the proxy has seen one succeed', async () => {
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
    assert.match(made.space.shortage() ?? '', /no space left for the last push/);
  });
  refusal = undefined;
  await expect.poll(() => made.space.shortage()).toBe(undefined);
  ending.abort();
  await running;
  proxy.close();
  proxy.closeAllConnections();
});
