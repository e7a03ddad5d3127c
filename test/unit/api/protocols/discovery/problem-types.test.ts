// Every kind of problem of the API has a page, whichever port answers with it.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'vitest';
import { describeProduct } from '../../../../../docs/generator/product.ts';

test('each kind that a room defines is explained', () => {
  const pages = new Set(describeProduct().problems.map(({ slug }) => slug));
  const slugs = globSync('api/**/*.ts').flatMap((file) => {
    const definitions = readFileSync(file, 'utf8').matchAll(/: ProblemType = \{\s+slug: '([a-z-]+)'/g);
    return [...definitions].map(([, slug = '']) => slug);
  });
  assert.ok(slugs.length > 70, slugs.join());
  assert.ok(slugs.includes('metering-token'));
  assert.deepEqual(
    slugs.filter((slug) => !pages.has(slug)),
    [],
  );
});
