// The configuration of a kind cluster, as made.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { formatClusterConfig } from '../../../../cli/kind/cluster.ts';

const schema = z.object({
  networking: z.record(z.string(), z.unknown()),
  containerdConfigPatches: z.array(z.string()),
  kubeadmConfigPatches: z.array(z.string()),
  nodes: z.array(
    z.object({
      role: z.string(),
      image: z.string(),
      extraPortMappings: z.array(z.record(z.string(), z.unknown())),
      extraMounts: z.array(z.record(z.string(), z.unknown())),
    }),
  ),
});
const gibibyte = 1024 ** 3;
const config = schema.parse(
  parse(
    formatClusterConfig({
      image: 'node@sha256:1',
      ports: { http: 8080, https: 8443 },
      patches: '/patches',
      diskBytes: 250 * gibibyte,
    }),
  ),
);
const patches = config.kubeadmConfigPatches.map((text) =>
  z.looseObject({ kind: z.string(), apiVersion: z.string() }).parse(parse(text)),
);

test('one node of the pinned image publishes the gateway on the loopback address only', () => {
  const [node, ...others] = config.nodes;
  assert.deepEqual(others, []);
  assert.equal(node?.image, 'node@sha256:1');
  assert.deepEqual(node.extraPortMappings, [
    { containerPort: 80, hostPort: 8080, listenAddress: '127.0.0.1' },
    { containerPort: 443, hostPort: 8443, listenAddress: '127.0.0.1' },
  ]);
});

test('uses our pod network, whose configuration does not survive a restart of the node', () => {
  assert.equal(config.networking['disableDefaultCNI'], true);
  assert.match(config.containerdConfigPatches.join('\n'), /^conf_dir = "\/run\//m);
});

test('quotas learn of the resource within seconds, for every version that kubeadm reads', () => {
  const of = (version: string): unknown =>
    patches.find(({ kind, apiVersion }) => kind === 'ClusterConfiguration' && apiVersion.endsWith(version));
  assert.match(JSON.stringify(of('v1beta3')), /"resource-quota-sync-period":"10s"/);
  assert.match(JSON.stringify(of('v1beta4')), /\{"name":"resource-quota-sync-period","value":"10s"\}/);
});

test('patches lower the CPU requests of the control plane', () => {
  const [mount] = config.nodes[0]?.extraMounts ?? [];
  assert.equal(mount?.['hostPath'], '/patches');
  const asked = patches.filter(({ kind }) => kind === 'InitConfiguration');
  assert.equal(asked.length, 2);
  for (const patch of asked) assert.deepEqual(patch['patches'], { directory: mount['containerPath'] });
});

test('the kubelet evicts, limits processes and starts on cgroup v1 as on the one-machine node', () => {
  const kubelet = patches.find(({ kind }) => kind === 'KubeletConfiguration');
  assert.equal(kubelet?.['failCgroupV1'], false);
  assert.equal(kubelet['podPidsLimit'], 2048);
  assert.deepEqual(kubelet['evictionHard'], {
    'memory.available': '200Mi',
    'nodefs.available': '2Gi',
    'nodefs.inodesFree': '3%',
    'imagefs.available': '2Gi',
  });
});
