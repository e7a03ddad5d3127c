// An author's week in a real Chromium: the program that records it runs every step, and no request to the app fails.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, test } from 'vitest';

const pictures = mkdtempSync(join(tmpdir(), 'moorage-author-week-'));
afterAll(() => {
  rmSync(pictures, { recursive: true });
});

test('an author submits an app, changes, breaks, repairs, shares, protects, deletes and restores it', async () => {
  const { exitCode, all } = await execa('node', ['test/show/author-week.ts', pictures], { reject: false, all: true });
  assert.equal(exitCode, 0, all);
  const counts = [...all.matchAll(/^\| [^|]+ \| [\d.]+ \| (\d+) \| (\d+) \|$/gm)];
  assert.ok(counts.length >= 9, all);
  for (const [row, requests, failures] of counts) assert.ok(Number(requests) > 0 && failures === '0', row);
  assert.ok(readdirSync(pictures).length >= 15, 'a picture of each page');
});
