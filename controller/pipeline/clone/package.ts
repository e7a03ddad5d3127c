// Fetches the release of a package from its registry and unpacks it into the workspace, within the limits of a repository.
import { createHash } from 'node:crypto';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { extract, type Extract, type Header } from 'tar-stream';
import {
  fetchFromRegistry,
  findRelease,
  type PackageRelease,
  type RegistryOrigins,
  ReleaseError,
} from '../../../lib/packages.ts';
import type { PackageName } from '../../../lib/repository.ts';
import { Fault, type PipelineInput, Rejected } from '../contract.ts';
import type { Submodule } from '../handover.ts';
import { LimitCounter } from '../review/rules/files.ts';
import { formatBytes, keepHead, toOneLine } from '../text.ts';

const downloadMs = 300_000;
/** Folders and the headers of the archive, beyond the bytes of the files. */
const archiveSlackBytes = 16 * 1024 * 1024;

export interface PackageOptions {
  readonly source: string;
  readonly printLine: (line: string) => void;
  readonly signal?: AbortSignal | undefined;
  readonly origins?: RegistryOrigins | undefined;
}

/** What is in the workspace. */
export interface FetchedSource {
  readonly counter: LimitCounter;
  /** Of the commit or the release, in seconds since 1970. */
  readonly time: number;
  readonly submodules?: Submodule[];
}

/**
 * Fetches the file of the release whose hash is the commit, unpacks it without its top folder, and verifies its hash.
 * @throws Rejected for exceeded limits and an archive that cannot be unpacked safely, Fault for anything that a retry may fix
 */
export async function fetchPackage(
  packageName: PackageName,
  { commit, limits }: Pick<PipelineInput, 'commit' | 'limits'>,
  { source, printLine, signal, origins }: PackageOptions,
): Promise<FetchedSource> {
  const release = await findReleaseOrFail(packageName, commit, origins, signal);
  printLine(`fetching version ${release.version} of ${packageName.name} from ${new URL(release.file).host}`);
  const hash = createHash(packageName.registry === 'npm' ? 'sha512' : 'sha256');
  const counter = new LimitCounter(limits);
  const entries = extract();
  const unpacking = unpack(entries, source, counter);
  const reading = pipeline(
    download(release, signal),
    async function* (chunks) {
      for await (const chunk of chunks) {
        hash.update(chunk);
        yield chunk;
      }
    },
    createGunzip(),
    limitBytes(limits.repositoryBytes),
    entries,
  );
  // The first one that fails has the reason; the other one fails because of it.
  const failures: unknown[] = [];
  const [, newest] = await Promise.allSettled(
    [reading, unpacking].map((each) =>
      each.catch((error: unknown) => {
        failures.push(error);
        throw error;
      }),
    ),
  );
  signal?.throwIfAborted();
  const failure = failures.find((error) => error instanceof Rejected || error instanceof Fault) ?? failures[0];
  if (failure !== undefined) throw toArchiveFailure(failure);
  if (hash.digest('hex').slice(0, 64) !== commit)
    throw new Fault(`the registry sent a file with another hash than that of version ${release.version}`);
  printLine(`unpacked ${counter.files} files, ${formatBytes(counter.bytes)}`);
  const latest = newest?.status === 'fulfilled' ? (newest.value ?? 0) : 0;
  return { counter, time: release.publishedAt ?? latest };
}

async function findReleaseOrFail(
  packageName: PackageName,
  commit: string,
  origins: RegistryOrigins | undefined,
  signal: AbortSignal | undefined,
): Promise<PackageRelease> {
  try {
    return await findRelease(packageName, { commit }, origins, signal);
  } catch (error) {
    signal?.throwIfAborted();
    throw error instanceof ReleaseError
      ? new Fault(`${error.message} It may have been unpublished.`)
      : new Fault(`the registry could not be asked for ${packageName.name}: ${formatError(error)}`);
  }
}

async function* download(
  { file, version }: PackageRelease,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  try {
    const response = await fetchFromRegistry(file, { timeoutMs: downloadMs, signal });
    if (!response.ok) throw new Error(`the registry answered with status ${response.status}`);
    yield* response.body ?? [];
  } catch (error) {
    throw new Fault(`version ${version} could not be fetched: ${formatError(error)}`);
  }
}

/** Writes the files, and returns the newest of their times. */
async function unpack(entries: Extract, target: string, counter: LimitCounter): Promise<number> {
  let newest = 0;
  const links = new Map<string, string>();
  for await (const entry of entries) {
    const { header } = entry;
    const path = readPath(header);
    if (path === undefined) {
      entry.resume();
      continue;
    }
    const exceeded = counter.add(path, header.size);
    if (exceeded !== undefined) throw new Rejected([exceeded]);
    newest = Math.max(newest, Math.floor(header.mtime.getTime() / 1000));
    if (header.type === 'symlink') {
      links.set(path, header.linkname);
      entry.resume();
      continue;
    }
    await mkdir(dirname(join(target, path)), { recursive: true });
    const isProgram = (header.mode & 0o100) !== 0;
    // An archive may hold a file twice; npm and pip take the last one.
    await writeFile(join(target, path), await buffer(entry), { mode: isProgram ? 0o755 : 0o644 });
  }
  await createLinks(links, target);
  return newest;
}

/** Creates links after all files, so that nothing is written through one. The review refuses those that leave the tree. */
async function createLinks(links: ReadonlyMap<string, string>, target: string): Promise<void> {
  for (const [path, linkTarget] of links) {
    if ([...links.keys()].some((other) => path.startsWith(`${other}/`)))
      throw createUnsafe(`has a file below a link, ${keepHead(toOneLine(path), 200)}`);
    await mkdir(dirname(join(target, path)), { recursive: true });
    await symlink(linkTarget, join(target, path));
  }
}

/** Ends a bomb: an archive that is small only as long as it is compressed. */
function limitBytes(maximum: number): (chunks: AsyncIterable<Buffer>) => AsyncGenerator<Buffer> {
  return async function* (chunks) {
    let passed = 0;
    for await (const chunk of chunks) {
      passed += chunk.length;
      if (passed > maximum + archiveSlackBytes)
        throw new Rejected([
          {
            rule: 'limits/repository-bytes',
            severity: 'error',
            message: `The files of the package exceed ${formatBytes(maximum)} in total.`,
            fix: 'Keep models, datasets and media out of the package; download them when the app starts, or store them on a volume.',
          },
        ]);
      yield chunk;
    }
  };
}

function toArchiveFailure(error: unknown): Error {
  if (error instanceof Rejected || error instanceof Fault) return error;
  return createUnsafe(`cannot be unpacked: ${formatError(error)}`);
}

function formatError(error: unknown): string {
  return keepHead(toOneLine(error instanceof Error ? error.message : String(error)), 200);
}

/** The path of a file below the top folder of the archive; undefined for what is no file. @throws Rejected */
function readPath({ name, type }: Header): string | undefined {
  const shown = keepHead(toOneLine(name), 200);
  if (type === 'link') throw createUnsafe(`has a hard link, ${shown}`);
  if (type !== 'file' && type !== 'contiguous-file' && type !== 'symlink') return undefined;
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  if (name.startsWith('/') || name.includes('\\') || name.includes('\0') || parts.includes('..'))
    throw createUnsafe(`has a path outside its own folder, ${shown}`);
  if (parts.some((part) => part.toLowerCase() === '.git')) throw createUnsafe(`has a folder of git, ${shown}`);
  return parts.length < 2 ? undefined : parts.slice(1).join('/');
}

function createUnsafe(what: string): Rejected {
  return new Rejected([
    {
      rule: 'package/archive',
      severity: 'error',
      message: `The file of the package ${what}.`,
      fix: 'Publish a new version without it, or submit the git repository of the package.',
    },
  ]);
}
