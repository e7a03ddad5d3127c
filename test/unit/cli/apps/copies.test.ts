// Where a clone of a repository is looked for.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { copyOf } from '../../../../cli/apps/copies.ts';

test('a clone is found by owner and name, joined by a plus, or by its name', () => {
  const folder = mkdtempSync(join(tmpdir(), 'moorage-copies-'));
  try {
    for (const path of ['a/one', 'a+two', 'three']) mkdirSync(join(folder, path), { recursive: true });
    assert.equal(copyOf('a/one', folder), join(folder, 'a/one'));
    assert.equal(copyOf('a/two', folder), join(folder, 'a+two'));
    assert.equal(copyOf('a/three', folder), join(folder, 'three'));
    assert.equal(copyOf('a/four', folder), undefined);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
