// The runner of the tests: no result is lost, and only what passed counts as passed.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { execa } from 'execa';
import { test } from 'vitest';
import type { Tally } from '../tally.ts';

const program = join(import.meta.dirname, '../support/runner.ts');

async function counted(limitMs: number, ...patterns: string[]): Promise<Tally> {
  const { stdout } = await execa(process.execPath, [program, String(limitMs), ...patterns], {
    env: { NODE_ENV: undefined, VITEST: undefined, VITEST_POOL_ID: undefined, VITEST_WORKER_ID: undefined },
  });
  return JSON.parse(stdout.split('\n').at(-1) ?? '') as Tally;
}

for (const [what, pattern, expected] of [
  ['tests that pass and one that is skipped', 'passes.case', { passed: 1, failed: 0, skipped: 1 }],
  ['a test that hangs', 'hangs.case', { passed: 1, failed: 1, skipped: 0 }],
  ['an error that nobody handles', 'unhandled.case', { passed: 1, failed: 1, skipped: 0 }],
  ['hooks that fail', 'hook.case', { passed: 1, failed: 2, skipped: 1 }],
  ['a file that cannot be imported', 'import.case', { passed: 0, failed: 1, skipped: 0 }],
  ['a file without a test', 'empty.case', { passed: 0, failed: 1, skipped: 0 }],
  ['no file', 'no-such-file', { passed: 0, failed: 0, skipped: 0 }],
] as const)
  test(`counts ${what}`, async () => {
    const { failures, ...counts } = await counted(60_000, pattern);
    assert.deepEqual(counts, expected);
    assert.equal(failures.length, expected.failed, 'each is named');
    assert.ok(
      failures.every((name) => name.includes('.case.ts') || name.startsWith('an error outside')),
      failures.join('\n'),
    );
  });

test('counts both tests of a crashed worker as failed, together with those of another file', async () => {
  const { passed, failed } = await counted(60_000, 'crashes.case', 'passes.case');
  assert.equal(passed, 1);
  assert.ok(failed >= 2, `${failed} failed`);
});

test('ends a file that blocks its thread forever, and counts it as failed', async () => {
  const { passed, failed } = await counted(6_000, 'spins.case');
  assert.equal(passed, 0);
  assert.ok(failed >= 1, `${failed} failed`);
});
