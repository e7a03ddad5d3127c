// Programs that are run: their output, and their errors.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { CommandError, run } from '../../../localnode/shell.ts';

test('passes lines on as they arrive, and still returns and logs them', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'moorage-shell-'));
  try {
    const lines: string[] = [];
    const log = join(folder, 'log');
    const onLine = (line: string): void => {
      lines.push(line);
    };
    assert.equal(await run('sh', ['-c', 'echo one; echo two >&2; echo three'], { log, onLine }), 'one\nthree');
    assert.deepEqual(lines.toSorted(), ['one', 'three', 'two']);
    assert.deepEqual((await readFile(log, 'utf8')).trim().split('\n').toSorted(), ['one', 'three', 'two']);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('reports a failure with the command, its exit code and the end of its output', async () => {
  await assert.rejects(run('sh', ['-c', 'echo no disk >&2; exit 3'], { onLine: () => undefined }), (error) => {
    assert.ok(error instanceof CommandError);
    assert.equal(error.exitCode, 3);
    assert.match(error.message, /^`sh -c .*` exited with code 3\n {2}no disk$/);
    return true;
  });
});

test('reports a full disk, however much output follows', async () => {
  const script = 'echo "write x: No space left on device"; seq 1 100; exit 1';
  await assert.rejects(run('sh', ['-c', script]), /\n {2}write x: No space left on device\n {2}\.\.\.\n {2}86\n/);
});
