// Own domains with the real operator, the rights that the chart gives it, a real API server, and a DNS server on loopback.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { createControlWriter, type WriteControl } from '../../../api/apps/author/control.ts';
import {
  gateways,
  type Gateway,
  hostedApps,
  routes,
  secrets,
  type HttpRoute,
} from '../../../controller/objects/kinds.ts';
import { formatDomainProof, formatDomainGatewayName, type DomainStatus } from '../../../crds/domains.ts';
import type { Client } from '../../../lib/kubernetes/index.ts';
import { type DnsServer, startDnsServer } from '../../support/dns-server.ts';
import { createClientAs } from '../../support/kubernetes/api-server.ts';
import { startWorld, waitFor, type Operator, type World } from '../../support/operator/world.ts';

const namespace = 'moorage-domains';
const domain = 'shop.example.com';
const site = { domain: 'apps.localhost', port: 443 };
let world: World;
let dns: DnsServer;
let api: Client;
let writeControl: WriteControl;
let variables: Record<string, string>;
let operator: Operator;

beforeAll(async () => {
  [world, dns] = [await startWorld(), await startDnsServer()];
  variables = {
    ...{ MOORAGE_DOMAINS_RESOLVERS: dns.address, MOORAGE_DOMAINS_INTERVAL: '1s' },
    MOORAGE_DOMAINS_GRACE: '1h',
  };
  operator = world.startOperator(variables);
  api = await createClientAs(world.api, 'system:serviceaccount:moorage-system:moorage-api');
  writeControl = createControlWriter({ client: api, apps: { waitForApp: () => Promise.resolve() } });
  // A repository without commits keeps builds out of the way; a domain needs none.
  for (const name of ['one', 'two']) await world.submit(name, { source: { repo: `${world.git.url}-${name}` } });
});
afterAll(async () => {
  api.close();
  await dns.stop();
  await world.stop();
});

async function readApp(name: string): Promise<NonNullable<Awaited<ReturnType<World['app']>>>> {
  return (await world.app(name)) ?? assert.fail(`no ${name}`);
}

async function add(name: string): Promise<void> {
  await writeControl(await readApp(name), () => ({ domains: [{ name: domain, addedAt: new Date().toISOString() }] }));
}

/** Publishes the record of an app, next to others, or removes it. */
async function publish(name: string): Promise<void> {
  const { txt } = formatDomainProof((await readApp(name)).metadata, domain, site);
  dns.records.set(`TXT ${txt.name}`, txt.value);
}

async function awaitState(name: string, state: DomainStatus['state']): Promise<DomainStatus> {
  let last: unknown;
  return waitFor(`${name} to be ${state}`, async () => {
    const found = (await readApp(name)).status?.domains?.[0];
    last = found;
    return found?.state === state && found;
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}; status ${JSON.stringify(last)}; log ${operator.log().slice(-2_000)}`);
  });
}

async function readRoute(): Promise<HttpRoute | undefined> {
  return world.client.get(routes, { name: domain, namespace: 'moorage-apps' });
}

async function readGateway(name: string): Promise<Gateway | undefined> {
  const gateway = formatDomainGatewayName((await readApp(name)).metadata, domain);
  return world.client.get(gateways, { name: gateway, namespace });
}

/** As the gateway and cert-manager do. */
async function issue(name: string): Promise<void> {
  const gateway = await waitFor('the Gateway', () => readGateway(name));
  const { name: gatewayName } = gateway.metadata;
  const data = { 'tls.crt': 'eA==', 'tls.key': 'eA==' };
  const secret = { metadata: { name: gatewayName, namespace }, type: 'kubernetes.io/tls', data };
  await world.client.create(secrets, { apiVersion: 'v1', kind: 'Secret', ...secret });
  const isTrue = (type: string): object => ({
    ...{ type, status: 'True', reason: 'Ready', message: '', observedGeneration: 1 },
    lastTransitionTime: new Date().toISOString(),
  });
  const listeners = [
    {
      ...{ name: 'https', attachedRoutes: 1, supportedKinds: [] },
      conditions: ['Accepted', 'ResolvedRefs', 'Programmed'].map(isTrue),
    },
  ];
  const parents = [
    {
      parentRef: { name: gatewayName, namespace, sectionName: 'https' },
      ...{ controllerName: 'example.com/test', conditions: [isTrue('Accepted')] },
    },
  ];
  const options = { type: 'application/merge-patch+json', subresource: 'status' } as const;
  await world.client.patch(gateways, gateway.metadata, { status: { listeners } }, options);
  await world.client.patch(routes, { name: domain, namespace: 'moorage-apps' }, { status: { parents } }, options);
}

test('a domain is pending until DNS has its record, and active once the gateway has its certificate', async () => {
  await add('one');
  await awaitState('one', 'Pending');
  assert.equal(await readRoute(), undefined);
  await publish('one');
  await writeControl(await readApp('one'), ({ domains = [] }) => ({
    domains: domains.map((each) => ({ ...each, checkAfter: new Date().toISOString() })),
  }));
  await awaitState('one', 'Issuing');
  await issue('one');
  const { provenBy } = await awaitState('one', 'Active');
  assert.equal(provenBy, 'txt');
  const route = await readRoute();
  assert.equal(route?.metadata.ownerReferences?.[0]?.name, 'one');
  assert.equal(
    (await readApp('one')).status?.conditions?.some(({ reason }) => reason === 'Refused'),
    false,
  );
});

test('DNS that fails takes nothing away, and an operator that was killed continues where it was', async () => {
  dns.failing.add(`_moorage.${domain}`);
  await waitFor('the failure', async () => (await readApp('one')).status?.domains?.[0]?.lookupError === 'ESERVFAIL');
  assert.equal((await awaitState('one', 'Active')).lostAt, undefined);
  await operator.kill();
  await world.removeLease();
  dns.failing.clear();
  operator = world.startOperator(variables);
  await waitFor('an answer', async () => (await readApp('one')).status?.domains?.[0]?.lookupError === undefined);
  assert.equal((await awaitState('one', 'Active')).lostAt, undefined);
});

test('another app gets the domain once the record names it, and the first one loses Gateway and certificate', async () => {
  const before = await readGateway('one');
  await add('two');
  await awaitState('two', 'Pending');
  await publish('two');
  await waitFor(
    'the route of the other app',
    async () => (await readRoute())?.metadata.ownerReferences?.[0]?.name === 'two',
  );
  await awaitState('one', 'Removed');
  await issue('two');
  await awaitState('two', 'Active');
  await waitFor('the Gateway to be deleted', async () => (await readGateway('one')) === undefined);
  const secret = { name: before?.metadata.name ?? '', namespace };
  await waitFor('the certificate to be deleted', async () => (await world.client.get(secrets, secret)) === undefined);
});

test('the operator reads no Secret there, and changes no Gateway elsewhere', async () => {
  const account = await createClientAs(world.api, 'system:serviceaccount:moorage-system:moorage-operator');
  const secret = { name: (await readGateway('two'))?.metadata.name ?? '', namespace };
  await assert.rejects(account.get(secrets, secret), { status: 403 });
  const platform = { name: 'moorage', namespace: 'moorage-system' };
  const merge = { type: 'application/merge-patch+json' } as const;
  for (const call of [
    () => account.get(gateways, platform),
    () => account.patch(gateways, platform, { metadata: { labels: { a: 'b' } } }, merge),
    () => account.delete(gateways, platform),
  ])
    await assert.rejects(call, { status: 403 });
  account.close();
});

test('an app that is deleted leaves no Gateway and no certificate', async () => {
  const gateway = (await readGateway('two')) ?? assert.fail('no Gateway');
  const { name } = gateway.metadata;
  await world.client.delete(hostedApps, { name: 'two', namespace: 'moorage-apps' });
  await waitFor('the app to be gone', async () => (await world.app('two')) === undefined);
  assert.equal(await world.client.get(gateways, { name, namespace }), undefined);
  assert.equal(await world.client.get(secrets, { name, namespace }), undefined);
});
