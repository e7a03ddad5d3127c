// Volumes of the one-machine node, by the scripts that its provisioner runs: as large as they were asked for.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterEach, beforeEach, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { fillIn } from '../../../../localnode/kubectl.ts';
import { listMountsUnder } from '../../../../localnode/node/down.ts';
import { mountVolumes } from '../../../../localnode/node/disk/confined.ts';
import { run } from '../../../../localnode/shell.ts';

const MiB = 1024 * 1024;
const scripts = z.looseObject({ data: z.looseObject({ setup: z.string(), teardown: z.string() }) });

function scriptOf(name: 'setup' | 'teardown', sized: 'yes' | 'no'): string {
  const manifest = readFileSync('localnode/manifests/storage.yaml', 'utf8');
  const images = { 'IMAGE:local-path-provisioner': 'x', 'IMAGE:debian-bookworm': 'x' };
  const text = fillIn(manifest, { ...images, VOLUMES: folder, SIZED: sized, CONFIG: '' });
  const found = parseAllDocuments(text)
    .map((document) => scripts.safeParse(document.toJS()))
    .find(({ success }) => success);
  assert.ok(found?.success);
  return found.data.data[name];
}

let folder: string;
let volume: string;
const mounts = (): string[] => listMountsUnder(readFileSync('/proc/self/mountinfo', 'utf8'), [folder]);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'moorage-volumes-'));
  volume = join(folder, "pvc-1_apps_it's");
});
afterEach(async () => {
  for (const mount of mounts()) await run('umount', [mount]);
  rmSync(folder, { recursive: true });
});

async function provision(name: 'setup' | 'teardown', size: number, sized: 'yes' | 'no' = 'yes'): Promise<void> {
  await run('/bin/sh', ['-c', scriptOf(name, sized)], { env: { VOL_DIR: volume, VOL_SIZE_BYTES: String(size) } });
}

test('limits a volume to its size, and leaves nothing of it after removal', async () => {
  await provision('setup', MiB);
  await provision('setup', MiB);
  assert.deepEqual(mounts(), [volume]);
  assert.equal((await run('stat', ['-c', '%a', volume])).trim(), '777');
  assert.deepEqual(await run('ls', ['-A', volume]), '', 'databases want an empty folder');
  const filled = await execa('dd', ['if=/dev/zero', `of=${join(volume, 'fill')}`, 'bs=64k', 'count=64'], {
    reject: false,
  });
  assert.match(filled.stderr, /No space left on device/);
  const bytes = Number(await run('stat', ['-c', '%s', join(volume, 'fill')]));
  assert.ok(bytes > 0.85 * MiB && bytes <= MiB, `${bytes} bytes`);
  await provision('teardown', MiB);
  assert.deepEqual(mounts(), []);
  assert.equal(await run('ls', ['-A', folder]), '');
});

test('mounts it again after a reboot, with its contents', async () => {
  await provision('setup', 8 * MiB);
  writeFileSync(join(volume, 'kept'), 'x');
  await run('umount', [volume]);
  assert.ok(!existsSync(join(volume, 'kept')));
  await mountVolumes(folder);
  await mountVolumes(folder);
  assert.ok(existsSync(join(volume, 'kept')));
  assert.deepEqual(mounts(), [volume]);
});

test('creates a folder without loop devices', async () => {
  await provision('setup', MiB, 'no');
  assert.deepEqual(mounts(), []);
  assert.ok(existsSync(volume));
  await provision('teardown', MiB, 'no');
  assert.equal(await run('ls', ['-A', folder]), '');
});
