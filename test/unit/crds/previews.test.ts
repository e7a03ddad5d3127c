// What gets a preview, what it is called, and what it may have.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { appManifest } from '../../../crds/app-manifest.ts';
import { resolveSpec } from '../../../crds/effective-settings.ts';
import { isReserved, parseHostLabel, previewNamePattern, slugPattern } from '../../../crds/names.ts';
import { choosePreviews, formatPreviewName, isChosenBranch, parsePullReference } from '../../../crds/previews.ts';

const commit = 'a'.repeat(40);
const slug = fc.stringMatching(new RegExp(slugPattern)).filter((name) => !isReserved(name));
const branch = fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9._/-]{0,80}$/);
const reference = fc.oneof(
  branch.map((name) => `refs/heads/${name}`),
  fc.integer({ min: 1, max: 999_999_999 }).map((number) => `refs/pull/${number}/head`),
  fc.integer({ min: 1, max: 999_999_999 }).map((number) => `refs/merge-requests/${number}/head`),
);

test('names a preview so that no app has the name, and no other reference of the app', () => {
  fc.assert(
    fc.property(slug, reference, reference, (app, one, other) => {
      const name = formatPreviewName(app, one);
      assert.match(name, new RegExp(slugPattern));
      assert.match(name, new RegExp(previewNamePattern));
      assert.ok(isReserved(name));
      assert.deepEqual(parseHostLabel(name), { app: name, subdomain: undefined });
      assert.deepEqual(parseHostLabel(`${name}--api`), { app: name, subdomain: 'api' });
      if (one !== other) assert.notEqual(formatPreviewName(app, other), name);
    }),
    { numRuns: 2_000 },
  );
});

test.each([
  ['hello', 'refs/pull/12/head', 'hello--pr-12'],
  ['hello', 'refs/merge-requests/3/head', 'hello--mr-3'],
  ['hello', 'refs/heads/login', 'hello--br-login'],
  ['hello', 'refs/heads/feature/login', 'hello--br-feature-3d0a5e'],
  ['hello', 'refs/heads/---', 'hello--br-cb3f91'],
])('calls the preview of %s at %s %s', (app, name, expected) => {
  assert.equal(formatPreviewName(app, name).replace(/[0-9a-f]{6}$/, ''), expected.replace(/[0-9a-f]{6}$/, ''));
});

test('distinguishes a component of an app from a preview of it by the host name', () => {
  assert.deepEqual(parseHostLabel('hello--api'), { app: 'hello', subdomain: 'api' });
  assert.deepEqual(parseHostLabel('hello--pr-1'), { app: 'hello--pr-1', subdomain: undefined });
  const component = { name: 'api', kind: 'web', route: { path: '/', subdomain: 'pr-1' } };
  const main = { name: 'web', kind: 'web' };
  const result = appManifest.safeParse({ components: [main, component] });
  assert.match(result.error?.message ?? '', /those of previews/);
});

test.each([
  ['refs/heads/feature/login', ['feature/*'], true],
  ['refs/heads/feature', ['feature/*'], false],
  ['refs/heads/a-b-c', ['a*b*c'], true],
  ['refs/heads/abab', ['ab*ab'], true],
  ['refs/heads/aba', ['ab*ba'], false],
  ['refs/heads/refs/pull/1/head', ['refs/*'], true],
  ['refs/tags/feature/login', ['*'], false],
  ['refs/pull/1/head', ['*'], false],
])('decides whether %s is chosen by %j: %s', (name, patterns, isChosen) => {
  assert.equal(isChosenBranch(name, patterns), isChosen);
});

test('takes no branch for a pull request', () => {
  for (const name of ['refs/heads/refs/pull/1/head', 'refs/pull/1/merge', 'refs/pull/01/head', 'refs/pull/1/head/x'])
    assert.equal(parsePullReference(name), undefined);
});

test('chooses branches first, then the newest pull requests, up to the limit', () => {
  const names = ['refs/pull/9/head', 'refs/pull/10/head', 'refs/heads/main', 'refs/heads/next', 'refs/pull/2/head'];
  const references = names.map((name) => ({ name, commit }));
  const choose = (limit: number, pullRequests = true): string[] =>
    choosePreviews(references, { pullRequests, branches: ['*'], limit }, 'refs/heads/main').map(({ name }) => name);
  assert.deepEqual(choose(3), ['refs/heads/next', 'refs/pull/10/head', 'refs/pull/9/head']);
  assert.deepEqual(choose(5, false), ['refs/heads/next']);
});

const harmless = {
  source: { repo: 'https://github.com/owner/hello', revision: commit },
  models: { enabled: false, dailyBudgetUsd: '0' },
  agents: { enabled: false },
  author: { share: '0' },
  previewOf: { app: 'hello', reference: 'refs/pull/1/head' },
};

test('attack: the moorage.yaml of a pull request sets nothing but how the preview is built and runs', () => {
  const settings = appManifest.parse({
    previews: { pullRequests: true, branches: ['*'], limit: 5 },
    author: { contact: 'mallory@example.org' },
    agents: { enabled: true },
    listing: { title: 'Free money' },
    metering: { free: [{ path: '/**' }] },
    services: [{ name: 'db', type: 'postgres' }],
    tasks: [{ name: 'clean', command: ['true'], schedule: '* * * * *' }],
    run: { resources: { memory: '2Gi' }, idleAfter: '24h', volumes: [{ name: 'data', path: '/data', size: '5Gi' }] },
    build: { resources: { cpu: '4' }, timeout: '1h' },
  });
  const stored = {
    ...harmless,
    build: { resources: { cpu: '1' }, timeout: '5m' },
    run: { resources: { memory: '256Mi' }, idleAfter: '10m' },
    services: [],
  };
  const { previews, author, agents, listing, metering, services, tasks, run, build } = resolveSpec(
    { spec: stored },
    settings,
  );
  assert.deepEqual(previews, { pullRequests: false, branches: [], limit: 3 });
  assert.deepEqual([author.contact, agents.enabled, listing.title], [undefined, false, undefined]);
  assert.deepEqual([metering.free, services, tasks], [[], [], []]);
  assert.deepEqual([run.resources.memory, run.idleAfter, run.volumes[0]?.size], ['256Mi', '10m', '1Gi']);
  assert.deepEqual([build.resources.cpu, build.timeout], ['1', '5m']);
});

test('a preview runs nothing on a schedule', () => {
  const settings = appManifest.parse({
    components: [
      { name: 'web', kind: 'web' },
      { name: 'migrate', kind: 'task', command: ['true'] },
      { name: 'mails', kind: 'cron', schedule: '* * * * *', command: ['send'] },
    ],
  });
  const { components } = resolveSpec({ spec: harmless }, settings);
  assert.deepEqual(
    components.map(({ name }) => name),
    ['web', 'migrate'],
  );
});
