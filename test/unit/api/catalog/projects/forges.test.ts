// Forges: canonical repository addresses, API URLs, and which responses count.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { listAddresses, parseForgeRepository, readReport } from '../../../../../api/catalog/projects/forges.ts';

for (const [address, url] of [
  ['https://github.com/octo/chat', 'https://github.com/octo/chat'],
  ['https://GitHub.com/octo/chat.git', 'https://github.com/octo/chat'],
  ['https://github.com/octo/chat/', 'https://github.com/octo/chat'],
  ['https://github.com/octo/chat?tab=readme#top', 'https://github.com/octo/chat'],
  ['https://gitlab.com/group/sub/chat', 'https://gitlab.com/group/sub/chat'],
  ['http://git.test:3000/octo/chat', 'http://git.test:3000/octo/chat'],
] as const)
  test(`normal form of ${address}`, () => {
    assert.equal(parseForgeRepository(address)?.url, url);
  });

test('what is no address of a repository', () => {
  for (const address of [
    '',
    'octo/chat',
    'https://github.com/',
    'https://github.com/octo',
    'https://github.com/octo//chat',
    'https://github.com/o/<b>',
    'https://github.com/octo/a%2F..%2Fb',
    'https://github.com/octo/%ff',
    'https://github.com/octo/%2e%2e/user',
  ])
    assert.equal(parseForgeRepository(address), undefined, address);
});

const asked = (address: string): string[] => {
  const repository = parseForgeRepository(address);
  assert.ok(repository !== undefined);
  return listAddresses(repository).map(({ url }) => url);
};

test('known forges are asked at their API, others as each kind that anybody can run', () => {
  assert.deepEqual(asked('https://github.com/octo/chat'), ['https://api.github.com/repos/octo/chat']);
  assert.deepEqual(asked('https://github.com/octo/chat/tree/main'), ['https://api.github.com/repos/octo/chat']);
  assert.deepEqual(asked('https://gitlab.com/group/sub/chat'), [
    'https://gitlab.com/api/v4/projects/group%2Fsub%2Fchat?license=true',
  ]);
  assert.deepEqual(asked('https://codeberg.org/octo/chat'), ['https://codeberg.org/api/v1/repos/octo/chat']);
  assert.deepEqual(asked('https://git.example.org:8443/octo/chat'), [
    'https://git.example.org:8443/api/v1/repos/octo/chat',
    'https://git.example.org:8443/api/v4/projects/octo%2Fchat?license=true',
  ]);
});

const bytes = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));

test('stars and licence of each kind of forge', () => {
  assert.deepEqual(
    readReport('github', bytes({ id: 1, stargazers_count: 12, license: { key: 'mit', spdx_id: 'MIT' } })),
    {
      stars: 12,
      license: 'MIT',
    },
  );
  assert.deepEqual(readReport('gitlab', bytes({ star_count: 3, license: { key: 'apache-2.0' } })), {
    stars: 3,
    license: 'Apache-2.0',
  });
  assert.deepEqual(readReport('gitea', bytes({ stars_count: 0, licenses: ['AGPL-3.0-only'] })), {
    stars: 0,
    license: 'AGPL-3.0-only',
  });
});

test('a licence that SPDX does not know, or one of several, is none', () => {
  for (const license of [null, undefined, { spdx_id: 'NOASSERTION' }, { spdx_id: null }])
    assert.deepEqual(readReport('github', bytes({ stargazers_count: 1, license })), { stars: 1, license: undefined });
  for (const licenses of [null, [], ['MIT', 'Apache-2.0'], ['own']])
    assert.equal(readReport('gitea', bytes({ stars_count: 1, licenses }))?.license, undefined);
});

test('an answer without a count, with a wrong one, or that is no JSON reports nothing', () => {
  for (const wrong of [{}, { stargazers_count: '12' }, { stargazers_count: -1 }, { stargazers_count: 1.5 }, [], null])
    assert.equal(readReport('github', bytes(wrong)), undefined);
  assert.equal(readReport('github', Buffer.from('<html>')), undefined);
});
