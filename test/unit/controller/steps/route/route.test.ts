// The routes of an app with several components: a rule for each path, a host name for each subdomain, and none that is left.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { HostedApp } from '../../../../../crds/hosted-app.ts';
import type { HttpRoute } from '../../../../../controller/objects/kinds.ts';
import type { Action } from '../../../../../controller/reconcile/outcome.ts';
import { buildRoute } from '../../../../../controller/steps/route/route.ts';
import type { Snapshot } from '../../../../../controller/reconcile/snapshot.ts';
import { computeHash } from '../../../../../lib/kubernetes/index.ts';
import {
  app,
  config,
  createApplied,
  createBuiltStatus,
  createSnapshot,
  decideStatus,
  first,
  second,
  toObject,
} from '../../../../support/operator/scenario.ts';
import { components, compositePod, createComposite, listImages } from '../../../../support/operator/components.ts';

interface Rule {
  readonly matches: { readonly path: { readonly value: string } }[];
  readonly filters?: { readonly type: string; readonly urlRewrite?: object }[];
  readonly backendRefs: { readonly name: string; readonly port: number }[];
}

function listRoutes(of: HostedApp, rest: Partial<Snapshot> = {}): Map<string, { hostnames: string[]; rules: Rule[] }> {
  const actions = decideStatus(createSnapshot(of, rest)).decision.actions.map(({ action }) => action);
  const applied = actions.flatMap((action) =>
    action.kind === 'apply' && action.manifest.kind === 'HTTPRoute' ? [action.manifest] : [],
  );
  return new Map(applied.map((manifest) => [manifest.metadata.name, manifest['spec'] as never]));
}

const describe = ({ matches, backendRefs: [backend], filters = [] }: Rule): unknown[] => [
  matches.map(({ path }) => path.value).join(' '),
  `${backend?.name ?? ''}:${backend?.port === 80 ? '80' : 'own'}`,
  filters.some(({ urlRewrite }) => urlRewrite !== undefined),
];

test('an app of one process keeps the route of earlier versions', () => {
  assert.equal(computeHash(buildRoute(app({}, createBuiltStatus(first)), config, false)), '7549d0ed297fc2bc');
});

test('has a rule for each path, the longest first, and removes the path where that is wanted', () => {
  const route = listRoutes(createComposite(first)).get('hello');
  assert.deepEqual(route?.rules.map(describe), [
    ['/api', 'hello:own', true],
    ['/', 'hello:80', false],
  ]);
  const rewrite = route.rules[0]?.filters?.find(({ type }) => type === 'URLRewrite')?.urlRewrite;
  assert.deepEqual(rewrite, { path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/' } });
});

test('has all paths of a component, and removes only the first one', () => {
  const listPaths = (route: object): unknown[] | undefined =>
    listRoutes(createComposite(first, { list: [components[0], { ...components[1], route }, components[2]] }))
      .get('hello')
      ?.rules.map(describe);
  assert.deepEqual(listPaths({ path: '/api', stripPath: true, morePaths: ['/ws', '/auth'] }), [
    ['/api', 'hello:own', true],
    ['/ws /auth', 'hello:own', false],
    ['/', 'hello:80', false],
  ]);
  assert.deepEqual(listPaths({ path: '/api', morePaths: ['/ws'] }), [
    ['/api /ws', 'hello:own', false],
    ['/', 'hello:80', false],
  ]);
});

test('all host names of a protected app and of a preview lead to the activator, whether it may rest or not', () => {
  const of = createComposite(first, { list: withDocs, images: docsImages });
  const open = listRoutes(of);
  for (const guarded of [
    { control: { access: 'key' } },
    { previewOf: { app: 'hello', reference: 'refs/pull/1/head' } },
  ] as const) {
    const routes = listRoutes({ ...of, spec: { ...of.spec, ...guarded } });
    assert.deepEqual([...routes.keys()], ['hello', 'hello--docs']);
    for (const [name, { rules }] of routes) {
      assert.deepEqual(rules.map(describe), [['/', 'moorage-activator:80', false]], name);
      assert.notDeepEqual(open.get(name)?.rules.map(describe), rules.map(describe));
    }
  }
});

const withDocs = [...components, { name: 'docs', kind: 'web', route: { subdomain: 'docs' }, port: 4000 }];
const docsImages = listImages({ web: 'a', api: 'c', worker: 'c', docs: 'd' }, { web: 3000, api: 8000, docs: 4000 });

test('a component with a subdomain has a route and a host name that is one label', () => {
  const routes = listRoutes(createComposite(first, { list: withDocs, images: docsImages }));
  assert.deepEqual([...routes.keys()], ['hello', 'hello--docs']);
  assert.deepEqual(routes.get('hello--docs')?.hostnames, ['hello--docs.apps.test']);
  assert.deepEqual(routes.get('hello--docs')?.rules.map(describe), [['/', 'hello:own', false]]);
  assert.equal(routes.get('hello')?.rules.length, 2);
});

test('is routed once the gateway has accepted all its host names', () => {
  const of = createComposite(first, { list: withDocs, images: docsImages });
  const { decision } = decideStatus(createSnapshot(of));
  const accepted = {
    parents: [{ parentRef: { name: 'moorage', namespace: 'moorage-system' }, conditions: conditions() }],
  };
  const made = decision.actions.flatMap(({ action }): HttpRoute[] =>
    action.kind === 'apply' && action.manifest.kind === 'HTTPRoute' ? [toObject(action.manifest, accepted)] : [],
  );
  const judge = (rest: Partial<Snapshot>): string =>
    decideStatus(createSnapshot(of, rest)).status.conditions?.find(({ type }) => type === 'Routed')?.reason ?? '';
  const [route, docs] = made;
  assert.ok(route !== undefined && docs !== undefined);
  assert.equal(judge({ route }), 'RoutePending');
  assert.equal(judge({ route, componentRoutes: [docs] }), 'Routed');
});

function conditions(): { type: string; status: 'True'; observedGeneration: number }[] {
  return ['Accepted', 'ResolvedRefs'].map((type) => ({ type, status: 'True', observedGeneration: 2 }));
}

test('removes the route of a component that is gone', () => {
  const before = createComposite(first, { list: withDocs, images: docsImages });
  const old = decideStatus(createSnapshot(before)).decision.actions.flatMap(({ action }): HttpRoute[] =>
    action.kind === 'apply' && action.manifest.metadata.name === 'hello--docs' ? [toObject(action.manifest)] : [],
  );
  const { actions } = decideStatus(createSnapshot(createComposite(first), { componentRoutes: old })).decision;
  const removed = actions
    .map(({ action }) => action)
    .filter((action): action is Extract<Action, { kind: 'delete' }> => action.kind === 'delete');
  assert.deepEqual(
    removed.map(({ object }) => object.metadata.name),
    ['hello--docs'],
  );
});

test('keeps the paths of the release that serves until a pod of the newer one is ready', () => {
  const before = createComposite(first);
  const deployed = createApplied(decideStatus(createSnapshot(before)).decision, 'Deployment');
  const serving = compositePod(deployed);
  const list = [components[0], { ...components[1], route: { path: '/v2' } }, components[2]];
  const next = createComposite(second, { list });
  const rolling = createApplied(decideStatus(createSnapshot(next, { pods: [serving] })).decision, 'Deployment');
  const paths = (pods: Snapshot['pods']): unknown[] | undefined =>
    listRoutes(next, { deployment: rolling, pods })
      .get('hello')
      ?.rules.map(({ matches }) => matches[0]?.path.value);
  const starting = compositePod(rolling, { web: { ready: false } });
  const renamed = { ...starting, metadata: { ...starting.metadata, name: 'hello-2', uid: 'hello-2' } };
  assert.deepEqual(paths([serving, renamed]), ['/api', '/']);
  const ready = compositePod(rolling);
  assert.deepEqual(paths([serving, ready]), ['/v2', '/']);
});

test('an app behind the activator has one rule for each host name, since the activator chooses the component', () => {
  const volumes = [{ name: 'data', path: '/data' }];
  const list = [{ ...components[0], volumes }, ...withDocs.slice(1)];
  const of = createComposite(first, { list, images: docsImages });
  const idle = { ...config, idle: { after: '15m' } } as never;
  const routes = listRoutes(of, { config: idle });
  assert.deepEqual(
    [...routes.values()].map(({ rules }) => rules.map(({ backendRefs }) => backendRefs[0]?.name)),
    [['moorage-activator'], ['moorage-activator']],
  );
});

test("opens the policy to the ports of web components, and not to a worker's", () => {
  const list = [components[0], components[1], { ...components[2], port: 9100 }];
  const of = createComposite(first, { list });
  const policy = decideStatus(createSnapshot(of))
    .decision.actions.map(({ action }) => action)
    .find((action) => action.kind === 'apply' && action.manifest.kind === 'NetworkPolicy');
  assert.ok(policy?.kind === 'apply');
  const { ingress } = policy.manifest['spec'] as { ingress: { ports: { port: number }[] }[] };
  assert.deepEqual(
    ingress[0]?.ports.map(({ port }) => port),
    [3000, 8000],
  );
});
