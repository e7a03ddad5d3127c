// The chart's part in metering: the token that senders show, and who may reach the receivers.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import { readOperatorConfig } from '../../../controller/config.ts';
import { readEnvironment, selectKind, render, type Rendered, required } from '../../support/chart.ts';

const policy = z.looseObject({ spec: z.looseObject({ ingress: z.array(z.unknown()).optional() }) });

test('uses the same access log token for the API and its gateway in another namespace', async () => {
  const objects = await render({ ...required, metering: { gatewayNamespace: 'gateways' } });
  const secrets = selectKind(objects, 'Secret').filter(({ metadata }) => metadata.name === 'moorage-metering');
  const [ours, theirs] = secrets.map((secret) =>
    z.looseObject({ data: z.object({ token: z.string() }) }).parse(secret),
  );
  assert.deepEqual(
    secrets.map(({ metadata }) => metadata.namespace),
    ['moorage-system', 'gateways'],
  );
  assert.ok((ours?.data.token.length ?? 0) >= 64);
  assert.deepEqual(theirs?.data, ours?.data);
});

test('the API accepts requests and access logs from the gateway, usage from the operator, and metrics only from the configured namespace', async () => {
  const plain = await render(required);
  const full = await render({ ...required, network: { metricsNamespaceLabels: { team: 'metrics' } } });
  const ingress = (objects: readonly Rendered[], name: string): unknown =>
    policy.parse(selectKind(objects, 'NetworkPolicy').find(({ metadata }) => metadata.name === name)).spec.ingress;
  const gateway = {
    from: [{ namespaceSelector: { matchLabels: required.gateway.namespaceLabels } }],
    ports: [
      { protocol: 'TCP', port: 8080 },
      { protocol: 'TCP', port: 9090 },
    ],
  };
  const component = (name: string): object => ({
    from: [
      {
        podSelector: {
          matchLabels: {
            'app.kubernetes.io/name': 'moorage',
            'app.kubernetes.io/instance': 'moorage',
            'app.kubernetes.io/component': name,
          },
        },
      },
    ],
    ports: [{ protocol: 'TCP', port: 9090 }],
  });
  const operator = component('operator');
  // It asks the operator for repositories.
  const api = component('api');
  const apps = {
    from: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'moorage-apps' } } }],
    ports: [{ protocol: 'TCP', port: 8081 }],
  };
  const metrics = {
    from: [{ namespaceSelector: { matchLabels: { team: 'metrics' } } }],
    ports: [{ protocol: 'TCP', port: 9090 }],
  };
  assert.deepEqual(
    [ingress(plain, 'moorage-api'), ingress(plain, 'moorage-operator')],
    [[gateway, operator, apps], [api]],
  );
  assert.deepEqual(
    [ingress(full, 'moorage-api'), ingress(full, 'moorage-operator')],
    [
      [gateway, operator, apps, metrics],
      [api, metrics],
    ],
  );
});

test('the operator reports app usage to the API, with the token', async () => {
  const token = 'x'.repeat(64);
  const variables = { ...readEnvironment(await render(required), 'operator'), MOORAGE_METERING_TOKEN: token };
  const url = 'http://moorage-api-internal.moorage-system.svc.cluster.local:9090/compute';
  assert.deepEqual(readOperatorConfig(variables).compute, { url, token });
});
