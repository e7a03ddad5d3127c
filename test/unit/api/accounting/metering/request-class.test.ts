// The rule of classes, as a table.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { GatewayRecord } from '../../../../../api/accounting/metering/gateway-record.ts';
import {
  classify,
  compileFreeRule,
  createHostIndex,
  createVisitorResolver,
  type HostKind,
  type RequestClass,
} from '../../../../../api/accounting/metering/request-class.ts';
import { identifyCaller } from '../../../../../api/http/index.ts';
import { createBlockList } from '../../../../../lib/subnets.ts';
import { sampleApp, sampleApps, site } from '../../../../support/api/sample.ts';

const record: GatewayRecord = {
  counter: 1n,
  startNs: 0n,
  endNs: 1n,
  host: 'hello.apps.test',
  path: '/',
  method: 'GET',
  status: 200,
  bytesIn: 0,
  bytesOut: 10,
  client: '203.0.113.7',
  userAgent: 'Mozilla/5.0',
  destination: '',
  wake: '',
  isLost: false,
};
const isFree = compileFreeRule([{ path: '/free/**' }, { statuses: ['404'] }, { path: '/api/*', statuses: ['4xx'] }]);
const app: HostKind = { kind: 'app', app: { slug: 'hello', healthPaths: ['/healthz'], submitter: 'author', isFree } };
const unowned: HostKind = {
  kind: 'app',
  app: { slug: 'hello', healthPaths: ['/healthz'], submitter: undefined, isFree },
};

const table: readonly (readonly [RequestClass, Partial<GatewayRecord>, (HostKind | 'inside' | 'author')?])[] = [
  ['use', {}],
  ['use', { method: 'POST', path: '/api/run', status: 201 }],
  ['use', { path: '/page', destination: 'document' }],
  ['use', { path: '/data.json', destination: 'empty' }],
  // The browser says that it is a page, whatever its name.
  ['use', { path: '/picture.png', destination: 'document' }],
  ['use', { method: 'POST', path: '/upload.png' }],
  ['use', { path: '/missing', status: 403 }],
  ['asset', { path: '/main.JS' }],
  ['asset', { path: '/x', destination: 'script' }],
  ['asset', { path: '/f.woff2', method: 'HEAD' }],
  ['asset', { path: '/page', status: 304 }],
  ['health', { path: '/healthz' }],
  ['use', { path: '/healthz', method: 'POST' }],
  ['preflight', { method: 'OPTIONS' }],
  ['failed', { status: 502 }],
  ['failed', { status: 0 }],
  ['free', { path: '/free/a/b' }],
  ['free', { path: '/gone', status: 404 }],
  ['free', { path: '/api/one', status: 401 }],
  ['use', { path: '/api/one/two', status: 401 }],
  ['use', { path: '/api/one', status: 200 }],
  ['wake', { wake: 'page', status: 503 }],
  ['probe', { userAgent: 'moorage-operator' }, 'inside'],
  ['probe', { userAgent: 'moorage-bench', path: '/free/x' }, 'inside'],
  ['call', { userAgent: 'moorage-api' }, 'inside'],
  // Anybody can call himself so.
  ['use', { userAgent: 'moorage-operator' }],
  ['own', {}, 'author'],
  ['own', { method: 'POST', path: '/api/run', status: 201 }, 'author'],
  ['asset', { path: '/main.js' }, 'author'],
  ['free', { path: '/free/a' }, 'author'],
  // Made by the operator of the installation: nobody submitted it.
  ['use', {}, unowned],
  ['refused', { path: '/main.js' }, { kind: 'unknown' }],
  ['platform', {}, { kind: 'platform' }],
];

test.each(table.map(([expected, changes, host = app]) => ({ expected, changes, host })))(
  '$expected: $changes',
  ({ expected, changes, host }) => {
    const visitor = { isInside: host === 'inside', submitter: host === 'author' ? 'author' : 'somebody' };
    assert.equal(classify({ ...record, ...changes }, typeof host === 'string' ? app : host, visitor), expected);
  },
);

test('the app of a host is found with the settings of its author, and again once it has changed', () => {
  const hello = sampleApp('hello');
  const { apps, store } = sampleApps(hello);
  const hostOf = createHostIndex({ apps, site, platformHost: 'moorage.test' });
  const slugOf = (host: string): string => {
    const found = hostOf(host);
    return found.kind === 'app' ? found.app.slug : found.kind;
  };
  assert.deepEqual(
    ['hello.apps.test', 'other.apps.test', 'a.hello.apps.test', 'apps.test', 'moorage.test', ''].map(slugOf),
    ['hello', 'unknown', 'unknown', 'unknown', 'platform', 'unknown'],
  );
  const free = (): boolean => {
    const found = hostOf('hello.apps.test');
    return found.kind === 'app' && found.app.isFree('/docs/a', 200);
  };
  assert.equal(free(), false);
  const values = JSON.stringify({ metering: { free: [{ path: '/docs/**' }] } });
  store.set({
    ...hello,
    status: { settings: { commit: 'c', values } },
    metadata: { ...hello.metadata, resourceVersion: '2' },
  });
  assert.equal(free(), true);
});

test("a component's own host name counts for its app, and its health path is known as visitors request it", () => {
  const hello = sampleApp('hello');
  const values = JSON.stringify({
    components: [
      { name: 'web', kind: 'web', path: '.', healthPath: '/up' },
      { name: 'api', kind: 'web', path: '.', healthPath: '/ready', route: { path: '/api', stripPath: true } },
      { name: 'docs', kind: 'web', path: '.', route: { subdomain: 'docs' } },
      { name: 'jobs', kind: 'worker', path: '.', port: 9000, healthPath: '/pricing' },
    ],
  });
  const { apps } = sampleApps({ ...hello, status: { settings: { commit: 'c', values } } });
  const hostOf = createHostIndex({ apps, site, platformHost: 'moorage.test' });
  const found = hostOf('hello--docs.apps.test');
  assert.ok(found.kind === 'app');
  assert.equal(found.app.slug, 'hello');
  assert.deepEqual(found.app.healthPaths, ['/up', '/api/ready']);
  assert.equal(hostOf('hello.apps.test').kind, 'app');
  assert.deepEqual(
    ['hello--other.apps.test', 'other--docs.apps.test'].map((host) => hostOf(host).kind),
    ['unknown', 'unknown'],
  );
});

test('who submitted an app without a key is known by his address, behind a proxy and from day to day', () => {
  const rules = { salt: 'salt', trustedProxies: createBlockList(['10.0.0.0/8']) };
  const clues = { peer: '10.0.0.1', forwardedFor: '203.0.113.7', authorization: undefined };
  const { hash } = identifyCaller(clues, rules);
  const { apps } = sampleApps(sampleApp('hello', undefined, undefined, { 'moorage.dev/caller': hash }));
  const host = createHostIndex({ apps, site, platformHost: 'moorage.test' })('hello.apps.test');
  const visitorOf = createVisitorResolver(rules);
  const classes = ['203.0.113.7, 10.0.0.1', '203.0.113.99', '198.51.100.7'].map((client) =>
    ['2026-01-01', '2026-01-02'].map((day) => classify(record, host, visitorOf(client, day))),
  );
  assert.deepEqual(classes, [
    ['own', 'own'],
    // Of one network: its addresses are one caller.
    ['own', 'own'],
    ['use', 'use'],
  ]);
  const { hash: name, submitter } = visitorOf('203.0.113.7', '2026-01-01');
  assert.ok(submitter === hash && name !== hash);
});

test('a path that a visitor chose costs no more than its length', () => {
  const rule = compileFreeRule([{ path: '/**a**a**a**a**a**b' }]);
  assert.equal(rule(`/${'a'.repeat(2_000)}`, 200), false);
});
