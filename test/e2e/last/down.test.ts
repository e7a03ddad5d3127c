// `npm run down` leaves nothing of the cluster on the machine.
import assert from 'node:assert/strict';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { test } from 'vitest';
import { getBinaryPath } from '../../../localnode/binaries/build.ts';
import { paths } from '../../../localnode/paths.ts';

/** Command lines of everything that runs here. */
function commands(): readonly string[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((pid) => {
      try {
        return [readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')];
      } catch {
        return []; // it ended while we looked
      }
    });
}

const ours = (command: string): boolean =>
  ['kubernetes', 'containerd', 'buildkit'].some((part) => command.includes(`/bin/${part}-v`)) ||
  /containerd-shim|network-policy\/main\.ts|docker-registry serve \/var\/lib\/moorage/.test(command);

test('down leaves no process, mount, device, table, route, control group or state', async () => {
  assert.ok(
    existsSync(getBinaryPath('kubernetes', 'kubelet')),
    'the binaries that are looked for stand where they are looked for',
  );
  assert.ok(commands().some(ours), 'the cluster runs before');
  assert.ok(readdirSync('/sys/class/net').includes('moorage0'));

  const down = await execa('sh', ['cli/bootstrap.sh', 'down'], { all: true, reject: false });
  assert.equal(down.exitCode, 0, down.all);

  assert.deepEqual(commands().filter(ours), []);
  // An integration test that was killed leaves the mounts of its builder in the folder for
  // temporary files. They are no part of the cluster, and `down` rightly knows nothing of them.
  const mountPoints = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '');
  assert.deepEqual(
    mountPoints.filter(
      (path) =>
        /moorage|kubelet|containerd|^(\/var)?\/run\/netns\/cni/.test(path) &&
        !path.startsWith(join(tmpdir(), 'moorage-')),
    ),
    [],
  );
  assert.deepEqual(
    readdirSync('/sys/class/net').filter((name) => /^(moorage|veth|cni)/.test(name)),
    [],
  );
  const loops = await execa('losetup', ['--list', '--noheadings', '--output', 'BACK-FILE']);
  assert.doesNotMatch(loops.stdout, /moorage/);
  const tables = await execa('nft', ['list', 'tables']);
  assert.doesNotMatch(tables.stdout, /moorage|kube-proxy/);
  const routes = await execa('ip', ['route', 'show', 'table', 'all']);
  assert.doesNotMatch(routes.stdout, /10\.244\.|10\.96\./);
  assert.deepEqual(
    globSync('/sys/fs/cgroup/**/{kubepods,moorage}*', { exclude: (name) => name.includes('.slice') }),
    [],
  );
  for (const folder of [paths.state, `${paths.state}.removed`, paths.run])
    assert.ok(!existsSync(folder), `${folder} is gone`);
});
