// What each review rule finds, and what it leaves alone.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  dockerfile,
  largeFiles,
  limits,
  names,
  sourcePath,
  symlinks,
  submodules,
} from '../../../../../controller/pipeline/review/rules/files.ts';
import type { ReviewContext, Rule } from '../../../../../controller/pipeline/review/review.ts';
import { listFoundRules, sampleContext } from '../../../../support/pipeline/sample.ts';

/** A finding as `severity rule file:line`. */
type Expectation = readonly string[];

const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'a'.repeat(64)}\nsize 12345678\n`;
const commit = '1'.repeat(40);
const missing = { path: 'vendor/lib', commit, problem: 'the git host git.example is not allowed here' };
const cases: readonly { name: string; rule: Rule; context: ReviewContext; expect: Expectation }[] = [
  {
    name: 'within the limits',
    rule: limits,
    context: sampleContext({ a: 'x'.repeat(500), b: 'x'.repeat(500) }),
    expect: [],
  },
  {
    name: 'a file too large',
    rule: limits,
    context: sampleContext({ 'data/a': 'x'.repeat(501) }),
    expect: ['error limits/file-bytes data/a'],
  },
  {
    name: 'too much together',
    rule: limits,
    context: sampleContext({ a: 'x'.repeat(400), b: 'x'.repeat(400), c: 'x'.repeat(400) }),
    expect: ['error limits/repository-bytes'],
  },
  {
    name: 'too many files',
    rule: limits,
    context: sampleContext(Object.fromEntries(Array.from({ length: 11 }, (_, index) => [`f${index}`, '']))),
    expect: ['error limits/files'],
  },

  { name: 'plain names', rule: names, context: sampleContext({ 'a b/ü-1_2.txt': '' }), expect: [] },
  {
    name: 'a terminal escape in a name',
    rule: names,
    context: sampleContext({ 'a\u001b[2Jb': '' }),
    expect: ['error names/unusable ab'],
  },
  {
    name: 'a newline in a name',
    rule: names,
    context: sampleContext({ 'a\nb': '' }),
    expect: ['error names/unusable a?b'],
  },
  {
    name: 'a direction override in a name',
    rule: names,
    context: sampleContext({ 'gpj\u202e.exe': '' }),
    expect: ['error names/unusable gpj.exe'],
  },
  {
    name: 'a nested .git',
    rule: names,
    context: sampleContext({ 'a/.git/config': '' }),
    expect: ['error names/unusable a/.git', 'error names/unusable a/.git/config'],
  },

  {
    name: 'links that stay inside',
    rule: symlinks,
    context: sampleContext({ a: { linkTo: 'b/c' }, 'd/e': { linkTo: '../b' }, loop: { linkTo: 'loop' } }),
    expect: [],
  },
  {
    name: 'an absolute link',
    rule: symlinks,
    context: sampleContext({ a: { linkTo: '/etc/passwd' } }),
    expect: ['error symlinks/absolute a'],
  },
  {
    name: 'what a virtual environment links to',
    rule: symlinks,
    context: sampleContext({
      'venv/bin/activate': '',
      'venv/bin/python3': { linkTo: '/usr/bin/python3' },
      'bin/python3': { linkTo: '/usr/bin/python3' },
    }),
    expect: ['error symlinks/absolute bin/python3', 'warning symlinks/absolute venv/bin/python3'],
  },
  {
    name: 'links that leave',
    rule: symlinks,
    context: sampleContext({ 'a/b': { linkTo: '../../etc' }, c: { linkTo: '..' }, 'd/e': { linkTo: 'x/../../../f' } }),
    expect: ['error symlinks/escape a/b', 'error symlinks/escape c', 'error symlinks/escape d/e'],
  },
  {
    name: 'a link that leaves through another link, and looks as if it stayed',
    rule: symlinks,
    context: sampleContext({
      'deep/er/file': '',
      'deep/er/up': { linkTo: '../..' },
      out: { linkTo: 'deep/er/up/../secret' },
      'deep/via': { linkTo: 'er/up' },
      'deep/far': { linkTo: 'via/../../x' },
      'deep/twice': { linkTo: '../out' },
    }),
    expect: ['error symlinks/escape deep/far', 'error symlinks/escape deep/twice', 'error symlinks/escape out'],
  },
  {
    name: 'links through links that stay, and a chain without an end',
    rule: symlinks,
    context: sampleContext({
      'a/b/file': '',
      'a/link': { linkTo: 'b' },
      'a/again': { linkTo: 'link/../link/file' },
      one: { linkTo: 'two/x' },
      two: { linkTo: 'one/x' },
    }),
    expect: [],
  },

  { name: 'no submodules', rule: submodules, context: sampleContext({ a: '' }), expect: [] },
  {
    name: 'a fetched submodule',
    rule: submodules,
    context: sampleContext({ '.gitmodules': '[submodule "a"]\n\tpath = a\n\turl = ../a.git\n' }, {}, [
      { path: 'a', commit },
    ]),
    expect: [],
  },
  {
    name: 'a missing submodule that nothing needs',
    rule: submodules,
    context: sampleContext({ Dockerfile: 'FROM a\n# COPY vendor/lib .\nCOPY vendor/library .\n' }, {}, [missing]),
    expect: ['warning git/submodule vendor/lib'],
  },
  ...[
    ['is copied', { Dockerfile: 'FROM a\nCOPY --from=b x y\nCOPY ./vendor/lib/ /lib\n' }, {}],
    ['is copied as JSON', { Dockerfile: 'FROM a\nCOPY ["vendor/lib", "/lib"]\n' }, {}],
    ['is installed by a step', { Dockerfile: 'FROM a\nCOPY . .\nRUN cd vendor/lib && make\n' }, {}],
    ['is a requirement', { 'requirements.txt': 'flask\n-e ./vendor/lib\n' }, {}],
    ['is a package', { 'package.json': '{"dependencies":{"lib":"file:vendor/lib"}}' }, {}],
    ['contains the app', { a: '' }, { path: 'vendor/lib/web' }],
    ['is named from a folder', { 'vendor/Cargo.toml': '[dependencies]\nlib = { path = "lib" }\n' }, { path: 'vendor' }],
  ].map(([what, files, changes]) => ({
    name: `a missing submodule that ${what as string}`,
    rule: submodules,
    context: sampleContext(
      files as Parameters<typeof sampleContext>[0],
      changes as Parameters<typeof sampleContext>[1],
      [missing],
    ),
    expect: ['error git/submodule vendor/lib'],
  })),
  {
    name: 'addresses that run or read something',
    rule: submodules,
    context: sampleContext({
      '.gitmodules':
        '[submodule "a"]\n\tpath = a\n\turl = ext::sh -c id\n[submodule "b"]\n\turl = file:///etc\n[submodule "c"]\n\turl = --upload-pack=id\n\tupdate = !id\n[submodule "d"]\n\tpath = ../../x\n\turl = /srv/x\n',
    }),
    expect: [
      'error git/unsafe-address .gitmodules:3',
      'error git/unsafe-address .gitmodules:5',
      'error git/unsafe-address .gitmodules:7',
      'error git/unsafe-address .gitmodules:8',
      'error git/unsafe-address .gitmodules:10',
      'error git/unsafe-address .gitmodules:11',
    ],
  },

  { name: 'the top as source.path', rule: sourcePath, context: sampleContext({ a: '' }), expect: [] },
  {
    name: 'a folder as source.path',
    rule: sourcePath,
    context: sampleContext({ 'web/a': '' }, { path: 'web' }),
    expect: [],
  },
  {
    name: 'a missing source.path',
    rule: sourcePath,
    context: sampleContext({ 'web/a': '' }, { path: 'wep' }),
    expect: ['error source/path'],
  },
  {
    name: 'a source.path that leaves',
    rule: sourcePath,
    context: sampleContext({ 'web/a': '' }, { path: '../x' }),
    expect: ['error source/path'],
  },
  {
    name: 'a link as source.path',
    rule: sourcePath,
    context: sampleContext({ web: { linkTo: '.' } }, { path: 'web' }),
    expect: ['error source/path'],
  },

  { name: 'no Dockerfile, none needed', rule: dockerfile, context: sampleContext({ a: '' }), expect: [] },
  {
    name: 'no Dockerfile, asked for',
    rule: dockerfile,
    context: sampleContext({ a: '' }, { strategy: 'dockerfile' }),
    expect: ['error dockerfile/missing Dockerfile'],
  },
  {
    name: 'a Dockerfile that is not used',
    rule: dockerfile,
    context: sampleContext({ Dockerfile: '# syntax=evil/x\n' }, { strategy: 'python' }),
    expect: [],
  },
  {
    name: "Docker's own syntax",
    rule: dockerfile,
    context: sampleContext({ Dockerfile: '# syntax=docker/dockerfile:1.7-labs\nFROM a\n' }),
    expect: [],
  },
  {
    name: 'another builder',
    rule: dockerfile,
    context: sampleContext(
      { 'web/Dockerfile': '# check=error=true\n#syntax = ghcr.io/evil/frontend:1 arg\nFROM a\n' },
      { path: 'web' },
    ),
    expect: ['error dockerfile/syntax web/Dockerfile:2'],
  },
  {
    name: 'a look-alike builder',
    rule: dockerfile,
    context: sampleContext({ Dockerfile: '# syntax=docker/dockerfile.evil/x\n' }),
    expect: ['error dockerfile/syntax Dockerfile:1'],
  },
  {
    name: 'a comment that is no directive',
    rule: dockerfile,
    context: sampleContext({ Dockerfile: '# hello\n# syntax=evil/x\n' }),
    expect: [],
  },
  {
    name: 'a Dockerfile that is a link to one in the repository',
    rule: dockerfile,
    context: sampleContext(
      {
        'web/Dockerfile': { linkTo: '../docker/Dockerfile.debian' },
        'docker/Dockerfile.debian': 'FROM a\n',
      },
      { path: 'web' },
    ),
    expect: [],
  },
  {
    name: 'a Dockerfile that is a link to one for another builder',
    rule: dockerfile,
    context: sampleContext({ Dockerfile: { linkTo: 'a' }, a: '# syntax=evil/x\n' }),
    expect: ['error dockerfile/syntax Dockerfile:1'],
  },
  {
    name: 'a linked Dockerfile',
    rule: dockerfile,
    context: sampleContext({ Dockerfile: { linkTo: 'other' } }),
    expect: ['error dockerfile/not-a-file Dockerfile'],
  },
  {
    name: 'a named Dockerfile that is not there',
    rule: dockerfile,
    context: sampleContext({ a: '' }, { dockerfile: 'docker/Dockerfile' }),
    expect: ['error dockerfile/not-a-file docker/Dockerfile'],
  },

  { name: 'no large files', rule: largeFiles, context: sampleContext({ a: 'version' }), expect: [] },
  {
    name: 'a pointer of Git LFS',
    rule: largeFiles,
    context: sampleContext({ 'model.bin': pointer }),
    expect: ['warning lfs/pointer model.bin'],
  },
];

for (const { name, rule, context, expect } of cases) {
  test(`${rule.name}: ${name}`, async () => {
    assert.deepEqual(await listFoundRules(rule, context), expect);
  });
}
