// The manifests of the eight apps: all there, valid, and pointed at a copy without what only their git host has.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { ZodError } from 'zod';
import { hostedFrom, readManifest, readManifests } from '../../../../cli/apps/manifests.ts';
import { spec } from '../../../../crds/hosted-app.ts';

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

test('every Secret that an app reads is one that is made for it', async () => {
  for (const { slug, secrets, document } of await readManifests()) {
    for (const { secret, key } of spec.parse(document.spec).run.secrets)
      assert.ok((secrets[secret]?.[key] ?? 0) > 0, `${slug}: ${secret}/${key}`);
  }
});

test('an app from a copy has its address, and no revision, which the copy may lack', async () => {
  for (const app of await readManifests()) {
    const { source, ...rest } = hostedFrom(app, 'http://git.example.svc.cluster.local/local/app').spec;
    assert.deepEqual(source, { repo: 'http://git.example.svc.cluster.local/local/app', interval: '24h' });
    const { source: _source, ...own } = app.document.spec;
    assert.deepEqual(rest, own);
  }
});

test('a manifest with an unknown field, or with digits that are none, is refused', () => {
  const text = (more: string, annotation = '{}'): string =>
    `apiVersion: moorage.dev/v1alpha1\nkind: HostedApp\nmetadata: {name: a, annotations: {moorage.dev/generated-secrets: '${annotation}'}}\nspec: {source: {repo: https://example.org/a/b}${more}}\n`;
  assert.equal(readManifest(text('')).repository, 'a/b');
  assert.throws(() => readManifest(text(', ram: 1Gi')), ZodError);
  assert.throws(() => readManifest(text('', '{"s": {"k": "64"}}')), ZodError);
  assert.throws(() => readManifest(text('', 'no')), ZodError);
});
