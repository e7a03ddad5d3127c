// What builds reach inside the cluster: the registry by its proxy, which alone has the account, and the git server.
import assert from 'node:assert/strict';
import { beforeAll, test } from 'vitest';
import { z } from 'zod';
import { registryProxyEnvironment as registryProxy } from '../../../controller/settings.ts';
import { readEnvironment, findNamed, selectKind, render, required, type Rendered } from '../../support/chart.ts';

let full: Rendered[] = [];
beforeAll(async () => {
  full = await render({
    ...required,
    registry: { host: 'registry.moorage-system.svc:5000', insecure: true, cidrs: ['10.244.0.1/32'], port: 5000 },
  });
});

const policy = z.looseObject({
  spec: z.looseObject({
    podSelector: z.unknown(),
    ingress: z.array(z.unknown()).optional(),
    egress: z.array(z.unknown()).optional(),
  }),
});
type Policy = z.output<typeof policy>;

test('gives the operator the secret of a git server with repository tokens', async () => {
  const operator = z.looseObject({
    spec: z.object({
      template: z.object({ spec: z.object({ containers: z.array(z.looseObject({ env: z.array(z.unknown()) })) }) }),
    }),
  });
  const variables = (objects: Rendered[]): string =>
    JSON.stringify(
      operator.parse(findNamed(objects, 'Deployment', 'moorage-operator')).spec.template.spec.containers[0]?.env,
    );
  const expected = {
    name: 'MOORAGE_GIT_READ_SECRET',
    valueFrom: { secretKeyRef: { name: 'git-read', key: 'secret' } },
  };
  const given = await render({ ...required, git: { readTokenSecret: 'git-read' } });
  assert.ok(variables(given).includes(JSON.stringify(expected)));
  assert.ok(!variables(full).includes('MOORAGE_GIT_READ_SECRET'));
});

test('opens a mirror of package registries to builds, and to the operator that asks for versions', async () => {
  const objects = await render({ ...required, builds: { packageCidrs: ['203.0.113.80/32'] } });
  for (const name of ['builds', 'moorage-operator', 'moorage-api']) {
    const { spec } = policy.parse(selectKind(objects, 'NetworkPolicy').find(({ metadata }) => metadata.name === name));
    assert.equal(JSON.stringify(spec.egress).includes('"203.0.113.80/32"'), name !== 'moorage-api', name);
  }
});

test('builds reach the registry proxy, and only the proxy reaches the registry and has its account', () => {
  const policyOf = (name: string): Policy =>
    policy.parse(selectKind(full, 'NetworkPolicy').find(({ metadata }) => metadata.name === name));
  assert.ok(!JSON.stringify(policyOf('builds')).includes('10.244.0.1/32'));
  const proxy = policyOf('moorage-registry-proxy');
  assert.ok(JSON.stringify(proxy.spec.egress).includes('{"ipBlock":{"cidr":"10.244.0.1/32"}}'));
  assert.deepEqual(proxy.spec.ingress?.[0], {
    from: [
      { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'moorage-builds' } } },
      { podSelector: policyOf('moorage-operator').spec.podSelector },
    ],
    ports: [{ protocol: 'TCP', port: 5000 }],
  });
  const holders = selectKind(full, 'Deployment')
    .filter((object) => JSON.stringify(object).includes('"secretName":"moorage-registry"'))
    .map(({ metadata }) => metadata.name);
  assert.deepEqual(holders, ['moorage-registry-proxy']);
});

test('the registry proxy reads every setting that the chart passes', () => {
  const given = Object.keys(readEnvironment(full, 'registry-proxy'));
  const known = [...Object.keys(registryProxy.shape), 'LOG_LEVEL', 'HOME'];
  assert.deepEqual(
    given.filter((name) => !known.includes(name)),
    [],
  );
  assert.equal(
    registryProxy.parse({ ...readEnvironment(full, 'registry-proxy'), MOORAGE_REGISTRY_MIRROR: undefined })
      .MOORAGE_REGISTRY_INSECURE,
    true,
  );
});
