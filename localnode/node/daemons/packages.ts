// Installs Debian packages: tools are installed, daemons are only unpacked into the cache, so that Debian never starts
// them.
import { access, chmod, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { paths } from '../../paths.ts';
import { run } from '../../shell.ts';
import { ignoreReport, type Report } from '../../steps.ts';

/** Tools that `up` runs, and dependencies for compiling runc. None of them includes a daemon. */
const tools = [
  ...['openssl', 'ca-certificates', 'iproute2', 'nftables', 'iptables', 'conntrack', 'kmod', 'procps', 'util-linux'],
  ...['mount', 'e2fsprogs', 'pv', 'debootstrap', 'skopeo', 'apache2-utils', 'unzip', 'git', 'gcc', 'libc6-dev'],
  ...['libseccomp-dev', 'pkg-config'],
];

const unpacked = {
  'docker-registry': 'usr/bin/docker-registry',
  'containernetworking-plugins': 'usr/lib/cni/bridge',
} as const;

type DaemonPackage = keyof typeof unpacked;

const noQuestions = { DEBIAN_FRONTEND: 'noninteractive' };

/** Returns the folder with an unpacked package's files. */
export function getUnpackedFolder(name: DaemonPackage): string {
  return join(paths.cache, 'debian', name);
}

async function listMissingTools(): Promise<string[]> {
  const present = await run('dpkg-query', ['-W', '-f', '${db:Status-Abbrev} ${Package}\\n']);
  const installed = new Set(
    present
      .split('\n')
      .filter((line) => line.startsWith('ii'))
      .map((line) => line.split(/\s+/)[1]),
  );
  return tools.filter((name) => !installed.has(name));
}

async function isUnpacked(name: DaemonPackage): Promise<boolean> {
  return await access(join(getUnpackedFolder(name), unpacked[name])).then(
    () => true,
    () => false,
  );
}

async function unpack(name: DaemonPackage): Promise<void> {
  const draft = `${getUnpackedFolder(name)}.draft`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { recursive: true });
  // apt drops its privileges for downloads, so its user must be able to write here.
  await chmod(draft, 0o777);
  await run('apt-get', ['download', name], { cwd: draft, env: noQuestions });
  const archive = (await readdir(draft)).find((file) => file.endsWith('.deb'));
  if (archive === undefined) throw new Error(`apt-get download ${name} left no package in ${draft}`);
  await run('dpkg-deb', ['-x', join(draft, archive), draft]);
  await rm(join(draft, archive));
  await chmod(draft, 0o755);
  await rm(getUnpackedFolder(name), { recursive: true, force: true });
  await rename(draft, getUnpackedFolder(name));
}

/** Installs missing tools and unpacks missing daemons. Requires root on Debian or Ubuntu. */
export async function ensurePackages(report: Report = ignoreReport): Promise<string> {
  const missing = await listMissingTools();
  const daemons: DaemonPackage[] = [];
  for (const name of Object.keys(unpacked) as DaemonPackage[]) if (!(await isUnpacked(name))) daemons.push(name);
  if (missing.length + daemons.length === 0) return 'installed already';
  await run('apt-get', ['update', '-q'], { env: noQuestions, onLine: report });
  if (missing.length > 0)
    await run('apt-get', ['install', '-q', '-y', '--no-install-recommends', ...missing], {
      env: noQuestions,
      onLine: report,
    });
  for (const name of daemons) await unpack(name);
  return `installed ${[...missing, ...daemons].join(' ')}`;
}
