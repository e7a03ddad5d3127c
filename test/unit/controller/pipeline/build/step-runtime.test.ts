// Between buildkitd and runc, each step loses CAP_NET_RAW and nothing else, whatever its author wrote, and finds uv.
import assert from 'node:assert/strict';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterAll, test } from 'vitest';

const script = fileURLToPath(new URL('../../../../../controller/pipeline/build/step-runtime.sh', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'step-runtime-'));
const runc = join(folder, 'buildkit-runc');
writeFileSync(runc, '#!/bin/sh\nprintf \'%s\\n\' "$@"\nexit 7\n');
chmodSync(runc, 0o755);
afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** Runs a step with these capabilities; returns what runc was given. */
async function step(
  capabilities: object,
  args: readonly string[],
  given: readonly string[] = ['--log', 'l', 'run', '--bundle', folder, '--keep', 'id'],
): Promise<{ config: unknown; exitCode: number | undefined; stdout: string }> {
  const file = join(folder, 'config.json');
  writeFileSync(
    file,
    `${JSON.stringify({ process: { args, env: ['A={"capabilities":{"bounding":["CAP_NET_RAW"]}}'], capabilities }, linux: {} })}\n`,
  );
  const { exitCode, stdout } = await execa(script, given, {
    reject: false,
    env: { PATH: `${folder}:${process.env['PATH'] ?? ''}` },
  });
  return { config: JSON.parse(readFileSync(file, 'utf8')), exitCode, stdout };
}

for (const [set, list, left] of [
  ['first', ['CAP_NET_RAW', 'CAP_CHOWN'], ['CAP_CHOWN']],
  ['last', ['CAP_CHOWN', 'CAP_NET_RAW'], ['CAP_CHOWN']],
  ['in the middle', ['CAP_KILL', 'CAP_NET_RAW', 'CAP_NET_ADMIN'], ['CAP_KILL', 'CAP_NET_ADMIN']],
  ['alone', ['CAP_NET_RAW'], []],
  ['absent', ['CAP_CHOWN'], ['CAP_CHOWN']],
] as const) {
  test(`removes the capability from every set: ${set}`, async () => {
    const sets = (of: readonly string[]): object => ({
      bounding: of,
      effective: of,
      inheritable: of,
      permitted: of,
      ambient: of,
    });
    const args = ['/bin/sh', '-c', 'echo {"capabilities":{"x":["CAP_NET_RAW"]}}', 'CAP_NET_RAW', '"CAP_NET_RAW",'];
    const { config, exitCode, stdout } = await step(sets(list), args);
    assert.deepEqual(config, {
      process: { args, env: ['A={"capabilities":{"bounding":["CAP_NET_RAW"]}}'], capabilities: sets(left) },
      linux: {},
    });
    assert.equal(exitCode, 7, 'how runc ended is how it ends');
    assert.equal(stdout, ['--log', 'l', 'run', '--bundle', folder, '--keep', 'id'].join('\n'));
  });
}

test('passes anything other than a step through unchanged', async () => {
  const { exitCode, stdout } = await step({ bounding: ['CAP_CHOWN'] }, [], ['--log', 'l', 'delete', '--force', 'a b']);
  assert.deepEqual([exitCode, stdout], [7, '--log\nl\ndelete\n--force\na b']);
});

test('mounts uv for the steps of a planned Python app alone', async () => {
  // The folders of the image: the program lies next to those of the sources.
  const app = join(folder, 'app');
  const ownScript = join(app, 'controller', 'pipeline', 'build', 'step-runtime.sh');
  mkdirSync(join(app, 'uv'), { recursive: true });
  writeFileSync(join(app, 'uv', 'uv'), '', { mode: 0o755 });
  cpSync(script, ownScript);
  const proc = { destination: '/proc', type: 'proc', source: 'proc' };
  const uv = {
    destination: '/opt/moorage/uv/bin',
    type: 'bind',
    source: join(app, 'uv'),
    options: ['bind', 'ro', 'nosuid', 'nodev'],
  };
  for (const [command, mounts] of [
    ['bash /opt/moorage/uv/install requirements.txt', [uv, proc]],
    ['echo \'"mounts":[\' /opt/moorage/uv/', [uv, proc]],
    ['echo "mounts":[', [proc]],
  ] as const) {
    const args = ['/bin/sh', '-c', command];
    const file = join(folder, 'config.json');
    writeFileSync(file, JSON.stringify({ process: { args }, mounts: [proc] }));
    await execa(ownScript, ['run', '--bundle', folder, 'id'], {
      reject: false,
      env: { PATH: `${folder}:${process.env['PATH'] ?? ''}` },
    });
    assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), { process: { args }, mounts });
  }
});
