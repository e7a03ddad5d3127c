// Prometheus and promtool of Debian, unpacked into the cache: as a package it would start a service.
import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { paths } from '../../../localnode/paths.ts';
import { run } from '../../../localnode/shell.ts';
import { runExclusively } from '../exclusively.ts';

const folder = join(paths.cache, 'debian', 'prometheus');

let unpacking: Promise<void> | undefined;

/** The path of one of its programs, unpacked first where the machine has none. */
export async function prometheusProgram(name: 'prometheus' | 'promtool'): Promise<string> {
  const program = join(folder, 'usr', 'bin', name);
  await (unpacking ??= runExclusively(async () => {
    if (!existsSync(program)) await unpack();
  }));
  return program;
}

/** Runs promtool; rejects with what it said. */
export async function promtool(...args: readonly string[]): Promise<string> {
  return run(await prometheusProgram('promtool'), [...args]);
}

async function unpack(): Promise<void> {
  const draft = `${folder}.draft`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { recursive: true });
  // apt drops its privileges for downloads; its user must be able to write here.
  await chmod(draft, 0o777);
  const environment = { DEBIAN_FRONTEND: 'noninteractive' };
  await run('apt-get', ['update', '-q'], { env: environment });
  await run('apt-get', ['download', 'prometheus'], { cwd: draft, env: environment });
  const archive = (await readdir(draft)).find((file) => file.endsWith('.deb'));
  if (archive === undefined) throw new Error('apt-get download prometheus left no package');
  await run('dpkg-deb', ['-x', join(draft, archive), draft]);
  await rm(join(draft, archive));
  await rm(folder, { recursive: true, force: true });
  await rename(draft, folder);
}
