// What a container of an app can write of the node, with the real runc: no file of the node, and no more than its disk.
import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterEach, beforeAll, beforeEach, test } from 'vitest';
import { z } from 'zod';
import { binary, buildPart } from '../../../cluster/binaries/build.ts';
import { mountsUnder } from '../../../cluster/node/down.ts';
import { confinedRunc, confinedSpec } from '../../../cluster/node/disk/confined.ts';
import { run } from '../../../cluster/shell.ts';
import { waitFor } from '../../../cluster/wait.ts';

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
  const text = confinedRunc(binary('runc', 'runc'), { images: at('images'), mounts: at('mounts') });
  writeFileSync(wrapper, text, { mode: 0o700 });
});

afterEach(async () => {
  await runc('delete', '--force', id);
  for (const mount of mountsUnder(readFileSync('/proc/self/mountinfo', 'utf8'), [folder])) await run('umount', [mount]);
  rmSync(folder, { recursive: true });
});

async function runc(...args: string[]): Promise<{ failed: boolean }> {
  const all = ['--root', at('state'), '--log', at('log'), '--log-format', 'json', ...args];
  return await execa(wrapper, all, { reject: false, stdio: 'ignore' });
}

/** Files of the node that are mounted into the container: where, and what kind of path that is. */
const files = ['/etc/hosts', '/etc/hostname', '/etc/resolv.conf', '/dev/termination-log', '/odd name/x\ny/hosts'];
const source = (path: string): string => at('files', path.replaceAll(/\W/g, '-'));

async function writeSpec(script: string, annotations: Record<string, string>): Promise<void> {
  const base = spec.parse(
    JSON.parse(confinedSpec(JSON.parse(await run(binary('containerd', 'ctr'), ['oci', 'spec'])))),
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

test('every file of the node is read-only, whatever its path; folders are not', async () => {
  const script = files.map((path) => `echo mine >> '${path}' && echo "WRITTEN"`).join('; ');
  const report = await runIn(script, 16 * MiB);
  assert.doesNotMatch(report, /WRITTEN/);
  assert.equal(report.match(/Read-only file system/g)?.length, files.length, report);
  for (const path of files) assert.equal(readFileSync(source(path), 'utf8'), 'of the node\n');
});

test('the container writes little more than its limit, however it tries, and it is counted', async () => {
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

test('what is removed is given back to the node, and nothing is left of a container that is deleted', async () => {
  await runIn('dd if=/dev/zero of=/one bs=1M count=64', 16 * MiB);
  const { failed } = await runc('delete', '--force', id);
  assert.ok(!failed);
  assert.deepEqual(mountsUnder(readFileSync('/proc/self/mountinfo', 'utf8'), [folder]), [at('bundle/rootfs')]);
  assert.doesNotMatch(await run('losetup', ['--list', '--noheadings', '--output', 'BACK-FILE']), new RegExp(folder));
  assert.deepEqual((await run('find', [at('images'), at('mounts'), '-mindepth', '1'])).trim(), '');
});

test('a container whose limit is not known is not made', async () => {
  await writeSpec('true', {});
  assert.ok((await runc('create', '--bundle', at('bundle'), id)).failed);
  assert.match(readFileSync(at('log'), 'utf8'), /"level":"error","msg":"this pod does not say how much disk/);
  assert.deepEqual(mountsUnder(readFileSync('/proc/self/mountinfo', 'utf8'), [folder]), [at('bundle/rootfs')]);
});
