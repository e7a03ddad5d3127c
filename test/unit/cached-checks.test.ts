// A file that is known to be formatted is not checked again; one that is not, always.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, test } from 'vitest';
import { checkFormat, type FormatResult } from '../cached-checks.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'moorage-format-'));
  write('.prettierrc.json', '{ "singleQuote": true }\n');
});
afterEach(() => {
  rmSync(root, { recursive: true });
});

function write(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

const check = (): Promise<FormatResult> => checkFormat({ root, cache: join(root, 'node_modules/known.json') });

test('reports a file that is not formatted each time, and one that cannot be read', async () => {
  write('deep/wrong.ts', 'const a=1\n');
  write('broken.json', '{\n');
  for (let round = 0; round < 2; round += 1) {
    const { unformatted } = await check();
    assert.deepEqual(unformatted.map((line) => line.split(':')[0]).sort(), ['broken.json', 'deep/wrong.ts']);
  }
});

test('checks a file again once its text, its path or its options change', async () => {
  write('a.ts', "export const a = 'a';\n");
  assert.deepEqual(await check(), { unformatted: [], checked: 2 });
  assert.deepEqual(await check(), { unformatted: [], checked: 0 });
  write('a.ts', "export const b = 'a';\n");
  assert.equal((await check()).checked, 1);
  write('b.ts', "export const b = 'a';\n");
  assert.equal((await check()).checked, 1);
  write('.prettierrc.json', '{ "singleQuote": false }\n');
  assert.deepEqual((await check()).unformatted.length, 2);
});

test('leaves out ignored files, packages and what Prettier does not know, and reads files with a dot', async () => {
  write('.gitignore', 'made\n');
  write('.prettierignore', '*.md\n');
  for (const path of ['made/a.ts', 'a.md', 'node_modules/a/a.ts', 'a.unknown', '.hidden/a.ts', '.b.json'])
    write(path, '{"a" :1}');
  const { unformatted } = await check();
  assert.deepEqual(unformatted.map((line) => line.split(':')[0]).sort(), ['.b.json', '.hidden/a.ts']);
});

test('checks everything if what it knows cannot be read', async () => {
  write('node_modules/known.json', 'not JSON');
  assert.deepEqual(await check(), { unformatted: [], checked: 1 });
});
