// Pods get the address that the CNI plugin recorded, before and against what their status says.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  findEndpoints,
  podSchema,
  type Attachment,
  type Pod,
} from '../../../../../localnode/network-policy/objects/endpoints.ts';

function pod(name: string, change: { spec?: object; status?: object; annotations?: Record<string, string> } = {}): Pod {
  const { spec = {}, status = {}, annotations = {} } = change;
  return podSchema.parse({
    metadata: { namespace: 'apps', name, uid: `uid-${name}`, annotations },
    spec: { containers: [], ...spec },
    status,
  });
}
const attachment = (name: string, address: string): Attachment => ({
  namespace: 'apps',
  name,
  uid: `uid-${name}`,
  port: `veth-${name}`,
  mac: '0a:58:0a:f4:00:02',
  address,
});
const found = (pods: readonly Pod[], attachments: readonly Attachment[] = []): Record<string, string> =>
  Object.fromEntries(findEndpoints(pods, attachments).endpoints.map(({ name, address }) => [name, address]));

test('prefers the record to the address in the status, even before there is one', () => {
  assert.deepEqual(found([pod('a')], [attachment('a', '10.244.0.2')]), { a: '10.244.0.2' });
  assert.deepEqual(found([pod('a', { status: { podIP: '10.244.0.9' } })], [attachment('a', '10.244.0.2')]), {
    a: '10.244.0.2',
  });
});

test('uses the status without a record, until the pod has ended', () => {
  assert.deepEqual(found([pod('a', { status: { phase: 'Running', podIP: '10.244.0.3' } })]), { a: '10.244.0.3' });
  for (const phase of ['Succeeded', 'Failed'])
    assert.deepEqual(found([pod('a', { status: { phase, podIP: '10.244.0.3' } })]), {});
  assert.deepEqual(found([pod('a', { status: { phase: 'Running', podIP: 'fd00::1' } })]), {});
});

test('ignores a record of an earlier pod with the same name, and finds a static pod by the hash that it mirrors', () => {
  assert.deepEqual(found([pod('a')], [{ ...attachment('a', '10.244.0.2'), uid: 'old' }]), {});
  assert.deepEqual(
    found(
      [pod('a', { annotations: { 'kubernetes.io/config.mirror': 'hash' } })],
      [{ ...attachment('a', '10.244.0.2'), uid: 'hash' }],
    ),
    { a: '10.244.0.2' },
  );
});

test('excludes a pod in the host network', () => {
  assert.deepEqual(found([pod('a', { spec: { hostNetwork: true }, status: { podIP: '192.0.2.1' } })]), {});
});

test('assigns a contested address to the pod with a record, or to neither pod', () => {
  const claims = (name: string): Pod => pod(name, { status: { phase: 'Running', podIP: '10.244.0.2' } });
  assert.deepEqual(found([claims('a'), claims('b')], [attachment('b', '10.244.0.2')]), { b: '10.244.0.2' });
  assert.deepEqual(findEndpoints([claims('a'), claims('b')], []), { endpoints: [], contested: ['10.244.0.2'] });
});

test('reads port names from containers and sidecars, but not from init containers', () => {
  const ports = (name: string, containerPort: number): object => ({
    ports: [{ name, containerPort }, { containerPort: 1 }],
  });
  const spec = {
    containers: [ports('http', 80)],
    initContainers: [{ ...ports('proxy', 81), restartPolicy: 'Always' }, ports('setup', 82)],
  };
  const [endpoint] = findEndpoints([pod('a', { spec })], [attachment('a', '10.244.0.2')]).endpoints;
  assert.deepEqual(endpoint?.ports, [
    { name: 'http', protocol: 'TCP', port: 80 },
    { name: 'proxy', protocol: 'TCP', port: 81 },
  ]);
});
