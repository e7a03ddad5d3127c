// The cache of apps as the API reads it: all of them in the order of their age, sorted again only after a change.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { App } from '../../../../api/apps/hosted-apps.ts';
import { sampleApp, sampleApps } from '../../../support/api/sample.ts';

const made = (name: string, creationTimestamp: string, resourceVersion = '1'): App => {
  const app = sampleApp(name);
  return { ...app, metadata: { ...app.metadata, creationTimestamp, resourceVersion } };
};
const names = (apps: readonly App[]): string[] => apps.map(({ metadata }) => metadata.name);

test('all apps come oldest first, those of one time by name', () => {
  const { apps } = sampleApps(
    made('young', '2026-03-01T00:00:00Z'),
    made('b', '2026-01-01T00:00:00Z'),
    made('a', '2026-01-01T00:00:00Z'),
  );
  assert.deepEqual(names(apps.all()), ['a', 'b', 'young']);
});
