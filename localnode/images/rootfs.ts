// Builds root file systems of Debian and Ubuntu with debootstrap, reduced like the slim images, with this machine's
// certificate authorities.
import { cp, mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createHash } from 'node:crypto';
import { computeContentKey, listFilesUnder } from '../files.ts';
import { paths } from '../paths.ts';
import { run } from '../shell.ts';
import { ignoreReport, type Report } from '../steps.ts';

const authorities = '/usr/local/share/ca-certificates';
const bundle = '/etc/ssl/certs/ca-certificates.crt';

async function listLocalAuthorities(): Promise<string[]> {
  const names = await listFilesUnder(authorities).catch(() => []);
  return names.filter((name) => name.endsWith('.crt'));
}

/** Computes the content key of a root file system from the release, the recipe, and its certificate authorities. */
export async function computeRootfsKey(suite: string): Promise<string> {
  const names = await listLocalAuthorities();
  const certificates = await Promise.all(names.map((name) => readFile(join(authorities, name))));
  return computeContentKey([suite, getArchive(suite).recipe, process.arch, ...names, ...certificates]);
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
  for (const name of await listLocalAuthorities()) {
    await mkdir(join(root, authorities), { recursive: true });
    await cp(join(authorities, name), join(root, authorities, name.replaceAll('/', '-')));
  }
  await run('chroot', [root, 'update-ca-certificates'], { env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' } });
  await readFile(join(root, bundle));
}

/** Returns the root file system's tar file, building it if it is not in the cache. */
export async function ensureRootfs(suite: string, report: Report = ignoreReport): Promise<string> {
  const folder = join(paths.cache, 'rootfs');
  const archive = join(folder, `${suite}-${await computeRootfsKey(suite)}.tar`);
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
  const from = getArchive(suite);
  await run('debootstrap', [...(await from.buildOptions()), suite, root, from.mirror, from.script], {
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

export interface Archive {
  readonly mirror: string;
  /** debootstrap's script; it does not know the names of the newest releases. */
  readonly script: string;
  /** Changes whenever the recipe's steps change. */
  readonly recipe: string;
  /** apt's sources file in the root file system. */
  readonly sources: { readonly name: string; readonly text: string };
  buildOptions(): Promise<readonly string[]>;
}

const scripts = '/usr/share/debootstrap/scripts';
const ubuntuSuites: ReadonlySet<string> = new Set(['focal', 'jammy', 'noble', 'resolute']);
const minimal = ['--variant=minbase', '--include=ca-certificates'];
/** Ubuntu's keys as packaged by Debian; the checksum is from Debian's signed list. */
const ubuntuKeys = {
  address: 'http://deb.debian.org/debian/pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1-0.2_all.deb',
  sha256: 'b2e7ed48431bf9e7978ae810bbdaf253093570d6e3f864e575b7c13554b81174',
};

/** Returns the archive of a release. */
export function getArchive(suite: string): Archive {
  return ubuntuSuites.has(suite) ? createUbuntuArchive(suite) : createDebianArchive(suite);
}

function createDebianArchive(suite: string): Archive {
  const mirror = 'http://deb.debian.org/debian';
  const security = 'http://deb.debian.org/debian-security';
  return {
    mirror,
    script: join(scripts, suite),
    recipe: '1',
    sources: {
      name: 'debian.sources',
      text: `${formatSourcesStanza(mirror, `${suite} ${suite}-updates`, 'main', debianKeys)}\n${formatSourcesStanza(security, `${suite}-security`, 'main', debianKeys)}`,
    },
    buildOptions: () => Promise.resolve(minimal),
  };
}

function createUbuntuArchive(suite: string): Archive {
  const mirror = 'http://archive.ubuntu.com/ubuntu';
  const suites = [suite, `${suite}-updates`, `${suite}-security`].join(' ');
  return {
    mirror,
    script: join(scripts, 'gutsy'),
    recipe: '1',
    sources: {
      name: 'ubuntu.sources',
      text: formatSourcesStanza(mirror, suites, 'main universe', '/usr/share/keyrings/ubuntu-archive-keyring.gpg'),
    },
    buildOptions: async () => [
      ...minimal,
      '--components=main,universe',
      '--force-check-gpg',
      `--keyring=${await getKeyring()}`,
    ],
  };
}

const debianKeys = '/usr/share/keyrings/debian-archive-keyring.gpg';

function formatSourcesStanza(uri: string, suites: string, components: string, keys: string): string {
  return `Types: deb\nURIs: ${uri}\nSuites: ${suites}\nComponents: ${components}\nSigned-By: ${keys}\n`;
}

let unpackedKeys: Promise<string> | undefined;

/** Downloads the keys once: releases are built in parallel and share them. */
function getKeyring(): Promise<string> {
  unpackedKeys ??= unpackKeys();
  return unpackedKeys;
}

async function unpackKeys(): Promise<string> {
  const folder = join(paths.cache, 'debian', 'ubuntu-keyring');
  const answer = await fetch(ubuntuKeys.address);
  if (!answer.ok) throw new Error(`${ubuntuKeys.address} answers ${answer.status} ${answer.statusText}`);
  const bytes = Buffer.from(await answer.arrayBuffer());
  const actual = createHash('sha256').update(bytes).digest('hex');
  if (actual !== ubuntuKeys.sha256)
    throw new Error(`${ubuntuKeys.address} has the SHA-256 ${actual}, not ${ubuntuKeys.sha256}`);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'keys.deb'), bytes);
  await run('dpkg-deb', ['-x', join(folder, 'keys.deb'), folder]);
  return join(folder, 'usr/share/keyrings/ubuntu-archive-keyring.gpg');
}
