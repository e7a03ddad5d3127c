// What the operator does about an app that its author has renamed: a route at each name, and the new address is published once
// it is reached. Nothing else moves.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { HostedApp } from '../../../../../crds/hosted-app.ts';
import { renameTo } from '../../../../../crds/slugs.ts';
import type { HttpRoute } from '../../../../../controller/objects/kinds.ts';
import type { Action } from '../../../../../controller/reconcile/outcome.ts';
import type { Snapshot } from '../../../../../controller/reconcile/snapshot.ts';
import { annotations } from '../../../../../crds/names.ts';
import type { Manifest } from '../../../../../lib/kubernetes/index.ts';
import {
  app,
  config,
  createDeployed,
  createLiveStatus,
  createSnapshot,
  decideStatus,
  first,
  formatTime,
  now,
  toObject,
} from '../../../../support/operator/scenario.ts';

const run = { env: [{ name: 'SITE', value: '${{app.url}}' }] };
const before = app({ run }, createLiveStatus(first, { url: 'https://hello.apps.test/' }));
const renamed: HostedApp = {
  ...before,
  spec: {
    ...before.spec,
    control: { ...renameTo(before, 'shop', now), formerSlugs: [...renameTo(before, 'shop', now).formerSlugs] },
  },
};
const activated = { ...config, idle: {} };

interface RouteSpec {
  readonly hostnames: readonly string[];
  readonly rules: readonly { readonly backendRefs: readonly { readonly name: string }[] }[];
}

function listManifests(of: HostedApp, rest: Partial<Snapshot>): Manifest[] {
  const actions: readonly Action[] = decideStatus(createSnapshot(of, rest)).decision.actions.map(
    ({ action }) => action,
  );
  return actions.flatMap((action) => (action.kind === 'apply' || action.kind === 'create' ? [action.manifest] : []));
}

function describeRoutes(of: HostedApp, rest: Partial<Snapshot>): string[] {
  return listManifests(of, rest)
    .filter(({ kind }) => kind === 'HTTPRoute')
    .map(({ metadata, spec }) => {
      const { hostnames, rules } = spec as RouteSpec;
      const backends = rules.flatMap(({ backendRefs }) => backendRefs.map(({ name }) => name));
      return `${metadata.name}: ${hostnames.join()} to ${backends.join()}`;
    });
}

/** A route that the gateway accepted this many seconds ago. */
function accept(manifest: Manifest, seconds: number): HttpRoute {
  const conditions = ['Accepted', 'ResolvedRefs'].map((type) => ({
    ...{ type, status: 'True', observedGeneration: 2, lastTransitionTime: formatTime(-seconds) },
  }));
  const parents = [{ parentRef: { name: 'moorage', namespace: 'moorage-system' }, conditions }];
  return toObject(manifest, { parents });
}

/** What the operator applies to a route that exists, if another app could have it. */
function bind(manifest: Manifest): Manifest {
  const metadata = { ...manifest.metadata, uid: 'HTTPRoute-uid' };
  return manifest.metadata.name === 'shop' ? { ...manifest, metadata } : manifest;
}

/** The renamed app, whose routes were accepted this many seconds ago. */
function createMoved(seconds: number, rest: Partial<Snapshot> = {}): Partial<Snapshot> {
  const deployed = createDeployed(renamed, undefined, undefined, { config: activated });
  const routes = listManifests(renamed, { ...deployed, config: activated }).filter(({ kind }) => kind === 'HTTPRoute');
  const [route, ...componentRoutes] = routes.map((manifest) => accept(bind(manifest), seconds));
  return { ...deployed, config: activated, route, componentRoutes, ...rest };
}

test('a renamed app has a route at its new name, and the former name leads to the activator', () => {
  assert.deepEqual(describeRoutes(renamed, { config: activated }), [
    'shop: shop.apps.test to hello',
    'hello: hello.apps.test to moorage-activator',
  ]);
});

test('without an activator, the app still answers at its former name', () => {
  assert.deepEqual(describeRoutes(renamed, {}), ['shop: shop.apps.test to hello', 'hello: hello.apps.test to hello']);
});

test('the route of a former name is removed when it ends', () => {
  const until = formatTime(-1);
  const ended = {
    ...renamed,
    spec: { ...renamed.spec, control: { slug: 'shop', formerSlugs: [{ name: 'hello', until }] } },
  };
  const moved = createMoved(60);
  const { actions } = decideStatus(createSnapshot(ended, moved)).decision;
  const removed = actions.flatMap(({ action }) => (action.kind === 'delete' ? [action.object.metadata.name] : []));
  assert.deepEqual(removed, ['hello']);
});

test('attack: a route of another app is never written, and one that is not seen yet is only created', () => {
  const kinds = (rest: Partial<Snapshot>): string[] => {
    const { actions } = decideStatus(createSnapshot(renamed, { config: activated, ...rest })).decision;
    return actions.flatMap(({ action }) =>
      'manifest' in action && action.manifest.kind === 'HTTPRoute'
        ? [`${action.kind} ${action.manifest.metadata.name}`]
        : [],
    );
  };
  assert.deepEqual(kinds({}), ['create shop', 'apply hello']);
  const { route } = createMoved(60);
  assert.ok(route !== undefined);
  const owner = { apiVersion: 'moorage.dev/v1alpha1', kind: 'HostedApp', name: 'other', uid: 'uid-2' };
  const taken = { ...route, metadata: { ...route.metadata, ownerReferences: [owner] } };
  assert.deepEqual(kinds({ route: taken }), ['apply hello']);
  const { status, conditions } = decideStatus(createSnapshot(renamed, createMoved(60, { route: taken })));
  assert.ok(conditions.includes('Routed=False RouteRefused'), conditions.join());
  assert.equal(status.url, 'https://hello.apps.test/');
});

test('every object but the routes keeps its name, and the app learns its new address', () => {
  const list = (of: HostedApp): Manifest[] => listManifests(of, {}).filter(({ kind }) => kind !== 'HTTPRoute');
  const name = ({ kind, metadata }: Manifest): string => `${kind} ${metadata.name}`;
  assert.deepEqual(list(renamed).map(name), list(before).map(name));
  assert.match(JSON.stringify(list(before)), /"https:\/\/hello\.apps\.test"/);
  assert.match(JSON.stringify(list(renamed)), /"https:\/\/shop\.apps\.test"/);
});

test('the former address stays published until the gateway has had the time to apply the new route', () => {
  const [early, late] = [1, 10].map(
    (seconds) => decideStatus(createSnapshot(renamed, createMoved(seconds))).status.url,
  );
  assert.deepEqual([early, late], ['https://hello.apps.test/', 'https://shop.apps.test/']);
});

test('where apps are probed, the former address stays published until the new one responds', () => {
  const probed = { ...activated, probeUrl: 'https://gateway.test' };
  const decideUrl = (probe: Snapshot['probe']): (string | undefined)[] => {
    const { status, decision } = decideStatus(createSnapshot(renamed, createMoved(60, { config: probed, probe })));
    const hosts = decision.actions.flatMap(({ action }) => (action.kind === 'probe' ? [action.host] : []));
    return [status.url, ...hosts];
  };
  assert.deepEqual(decideUrl(undefined), ['https://hello.apps.test/', 'shop.apps.test']);
  const missing = { responds: false, isDoubtful: true, status: 404, detail: 'the response was HTTP 404' };
  assert.deepEqual(decideUrl(missing), ['https://hello.apps.test/']);
  assert.deepEqual(decideUrl({ responds: true, status: 200, detail: 'the response was HTTP 200' }), [
    'https://shop.apps.test/',
  ]);
});

test('the address that the gateway does not have yet rejects no release, and is probed again in a moment', () => {
  const probed = { ...activated, probeUrl: 'https://gateway.test' };
  const probe = { responds: false, isDoubtful: true, status: 404, detail: 'the response was HTTP 404' };
  const moved = createMoved(60, { config: probed, probe });
  const template = moved.pods?.[0]?.metadata.annotations?.[annotations.template] ?? '';
  const answer = { template, commit: first, answeredAt: formatTime(-40) };
  const release = { ...renamed, status: { ...renamed.status, answer } };
  const { status, decision } = decideStatus(createSnapshot(release, moved));
  assert.deepEqual(status.answer, answer);
  assert.equal(status.rejection, undefined);
  assert.equal(decision.outcomes.Published?.afterMs, 1_000);
  const kinds = decision.actions.map(({ action }) => action.kind);
  assert.ok(!kinds.includes('probe'), kinds.join());
});

test('an app whose new route is not accepted yet stays live at its former address', () => {
  const moved = createMoved(60, { route: undefined });
  const { status } = decideStatus(createSnapshot(renamed, moved));
  assert.equal(status.url, 'https://hello.apps.test/');
  assert.equal(status.served?.commit, first);
});
