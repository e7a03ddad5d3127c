// Root file systems of Debian and Ubuntu from debootstrap, reduced like the slim images, with this machine's certificate
// authorities.
import { cp, mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { contentKey, filesUnder } from '../files.ts';
import { paths } from '../paths.ts';
import { run } from '../shell.ts';
import { noReport, type Report } from '../steps.ts';
import { archiveOf } from './suites.ts';

const authorities = '/usr/local/share/ca-certificates';
const bundle = '/etc/ssl/certs/ca-certificates.crt';

async function localAuthorities(): Promise<string[]> {
  const names = await filesUnder(authorities).catch(() => []);
  return names.filter((name) => name.endsWith('.crt'));
}

/** The content key of a root file system: the release, the recipe, and the authorities in it. */
export async function rootfsKey(suite: string): Promise<string> {
  const names = await localAuthorities();
  const certificates = await Promise.all(names.map((name) => readFile(join(authorities, name))));
  return contentKey([suite, archiveOf(suite).recipe, process.arch, ...names, ...certificates]);
}

async function trim(root: string): Promise<void> {
  const folders = [
    'usr/share/doc',
    'usr/share/man',
    'usr/share/info',
    'usr/share/locale',
    'var/cache/apt',
    'var/lib/apt/lists',
    'var/log',
    'debootstrap',
  ];
  for (const folder of folders) {
    const entries = await readdir(join(root, folder)).catch(() => []);
    for (const entry of entries) await rm(join(root, folder, entry), { recursive: true, force: true });
  }
  await writeFile(
    join(root, 'etc/dpkg/dpkg.cfg.d/docker'),
    [
      'force-unsafe-io',
      'path-exclude /usr/share/doc/*',
      'path-include /usr/share/doc/*/copyright',
      'path-exclude /usr/share/man/*',
      'path-exclude /usr/share/info/*',
      'path-exclude /usr/share/locale/*',
      '',
    ].join('\n'),
  );
  await writeFile(
    join(root, 'etc/apt/apt.conf.d/docker-clean'),
    'DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb || true"; };\nAcquire::Languages "none";\nAcquire::GzipIndexes "true";\n',
  );
}

async function bakeAuthorities(root: string): Promise<void> {
  for (const name of await localAuthorities()) {
    await mkdir(join(root, authorities), { recursive: true });
    await cp(join(authorities, name), join(root, authorities, name.replaceAll('/', '-')));
  }
  await run('chroot', [root, 'update-ca-certificates'], { env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' } });
  await readFile(join(root, bundle));
}

/** The tar file of the root file system, built unless it is in the cache. */
export async function ensureRootfs(suite: string, report: Report = noReport): Promise<string> {
  const folder = join(paths.cache, 'rootfs');
  const archive = join(folder, `${suite}-${await rootfsKey(suite)}.tar`);
  const present = await readFile(`${archive}.done`).then(
    () => true,
    () => false,
  );
  if (present) return archive;
  const root = join(folder, `${suite}.draft`);
  await rm(root, { recursive: true, force: true });
  await mkdir(root, { recursive: true });
  const log = join(paths.cache, 'log', `debootstrap-${suite}.log`);
  await mkdir(join(paths.cache, 'log'), { recursive: true });
  const from = archiveOf(suite);
  await run('debootstrap', [...(await from.options()), suite, root, from.mirror, from.script], {
    log,
    onLine: (line) => {
      if (line.startsWith('I: ')) report(line.slice(3));
    },
    env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
  });
  await rm(join(root, 'etc/apt/sources.list'), { force: true });
  await writeFile(join(root, 'etc/apt/sources.list.d', from.sources.name), from.sources.text);
  await trim(root);
  await bakeAuthorities(root);
  await run('tar', [
    '--numeric-owner',
    '--xattrs',
    '-C',
    root,
    '--exclude=./proc/*',
    '--exclude=./sys/*',
    '--exclude=./dev/*',
    '-cf',
    `${archive}.draft`,
    '.',
  ]);
  await rename(`${archive}.draft`, archive);
  await writeFile(`${archive}.done`, '');
  await rm(root, { recursive: true, force: true });
  return archive;
}
