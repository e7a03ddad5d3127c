// The HostedApp wins over moorage.yaml, and moorage.yaml over the defaults.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { appManifest } from '../../../crds/app-manifest.ts';
import { spec as specSchema, type HostedAppSpec } from '../../../crds/hosted-app.ts';
import { effectiveSettings, readSettings, withSettings } from '../../../crds/effective-settings.ts';

const spec = (fields: object = {}): HostedAppSpec =>
  specSchema.parse({ source: { repo: 'https://git.example/a/b' }, ...fields });

test('a field at its default takes what the file says, any other keeps what it has', () => {
  const settings = appManifest.parse({
    run: { port: 3000, resources: { memory: '1Gi', cpu: '2' } },
    listing: { title: 'Mine' },
  });
  const merged = withSettings(spec({ run: { resources: { memory: '128Mi' } }, listing: { title: 'Given' } }), settings);
  assert.deepEqual(
    [merged.run.port, merged.run.resources, merged.listing.title],
    [3000, { cpu: '2', memory: '128Mi', disk: '1Gi' }, 'Given'],
  );
});

test('what the file cannot say is never touched', () => {
  const given = spec({ author: { share: '0.5' }, suspend: true, run: { replicas: 0 } });
  const merged = withSettings(given, appManifest.parse({ run: { port: 1 } }));
  assert.deepEqual({ ...merged, run: undefined }, { ...given, run: undefined });
  assert.equal(merged.run.replicas, 0);
  assert.equal(withSettings(given, undefined), given);
});

test('variables come together by name; one that comes from a Secret is not replaced', () => {
  const given = spec({
    run: { env: [{ name: 'A', value: 'given' }], secrets: [{ name: 'KEY', secret: 's', key: 'k' }] },
  });
  const merged = withSettings(
    given,
    appManifest.parse({
      run: {
        env: [
          { name: 'A', value: 'file' },
          { name: 'B', value: 'file' },
          { name: 'KEY', value: 'file' },
        ],
      },
    }),
  );
  assert.deepEqual(merged.run.env, [
    { name: 'A', value: 'given' },
    { name: 'B', value: 'file' },
  ]);
  assert.deepEqual(specSchema.parse(merged), merged);
});

test('what holds is shown with whose word it is', () => {
  const settings = appManifest.parse({
    run: { port: 3000, env: [{ name: 'A', value: 'x'.repeat(300) }] },
    build: { resources: { memory: '8Gi' } },
  });
  const reported = effectiveSettings(spec({ run: { port: 80 } }), settings);
  assert.deepEqual(
    reported.map(({ field, from }) => `${field} ${from}`),
    ['build.resources.memory moorage.yaml', 'run.port HostedApp', 'run.env moorage.yaml'],
  );
  assert.equal(reported[1]?.value, '80');
  assert.ok(reported.every(({ value }) => value.length <= 200));
});

test('settings of a status that cannot be read are none', () => {
  for (const text of [undefined, '', '{', '[]', '{"run":{"port":"x"}}', '{"author":{"share":"1"}}'])
    assert.equal(readSettings(text), undefined);
});
