// What a container of an app can write of the node, with the real runc: no file of the node, and no more than its disk.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, test } from 'vitest';
import { z } from 'zod';
import { getBinaryPath, buildPart } from '../../../../localnode/binaries/build.ts';
import { listMountsUnder } from '../../../../localnode/node/down.ts';
import { renderConfinedRunc, buildConfinedSpec } from '../../../../localnode/node/disk/confined.ts';
import { run, waitFor } from '../../../../localnode/shell.ts';

const MiB = 1024 * 1024;
const spec = z.looseObject({
  process: z.looseObject({}),
  mounts: z.array(z.looseObject({ destination: z.string() })),
  linux: z.looseObject({ namespaces: z.array(z.looseObject({ type: z.string() })) }),
});

let folder: string;
let wrapper: string;
const id = `moorage-test-${process.pid}`;
const at = (...path: string[]): string => join(folder, ...path);

beforeAll(async () => {
  for (const part of ['containerd', 'runc'] as const) await buildPart(part);
});

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'moorage-confined-'));
  chmodSync(folder, 0o711);
  for (const name of ['lower/usr', 'lower/etc', 'upper', 'work', 'bundle/rootfs', 'files', 'out'])
    mkdirSync(at(name), { recursive: true });
  for (const name of ['bin', 'lib', 'lib64']) symlinkSync(`usr/${name}`, at('lower', name));
  chmodSync(at('out'), 0o777);
  // As containerd mounts it: owned by the root of the container.
  await run('chown', ['-R', '1000000:1000000', at('lower'), at('upper')]);
  const layers = `lowerdir=${at('lower')},upperdir=${at('upper')},workdir=${at('work')}`;
  await run('mount', ['-t', 'overlay', 'overlay', '-o', layers, at('bundle', 'rootfs')]);
  wrapper = at('confined-runc');
  const text = renderConfinedRunc(getBinaryPath('runc', 'runc'), { images: at('images'), mounts: at('mounts') });
  writeFileSync(wrapper, text, { mode: 0o700 });
});

afterEach(async () => {
  await runc('delete', '--force', id);
  for (const mount of mounted()) await run('umount', [mount]);
  rmSync(folder, { recursive: true });
});

const mounted = (): string[] => listMountsUnder(readFileSync('/proc/self/mountinfo', 'utf8'), [folder]);

async function runc(...args: string[]): Promise<{ failed: boolean }> {
  const all = ['--root', at('state'), '--log', at('log'), '--log-format', 'json', ...args];
  const [out, err] = [openSync(at('stdout'), 'a'), openSync(at('stderr'), 'a')];
  const [code] = z
    .tuple([z.number().nullable()])
    .rest(z.unknown())
    .parse(await once(spawn(wrapper, all, { stdio: ['ignore', out, err] }), 'exit'));
  for (const file of [out, err]) closeSync(file);
  return { failed: code !== 0 };
}

/** Files of the node that are mounted into the container: where, and what kind of path that is. */
const files = ['/etc/hosts', '/etc/hostname', '/etc/resolv.conf', '/dev/termination-log', '/odd name/x\ny/hosts'];
const source = (path: string): string => at('files', path.replaceAll(/\W/g, '-'));

async function writeSpec(script: string, annotations: Record<string, string>): Promise<void> {
  rmSync(at('out/ended'), { force: true });
  const base = spec.parse(
    JSON.parse(buildConfinedSpec(JSON.parse(await run(getBinaryPath('containerd', 'ctr'), ['oci', 'spec'])))),
  );
  for (const path of files) {
    writeFileSync(source(path), 'of the node\n');
    chmodSync(source(path), 0o666);
  }
  const bind = (from: string, destination: string, ...options: string[]) => ({
    ...{ type: 'bind', source: from, destination, options: ['rbind', 'rprivate', ...options] },
  });
  const ids = [{ containerID: 0, hostID: 1_000_000, size: 65_536 }];
  writeFileSync(
    at('bundle', 'config.json'),
    JSON.stringify({
      ...base,
      annotations,
      process: { ...base.process, args: ['/bin/sh', '-c', script], env: ['PATH=/usr/bin'] },
      mounts: [
        ...base.mounts.filter(({ destination }) => destination !== '/run'),
        ...[bind('/usr', '/usr', 'ro'), bind(at('out'), '/out', 'rw')],
        ...files.map((path) => bind(source(path), path, 'rw')),
      ],
      linux: {
        ...base.linux,
        ...{ cgroupsPath: `/${id}`, namespaces: [...base.linux.namespaces, { type: 'user' }] },
        ...{ uidMappings: ids, gidMappings: ids },
      },
    }),
  );
}

/** Runs a script in such a container to its end, and returns what it wrote to /out/report. */
async function runIn(script: string, disk: number): Promise<string> {
  await writeSpec(`(${script}) > /out/report 2>&1; touch /out/ended; sleep 600`, { 'moorage.dev/disk': String(disk) });
  const created = await runc('create', '--bundle', at('bundle'), id);
  assert.ok(!created.failed, readFileSync(at('log'), 'utf8'));
  await runc('start', id);
  await waitFor('the end of the script', () => Promise.resolve(existsSync(at('out/ended'))), { seconds: 60 });
  return readFileSync(at('out/report'), 'utf8');
}

test('makes every file of the node read-only, whatever its path, but not folders', async () => {
  const script = files.map((path) => `echo mine >> '${path}' && echo "WRITTEN"`).join('; ');
  const report = await runIn(script, 16 * MiB);
  assert.doesNotMatch(report, /WRITTEN/);
  assert.equal(report.match(/Read-only file system/g)?.length, files.length, report);
  for (const path of files) assert.equal(readFileSync(source(path), 'utf8'), 'of the node\n');
});

test('limits what a container writes, however it tries, and counts it', async () => {
  const script = `
    dd if=/dev/zero of=/one bs=1M count=64; ls -ln /one
    i=0; while mkdir /many$i && dd if=/dev/zero of=/many$i/x bs=64k count=1; do i=$((i+1)); done
    fallocate -l 64M /two`;
  const report = await runIn(script, 16 * MiB);
  assert.match(report, /No space left on device/);
  const bytesIn = async (path: string): Promise<number> =>
    Number((await run('du', ['-s', '--block-size=1', path])).split('\t')[0]);
  const taken = await bytesIn(at('mounts', id, 'disk', 'fs'));
  assert.ok(taken > 16 * MiB && taken < 21 * MiB, `${taken} bytes\n${report}`);
  assert.equal(await bytesIn(at('upper')), taken, 'it is seen where containerd looks');
});

test('returns freed space to the node, and leaves nothing of a deleted container', async () => {
  await runIn('dd if=/dev/zero of=/one bs=1M count=64', 16 * MiB);
  assert.ok((await runc('delete', id)).failed, 'it runs');
  assert.ok(mounted().length > 1, 'so it keeps its disk');
  const { failed } = await runc('delete', '--force', id);
  assert.ok(!failed);
  assert.deepEqual(mounted(), [at('bundle/rootfs')]);
  assert.doesNotMatch(await run('losetup', ['--list', '--noheadings', '--output', 'BACK-FILE']), new RegExp(folder));
  assert.deepEqual((await run('find', [at('images'), at('mounts'), '-mindepth', '1'])).trim(), '');
});

test('passes a log through completely, also from /dev/stdout and another user, but throttles a flood', async () => {
  const asUser = 'setpriv --reuid=1000 --clear-groups sh -c "echo user; echo user >&2"';
  await runIn(`(echo one > /dev/stdout; echo two > /dev/stderr; ${asUser}) > /proc/1/fd/1 2> /proc/1/fd/2`, 16 * MiB);
  await waitFor('the log', () => Promise.resolve(readFileSync(at('stderr'), 'utf8').includes('user')), { seconds: 10 });
  assert.equal(readFileSync(at('stdout'), 'utf8'), 'one\nuser\n');
  assert.equal(readFileSync(at('stderr'), 'utf8'), 'two\nuser\n');
  await runc('delete', '--force', id);
  await runIn('timeout 4 yes > /proc/1/fd/1', 16 * MiB);
  const { size } = statSync(at('stdout'));
  assert.ok(size > 1 * MiB && size < 8 * MiB, `${size} bytes in 4 s`);
});

test('does not create a container whose limit is unknown', async () => {
  await writeSpec('true', {});
  assert.ok((await runc('create', '--bundle', at('bundle'), id)).failed);
  assert.match(readFileSync(at('log'), 'utf8'), /"level":"error","msg":"this pod does not say how much disk/);
  assert.deepEqual(mounted(), [at('bundle/rootfs')]);
});
