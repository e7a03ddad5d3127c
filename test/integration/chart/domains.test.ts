// Apps and API on domains of their own: listeners, certificate names and settings that the chart makes of appsDomain.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { readApiConfig } from '../../../api/config.ts';
import { node } from '../../../localnode/node/settings.ts';
import { readOperatorConfig } from '../../../controller/config.ts';
import { formatAppUrl } from '../../../crds/names.ts';
import { readEnvironment, findNamed, render, required, selectKind, type Rendered } from '../../support/chart.ts';

const gateway = z.looseObject({
  spec: z.looseObject({
    listeners: z.array(z.looseObject({ name: z.string(), hostname: z.string().optional() })),
  }),
});
const route = z.looseObject({
  spec: z.looseObject({
    hostnames: z.array(z.string()),
    parentRefs: z.array(z.looseObject({ name: z.string(), sectionName: z.string() })),
  }),
});

function listeners(objects: readonly Rendered[]): (string | undefined)[][] {
  return gateway
    .parse(findNamed(objects, 'Gateway', 'moorage'))
    .spec.listeners.map(({ name, hostname }) => [name, hostname]);
}

function hostnames(objects: readonly Rendered[], name: string): readonly string[] {
  return route.parse(findNamed(objects, 'HTTPRoute', name)).spec.hostnames;
}

/** Where both programs say that the app hello is, and where the API says that it is itself. */
function addresses(objects: readonly Rendered[]): string[] {
  const api = readApiConfig({ ...readEnvironment(objects, 'api'), MOORAGE_CALLER_SALT: 'x'.repeat(64) });
  const operator = readOperatorConfig(readEnvironment(objects, 'operator')).installation;
  return [api.baseUrl, formatAppUrl('hello', api.site), formatAppUrl('hello', operator.site)];
}

test('gives apps a separate domain, on which the API has no route', async () => {
  const objects = await render({ ...required, baseDomain: 'api.example.org', appsDomain: 'example.net' });
  assert.deepEqual(listeners(objects), [
    ['https', '*.example.net'],
    ['https-base', 'api.example.org'],
    ['http', undefined],
  ]);
  assert.deepEqual(hostnames(objects, 'moorage-api'), ['api.example.org']);
  assert.deepEqual(hostnames(objects, 'moorage-redirect'), ['api.example.org', '*.api.example.org', '*.example.net']);
  assert.deepEqual(addresses(objects), [
    'https://api.example.org',
    'https://hello.example.net/',
    'https://hello.example.net/',
  ]);
});

test('without appsDomain, apps stay below baseDomain', async () => {
  const objects = await render({ ...required, externalPort: 8443 });
  assert.deepEqual(listeners(objects)[0], ['https', '*.apps.example.org']);
  assert.deepEqual(hostnames(objects, 'moorage-redirect'), ['apps.example.org', '*.apps.example.org']);
  assert.deepEqual(addresses(objects), [
    'https://apps.example.org:8443',
    'https://hello.apps.example.org:8443/',
    'https://hello.apps.example.org:8443/',
  ]);
});

test('rejects two domains of which one is below the other, since they would share cookies', async () => {
  for (const [baseDomain, appsDomain] of [
    ['example.org', 'apps.example.org'],
    ['api.example.org', 'example.org'],
  ])
    await assert.rejects(render({ ...required, baseDomain, appsDomain }), /an app could set cookies for the API/);
  await render({ ...required, baseDomain: 'example.org', appsDomain: 'apps-example.org' });
});

test('separates them in the local cluster, whose git server is not an app', async () => {
  const local = z
    .looseObject({ gateway: z.looseObject({}) })
    .parse(parse(readFileSync('cli/values.local.yaml', 'utf8')));
  const objects = await render({ ...required, ...local });
  assert.deepEqual(listeners(objects), [
    ['https', `*.${node.appsDomain}`],
    ['https-base', node.baseDomain],
    ['https-git', `git.${node.baseDomain}`],
    ['http', undefined],
  ]);
  const [git] = parseAllDocuments(readFileSync('localnode/manifests/git-server.yaml', 'utf8'))
    .map((document) => document.toJS() as unknown)
    .flatMap((one) => route.safeParse(one).data ?? []);
  assert.deepEqual(
    [git?.spec.hostnames, git?.spec.parentRefs[0]?.sectionName],
    [[`git.${node.baseDomain}`], 'https-git'],
  );
});

test('sets HSTS for the API and apps once the installation requires it', async () => {
  const rules = z.looseObject({
    spec: z.looseObject({ rules: z.array(z.looseObject({ filters: z.unknown().optional() })) }),
  });
  const filters = (objects: readonly Rendered[]): unknown =>
    rules.parse(findNamed(objects, 'HTTPRoute', 'moorage-api')).spec.rules[0]?.filters;
  const [plain, strict] = [
    await render(required),
    await render({ ...required, gateway: { ...required.gateway, hstsSeconds: 31_536_000 } }),
  ];
  assert.equal(filters(plain), undefined);
  const set = [{ name: 'Strict-Transport-Security', value: 'max-age=31536000' }];
  assert.deepEqual(filters(strict), [{ type: 'ResponseHeaderModifier', responseHeaderModifier: { set } }]);
  const seconds = (objects: readonly Rendered[]): number =>
    readOperatorConfig(readEnvironment(objects, 'operator')).installation.gateway.hstsSeconds;
  assert.deepEqual([seconds(plain), seconds(strict)], [0, 31_536_000]);
});

test('own domains of apps need an issuer: without one there is no namespace, no right and no further redirect', async () => {
  const inDomains = (objects: readonly Rendered[]): string[] =>
    objects.flatMap(({ kind, metadata }) =>
      metadata.namespace === 'moorage-domains' || metadata.name === 'moorage-domains' ? [kind] : [],
    );
  const without = await render(required);
  assert.deepEqual(inDomains(without), []);
  assert.ok(selectKind(without, 'HTTPRoute').every(({ metadata }) => metadata.name !== 'moorage-redirect-domains'));
  assert.equal(readOperatorConfig(readEnvironment(without, 'operator')).installation.domains, undefined);
  const objects = await render({
    ...required,
    domains: { issuer: 'letsencrypt', resolvers: ['192.0.2.53', '2001:db8::53'] },
  });
  assert.deepEqual(inDomains(objects).toSorted(), ['Namespace', 'Role', 'RoleBinding']);
  const { domains } = readOperatorConfig(readEnvironment(objects, 'operator')).installation;
  assert.deepEqual(
    [domains?.issuer, domains?.resolvers, domains?.platform],
    [
      { kind: 'ClusterIssuer', name: 'letsencrypt' },
      ['192.0.2.53', '2001:db8::53'],
      ['apps.example.org', 'apps.example.org'],
    ],
  );
  const api = { ...readEnvironment(objects, 'api'), MOORAGE_CALLER_SALT: 'x'.repeat(64) };
  assert.equal(readApiConfig(api).offersDomains, true);
  // Challenges of certificate authorities and the redirect, and nothing of an app.
  assert.match(
    JSON.stringify(findNamed(objects, 'Gateway', 'moorage')),
    /"values":\["moorage-system","moorage-domains"\]/,
  );
  const policy = JSON.stringify(findNamed(objects, 'NetworkPolicy', 'moorage-operator'));
  assert.match(policy, /192[.]0[.]2[.]53\/32.*2001:db8::53\/128/);
});
