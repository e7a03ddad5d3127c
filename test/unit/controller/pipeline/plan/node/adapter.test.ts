// Which adapter a SvelteKit or Astro project builds with.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  type Adapter,
  detectAstroAdapter,
  detectSvelteAdapter,
  rejectAdapter,
} from '../../../../../../controller/pipeline/plan/node/adapter.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';

const svelte = (text: string): Adapter =>
  detectSvelteAdapter(createMemoryTree({ 'svelte.config.js': text }), new Set());
const astro = (text: string): Adapter => detectAstroAdapter(createMemoryTree({ 'astro.config.mjs': text }));

const imports = `
import node from '@sveltejs/adapter-node';
import vercel from '@sveltejs/adapter-vercel';
import pages from '@sveltejs/adapter-static';
`;

test('takes the adapter that is used, and not one that is only imported or commented out', () => {
  assert.equal(svelte(`${imports}export default { kit: { adapter: vercel() } };`).target, 'foreign');
  const commented = `${imports}export default { kit: { /* adapter: vercel() */ adapter: node({ out: 'server' }) } };`;
  assert.deepEqual(
    [svelte(commented).target, svelte(commented).folder, svelte(commented).certainty],
    ['node', 'server', 'likely'],
  );
});

test('evaluates a condition as the build here would, where nothing sets the variables of other platforms', () => {
  const conditional = (condition: string): Adapter =>
    svelte(`${imports}export default { kit: { adapter: ${condition} ? vercel() : node() } };`);
  assert.equal(conditional('process.env.VERCEL').target, 'node');
  assert.equal(conditional('!process.env.VERCEL').target, 'foreign');
  assert.equal(conditional("process.env.ADAPTER !== 'node'").target, 'foreign');
  const chosen = `${imports}const adapter = process.env.STATIC === 'true' ? pages() : node();\nexport default { kit: { adapter } };`;
  assert.deepEqual([svelte(chosen).target, svelte(chosen).certainty], ['node', 'likely']);
});

test('prefers what can run here if a condition cannot be decided, and says so', () => {
  const { target, certainty, others } = svelte(
    `${imports}import { isVercel } from './platform.js';\nexport default { kit: { adapter: isVercel() ? vercel() : node() } };`,
  );
  assert.deepEqual([target, certainty, others], ['node', 'guessed', ['@sveltejs/adapter-vercel']]);
});

test('rejects a configuration without an adapter, a foreign one, and a handler without a server', () => {
  const rule = (adapter: Adapter): unknown => rejectAdapter(adapter)?.message;
  assert.match(String(rule(svelte('export default { kit: {} };'))), /no adapter/);
  assert.match(
    String(rule(svelte("import a from 'svelte-adapter-bun';\nexport default { kit: { adapter: a() } };"))),
    /svelte-adapter-bun builds for another platform/,
  );
  const middleware =
    "import node from '@astrojs/node';\nexport default defineConfig({ adapter: node({ mode: 'middleware' }) });";
  assert.match(String(rule(astro(middleware))), /middleware/);
  assert.equal(rule(astro(middleware.replace('middleware', 'standalone'))), undefined);
  assert.equal(astro('export default {};').target, 'files');
});
