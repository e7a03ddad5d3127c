// Names for an app: the repository's own first, always fit for the cluster, never a reserved one.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { slugCandidates } from '../../../../../api/apps/submit/slug.ts';
import { isReserved } from '../../../../../crds/names.ts';
import { parseRepository, repositoryHash } from '../../../../../lib/repository.ts';

const hosts = { allowed: ['git.test'], insecure: [] };
const candidates = (text: string): readonly string[] => slugCandidates(parseRepository(text, hosts));

for (const [repo, first, second] of [
  ['octo/Chat-UI', 'chat-ui', 'octo-chat-ui'],
  ['octo/chat_ui.git', 'chat-ui', 'octo-chat-ui'],
  ['octo/api', 'octo-api', undefined],
  // What programs and people trust by its name alone.
  ['octo/wpad', 'octo-wpad', undefined],
  ['octo/autodiscover', 'octo-autodiscover', undefined],
  ['octo/mta-sts', 'octo-mta-sts', undefined],
  ['octo/accounts', 'octo-accounts', undefined],
  ['octo/mx1', 'octo-mx1', undefined],
  // An app of the catalog, which only the operator of the installation deploys.
  ['octo/pdf-translate', 'octo-pdf-translate', undefined],
  ['octo/3d-viewer', 'app-3d-viewer', 'octo-3d-viewer'],
  ['4chan/2048', 'app-2048', 'app-4chan-2048'],
] as const) {
  test(`names of ${repo}`, () => {
    assert.equal(candidates(repo)[0], first);
    if (second !== undefined) assert.equal(candidates(repo)[1], second);
  });
}

test('nor does an owner make one with the name of his repository', () => {
  assert.ok(!candidates('mta/sts').includes('mta-sts'));
  assert.ok(!candidates('accounts/_').includes('accounts'));
  assert.ok(!candidates('chat/ui-1').includes('chat-ui-1'));
});

test('a name of no usable characters still has a candidate', () => {
  assert.match(candidates('octo/_').at(-1) ?? '', /^[a-z][a-z0-9-]*-[0-9a-f]{8}$/);
});

test('every candidate is a label, and the last one is the repository’s alone', () => {
  const segment = fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,60}[A-Za-z0-9_]$/);
  fc.assert(
    fc.property(segment, segment, (owner, name) => {
      const repository = parseRepository(`https://git.test/${owner}/${name}`, hosts);
      const slugs = slugCandidates(repository);
      assert.ok(slugs.length > 0);
      for (const slug of slugs) {
        assert.match(slug, /^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$/);
        assert.equal(isReserved(slug), false);
      }
      assert.ok(slugs.at(-1)?.endsWith(repositoryHash(repository.url).slice(0, 8)));
    }),
  );
});
