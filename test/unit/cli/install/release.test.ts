// Package registries at closed addresses, and workloads that are not as installed.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { findClosedPackages, compareWorkloads, readWorkloads } from '../../../../cli/install/release.ts';

test('opens only the addresses of an internal mirror to builds, not public or loopback ones', async () => {
  const answers: Record<string, string[]> = {
    'pypi.org': ['203.0.113.80', 'fd00::80'],
    'registry.npmjs.org': ['203.0.113.80'],
    'github.com': ['140.82.121.4'],
    'deb.debian.org': ['127.0.0.1', '::1'],
  };
  assert.deepEqual(await findClosedPackages((host) => Promise.resolve(answers[host] ?? [])), [
    '203.0.113.80/32',
    'fd00::80/128',
  ]);
});

const manifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: moorage-operator, namespace: moorage-system}
spec: {replicas: 2, template: {}}
---
apiVersion: v1
kind: Service
metadata: {name: moorage-operator}
spec: {ports: []}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: moorage-postgres, namespace: moorage-system}
spec: {replicas: 1}
`;

interface WorkloadFields {
  readonly kind?: string;
  readonly namespace?: string;
  readonly spec?: object;
  readonly status?: object;
}

const item = (name: string, given: WorkloadFields = {}): object => {
  const { kind = 'Deployment', namespace = 'moorage-system', spec = {}, status = {} } = given;
  return { kind, metadata: { name, namespace }, spec, status };
};
const operator = (replicas: number, readyReplicas: number): object =>
  item('moorage-operator', { spec: { replicas }, status: { readyReplicas } });
const postgres = item('moorage-postgres', {
  kind: 'StatefulSet',
  spec: { replicas: 1 },
  status: { readyReplicas: 1 },
});
const compare = (...items: object[]): string[] => compareWorkloads(readWorkloads(manifest), { items });

test('reads only the workloads of a release', () => {
  assert.deepEqual(
    readWorkloads(manifest).map(({ name, replicas }) => [name, replicas]),
    [
      ['moorage-operator', 2],
      ['moorage-postgres', 1],
    ],
  );
});

test('reports nothing for workloads as installed or with more replicas', () => {
  assert.deepEqual(compare(operator(2, 2), postgres), []);
  assert.deepEqual(compare(operator(3, 3), postgres), []);
});

test('names workloads that were scaled down, even while the status has the earlier number', () => {
  const scaled = 'moorage-system/moorage-operator: 0 of 2 replicas are ready; it was scaled from 2 to 0';
  assert.deepEqual(compare(operator(0, 0), postgres), [scaled]);
  assert.deepEqual(compare(operator(0, 2), postgres), [scaled]);
  // Without replicas in its status, as Kubernetes writes none.
  assert.deepEqual(compare(item('moorage-operator', { spec: { replicas: 0 } }), postgres), [scaled]);
});

test('names workloads that are not ready or missing', () => {
  assert.deepEqual(compare(operator(2, 1), postgres), ['moorage-system/moorage-operator: 1 of 2 replicas are ready']);
  assert.deepEqual(compare(operator(2, 2)), ['moorage-system/moorage-postgres does not exist (StatefulSet)']);
});

test('expects one replica of other workloads, and every pod of a DaemonSet', () => {
  const gateway = item('traefik', { namespace: 'moorage-gateway', spec: { replicas: 0 } });
  const network = item('moorage-network', {
    kind: 'DaemonSet',
    namespace: 'kube-system',
    status: { desiredNumberScheduled: 2, numberReady: 1 },
  });
  assert.deepEqual(compare(operator(2, 2), postgres, gateway, network), [
    'moorage-gateway/traefik: 0 of 1 replicas are ready; it was scaled from 1 to 0',
    'kube-system/moorage-network: 1 of 2 pods are ready',
  ]);
});
