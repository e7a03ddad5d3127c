// What status says of workloads that are not as they were installed.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { compareWorkloads, readWorkloads } from '../../../../cli/install/workloads.ts';

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

test('reads the workloads of a release, and nothing else of it', () => {
  assert.deepEqual(
    readWorkloads(manifest).map(({ name, replicas }) => [name, replicas]),
    [
      ['moorage-operator', 2],
      ['moorage-postgres', 1],
    ],
  );
});

test('says nothing of what runs as it was installed, or with more replicas', () => {
  assert.deepEqual(compare(operator(2, 2), postgres), []);
  assert.deepEqual(compare(operator(3, 3), postgres), []);
});

test('names what was scaled down, also while its status has the earlier number', () => {
  const scaled = 'moorage-system/moorage-operator: 0 of 2 replicas are ready; it was scaled from 2 to 0';
  assert.deepEqual(compare(operator(0, 0), postgres), [scaled]);
  assert.deepEqual(compare(operator(0, 2), postgres), [scaled]);
  // Without replicas in its status, as Kubernetes writes none.
  assert.deepEqual(compare(item('moorage-operator', { spec: { replicas: 0 } }), postgres), [scaled]);
});

test('names what is not ready and what is gone', () => {
  assert.deepEqual(compare(operator(2, 1), postgres), ['moorage-system/moorage-operator: 1 of 2 replicas are ready']);
  assert.deepEqual(compare(operator(2, 2)), ['moorage-system/moorage-postgres does not exist (StatefulSet)']);
});

test('wants at least one of what is not of the release, and every pod of a DaemonSet', () => {
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
