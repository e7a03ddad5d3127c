// Which repositories are understood, and what the reports on the refused ones say.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import {
  parseAcceptedRepository,
  parseAddress,
  parseRepository,
  readRepository,
  RepositoryError,
  type GitHosts,
} from '../../../lib/repository.ts';

const hosts: GitHosts = { allowed: ['github.com', 'git.local:8080'], insecure: ['git.local:8080'] };

const accepted: readonly (readonly [string, string])[] = [
  ['owner/name', 'https://github.com/owner/name'],
  [' owner/name.git ', 'https://github.com/owner/name'],
  ['owner/name.git.GIT', 'https://github.com/owner/name'],
  ['https://github.com/owner/name', 'https://github.com/owner/name'],
  ['https://GitHub.com/owner/name.git/', 'https://github.com/owner/name'],
  ['http://git.local:8080/a/b', 'http://git.local:8080/a/b'],
];

for (const [text, url] of accepted) {
  test(`accepts ${text} [spec submit.repo]`, () => {
    assert.equal(parseRepository(text, hosts).url, url);
  });
}

const packages = { allowed: ['github.com', 'npmjs.com', 'pypi.org'], insecure: [] };

test.each([
  ['npm:@scope/server', 'https://www.npmjs.com/package/@scope/server', '@scope/server', undefined],
  ['npm:server@1.2.0', 'https://www.npmjs.com/package/server', 'server/server', '1.2.0'],
  [
    'https://www.npmjs.com/package/@scope/server/v/1.2.0',
    'https://www.npmjs.com/package/@scope/server',
    '@scope/server',
    '1.2.0',
  ],
  ['pypi:My_Server==2.0', 'https://pypi.org/project/my-server', 'my-server/my-server', '2.0'],
  [
    'https://pypi.org/project/my-server/#history',
    'https://pypi.org/project/my-server',
    'my-server/my-server',
    undefined,
  ],
])('reads %s as a package', (text, url, path, version) => {
  const { repository, branch } = parseAddress(text, packages);
  assert.deepEqual([repository.url, `${repository.owner}/${repository.name}`, branch], [url, path, version]);
  assert.deepEqual(parseAcceptedRepository(url), repository);
});

test.each([
  ['npm:../../evil', packages, /is not the name of a package/],
  ['npm:@scope/a/b', packages, /is not the name of a package/],
  ['https://www.npmjs.com/package/%2e%2e', packages, /is not the name of a package/],
  ['pypi:name[extra]', packages, /is not the name of a package/],
  ['npm:server', hosts, /packages of npmjs\.com are not allowed here/],
])('refuses the package %s', (text, allowed, message) => {
  const error = readRepository(text, allowed);
  assert.ok(error instanceof RepositoryError);
  assert.match(error.message, message);
  assert.ok(error.fix.length > 10);
});

const refused: readonly (readonly [string, RegExp])[] = [
  ['', /neither/],
  ['name', /neither/],
  ['git@github.com:owner/name.git', /protocol|neither/],
  ['ext::sh -c id', /protocol|neither/],
  ['file:///etc/passwd', /protocol file/],
  ['ssh://git@github.com/owner/name', /protocol ssh/],
  ['http://github.com/owner/name', /protocol http/],
  ['https://example.org/owner/name', /example\.org/],
  ['https://user:secret@github.com/owner/name', /credentials/],
  ['https://github.com/owner/name?x=1', /query/],
  ['https://github.com/owner/name/tree/main', /not owner\/name/],
  ['https://github.com/-owner/name', /not owner\/name/],
  ['../name', /not owner\/name/],
  ['owner/..', /not owner\/name/],
  ['owner/na me', /neither/],
  ['https://127.0.0.1/owner/name', /127\.0\.0\.1/],
];

for (const [text, message] of refused) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => parseRepository(text, hosts),
      (error: unknown) => error instanceof RepositoryError && message.test(error.message) && error.fix !== '',
    );
  });
}

test('any text gives a normal address of an allowed host or a RepositoryError', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.webUrl(),
        fc.string().map((s) => `https://github.com/${s}`),
      ),
      (text) => {
        try {
          const { url, host } = parseRepository(text, hosts);
          return hosts.allowed.includes(host) && parseRepository(url, hosts).url === url;
        } catch (error) {
          return error instanceof RepositoryError;
        }
      },
    ),
  );
});

test('normalizes an accepted address whichever hosts are allowed now', () => {
  for (const [text, url] of accepted)
    assert.equal(parseAcceptedRepository(parseRepository(text, hosts).cloneUrl).url, url);
  const { host, owner, name } = parseAcceptedRepository('https://git.gone.test/a/b.git/');
  assert.deepEqual([host, owner, name], ['git.gone.test', 'a', 'b']);
});

test('accepts addresses copied from a browser or from git clone', () => {
  const copied: readonly (readonly [string, string, string?])[] = [
    ['github.com/owner/name', 'https://github.com/owner/name'],
    ['GitHub.com/owner/name.git', 'https://github.com/owner/name'],
    ['git@github.com:owner/name.git', 'https://github.com/owner/name'],
    ['git@github.com:owner/name', 'https://github.com/owner/name'],
    ['ssh://git@github.com/owner/name.git', 'https://github.com/owner/name'],
    ['https://github.com/owner/name/tree/main', 'https://github.com/owner/name', 'main'],
    ['github.com/owner/name/tree/feature/one/', 'https://github.com/owner/name', 'feature/one'],
    ['https://github.com/owner/name/blob/main/README.md', 'https://github.com/owner/name', 'main/README.md'],
    ['https://github.com/owner/name/tree/a%20b#readme', 'https://github.com/owner/name', 'a b'],
    ['https://github.com/owner/name#readme', 'https://github.com/owner/name'],
    ['https://github.com/owner/name?tab=readme', 'https://github.com/owner/name'],
    ['https://github.com/owner/name/?tab=readme-ov-file#usage', 'https://github.com/owner/name'],
    ['owner/name', 'https://github.com/owner/name'],
    ['tree/main', 'https://github.com/tree/main'],
  ];
  const github = { allowed: ['github.com'], insecure: [] };
  for (const [text, url, branch] of copied) {
    const found = parseAddress(text, github);
    assert.deepEqual([found.repository.url, found.branch], [url, branch], text);
  }
});

test('rejects an address of something else instead of shortening it', () => {
  for (const text of [
    'https://github.com/owner/name?ref=dev',
    'https://github.com/owner/name/pull/5',
    'https://github.com/owner/name/issues',
    'git@evil.test:owner/name',
    'evil.test/owner/name',
    'ssh://somebody@github.com/owner/name',
    'https://token@github.com/owner/name#readme',
  ])
    assert.throws(() => parseAddress(text, { allowed: ['github.com'], insecure: [] }), RepositoryError, text);
});

test('a fix is a sentence', () => {
  for (const [text] of refused) {
    const read = readRepository(text, hosts);
    assert.ok(read instanceof RepositoryError);
    assert.match(read.fix, /^[A-Z].*\.$/);
  }
});
