// Which repository a submodule is, by what .gitmodules says of it.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { readDeclarations, resolveSubmodule } from '../../../../../controller/pipeline/clone/clone.ts';

const hosts = { allowed: ['github.com', 'git.test:8080'], insecure: ['git.test:8080'] };
const parent = 'https://github.com/owner/name';
const of = (url: string, from = parent): string => {
  const found = resolveSubmodule(
    readDeclarations(`submodule.a.path\nlib\0submodule.a.url\n${url}\0`),
    'lib',
    from,
    hosts,
  );
  return typeof found === 'string' ? `no: ${found}` : found.url;
};

test('rewrites relative, SSH and git addresses on allowed hosts to https', () => {
  for (const url of [
    'https://github.com/other/lib.git',
    'git@github.com:other/lib.git',
    'ssh://git@github.com/other/lib',
    'git://github.com/other/lib.git',
    '../../other/lib.git',
    './../../other/lib',
  ])
    assert.equal(of(url), 'https://github.com/other/lib', url);
  assert.equal(of('../lib', `${parent}.git`), 'https://github.com/owner/lib');
  assert.equal(of('http://git.test:8080/a/b'), 'http://git.test:8080/a/b');
});

test('rejects all other addresses', () => {
  for (const url of [
    'https://evil.test/a/b',
    'https://github.com.evil.test/a/b',
    'https://user:key@github.com/a/b',
    'http://github.com/a/b',
    'https://github.com/a',
    'https://github.com/a/b?x=1',
    'ext::sh -c id',
    'file:///etc',
    '/etc',
    '--upload-pack=id',
    '-oProxyCommand=id',
    'git@evil.test:a/b',
    'ssh://git@github.com:22/a/b',
    '../../../../../etc',
    'git@github.com:/etc/passwd',
    'https://github.com/a/..%2f..',
    '',
  ])
    assert.match(of(url), /^no: /, url);
});

test('rejects two addresses for one path, and ignores names and invalid entries', () => {
  const declared = readDeclarations(
    'submodule.../../x.path\nlib\0submodule.../../x.url\nhttps://github.com/a/b\0submodule.b.path\nlib\0submodule.b.url\nhttps://github.com/a/c\0core.hookspath\n/x\0broken',
  );
  assert.equal(resolveSubmodule(declared, 'lib', parent, hosts), '.gitmodules gives several addresses for it');
  assert.equal(resolveSubmodule(declared, 'other', parent, hosts), '.gitmodules gives no address for it');
});
