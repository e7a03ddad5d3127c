// Every kind of problem of the API has a page, whichever port answers with it.
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { test } from 'vitest';
import { z } from 'zod';
import { describeProduct } from '../../../../../docs/generator/product.ts';

const type = z.object({ slug: z.string(), status: z.int(), title: z.string(), description: z.string() });

test('each kind that a room defines is explained', async () => {
  const pages = new Set(describeProduct().problems.map(({ slug }) => slug));
  const files = globSync('api/**/problems.ts', { cwd: process.cwd() });
  assert.ok(files.length > 8, files.join());
  const slugs: string[] = [];
  for (const file of files) {
    const exported = Object.values((await import(pathToFileURL(file).href)) as Record<string, unknown>);
    slugs.push(...exported.flatMap((value) => type.safeParse(value).data?.slug ?? []));
  }
  assert.ok(slugs.includes('metering-token'));
  assert.deepEqual(
    slugs.filter((slug) => !pages.has(slug)),
    [],
  );
});
