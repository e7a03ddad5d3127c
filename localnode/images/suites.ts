// The releases of Debian and Ubuntu that root file systems are made of: where their packages are and how they are
// signed.
import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { paths } from '../paths.ts';
import { run } from '../shell.ts';

export interface Archive {
  readonly mirror: string;
  /** Script of debootstrap, which does not know the names of the newest releases. */
  readonly script: string;
  /** Changes whenever what is done for it changes. */
  readonly recipe: string;
  /** File of apt's sources in the root file system. */
  readonly sources: { readonly name: string; readonly text: string };
  options(): Promise<readonly string[]>;
}

const scripts = '/usr/share/debootstrap/scripts';
const ubuntuSuites: ReadonlySet<string> = new Set(['focal', 'jammy', 'noble', 'resolute']);
const minimal = ['--variant=minbase', '--include=ca-certificates'];
/** The keys of Ubuntu as Debian packages them; the checksum is that of Debian's signed list. */
const ubuntuKeys = {
  address: 'http://deb.debian.org/debian/pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1-0.2_all.deb',
  sha256: 'b2e7ed48431bf9e7978ae810bbdaf253093570d6e3f864e575b7c13554b81174',
};

/** Where a release comes from. */
export function archiveOf(suite: string): Archive {
  return ubuntuSuites.has(suite) ? ubuntu(suite) : debian(suite);
}

function debian(suite: string): Archive {
  const mirror = 'http://deb.debian.org/debian';
  const security = 'http://deb.debian.org/debian-security';
  return {
    mirror,
    script: join(scripts, suite),
    recipe: '1',
    sources: {
      name: 'debian.sources',
      text: `${stanza(mirror, `${suite} ${suite}-updates`, 'main', debianKeys)}\n${stanza(security, `${suite}-security`, 'main', debianKeys)}`,
    },
    options: () => Promise.resolve(minimal),
  };
}

function ubuntu(suite: string): Archive {
  const mirror = 'http://archive.ubuntu.com/ubuntu';
  const suites = [suite, `${suite}-updates`, `${suite}-security`].join(' ');
  return {
    mirror,
    script: join(scripts, 'gutsy'),
    recipe: '1',
    sources: {
      name: 'ubuntu.sources',
      text: stanza(mirror, suites, 'main universe', '/usr/share/keyrings/ubuntu-archive-keyring.gpg'),
    },
    options: async () => [
      ...minimal,
      '--components=main,universe',
      '--force-check-gpg',
      `--keyring=${await keyring()}`,
    ],
  };
}

const debianKeys = '/usr/share/keyrings/debian-archive-keyring.gpg';

function stanza(uri: string, suites: string, components: string, keys: string): string {
  return `Types: deb\nURIs: ${uri}\nSuites: ${suites}\nComponents: ${components}\nSigned-By: ${keys}\n`;
}

let unpackedKeys: Promise<string> | undefined;

/** Releases are made side by side, and the keys are the same for all: they are brought once. */
function keyring(): Promise<string> {
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
