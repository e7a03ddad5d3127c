// list_apps lists the apps that are live.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createListAppsTool } from '../../../../../../api/tools/builtin/list-apps/list-apps.ts';
import { call, createServices } from '../../../../../support/tools/call.ts';

const app = (
  slug: string,
  category?: string,
): { slug: string; title: string; description: string; category: string | undefined; url: string; repo: string } => ({
  slug,
  title: slug.toUpperCase(),
  description: `Does ${slug}`,
  category,
  url: `https://${slug}.moorage.test`,
  repo: `https://git.test/octo/${slug}`,
});

test('lists live apps by slug, all or by category or words [spec tools.list-apps]', async () => {
  const live = [app('slides', 'office'), app('chat')];
  const tool = createListAppsTool(createServices({ apps: () => live }));
  const slugs = async (input: Record<string, unknown>): Promise<unknown> =>
    ((await call(tool, input)).result.apps as { slug: string }[]).map(({ slug }) => slug);
  assert.deepEqual((await call(tool, {})).result, {
    apps: [{ ...app('chat'), category: null }, app('slides', 'office')].map((one) => ({
      ...one,
      call_url: `https://moorage.test/api/projects/${one.slug}/call`,
    })),
    count: 2,
  });
  assert.deepEqual(await slugs({ category: 'Office' }), ['slides']);
  assert.deepEqual(await slugs({ q: 'octo DOES' }), ['chat', 'slides']);
  assert.deepEqual(await slugs({ query: 'chat office' }), []);
  live.push(app('web'));
  assert.deepEqual(await slugs({}), ['chat', 'slides', 'web']);
});
