// What `up` installs itself is closed: DNS and the gateway take what they are there for, and nothing else of them is reached.
import assert from 'node:assert/strict';
import { onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { listPods, waitFor, runKubectl } from '../support/cluster.ts';

const policies = z.object({
  items: z.array(z.object({ spec: z.object({ podSelector: z.strictObject({}), policyTypes: z.array(z.string()) }) })),
});

test('a policy selects every pod of gateway, storage and kube-system in both directions', async () => {
  for (const namespace of ['moorage-gateway', 'moorage-storage', 'kube-system']) {
    const { items } = policies.parse(JSON.parse(await runKubectl('get', 'netpol', '-n', namespace, '-o', 'json')));
    assert.ok(
      items.some(({ spec }) => spec.policyTypes.includes('Ingress') && spec.policyTypes.includes('Egress')),
      namespace,
    );
  }
});

/** Address of a pod. */
async function addressOf(namespace: string, selector: string): Promise<string> {
  const args = ['get', 'pods', '-n', namespace, '-l', selector, '-o', 'jsonpath={.items[0].status.podIP}'] as const;
  return await runKubectl(...args);
}

test('a pod without a policy reaches only visitor ports and DNS', async () => {
  const name = 'e2e-platform-network';
  onTestFinished(() =>
    runKubectl('delete', 'pod', name, '-n', 'default', '--ignore-not-found', '--wait=false').then(() => undefined),
  );
  const [gateway, dns] = [
    await addressOf('moorage-gateway', 'app.kubernetes.io/name=traefik'),
    await addressOf('kube-system', 'k8s-app=kube-dns'),
  ];
  const script = `import socket, sys
from concurrent.futures import ThreadPoolExecutor
def look(address):
    host, port = address.rsplit(':', 1)
    try:
        socket.create_connection((host, int(port)), timeout=3).close()
        return 'open'
    except OSError:
        return 'closed'
with ThreadPoolExecutor() as pool:
    for address, seen in zip(sys.argv[1:], pool.map(look, sys.argv[1:])):
        print(address, seen)
print(socket.gethostbyname('traefik.moorage-gateway.svc.cluster.local') != '')`;
  const targets = [
    `${gateway}:443`,
    `${gateway}:80`,
    `${dns}:53`,
    `${gateway}:8082`,
    `${gateway}:9091`,
    `${dns}:9153`,
    `${dns}:8080`,
  ];
  await runKubectl(
    ...['run', name, '-n', 'default', '--image=python:3.13-slim-trixie', '--restart=Never', '--command', '--'],
    ...['python', '-c', script, ...targets],
  );
  const text = await waitFor(
    'the pod to end',
    async () => {
      const [pod] = await listPods(`run=${name}`, 'default');
      const phase = pod?.status?.phase;
      return phase === 'Succeeded' || phase === 'Failed' ? await runKubectl('logs', name, '-n', 'default') : undefined;
    },
    120,
  );
  assert.deepEqual(text.trim().split('\n'), [
    ...targets.slice(0, 3).map((target) => `${target} open`),
    ...targets.slice(3).map((target) => `${target} closed`),
    'True',
  ]);
});
