// Removes the node completely: processes, containers, mounts, network, cgroups and state.
import { readFile, readdir, readlink, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { paths } from '../paths.ts';
import { readText, removeFolder } from '../files.ts';
import { run, canRun, waitFor } from '../shell.ts';
import type { Step } from '../steps.ts';
import { listNodeCgroups } from './daemons/kubelet.ts';
import { listNewEmptyFolders, listNewFolders, readBefore, removeNetwork } from './network/network.ts';
import { listProcessNames, stopProcess } from './daemons/processes.ts';
import { processFolders } from './settings.ts';

/** Lists mount points under the folders, deepest first, from the text of /proc/self/mountinfo. */
export function listMountsUnder(mountinfo: string, folders: readonly string[]): string[] {
  const points = mountinfo
    .split('\n')
    .map((line) =>
      (line.split(' ')[4] ?? '').replaceAll(/\\([0-7]{3})/g, (_, octal: string) =>
        String.fromCharCode(Number.parseInt(octal, 8)),
      ),
    );
  return points
    .map((point, index) => ({ point, index }))
    .filter(({ point }) => folders.some((folder) => point === folder || point.startsWith(`${folder}/`)))
    .sort((a, b) => b.point.split('/').length - a.point.split('/').length || b.index - a.index)
    .map(({ point }) => point);
}

async function listFoldersBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const nested = await Promise.all(
    entries.filter((entry) => entry.isDirectory()).map((entry) => listFoldersBelow(join(folder, entry.name))),
  );
  return [...nested.flat(), folder];
}

async function listMembers(cgroups: readonly string[]): Promise<number[]> {
  const folders = (await Promise.all(cgroups.map(listFoldersBelow))).flat();
  const lists = await Promise.all(folders.map(async (folder) => (await readText(join(folder, 'cgroup.procs'))) ?? ''));
  return [
    ...new Set(
      lists
        .join('\n')
        .split('\n')
        .filter((line) => line !== '')
        .map(Number),
    ),
  ];
}

/**
 * Finds node processes without a pid file: shims, and leftovers of a crashed `up`. All of them run from binaries in the
 * cache with the node's sockets. A shim may belong to a previously used cache.
 */
async function findStrays(): Promise<number[]> {
  const processIds: number[] = [];
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const executable = await readlink(`/proc/${name}/exe`).catch(() => '');
    const command = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '');
    const isShim = /\/containerd-shim-runc-v2( \(deleted\))?$/.test(executable);
    const fromCache =
      executable.startsWith(join(paths.cache, 'bin')) || executable.startsWith(join(paths.cache, 'debian'));
    if ((fromCache || isShim) && (command.includes(paths.run) || command.includes(paths.state)))
      processIds.push(Number(name));
  }
  return processIds;
}

function kill(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It exited in the meantime.
    }
  }
}

async function stopProcesses(): Promise<string> {
  const names = await listProcessNames(processFolders);
  // Stop the kubelet first, so that it starts nothing that is stopped here; containerd and processes with state come
  // last.
  const last = ['containerd', 'kube-apiserver', 'etcd', 'registry'];
  const order = ['kubelet', ...names.filter((name) => name !== 'kubelet' && !last.includes(name))];
  for (const name of order.filter((name) => names.includes(name))) await stopProcess(processFolders, name);
  const cgroups = await listNodeCgroups();
  await waitFor(
    'all containers to exit',
    async () => {
      const members = await listMembers(cgroups);
      kill(members);
      return members.length === 0;
    },
    { seconds: 20, every: 100 },
  );
  for (const name of last.filter((name) => names.includes(name))) await stopProcess(processFolders, name);
  await waitFor(
    'all stray processes to exit',
    async () => {
      const pids = await findStrays();
      kill(pids);
      return pids.length === 0;
    },
    { seconds: 10, every: 100 },
  );
  return `${names.length} processes`;
}

/**
 * Removes the cgroup that BuildKit leaves behind. It stays if another BuildKit uses it, because then it is not empty.
 */
async function removeEmptyBuildCgroups(): Promise<void> {
  for (const cgroup of await listNodeCgroups()) {
    for (const folder of await listFoldersBelow(join(dirname(cgroup), 'buildkit')))
      await rmdir(folder).catch(() => undefined);
  }
}

async function removeMounts(mountsBefore: readonly string[]): Promise<string> {
  const folders = [paths.state, paths.run, ...mountsBefore];
  let count = 0;
  // A mount can hide another one on the same path, so repeat until none is left.
  for (let round = 0; round < 10; round += 1) {
    const mounts = listMountsUnder(await readFile('/proc/self/mountinfo', 'utf8'), folders);
    if (mounts.length === 0) return `${count} mounts`;
    for (const mount of mounts)
      if ((await canRun('umount', [mount])) || (await canRun('umount', ['--lazy', mount]))) count += 1;
  }
  throw new Error(
    `these mounts could not be removed: ${listMountsUnder(await readFile('/proc/self/mountinfo', 'utf8'), folders).join(', ')}`,
  );
}

async function removeCgroups(): Promise<undefined> {
  await removeEmptyBuildCgroups();
  for (const cgroup of await listNodeCgroups()) {
    for (const folder of await listFoldersBelow(cgroup)) await rmdir(folder);
  }
  return undefined;
}

/** Lists the steps of `down`. Each can be repeated after a crash. */
export function listDownSteps(purge: boolean): Step[] {
  return [
    { name: 'processes and containers', run: stopProcesses },
    {
      name: 'mounts',
      needs: ['processes and containers'],
      run: async () => removeMounts(listNewFolders((await readBefore()) ?? { sysctls: {}, tables: [], folders: [] })),
    },
    { name: 'cgroups', needs: ['mounts'], run: removeCgroups },
    {
      name: 'network',
      needs: ['mounts'],
      run: async () => {
        await removeNetwork(await readBefore());
        return undefined;
      },
    },
    { name: 'state', needs: ['network', 'cgroups'], run: async () => removeState(purge) },
  ];
}

async function removeState(purge: boolean): Promise<string> {
  const machineBefore = await readBefore();
  const foreign = machineBefore === undefined ? [] : listNewFolders(machineBefore);
  for (const folder of [...foreign, paths.run]) await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  for (const folder of listNewEmptyFolders(machineBefore)) await rmdir(folder).catch(() => undefined);
  for (const file of [paths.kubeconfig, paths.gitPassword, paths.authority, paths.domainsAuthority, paths.installation])
    await rm(file, { force: true });
  // Last, because it has the record of what the machine had before.
  await removeFolder(paths.state);
  if (!purge) return `kept the cache in ${paths.cache} (--purge removes it)`;
  await run('rm', ['-rf', paths.cache]);
  return `removed the cache in ${paths.cache}, too`;
}
