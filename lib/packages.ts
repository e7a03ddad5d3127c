// Asks the registries of npm and PyPI for releases of a package. A release stands for a commit of a repository: its id is
// the hash of its file, so that what was reviewed is what is built.
import { Readable } from 'node:stream';
import { z } from 'zod';
import type { PackageName } from './repository.ts';
import { createTimeLimit } from './values.ts';

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
const documentMs = 30_000;

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
  throw createNoVersion(name, 'commit' in query ? `with the hash ${query.commit}` : (query.version ?? ''));
}

function createNoVersion(name: string, version: string): ReleaseError {
  return new ReleaseError(
    'no-release',
    `${name} has no version ${version}.`,
    'Choose a version that the registry lists.',
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
    const { versions, time } = await fetchDocument(npmPackage, `${origins.npm}${path}`, name, signal);
    return Object.values(versions).flatMap((manifest) => readNpm(manifest, origins, time[manifest.version]) ?? []);
  }
  const { version = 'latest' } = query;
  const address = `${origins.npm}${path}/${encodeURIComponent(version)}`;
  const manifest = await fetchDocument(npmManifest, address, name, signal).catch((error: unknown) => {
    // The registry answers 404 for an unknown version, too.
    throw version === 'latest' || !(error instanceof ReleaseError) ? error : createNoVersion(name, version);
  });
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
  filename: z.string(),
  /** Relative to the page at some mirrors. */
  url: z.string(),
  hashes: z.object({ sha256: z.string().optional() }),
  yanked: z.union([z.boolean(), z.string()]).default(false),
  'upload-time': z.string().optional(),
});
/** https://packaging.python.org/en/latest/specifications/simple-repository-api/ */
const pypiPage = z.object({ files: z.array(pypiFile) });
const pypiPackage = z.object({ info: z.object({ version: z.string().max(256) }) });

async function listPypi(
  name: string,
  query: ReleaseQuery,
  origins: RegistryOrigins,
  signal: AbortSignal | undefined,
): Promise<PackageRelease[]> {
  const page = `${origins.pypi}/simple/${name}/`;
  const { files } = await fetchDocument(pypiPage, page, name, signal, 'application/vnd.pypi.simple.v1+json');
  const releases = files.flatMap((file) => readPypi(file, page, origins) ?? []);
  if ('commit' in query) return releases;
  const version = query.version ?? (await findNewestPypi(name, origins, signal));
  const found = releases.filter((release) => release.version === version);
  if (found.length > 0) return found;
  const isKnown = files.some(({ filename }) => filename.split('-').includes(version));
  if (!isKnown) return [];
  throw new ReleaseError(
    'no-source',
    `${name} ${version} has no source distribution at PyPI, only wheels or files of another kind.`,
    'Publish one as .tar.gz (python -m build --sdist), or submit the git repository of the package.',
  );
}

/** The page of files does not say which version installers choose. */
async function findNewestPypi(
  name: string,
  { pypi }: RegistryOrigins,
  signal: AbortSignal | undefined,
): Promise<string> {
  return (await fetchDocument(pypiPackage, `${pypi}/pypi/${name}/json`, name, signal)).info.version;
}

/** A source distribution; undefined for any other file, and for one that its author has withdrawn. */
function readPypi(
  { filename, url, hashes, yanked, 'upload-time': time }: z.output<typeof pypiFile>,
  page: string,
  { pypiFiles }: RegistryOrigins,
): PackageRelease | undefined {
  const version = /-([^-]+)\.tar\.gz$/.exec(filename)?.[1];
  if (version === undefined || hashes.sha256 === undefined || yanked !== false) return undefined;
  const file = new URL(url, page);
  if (file.origin !== pypiFiles) return undefined;
  return { version, file: file.href, commit: hashes.sha256, publishedAt: readSeconds(time) };
}

async function fetchDocument<Schema extends z.ZodType>(
  schema: Schema,
  address: string,
  name: string,
  signal: AbortSignal | undefined,
  accept = 'application/json',
): Promise<z.output<Schema>> {
  const response = await fetchFromRegistry(address, { timeoutMs: documentMs, signal, accept });
  if (response.status === 404)
    throw new ReleaseError('no-package', `The registry has no public package ${name}.`, 'Check its name.');
  if (!response.ok) throw new Error(`the registry answered with status ${response.status}`);
  const parsed = schema.safeParse(JSON.parse(new TextDecoder().decode(await readBytes(response))));
  if (parsed.success) return parsed.data;
  throw new Error(`the registry answered in a form that is not known: ${parsed.error.issues[0]?.path.join('.') ?? ''}`);
}

export interface RegistryRequest {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly accept?: string;
}

/** Sends a GET request to a registry, without following redirects. @throws Error that says why it was not answered */
export async function fetchFromRegistry(
  address: string,
  { timeoutMs, signal, accept = '*/*' }: RegistryRequest,
): Promise<Response> {
  const deadline = createTimeLimit(timeoutMs);
  const either = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
  return fetch(address, { headers: { accept }, redirect: 'error', signal: either }).catch((error: unknown) => {
    // fetch says why in the cause.
    throw error instanceof Error && error.cause instanceof Error
      ? new Error(`${error.message}: ${error.cause.message}`, { cause: error })
      : error;
  });
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
