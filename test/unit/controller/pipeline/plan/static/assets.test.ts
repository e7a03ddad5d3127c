// Pages that a browser can load as they stand, and pages that have to be built first.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Rejected } from '../../../../../../controller/pipeline/contract.ts';
import { makePlan } from '../../../../../../controller/pipeline/plan/plan.ts';
import { findMissingAsset } from '../../../../../../controller/pipeline/plan/static/static.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../../support/pipeline/sample.ts';
import { json, type Files } from '../plan.cases.ts';

const cases: readonly (readonly [string, Files, string | undefined])[] = [
  ['no assets', { 'index.html': '<h1>' }, undefined],
  [
    'its own',
    { 'index.html': '<link href="a.css"><script src="./js/b.js?v=1"></script>', 'a.css': '', 'js/b.js': '' },
    undefined,
  ],
  [
    'of others',
    { 'index.html': '<script src="https://cdn.example/x.js"></script><link href="//x.example/y.css">' },
    undefined,
  ],
  ['below a path of its own', { 'index.html': '<script src="/site/b.js"></script>', 'b.js': '' }, undefined],
  [
    'TypeScript',
    { 'index.html': '<script type="module" src="/src/main.tsx"></script>', 'src/main.tsx': '' },
    '/src/main.tsx',
  ],
  ['what a build leaves', { 'index.html': '<script src="dist/app.js"></script>' }, 'dist/app.js'],
  [
    'imports of packages',
    { 'index.html': '<script type="module" src="main.js"></script>', 'main.js': "import React from 'react'\n" },
    'main.js',
  ],
  [
    'imports of packages by a map',
    {
      'index.html': '<script type="importmap">{}</script><script type="module" src="main.js"></script>',
      'main.js': "import React from 'react'\n",
    },
    undefined,
  ],
  [
    'imports of neighbours',
    { 'index.html': '<script type="module" src="main.js"></script>', 'main.js': "import { a } from './a.js'\n" },
    undefined,
  ],
  ['a template', { 'index.html': '<link href="{{ url }}/a.css">' }, undefined],
];

for (const [name, files, missing] of cases) {
  test(`assets: ${name}`, () => {
    assert.equal(findMissingAsset(createMemoryTree(files)), missing);
  });
}

function outcome(files: Files, strategy: 'auto' | 'static' = 'auto'): string {
  try {
    return makePlan(createMemoryTree(files), sampleInput({ strategy })).plan.strategy;
  } catch (error) {
    assert.ok(error instanceof Rejected);
    return error.findings[0].rule;
  }
}

test('does not serve a page that must be built, unless the author asks for it', () => {
  const page = { 'index.html': '<script src="bundle.js"></script>' };
  const built = { ...page, 'package.json': json({ scripts: { build: 'make-it' } }) };
  assert.equal(outcome(page), 'plan/unbuilt');
  assert.equal(outcome(built), 'plan/no-start');
  assert.equal(outcome(built, 'static'), 'static');
  assert.equal(outcome({ ...built, 'bundle.js': '' }), 'static');
});
