// The list of long test files names files that exist.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import { longFiles } from '../sequence.ts';

test('each file that begins early exists, and is listed once', () => {
  const missing = longFiles.filter((name) => !existsSync(join(import.meta.dirname, '..', `${name}.test.ts`)));
  assert.deepEqual(missing, []);
  assert.equal(new Set(longFiles).size, longFiles.length);
});
