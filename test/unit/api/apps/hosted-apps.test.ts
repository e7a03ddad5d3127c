// The cache of apps as the API reads it: all of them in the order of their age, sorted again only after a change.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createAppIndex, findNewApp, readRepository, type App } from '../../../../api/apps/hosted-apps.ts';
import { namespace, sampleApp, sampleApps } from '../../../support/api/sample.ts';

const made = (name: string, creationTimestamp: string, resourceVersion = '1'): App => {
  const app = sampleApp(name);
  return { ...app, metadata: { ...app.metadata, creationTimestamp, resourceVersion } };
};
const names = (apps: readonly App[]): string[] => apps.map(({ metadata }) => metadata.name);

test('lists the oldest apps first, and apps of the same age by name', () => {
  const { apps } = sampleApps(
    made('young', '2026-03-01T00:00:00Z'),
    made('b', '2026-01-01T00:00:00Z'),
    made('a', '2026-01-01T00:00:00Z'),
  );
  assert.deepEqual(names(apps.listAll()), ['a', 'b', 'young']);
});

test('returns the same list until an app is added, changed or removed', () => {
  const { store, apps } = sampleApps(made('a', '2026-01-01T00:00:00Z'));
  const first = apps.listAll();
  assert.equal(apps.listAll(), first);
  store.set(made('b', '2026-01-02T00:00:00Z'));
  assert.deepEqual(names(apps.listAll()), ['a', 'b']);
  const second = apps.listAll();
  store.set(made('a', '2026-01-01T00:00:00Z', '2'));
  assert.notEqual(apps.listAll(), second);
  store.remove(made('b', '2026-01-02T00:00:00Z'));
  assert.deepEqual(names(apps.listAll()), ['a']);
  assert.deepEqual(names(first), ['a']);
});

test('lists the new state to subscribers of a change', () => {
  const { store } = sampleApps();
  const seen: string[][] = [];
  let all = (): readonly App[] => [];
  store.subscribe(() => seen.push(names(all())));
  const apps = createAppIndex(store, namespace);
  all = () => apps.listAll();
  assert.deepEqual(names(apps.listAll()), []);
  store.set(made('a', '2026-01-01T00:00:00Z'));
  assert.deepEqual(seen, [['a']]);
});

test('finds an app that another replica has just created, and no other', async () => {
  const { store, apps } = sampleApps();
  const app = sampleApp('late');
  const { owner, name, host } = readRepository(app);
  const hosts = { allowed: [host], insecure: [] };
  const finding = findNewApp(apps, hosts, { owner, name });
  store.set(sampleApp('other', 'https://example.org/someone/else'));
  store.set(app);
  assert.equal(await finding, app);
  await assert.rejects(findNewApp(apps, hosts, { owner, name: 'absent' }), /has not been submitted/);
});
