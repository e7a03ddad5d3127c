// What is read of JavaScript and TypeScript, and how expressions of configurations are evaluated.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { readPath, resolveValues } from '../../../../../../controller/pipeline/plan/syntax/resolve.ts';
import { parseScript, readLiteralText } from '../../../../../../controller/pipeline/plan/syntax/javascript.ts';

const readTexts = (text: string, ...path: string[]): unknown[] => {
  const module = parseScript(text);
  return readPath(module.exported, path, module)
    .flatMap((value) => resolveValues(value, module))
    .map((value) => readLiteralText(value) ?? value.kind);
};

test('reads imports of every form, and none of a comment or a string', () => {
  const { imports, sources } = parseScript(`
import node from '@sveltejs/adapter-node';
import { a as b } from "two";
const { c: d } = require('three');
const e = require('four').default;
// import x from 'five'
const f = "import g from 'six'";
await import('seven');
import 'eight';
`);
  assert.deepEqual(Object.fromEntries(imports), { node: '@sveltejs/adapter-node', b: 'two', d: 'three', e: 'four' });
  assert.deepEqual(sources, ['@sveltejs/adapter-node', 'two', 'three', 'four', 'seven', 'eight']);
});

test('reads a field through variables, helpers, functions, types and spreads', () => {
  for (const text of [
    "export default { output: 'export' }",
    "module.exports = { output: 'export' }",
    "const config: Config = { output: 'export' } satisfies Config;\nexport default config;",
    "const base = { output: 'export' };\nexport default defineConfig({ ...base, x: 1 });",
    "export default defineConfig(({ mode }) => ({ output: mode === 'production' ? 'export' : undefined }));",
    "export default withPlugin({ dest: 'public' })({ output: 'export' });",
    "export default () => { const config = { output: 'export' }; return config; };",
    "export default { ...(process.env.VERCEL ? {} : { output: 'export' }) };",
  ])
    assert.deepEqual(readTexts(text, 'output'), ['export'], text);
  assert.deepEqual(readTexts("export default {\n  // output: 'export'\n};", 'output'), []);
});

test('decides conditions by the environment of a build, and lists both branches of others', () => {
  const output = (condition: string): unknown[] =>
    readTexts(`import { flag } from './flag';\nexport default { output: ${condition} ? 'yes' : 'no' };`, 'output');
  assert.deepEqual(output('process.env.VERCEL'), ['no']);
  assert.deepEqual(output('!process.env.VERCEL'), ['yes']);
  assert.deepEqual(output("process.env.ADAPTER === 'static'"), ['no']);
  assert.deepEqual(output("process.env.NODE_ENV === 'production'"), ['yes']);
  assert.deepEqual(output("process.argv.includes('dev')"), ['no']);
  assert.deepEqual(output('flag && process.env.VERCEL'), ['no']);
  assert.deepEqual(output('flag'), ['yes', 'no']);
});

test('reads what can be read of code nested deeper than anybody writes', () => {
  assert.deepEqual(parseScript(`import 'a';\n${'['.repeat(50_000)}`).sources, ['a']);
  assert.deepEqual(readTexts(`const a = b; const b = a; export default { output: a }`, 'output'), []);
});
