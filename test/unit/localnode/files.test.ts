import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { removeRemains, removeFolder } from '../../../localnode/files.ts';

let parent = '';
let folder = '';

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'moorage-files-'));
  folder = join(parent, 'state');
  await mkdir(join(folder, 'snapshots', '1'), { recursive: true });
  await writeFile(join(folder, 'metadata.db'), 'one snapshot');
});
afterEach(() => rm(parent, { recursive: true }));

describe('removeFolder', () => {
  test('leaves nothing, and accepts a folder that does not exist', async () => {
    await removeFolder(folder);
    await removeFolder(folder);
    assert.deepEqual(await readdir(parent), []);
  });

  test('leaves no half of a folder under its name when it is killed', async () => {
    for (let index = 0; index < 3000; index += 1) await writeFile(join(folder, 'snapshots', '1', `${index}`), '');
    const code = `import { removeFolder } from '${join(import.meta.dirname, '../../../localnode/files.ts')}'; await removeFolder(${JSON.stringify(folder)});`;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', code], { stdio: 'inherit' });
    const exit = once(child, 'exit');
    while (existsSync(join(folder, 'metadata.db')) && child.exitCode === null)
      await new Promise((resolve) => setImmediate(resolve));
    child.kill('SIGKILL');
    await exit;

    assert.ok(!existsSync(folder), 'the folder is gone although its removal was interrupted');
    await removeRemains(folder);
    assert.deepEqual(await readdir(parent), []);
  });
});
