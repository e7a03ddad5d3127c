// Hosting apps: manifests, copies, Secrets, the apply with its retry, and following them to the end.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { ZodError, z } from 'zod';
import { parse } from 'yaml';
import {
  applyApp,
  readManifest,
  replaceRepository,
  readManifests,
  findCopy,
  createSecrets,
  follow,
} from '../../../../cli/apps/host.ts';
import { Fault } from '../../../../cli/submit/installation.ts';
import { spec } from '../../../../crds/hosted-app.ts';
import { app as createApp } from '../../../support/operator/scenario.ts';

const app = readManifest(
  'apiVersion: moorage.dev/v1alpha1\nkind: HostedApp\nmetadata: {name: a}\nspec: {source: {repo: https://example.org/a/b}}\n',
);

async function calls(phase: string, apply: () => Promise<string> = () => Promise.resolve('')): Promise<string[]> {
  const verbs: string[] = [];
  await applyApp(app, {
    kubectl: (args) => {
      verbs.push(args[2] ?? '');
      return args.includes('apply') ? apply() : Promise.resolve(phase);
    },
    namespace: 'apps',
    copies: undefined,
    readInstallation: () => assert.fail('nothing is pushed'),
    printLine: () => undefined,
  });
  return verbs;
}

test('applies a manifest, and retries only a rejected app', async () => {
  assert.deepEqual(await calls('Live'), ['apply', 'get']);
  assert.deepEqual(await calls(''), ['apply', 'get']);
  assert.deepEqual(await calls('Rejected'), ['apply', 'get', 'annotate']);
});

test('does not replace an app of another repository, and explains how to remove it', async () => {
  const immutable = (): Promise<string> => Promise.reject(new Error('spec.source.repo: repo is immutable'));
  await assert.rejects(calls('Live', immutable), (error) => {
    assert.ok(error instanceof Fault);
    assert.match(error.message, /kubectl -n apps delete happ a$/);
    return true;
  });
  const refused = (): Promise<string> => Promise.reject(new Error('denied by quota'));
  await assert.rejects(calls('Live', refused), /the cluster refused a: denied by quota/);
});

test('there is a manifest for each of the eight apps, with a title and a description in English and Chinese', async () => {
  const apps = await readManifests();
  assert.deepEqual(
    apps.map(({ slug }) => slug),
    [
      'academic-assistant',
      'chat-ui-1',
      'chat-ui-2',
      'chat-ui-3',
      'chat-ui-4',
      'pdf-translate',
      'research-agent',
      'slide-generator',
    ],
  );
  for (const { slug, repository, document } of apps) {
    const { listing, models } = spec.parse(document.spec);
    assert.ok(listing.title !== undefined && listing.description !== undefined, slug);
    assert.ok(listing.upstream?.endsWith(`/${repository}`), slug);
    assert.ok(models.enabled, slug);
    for (const language of ['title-zh', 'description-zh'])
      assert.match(document.metadata.annotations[`moorage.dev/${language}`] ?? '', /\p{Script=Han}/u, slug);
  }
});

test('every Secret that an app reads is generated for it', async () => {
  for (const { slug, secrets, document } of await readManifests()) {
    for (const { secret, key } of spec.parse(document.spec).run.secrets)
      assert.ok((secrets[secret]?.[key] ?? 0) > 0, `${slug}: ${secret}/${key}`);
  }
});

test("an app from a copy has the copy's address and no revision", async () => {
  for (const app of await readManifests()) {
    const { source, ...rest } = replaceRepository(app, 'http://git.example.svc.cluster.local/local/app').spec;
    assert.deepEqual(source, { repo: 'http://git.example.svc.cluster.local/local/app', interval: '24h' });
    const { source: _source, ...own } = app.document.spec;
    assert.deepEqual(rest, own);
  }
});

test('rejects a manifest with an unknown field or invalid digits', () => {
  const text = (more: string, annotation = '{}'): string =>
    `apiVersion: moorage.dev/v1alpha1\nkind: HostedApp\nmetadata: {name: a, annotations: {moorage.dev/generated-secrets: '${annotation}'}}\nspec: {source: {repo: https://example.org/a/b}${more}}\n`;
  assert.equal(readManifest(text('')).repository, 'a/b');
  assert.throws(() => readManifest(text(', ram: 1Gi')), ZodError);
  assert.throws(() => readManifest(text('', '{"s": {"k": "64"}}')), ZodError);
  assert.throws(() => readManifest(text('', 'no')), ZodError);
});

test('finds a clone by owner and name, joined by a plus, or by its name', () => {
  const folder = mkdtempSync(join(tmpdir(), 'moorage-copies-'));
  try {
    for (const path of ['a/one', 'a+two', 'three']) mkdirSync(join(folder, path), { recursive: true });
    assert.equal(findCopy('a/one', folder), join(folder, 'a/one'));
    assert.equal(findCopy('a/two', folder), join(folder, 'a+two'));
    assert.equal(findCopy('a/three', folder), join(folder, 'three'));
    assert.equal(findCopy('a/four', folder), undefined);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

const appWithSecrets = readManifest(
  `apiVersion: moorage.dev/v1alpha1\nkind: HostedApp\nmetadata: {name: a, annotations: {moorage.dev/generated-secrets: '{"keys": {"one": 64, "two": 33}}'}}\nspec: {source: {repo: https://example.org/a/b}}\n`,
);
const made = z.object({ metadata: z.object({ name: z.string() }), stringData: z.record(z.string(), z.string()) });

async function inputs(existing: string): Promise<string[]> {
  const all: string[] = [];
  const kubectl = (args: readonly string[], input?: string): Promise<string> => {
    if (input !== undefined) all.push(input);
    return Promise.resolve(args.includes('get') ? existing : '');
  };
  await createSecrets(kubectl, 'apps', appWithSecrets);
  return all;
}

test('creates a missing Secret with random hexadecimal digits', async () => {
  const [first, second] = [await inputs(''), await inputs('')].map(([text = '']) => made.parse(parse(text)));
  assert.equal(first?.metadata.name, 'keys');
  assert.match(first.stringData['one'] ?? '', /^[0-9a-f]{64}$/);
  assert.match(first.stringData['two'] ?? '', /^[0-9a-f]{33}$/);
  assert.notDeepEqual(first, second);
});

test('leaves an existing Secret unchanged', async () => {
  assert.deepEqual(await inputs('secret/keys\n'), []);
});

const named = (name: string, generation: number, status: object): object => {
  const made = createApp();
  return { ...made, metadata: { ...made.metadata, name, generation }, status };
};
const served = { image: 'i@sha256:1', commit: 'c', since: '2026-11-22T00:00:00Z' };
const live = { observedGeneration: 1, phase: 'Live', url: 'https://one.example.org', served };
const rejection = { rule: 'build/failed', message: 'It does not compile.', fix: 'Fix it.' };

test('follows apps until each is live or rejected', async () => {
  const states = [
    [named('one', 1, { observedGeneration: 1, phase: 'Building' }), named('other', 1, live)],
    [named('one', 1, { observedGeneration: 1, phase: 'Building' })],
    // Of the manifest before.
    [named('one', 2, live), named('two', 1, { observedGeneration: 1, phase: 'Rejected', rejection })],
    [
      named('one', 2, { ...live, observedGeneration: 2 }),
      named('two', 1, { observedGeneration: 1, phase: 'Rejected', rejection }),
    ],
  ];
  const lines: string[] = [];
  let reads = 0;
  const kubectl = (): Promise<string> => {
    reads += 1;
    return Promise.resolve(JSON.stringify({ items: states[reads - 1] ?? assert.fail('read after the end') }));
  };
  const outcomes = await follow(['one', 'two'], {
    kubectl,
    namespace: 'apps',
    printLine: (line) => lines.push(line.replace(/ +/, ' ')),
    lookMs: 1,
  });
  assert.equal(reads, states.length);
  assert.deepEqual(
    outcomes.map(({ slug, status }) => [slug, status.status]),
    [
      ['one', 'live'],
      ['two', 'rejected'],
    ],
  );
  assert.deepEqual(lines, ['one building', 'one live', 'two rejected']);
});
