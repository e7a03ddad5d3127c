// Records of the CNI library are read as its bridge plugin writes them; others are left alone, half ones are named.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'vitest';
import { readAttachments } from '../../../../../localnode/network-policy/objects/endpoints.ts';

const record = (veth: string, bridge: string, address: string): string =>
  JSON.stringify({
    kind: 'cniCacheV1',
    containerId: 'c1',
    config: 'e30=',
    ifName: 'eth0',
    networkName: 'moorage',
    netns: '/run/netns/cni-1',
    cniArgs: [
      ['IgnoreUnknown', '1'],
      ['K8S_POD_NAMESPACE', 'apps'],
      ['K8S_POD_NAME', 'hello'],
      ['K8S_POD_INFRA_CONTAINER_ID', 'c1'],
      ['K8S_POD_UID', 'u1'],
    ],
    capabilityArgs: { portMappings: [] },
    result: {
      cniVersion: '1.0.0',
      interfaces: [
        { name: bridge, mac: '06:00:00:00:00:01' },
        { name: veth, mac: '06:00:00:00:00:02' },
        { name: 'eth0', mac: '0A:58:0A:F4:00:02', sandbox: '/run/netns/cni-1' },
      ],
      ips: [{ address, gateway: '10.244.0.1', interface: 2 }],
      dns: {},
    },
  });

async function folder(context: TestContext, files: Record<string, string>): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'moorage-cni-'));
  context.onTestFinished(async () => rm(path, { recursive: true }));
  for (const [name, text] of Object.entries(files)) await writeFile(join(path, name), text);
  return path;
}
const master = async (port: string): Promise<string | undefined> =>
  Promise.resolve(port === 'veth-gone' ? undefined : 'moorage0');

test('reads the bridge port, and the MAC and address of the pod behind it', async (context) => {
  const directory = await folder(context, { 'moorage-c1-eth0': record('veth1', 'moorage0', '10.244.0.2/24') });
  assert.deepEqual(await readAttachments(directory, 'moorage0', master), {
    attachments: [
      { namespace: 'apps', name: 'hello', uid: 'u1', port: 'veth1', mac: '0a:58:0a:f4:00:02', address: '10.244.0.2' },
    ],
    unreadable: [],
  });
});

test('omits other bridges, removed veth pairs, IPv6 and loopback, and reports a partially written record', async (context) => {
  const directory = await folder(context, {
    'a-other': record('veth1', 'docker0', '172.17.0.2/16'),
    'b-gone': record('veth-gone', 'moorage0', '10.244.0.3/24'),
    'c-six': record('veth2', 'moorage0', 'fd00::2/64'),
    'd-half': record('veth3', 'moorage0', '10.244.0.4/24').slice(0, 200),
    'e-loopback': JSON.stringify({
      cniArgs: [],
      result: {
        interfaces: [{ name: 'lo', mac: '00:00:00:00:00:00', sandbox: 'n' }],
        ips: [{ address: '127.0.0.1/8', interface: 0 }],
      },
    }),
  });
  assert.deepEqual(await readAttachments(directory, 'moorage0', master), { attachments: [], unreadable: ['d-half'] });
});

test('distinguishes a missing directory from an empty one', async (context) => {
  const directory = await folder(context, {});
  assert.deepEqual(await readAttachments(directory, 'moorage0', master), { attachments: [], unreadable: [] });
  assert.equal(await readAttachments(join(directory, 'none'), 'moorage0', master), undefined);
});
