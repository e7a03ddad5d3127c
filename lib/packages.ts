// Asks the registries of npm and PyPI for releases of a package. A release stands for a commit of a repository: its id is
// the hash of its file, so that what was reviewed is what is built.
import { Readable } from 'node:stream';
import { z } from 'zod';
import type { PackageName } from './repository.ts';

/** A release of a package. */
export interface PackageRelease {
  readonly version: string;
  /** 64 hexadecimal digits: of npm the first half of the SHA-512 of its file, of PyPI the SHA-256. */
  readonly commit: string;
  /** Address of the file, a gzipped tar archive. */
  readonly file: string;
  /** Seconds since 1970. The times inside an archive are often a constant. Undefined where the registry was not asked. */
  readonly publishedAt?: number | undefined;
}

/** Which release is meant: the newest one, one of a version (or a tag of npm, such as next), or one of a commit. */
export type ReleaseQuery = { readonly version?: string | undefined } | { readonly commit: string };

/** Origins of the registries, and of the files that they name. Tests have others. */
export interface RegistryOrigins {
  readonly npm: string;
  readonly pypi: string;
  readonly pypiFiles: string;
}

export const publicRegistries: RegistryOrigins = {
  npm: 'https://registry.npmjs.org',
  pypi: 'https://pypi.org',
  pypiFiles: 'https://files.pythonhosted.org',
};

/** Thrown where a registry answers, but has no release that can be used. */
export class ReleaseError extends Error {
  override readonly name = 'ReleaseError';
  readonly kind: 'no-package' | 'no-release' | 'no-source';
  readonly fix: string;
  constructor(kind: ReleaseError['kind'], message: string, fix: string) {
    super(message);
    this.kind = kind;
    this.fix = fix;
  }
}

/** A popular package has thousands of versions, each with its manifest. */
const maximumBytes = 64 * 1024 * 1024;
const timeoutMs = 30_000;

/**
 * Finds a release.
 * @throws ReleaseError if there is none; Error if the registry does not answer as it should
 */
export async function findRelease(
  { registry, name }: PackageName,
  query: ReleaseQuery,
  origins: RegistryOrigins = publicRegistries,
  signal?: AbortSignal,
): Promise<PackageRelease> {
  const releases = await (registry === 'npm' ? listNpm : listPypi)(name, query, origins, signal);
  const found = 'commit' in query ? releases.find(({ commit }) => commit === query.commit) : releases[0];
  if (found !== undefined) return found;
  throw new ReleaseError(
    'no-release',
    `${name} has no release ${'commit' in query ? `with the hash ${query.commit}` : (query.version ?? '')}.`,
    'Choose a version that the registry lists, or publish it again.',
  );
}

const npmManifest = z.object({
  version: z.string().max(256),
  dist: z.object({ tarball: z.url(), integrity: z.string().optional() }),
});
const npmPackage = z.object({
  versions: z.record(z.string(), npmManifest),
  time: z.record(z.string(), z.string()).default({}),
});

async function listNpm(
  name: string,
  query: ReleaseQuery,
  origins: RegistryOrigins,
  signal: AbortSignal | undefined,
): Promise<PackageRelease[]> {
  const path = `/${name.replace('/', '%2f')}`;
  if ('commit' in query) {
    const { versions, time } = npmPackage.parse(await fetchJson(`${origins.npm}${path}`, name, signal));
    return Object.values(versions).flatMap((manifest) => readNpm(manifest, origins, time[manifest.version]) ?? []);
  }
  const { version = 'latest' } = query;
  const address = `${origins.npm}${path}/${encodeURIComponent(version)}`;
  const manifest = npmManifest.parse(await fetchJson(address, name, signal, version));
  const release = readNpm(manifest, origins);
  if (release === undefined)
    throw new ReleaseError(
      'no-source',
      `${name} ${manifest.version} has no SHA-512 hash at the registry, so its file cannot be verified.`,
      'Publish a new version with a current npm.',
    );
  return [release];
}

function readNpm(
  { version, dist }: z.output<typeof npmManifest>,
  { npm }: RegistryOrigins,
  time?: string,
): PackageRelease | undefined {
  const hash = /(?:^|\s)sha512-([A-Za-z0-9+/=]+)/.exec(dist.integrity ?? '')?.[1];
  if (hash === undefined || new URL(dist.tarball).origin !== npm) return undefined;
  const commit = Buffer.from(hash, 'base64').toString('hex').slice(0, 64);
  return { version, file: dist.tarball, commit, publishedAt: readSeconds(time) };
}

function readSeconds(time: string | undefined): number | undefined {
  const ms = Date.parse(time ?? '');
  return Number.isNaN(ms) ? undefined : Math.floor(ms / 1000);
}

const pypiFile = z.object({
  packagetype: z.string(),
  filename: z.string(),
  url: z.url(),
  yanked: z.boolean().default(false),
  upload_time_iso_8601: z.string().optional(),
  digests: z.object({ sha256: z.string().regex(/^[0-9a-f]{64}$/) }),
});
const pypiPackage = z.object({
  info: z.object({ version: z.string().max(256) }),
  releases: z.record(z.string(), z.array(pypiFile)).optional(),
  urls: z.array(pypiFile),
});

async function listPypi(
  name: string,
  query: ReleaseQuery,
  origins: RegistryOrigins,
  signal: AbortSignal | undefined,
): Promise<PackageRelease[]> {
  const version = 'commit' in query ? undefined : query.version;
  const path = version === undefined ? '' : `/${encodeURIComponent(version)}`;
  const address = `${origins.pypi}/pypi/${name}${path}/json`;
  const { info, releases, urls } = pypiPackage.parse(await fetchJson(address, name, signal, version));
  if ('commit' in query)
    return Object.entries(releases ?? {}).flatMap(([each, files]) => readPypi(each, files, origins));
  const found = readPypi(info.version, urls, origins);
  if (found.length > 0) return found;
  throw new ReleaseError(
    'no-source',
    `${name} ${info.version} has no source distribution at PyPI, only wheels or files of another kind.`,
    'Publish one as .tar.gz (python -m build --sdist), or submit the git repository of the package.',
  );
}

function readPypi(
  version: string,
  files: readonly z.output<typeof pypiFile>[],
  { pypiFiles }: RegistryOrigins,
): PackageRelease[] {
  return files
    .filter(({ packagetype, filename, yanked }) => packagetype === 'sdist' && filename.endsWith('.tar.gz') && !yanked)
    .filter(({ url }) => new URL(url).origin === pypiFiles)
    .map(({ url, digests, upload_time_iso_8601: time }) => ({
      ...{ version, file: url, commit: digests.sha256, publishedAt: readSeconds(time) },
    }));
}

async function fetchJson(
  address: string,
  name: string,
  signal: AbortSignal | undefined,
  version?: string,
): Promise<unknown> {
  const deadline = AbortSignal.timeout(timeoutMs);
  const response = await fetch(address, {
    headers: { accept: 'application/json' },
    redirect: 'error',
    signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
  });
  if (response.status === 404 && version !== undefined && version !== 'latest')
    throw new ReleaseError(
      'no-release',
      `${name} has no version ${version}.`,
      'Choose a version that the registry lists.',
    );
  if (response.status === 404)
    throw new ReleaseError('no-package', `The registry has no public package ${name}.`, 'Check its name.');
  if (!response.ok) throw new Error(`the registry answered with status ${response.status}`);
  return JSON.parse(new TextDecoder().decode(await readBytes(response)));
}

async function readBytes(response: Response): Promise<Uint8Array> {
  const body: AsyncIterable<Uint8Array> = response.body ?? Readable.from([]);
  const chunks: Uint8Array[] = [];
  let received = 0;
  for await (const chunk of body) {
    received += chunk.length;
    if (received > maximumBytes) throw new Error(`the registry sent more than ${maximumBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
