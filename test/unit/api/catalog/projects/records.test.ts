// The manifests of the catalog: all eight apps of the interface are present, described in two languages, and valid.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { readCatalogApps } from '../../../../../api/catalog/projects/records.ts';
import { catalogSlugs } from '../../../../../crds/names.ts';

const slugs = [
  'academic-assistant',
  'chat-ui-1',
  'chat-ui-2',
  'chat-ui-3',
  'chat-ui-4',
  'pdf-translate',
  'research-agent',
  'slide-generator',
];

test('the eight apps of the interface are there [spec projects.slugs]', () => {
  const apps = readCatalogApps();
  for (const slug of slugs)
    assert.ok(
      apps.some((app) => app.slug === slug),
      slug,
    );
  assert.deepEqual(catalogSlugs.toSorted(), slugs);
});

test('each is described in English and Chinese, with its upstream and category', () => {
  for (const { slug, listing, titleZh, descriptionZh } of readCatalogApps()) {
    assert.ok((listing.title ?? '') !== '' && (listing.description ?? '') !== '', slug);
    assert.ok((titleZh ?? '') !== '', slug);
    assert.match(descriptionZh ?? '', /\p{Script=Han}/u, slug);
    assert.match(listing.upstream ?? '', /^https:\/\/github\.com\/[\w.-]+\/[\w.-]+$/, slug);
    assert.notEqual(listing.category, 'other', slug);
  }
});

function withFile(name: string, text: string, check: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'moorage-apps-'));
  writeFileSync(join(folder, name), text);
  try {
    check(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const valid = `apiVersion: moorage.dev/v1alpha1
kind: HostedApp
metadata: { name: chat }
spec: { source: { repo: 'https://git.test/octo/chat' } }
`;

test('a file may hold other objects beside the app, and files of other kinds are left alone', () => {
  withFile('chat.yaml', `${valid}---\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: chat }\n`, (folder) => {
    writeFileSync(join(folder, 'README.md'), 'text');
    assert.deepEqual(
      readCatalogApps(folder).map(({ slug, source, titleZh }) => [slug, source, titleZh]),
      [['chat', 'https://git.test/octo/chat', undefined]],
    );
  });
});

const bad: readonly (readonly [name: string, file: string, text: string, says: RegExp])[] = [
  [
    'an unknown field',
    'chat.yaml',
    valid.replace('source:', 'sauce: 1, source:'),
    /chat\.yaml is not valid:\n {2}spec: .*sauce/,
  ],
  ['a wrong category', 'chat.yaml', valid.replace('} }', '}, listing: { category: fun } }'), /spec\.listing\.category/],
  ['another name', 'talk.yaml', valid, /metadata\.name must be talk/],
  ['no app', 'chat.yaml', 'kind: ConfigMap\n', /must hold one HostedApp, and holds 0/],
  ['two apps', 'chat.yaml', `${valid}---\n${valid}`, /must hold one HostedApp, and holds 2/],
  ['no YAML', 'chat.yaml', 'a: [', /chat\.yaml is not valid: /],
];
for (const [name, file, text, says] of bad)
  test(`refused: ${name}`, () => {
    withFile(file, text, (folder) => {
      assert.throws(() => readCatalogApps(folder), says);
    });
  });
