// Which Node image a project gets.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { chooseNode } from '../../../../../../controller/pipeline/plan/node/version.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';
import { json, type Files } from '../plan.cases.ts';

const cases: readonly (readonly [string, Files, number, RegExp | undefined])[] = [
  ['nothing asked', {}, 24, undefined],
  ['.nvmrc', { '.nvmrc': 'v18.17.0\n' }, 18, undefined],
  ['a code name', { '.nvmrc': 'lts/iron\n' }, 20, undefined],
  ['the newest', { '.nvmrc': 'lts/*' }, 24, undefined],
  ['.node-version', { '.node-version': '22' }, 22, undefined],
  ['.tool-versions', { '.tool-versions': 'python 3.12\nnodejs 20.15.1 # x\n' }, 20, undefined],
  ['volta', { 'package.json': json({ volta: { node: '16.20.0' }, engines: { node: '>=18' } }) }, 16, undefined],
  ['engines', { 'package.json': json({ engines: { node: '>=18 <21' } }) }, 20, undefined],
  ['a wide range', { 'package.json': json({ engines: { node: '>=18' } }) }, 24, undefined],
  ['a range that cannot be read', { 'package.json': json({ engines: { node: 'banana' } }) }, 24, undefined],
  ['one between two', { '.nvmrc': '21' }, 22, /\.nvmrc asks for Node 21, which is not available; Node 22 is used/],
  ['one too old', { 'package.json': json({ engines: { node: '12.x' } }) }, 16, /asks for Node 12\.x.*Node 16 is used/],
  ['one too new', { '.nvmrc': '99' }, 24, /Node 24 is used/],
];

test.each([
  ['yarn.lock', 'next@latest:\n  version "9.4.4"\n  resolved "x"\n', 16],
  ['yarn.lock', '"next@npm:latest":\n  version: 9.4.4\n', 16],
  ['package-lock.json', '{\n  "packages": {\n    "node_modules/next": {\n      "version": "9.4.4"\n', 16],
  ['package-lock.json', '{\n  "dependencies": {\n    "next": {\n      "version": "9.4.4",\n', 16],
  ['pnpm-lock.yaml', 'packages:\n\n  /next@9.4.4:\n    x: 1\n', 16],
  ['yarn.lock', 'next@latest:\n  version "14.0.1"\n', 24],
  ['yarn.lock', 'next-seo@latest:\n  version "4.0.0"\n', 24],
])('takes the age of a bundler from %s where package.json allows newer ones', (lock, text, major) => {
  const choice = chooseNode(createMemoryTree({ [lock]: text }), { next: 'latest' });
  assert.equal(choice.image, `node:${major}-bookworm-slim`);
  if (major === 16) assert.match(choice.because ?? '', new RegExp(`${lock} asks for Node 16 by its next 9\\.4\\.4`));
});

for (const [name, files, major, warning] of cases) {
  test(name, () => {
    const choice = chooseNode(createMemoryTree(files), {});
    assert.equal(choice.image, `node:${major}-bookworm-slim`);
    if (warning === undefined) assert.deepEqual(choice.findings, []);
    else assert.match(choice.findings[0]?.message ?? '', warning);
  });
}

test('chooses a Node that has the option for scripts that re-enable the old algorithm', () => {
  const scripts = { build: 'NODE_OPTIONS=--openssl-legacy-provider nuxt build' };
  const choice = chooseNode(createMemoryTree({ 'package.json': json({ scripts }) }), { nuxt: '^2.15.7' });
  assert.equal(choice.image, 'node:18-bookworm-slim');
  assert.match(choice.because ?? '', /Node 18 by --openssl-legacy-provider/);
});

test('chooses the last Node that runs bundlers from before Node 17, unless a version is requested', () => {
  assert.match(
    chooseNode(createMemoryTree({}), { 'react-scripts': '^4.0.3' }).because ?? '',
    /Node 16 by its react-scripts \^4\.0\.3/,
  );
  assert.equal(chooseNode(createMemoryTree({}), { 'react-scripts': '5.0.1' }).image, 'node:24-bookworm-slim');
  assert.equal(chooseNode(createMemoryTree({ '.nvmrc': '18' }), { webpack: '4.46.0' }).image, 'node:18-bookworm-slim');
});
