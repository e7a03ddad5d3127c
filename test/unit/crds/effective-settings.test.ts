// The HostedApp wins over moorage.yaml, and moorage.yaml over the defaults.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import { appManifest, type AppManifest } from '../../../crds/app-manifest.ts';
import { applyControl } from '../../../crds/control.ts';
import {
  spec as specSchema,
  type HostedAppSpec,
  type HostedAppStatus,
  type StoredSpec,
} from '../../../crds/hosted-app.ts';
import {
  listEffectiveSettings,
  findPins,
  hasEveryDefault,
  layeredFields,
  readSettings,
  type ResolvableApp,
  resolveSpec,
  findAuthorContact,
} from '../../../crds/effective-settings.ts';

const spec = (fields: object = {}): HostedAppSpec =>
  specSchema.parse({ source: { repo: 'https://git.example/a/b' }, ...fields });

test('the file sets fields that the HostedApp does not set, and no others', () => {
  const settings = appManifest.parse({
    run: { port: 3000, resources: { memory: '1Gi', cpu: '2' } },
    listing: { title: 'Mine' },
  });
  const merged = resolveSpec(
    { spec: spec({ run: { resources: { memory: '128Mi' } }, listing: { title: 'Given' } }) },
    settings,
  );
  assert.deepEqual(
    [merged.run.port, merged.run.resources, merged.listing.title],
    [3000, { cpu: '2', memory: '128Mi', disk: '1Gi' }, 'Given'],
  );
});

test('fields outside the manifest never change', () => {
  const given = spec({ author: { share: '0.5' }, suspend: true, run: { replicas: 0 } });
  const merged = resolveSpec({ spec: given }, appManifest.parse({ run: { port: 1 } }));
  assert.deepEqual({ ...merged, run: undefined }, { ...given, run: undefined });
  assert.equal(merged.run.replicas, 0);
  assert.deepEqual(resolveSpec({ spec: given }, undefined), given);
});

const source = { repo: 'https://git.example/a/b' };
const filed = appManifest.parse({
  build: { strategy: 'python' },
  run: { resources: { memory: '1Gi' }, command: ['serve'], idle: 'nap' },
  services: [{ name: 'db', type: 'postgres' }],
  agents: { enabled: true },
});

test('a stored field wins over the file, even at its default', () => {
  const stored = {
    source,
    build: { strategy: 'auto' as const },
    run: { resources: { memory: '512Mi' }, command: [] },
    services: [],
    agents: { enabled: false },
  };
  const pins = ['build.strategy', 'run.command', 'run.resources.memory', 'services', 'agents.enabled'];
  assert.deepEqual(findPins(stored), pins);
  // The operator keeps the parsed spec, with every default, and what was pinned.
  for (const app of [{ spec: stored }, { spec: spec(stored), pinned: pins }]) {
    const { build, run, services, agents } = resolveSpec(app, filed);
    assert.deepEqual(
      [build.strategy, run.resources.memory, run.command, services, agents.enabled, run.idle],
      ['auto', '512Mi', [], [], false, 'nap'],
    );
    assert.deepEqual(
      listEffectiveSettings(app, filed).map(({ field, value, from }) => [field, value, from]),
      [
        ['build.strategy', 'auto', 'HostedApp'],
        ['run.command', '(set by the operator of this installation)', 'HostedApp'],
        ['run.idle', 'nap', 'moorage.yaml'],
        ['run.resources.memory', '512Mi', 'HostedApp'],
        ['services', '(set by the operator of this installation)', 'HostedApp'],
        ['agents.enabled', 'false', 'HostedApp'],
      ],
    );
  }
});

test('a spec without settings resolves to every default', () => {
  assert.deepEqual(resolveSpec({ spec: { source } }, undefined), spec());
  assert.deepEqual(findPins({ source }), []);
});

test('defaults stored by the CRD of earlier versions do not count as settings', () => {
  const former = spec({ run: { resources: { cpu: '2' } } });
  assert.ok(hasEveryDefault(former));
  assert.deepEqual(findPins(former), []);
  const { run, agents } = resolveSpec({ spec: former }, filed);
  assert.deepEqual([run.resources, agents.enabled], [{ cpu: '2', memory: '1Gi', disk: '1Gi' }, true]);
  assert.ok(layeredFields.length > 20);
  const { components: _, ...older } = former;
  assert.ok(hasEveryDefault(older), 'an older version had no components');
});

test('variables merge by name, and one from a Secret is not replaced', () => {
  const given = spec({
    run: { env: [{ name: 'A', value: 'given' }], secrets: [{ name: 'KEY', secret: 's', key: 'k' }] },
  });
  const merged = resolveSpec(
    { spec: given },
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

test('shows each effective value with its source', () => {
  const settings = appManifest.parse({
    run: { port: 3000, env: [{ name: 'A', value: 'x'.repeat(300) }] },
    build: { resources: { memory: '8Gi' } },
  });
  const reported = listEffectiveSettings({ spec: spec({ run: { port: 80 } }) }, settings);
  assert.deepEqual(
    reported.map(({ field, from }) => `${field} ${from}`),
    ['build.resources.memory moorage.yaml', 'run.port HostedApp', 'run.env moorage.yaml'],
  );
  assert.equal(reported[1]?.value, '80');
  assert.ok(reported.every(({ value }) => value.length <= 200));
});

test('attack: shows values of the operator of the installation only for public fields', () => {
  const secret = 'internal-name';
  const given = spec({
    source: { repo: 'https://git.example/a/b', path: secret },
    build: { dockerfile: secret, target: secret },
    run: { healthPath: `/${secret}`, volumes: [{ name: secret, path: `/${secret}` }], resources: { memory: '128Mi' } },
    agents: { openapi: `/${secret}`, mcp: `/${secret}` },
    listing: { title: 'Public' },
  });
  const settings = appManifest.parse({
    source: { path: 'app' },
    build: { dockerfile: 'Other', target: 'web' },
    run: { healthPath: '/', volumes: [{ name: 'data', path: '/data' }], resources: { memory: '1Gi' } },
    agents: { openapi: '/a', mcp: '/b' },
    listing: { title: 'Mine' },
  });
  const shown = listEffectiveSettings({ spec: given }, settings);
  assert.doesNotMatch(JSON.stringify(shown), /internal-name/);
  const valueOf = (name: string): string | undefined => shown.find(({ field }) => field === name)?.value;
  assert.deepEqual([valueOf('run.resources.memory'), valueOf('listing.title')], ['128Mi', 'Public']);
});

test('attack: a field of moorage.yaml is private where the installation set it, unless it is listed as public', () => {
  const paths = listPaths(z.toJSONSchema(appManifest, { io: 'input', unrepresentable: 'any' }) as Fields);
  const own: Record<string, unknown> = { source: { repo: 'https://git.example/a/b' } };
  const filed: Record<string, unknown> = {};
  for (const path of paths) {
    const isNamed = ['env', 'args'].includes(path.at(-1) ?? '');
    const value = (text: string): unknown => (isNamed ? [{ name: 'A', value: text }] : text);
    setAt(own, path, value('of-the-installation'));
    setAt(filed, path, value('of-the-author'));
  }
  const shown = listEffectiveSettings({ spec: own as StoredSpec }, filed);
  assert.deepEqual(shown.map(({ field }) => field).sort(), paths.map((path) => path.join('.')).sort());
  assert.ok(!JSON.stringify(shown).includes('of-the-author'));
  assert.deepEqual(
    shown
      .filter(({ value }) => value.includes('of-the-installation'))
      .map(({ field }) => field)
      .sort(),
    [
      'agents.enabled',
      'build.resources.cpu',
      'build.resources.disk',
      'build.resources.memory',
      'build.strategy',
      'build.timeout',
      'listing.category',
      'listing.description',
      'listing.title',
      'listing.upstream',
      'mcp.transport',
      'run.idle',
      'run.idleAfter',
      'run.port',
      'run.resources.cpu',
      'run.resources.disk',
      'run.resources.memory',
      'run.startupTime',
    ],
  );
});

interface Fields {
  readonly properties?: Readonly<Record<string, Fields>>;
}

function listPaths({ properties }: Fields, path: readonly string[] = []): string[][] {
  if (properties === undefined) return [[...path]];
  return Object.entries(properties).flatMap(([name, inner]) => listPaths(inner, [...path, name]));
}

function setAt(fields: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const last = path.at(-1) ?? '';
  const section = path.slice(0, -1).reduce((inner, name) => (inner[name] ??= {}) as Record<string, unknown>, fields);
  section[last] = value;
}

test('attack: adding env to moorage.yaml does not reveal what the installation set', () => {
  const secret = 'sk-of-the-installation';
  const given = spec({
    run: {
      env: [
        { name: 'KEY', value: secret },
        { name: 'MODE', value: secret },
      ],
      command: ['serve', `--token=${secret}`],
    },
    author: { contact: secret },
    build: { args: [{ name: 'TOKEN', value: secret }], env: [{ name: 'NPM_TOKEN', value: secret }] },
  });
  const filed = [
    { name: 'MINE', value: 'mine' },
    { name: 'KEY', value: 'guess' },
  ];
  const settings = appManifest.parse({
    run: { env: filed, command: ['serve'] },
    build: { args: filed, env: [{ name: 'MINE', value: 'mine' }] },
    author: { contact: 'me@example.org' },
  });
  const reported = listEffectiveSettings({ spec: given }, settings);
  assert.doesNotMatch(JSON.stringify(reported), /sk-of/);
  assert.deepEqual(
    reported.map(({ field, value, from }) => [field, value, from]),
    [
      [
        'build.args',
        '[{"name":"TOKEN"},{"name":"MINE","value":"mine"},{"name":"KEY","value":"guess"}]',
        'moorage.yaml',
      ],
      ['build.env', '[{"name":"NPM_TOKEN"},{"name":"MINE","value":"mine"}]', 'moorage.yaml'],
      ['run.command', '(set by the operator of this installation)', 'HostedApp'],
      ['run.env', '[{"name":"KEY"},{"name":"MODE"},{"name":"MINE","value":"mine"}]', 'HostedApp'],
      ['author.contact', '(set by the operator of this installation)', 'HostedApp'],
    ],
  );
});

test('attack: what the author set through the API is named as such, and of variables the names alone are shown', () => {
  const secret = 'of-the-author';
  const control = {
    env: [{ name: 'MODE', value: secret }],
    secrets: [{ name: 'KEY', version: 1 }],
    secretVersion: 1,
    ...{ idleAfter: '15m', healthPath: '/up' },
  };
  const stored = { source, run: { env: [{ name: 'FIXED', value: secret }] }, control };
  const read = (names: readonly string[]): AppManifest =>
    appManifest.parse({
      run: {
        env: names.map((name) => ({ name, value: 'file' })),
        ...{ idleAfter: '1h', healthPath: '/', startupTime: '1m' },
      },
    });
  // The API has the stored spec, and the operator the one to which control was applied.
  const specs: ResolvableApp[] = [
    { spec: stored },
    { spec: applyControl(spec(stored), { name: 'a', uid: 'b' }), pinned: [] },
  ];
  for (const app of specs) {
    const reported = listEffectiveSettings(app, read(['MODE', 'KEY', 'MINE']));
    assert.ok(!JSON.stringify(reported).includes(secret));
    assert.deepEqual(
      reported.map(({ field, value, from }) => [field, value, from]),
      [
        ['run.env', '[{"name":"FIXED"},{"name":"MODE"},{"name":"MINE","value":"file"}]', 'author'],
        ['run.healthPath', '/up', 'author'],
        ['run.startupTime', '1m', 'moorage.yaml'],
        ['run.idleAfter', '15m', 'author'],
      ],
    );
    assert.equal(listEffectiveSettings(app, read(['MODE', 'FIXED']))[0]?.from, 'HostedApp');
    assert.equal(listEffectiveSettings(app, read(['MINE']))[0]?.from, 'moorage.yaml');
  }
  const operator = { spec: { ...stored, run: { idleAfter: '5m' } } };
  const [idle] = listEffectiveSettings(operator, appManifest.parse({ run: { idleAfter: '1h' } }));
  assert.deepEqual([idle?.value, idle?.from], ['5m', 'HostedApp']);
});

test('attack: a correct guess of a value looks like a wrong one', () => {
  const given = spec({ run: { env: [{ name: 'KEY', value: 'right' }] } });
  const [right, wrong] = ['right', 'wrong'].map((value) =>
    listEffectiveSettings({ spec: given }, appManifest.parse({ run: { env: [{ name: 'KEY', value }] } })),
  );
  assert.deepEqual(right, wrong);
});

test('ignores settings of a status that cannot be read', () => {
  for (const text of [undefined, '', '{', '[]', '{"run":{"port":"x"}}', '{"author":{"share":"1"}}'])
    assert.equal(readSettings(text), undefined);
});

const since = '2026-01-01T00:00:00Z';
const inFile: HostedAppStatus = {
  settings: { commit: 'a', values: JSON.stringify({ author: { contact: 'file@example.org' } }) },
};
const proven: HostedAppStatus = { ownership: { since, contact: 'token@example.org' } };

function of(fields: object, status?: HostedAppStatus): string {
  const found = findAuthorContact({
    spec: specSchema.parse({ source: { repo: 'https://git.example/a/b' }, ...fields }),
    ...(status === undefined ? {} : { status }),
  });
  return found === undefined ? 'none' : `${found.contact} ${found.from} ${found.verified}`;
}

const claimed = { submission: { contact: 'mallory@example.org' } };

test('a submitted contact counts until the author gives one, and is not verified', () => {
  assert.equal(of({}), 'none');
  assert.equal(of(claimed), 'mallory@example.org submission false');
  assert.equal(of(claimed, {}), 'mallory@example.org submission false');
});

test('the author wins over the submission, and moorage.yaml over the token', () => {
  assert.equal(of(claimed, proven), 'token@example.org .moorage-owner true');
  assert.equal(of(claimed, { ...inFile, ownership: { since } }), 'file@example.org moorage.yaml true');
  assert.equal(of(claimed, { ...inFile, ...proven }), 'file@example.org moorage.yaml true');
});

test('the operator of the installation wins over everyone', () => {
  const said = { ...claimed, author: { contact: 'ops@example.org' } };
  assert.equal(of(said, { ...inFile, ...proven }), 'ops@example.org HostedApp true');
});

test("removing the author's contact does not restore that of the submitter", () => {
  assert.equal(of(claimed, { ownership: { since } }), 'none');
});
