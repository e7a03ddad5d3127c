// Stage 1: fetches the files of one commit and of its submodules into the workspace, and nothing else from their repositories; or
// those of one release of a package.
import { lutimes, mkdir, readdir, rm, lstat, mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { isAbsolute } from 'node:path/posix';
import {
  findAuthorKeyHashes,
  maximumOwnershipBytes,
  ownershipFile,
  findOwnershipTokens,
} from '../../../lib/ownership-file.ts';
import { createGit, type Git, type GitOptions } from '../../../lib/git/git.ts';
import { type WorkspacePaths, type CloneResult, type PipelineInput, Fault, Rejected } from '../contract.ts';
import { writeNotes, type Submodule } from '../handover.ts';
import { LimitCounter } from '../review/rules/files.ts';
import { formatBytes, keepHead, toOneLine } from '../text.ts';
import { readFileText } from '../tree.ts';
import { checkOut, fetchCommit, listCommit, type Gitlink } from './fetch.ts';
import { fetchPackage, type FetchedSource } from './package.ts';
import type { RegistryOrigins } from '../../../lib/packages.ts';
import {
  type GitHosts,
  parseAcceptedRepository,
  readRepository,
  type Repository,
  RepositoryError,
} from '../../../lib/repository.ts';
import { createTimeLimit } from '../../../lib/values.ts';

const latestTime = 4_102_444_800;

export interface CloneOptions {
  readonly printLine: (line: string) => void;
  /** Grants read access to the repository, but not to its submodules. */
  readonly gitToken?: string | undefined;
  /** The private key for `input.ssh`; not for its submodules either. */
  readonly deployKey?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Registries of packages; default: the public ones. */
  readonly origins?: RegistryOrigins | undefined;
}

/**
 * Fetches, measures and checks out the commit, or unpacks the release of a package.
 * @throws Rejected for exceeded limits, damaged objects and unsafe archives, Fault for anything that a retry may fix
 */
export async function clone(input: PipelineInput, paths: WorkspacePaths, options: CloneOptions): Promise<CloneResult> {
  process.umask(0o022);
  const { source, notes } = paths;
  await rm(source, { recursive: true, force: true });
  for (const folder of [source, notes]) await mkdir(folder, { recursive: true });
  const { package: packageName } = parseAcceptedRepository(input.repo);
  const {
    counter,
    time,
    submodules = [],
  } = await (packageName === undefined
    ? cloneRepository(input, paths, options)
    : fetchPackage(packageName, input, { source, ...options }));
  await setTreeTimes(source, time);
  await writeNotes(notes, 'clone', { commit: input.commit, time, submodules, package: packageName?.registry });
  const { files, bytes } = counter;
  return { commit: input.commit, files, bytes, ...readOwnership(source) };
}

async function cloneRepository(
  input: PipelineInput,
  paths: WorkspacePaths,
  { printLine, gitToken, deployKey, signal }: CloneOptions,
): Promise<FetchedSource & { readonly submodules: Submodule[] }> {
  // Next to the author's tree, never inside it.
  const gitFolder = join(paths.notes, 'git');
  await rm(gitFolder, { recursive: true, force: true });
  const makeGit = (options: Pick<GitOptions, 'folder' | 'gitFolder' | 'insecure' | 'credential' | 'ssh'>): Git =>
    createGit({ ...options, slowTransfer: { bytesPerSecond: 1024, seconds: 30 } });
  const credential = gitToken === undefined ? undefined : { url: input.repo, token: gitToken };
  const { ssh: remote } = input;
  if (remote !== undefined && deployKey === undefined) throw new Fault('the deploy key of the repository is missing');
  const ssh = remote && deployKey ? { privateKey: deployKey, knownHosts: remote.knownHosts } : undefined;
  const git = makeGit({ folder: paths.source, gitFolder, insecure: input.insecure, credential, ssh });
  printLine(`fetching commit ${input.commit} of ${input.repo}`);
  await fetchCommit(git, gitFolder, { ...input, repo: remote?.url ?? input.repo }, signal);
  const counter = new LimitCounter(input.limits);
  const { gitlinks } = await listCommit(git, { ...input, counter }, signal);
  printLine(`checking out ${counter.files} files, ${formatBytes(counter.bytes)}`);
  await checkOut(git, { target: paths.source, commit: input.commit, fileBytes: input.limits.fileBytes }, signal);
  const time = await readCommitTime(git, input.commit);
  const submodules = await fetchSubmodules(
    { git, repo: input.repo, commit: input.commit, gitlinks },
    { input, source: paths.source, notes: paths.notes, counter, printLine, makeGit, signal },
  );
  await removeStores(paths.notes);
  await rm(gitFolder, { recursive: true, force: true });
  return { counter, time, submodules };
}

/**
 * Returns the commit time in seconds since 1970. Authors can set any time; one that file systems cannot store becomes
 * 1970.
 */
async function readCommitTime(git: Git, commit: string): Promise<number> {
  const output = await git(['show', '--no-patch', '--format=%ct', commit]);
  const seconds = Number(output.stdout.trim());
  return Number.isInteger(seconds) && seconds > 0 && seconds < latestTime ? seconds : 0;
}

/**
 * Sets all file times in a tree to `seconds`. Uses the commit time instead of a constant: web servers derive ETags from
 * time and size, so with a constant, browsers would keep a file that changed without changing its length.
 */
async function setTreeTimes(root: string, seconds: number): Promise<void> {
  const folders = [Buffer.from(root)];
  // Handle names as bytes, because one that is not UTF-8 must not be missed. Folders come last: changing their files
  // updates the folders' own times.
  for (let index = 0; index < folders.length; index += 1) {
    const folder = folders[index] ?? Buffer.from(root);
    for (const entry of await readdir(folder, { withFileTypes: true, encoding: 'buffer' })) {
      const path = Buffer.concat([folder, Buffer.from('/'), entry.name]);
      if (entry.isDirectory()) folders.push(path);
      else await lutimes(path, seconds, seconds);
    }
  }
  for (const folder of folders.toReversed()) await lutimes(folder, seconds, seconds);
}

/** Returns no fields if the file is missing or is not a regular file. */
export function readOwnership(source: string): { ownership?: string[]; authorKeys?: string[] } {
  const text = readFileText(source, ownershipFile, maximumOwnershipBytes) ?? '';
  const [ownership, authorKeys] = [findOwnershipTokens(text), findAuthorKeyHashes(text)];
  return {
    ...(ownership.length === 0 ? {} : { ownership }),
    ...(authorKeys.length === 0 ? {} : { authorKeys }),
  };
}

// Submodules: the exact commits, from allowed git servers, within the repository limits.

const maximumDepth = 3;
const maximumModules = 20;
const maximumSeconds = 180;
const maximumFileBytes = 256 * 1024;
const storePrefix = 'submodule-';

interface Parent {
  readonly git: Git;
  readonly repo: string;
  readonly commit: string;
  /** Folder in the tree, '' for the root. */
  readonly prefix: string;
  readonly gitlinks: readonly Gitlink[];
  readonly depth: number;
}

interface SubmoduleWork {
  readonly input: PipelineInput;
  readonly source: string;
  /** Folder for object stores, outside the tree. */
  readonly notes: string;
  /** Counts the files of all submodules together. */
  readonly counter: LimitCounter;
  readonly printLine: (line: string) => void;
  readonly makeGit: (options: Pick<Parameters<typeof createGit>[0], 'folder' | 'gitFolder' | 'insecure'>) => Git;
  readonly signal?: AbortSignal | undefined;
}

interface RunningWork extends SubmoduleWork {
  /** Unreachable git hosts. They are not retried, because each attempt may take minutes. */
  readonly unreachable: Set<string>;
}

/**
 * Fetches submodules and returns the result for each. A failure does not end the clone: the review decides which
 * missing submodules are needed.
 */
async function fetchSubmodules(top: Omit<Parent, 'prefix' | 'depth'>, work: SubmoduleWork): Promise<Submodule[]> {
  const done: Submodule[] = [];
  const deadline = createTimeLimit(maximumSeconds * 1000);
  const within: RunningWork = {
    ...work,
    unreachable: new Set(),
    signal: work.signal === undefined ? deadline : AbortSignal.any([work.signal, deadline]),
  };
  const waiting: Parent[] = [{ ...top, prefix: '', depth: 1 }];
  for (let parent = waiting.shift(); parent !== undefined; parent = waiting.shift()) {
    const declared = parent.gitlinks.length === 0 ? new Map<string, string[]>() : await readGitmodules(parent);
    for (const link of parent.gitlinks) {
      const tooMany = findExceededLimit(parent, done);
      const result =
        tooMany === undefined
          ? await fetchOne(link, parent, declared, within, deadline)
          : createMissingResult(link, tooMany);
      done.push(toSubmodule(result, parent.prefix));
      const below = 'below' in result ? result.below : undefined;
      if (below !== undefined) waiting.push(below);
      if (result.problem !== undefined)
        work.printLine(`submodule ${parent.prefix}${link.path} is not fetched: ${result.problem}`);
    }
  }
  return done;
}

type Result = Submodule & { readonly below?: Parent };

function toSubmodule({ path, commit, problem, passing }: Result, prefix: string): Submodule {
  return {
    path: `${prefix}${path}`,
    commit,
    ...(problem === undefined ? {} : { problem }),
    ...(passing === undefined ? {} : { passing }),
  };
}

function createMissingResult({ path, commit }: Gitlink, problem: string, passing?: true): Result {
  return { path, commit, problem, ...(passing === undefined ? {} : { passing }) };
}

function findExceededLimit({ depth }: Parent, done: readonly Submodule[]): string | undefined {
  if (depth > maximumDepth) return `submodules are fetched to a depth of ${maximumDepth}`;
  return done.length >= maximumModules ? `at most ${maximumModules} submodules are fetched` : undefined;
}

/** Has git read .gitmodules from the commit rather than from the disk, so that no link is followed. */
async function readGitmodules({ git, commit }: Parent): Promise<Declarations> {
  const listed = await git(['config', '--null', '--list', '--no-includes', `--blob=${commit}:.gitmodules`], {
    keepBytes: maximumFileBytes,
  });
  return listed.code === 0 ? readDeclarations(listed.stdout) : new Map();
}

async function fetchOne(
  link: Gitlink,
  parent: Parent,
  declared: Declarations,
  work: RunningWork,
  deadline: AbortSignal,
): Promise<Result> {
  const repository = resolveSubmodule(declared, link.path, parent.repo, work.input.gitHosts);
  if (typeof repository === 'string') return createMissingResult(link, repository);
  if (work.unreachable.has(repository.host))
    return createMissingResult(link, `the git host ${repository.host} could not be reached`, true);
  const target = join(work.source, parent.prefix, link.path);
  if (!(await isEmptyFolder(work.source, `${parent.prefix}${link.path}`)))
    return createMissingResult(link, 'its path is not an empty folder of the repository');
  const gitFolder = await mkdtemp(join(work.notes, storePrefix));
  try {
    return await fetchSubmodule(
      link,
      parent,
      { url: repository.cloneUrl, insecure: repository.insecure, target, gitFolder },
      work,
    );
  } catch (error) {
    await rm(gitFolder, { recursive: true, force: true });
    if (deadline.aborted)
      return createMissingResult(link, `fetching submodules took more than ${maximumSeconds} s`, true);
    const result = toMissingOrThrow(link, error, work.signal);
    if (result.passing === true) work.unreachable.add(repository.host);
    return result;
  }
}

/** Treats a submodule that is too large or damaged as missing; the review decides what follows. */
function toMissingOrThrow(link: Gitlink, error: unknown, signal: AbortSignal | undefined): Result {
  if (signal?.aborted === true) throw error;
  if (error instanceof Rejected) return createMissingResult(link, error.message.replace(/\.$/, ''));
  if (!(error instanceof Fault)) throw error;
  return createMissingResult(link, error.message, isTemporary(error.message) ? true : undefined);
}

interface SubmoduleTarget {
  readonly url: string;
  readonly insecure: boolean;
  readonly target: string;
  readonly gitFolder: string;
}

async function fetchSubmodule(
  link: Gitlink,
  parent: Parent,
  place: SubmoduleTarget,
  work: SubmoduleWork,
): Promise<Result> {
  const { input, counter, printLine, signal } = work;
  // Each has a separate object store, because one repository must not provide objects to another.
  const { url, insecure, target, gitFolder } = place;
  const git = work.makeGit({ folder: target, gitFolder, insecure });
  const prefix = `${parent.prefix}${link.path}/`;
  const remainingBytes = Math.max(1, input.limits.repositoryBytes - counter.bytes);
  await fetchCommit(
    git,
    gitFolder,
    { repo: url, commit: link.commit, limits: { ...input.limits, repositoryBytes: remainingBytes } },
    signal,
  );
  const total = counter.copy();
  const listing = await listCommit(git, { commit: link.commit, limits: input.limits, counter: total, prefix }, signal);
  await checkOut(git, { target, commit: link.commit, fileBytes: input.limits.fileBytes }, signal);
  const [files, bytes] = [total.files - counter.files, total.bytes - counter.bytes];
  printLine(
    `submodule ${parent.prefix}${link.path}: ${files} files, ${formatBytes(bytes)} of ${url} at ${link.commit}`,
  );
  counter.take(total);
  return {
    ...link,
    below: { git, repo: url, commit: link.commit, prefix, gitlinks: listing.gitlinks, depth: parent.depth + 1 },
  };
}

/** Removes the object stores next to the tree. */
async function removeStores(notes: string): Promise<void> {
  for (const name of await readdir(notes))
    if (name.startsWith(storePrefix)) await rm(join(notes, name), { recursive: true, force: true });
}

/** git leaves an empty folder for each submodule. No folder on the path to it may be a link. */
async function isEmptyFolder(source: string, path: string): Promise<boolean> {
  let reached = source;
  for (const part of path.split('/')) {
    if (part === '' || part === '.' || part === '..') return false;
    reached = join(reached, part);
    const found = await lstat(reached).catch(() => undefined);
    if (found?.isDirectory() !== true) return false;
  }
  return (await readdir(reached)).length === 0;
}

/**
 * Returns whether a network or server error may be temporary, unlike a repository that is private or does not exist.
 */
function isTemporary(message: string): boolean {
  return !/could not read Username|askpass|Authentication failed|terminal prompts disabled|not found|returned error: 40\d|not our ref|no longer in the repository|redirects/i.test(
    message,
  );
}

const maximumEntries = 5_000;

/** Addresses by path, parsed from `git config --null --list`. */
type Declarations = ReadonlyMap<string, readonly string[]>;

/**
 * Parses `key
 * value\0`. If a key occurs twice, both values count, so that no two tools can read it differently.
 */
export function readDeclarations(listed: string): Declarations {
  const paths = new Lists();
  const urls = new Lists();
  for (const entry of listed.split('\0').slice(0, maximumEntries)) {
    const match = /^submodule\.([^\n]{1,500})\.(path|url)\n(.*)$/s.exec(entry);
    if (match === null) continue;
    const [, name = '', key = '', value = ''] = match;
    (key === 'path' ? paths : urls).add(name, [value]);
  }
  const declared = new Lists();
  for (const [name, values] of paths) for (const path of values) declared.add(path, urls.get(name) ?? []);
  return declared;
}

class Lists extends Map<string, readonly string[]> {
  add(key: string, values: readonly string[]): void {
    this.set(key, [...(this.get(key) ?? []), ...values]);
  }
}

/**
 * Resolves a submodule's repository, or the reason why it is not fetched. `parent` is the address of the repository
 * that declares it.
 */
export function resolveSubmodule(
  declared: Declarations,
  path: string,
  parent: string,
  hosts: GitHosts,
): Repository | string {
  const urls = new Set(declared.get(path));
  const [url] = urls;
  if (url === undefined) return '.gitmodules gives no address for it';
  if (urls.size > 1) return '.gitmodules gives several addresses for it';
  const address = toAbsoluteUrl(url, parent);
  if (address === undefined) return `its address ${keepHead(toOneLine(url), 120)} is not one of a git server`;
  const found = readRepository(address, hosts);
  return found instanceof RepositoryError ? found.message : found;
}

/** Resolves relative addresses against the repository. Rewrites SSH and git addresses to https on the same server. */
function toAbsoluteUrl(url: string, parent: string): string | undefined {
  if (/^\.{1,2}\//.test(url)) return resolveRelativeUrl(url, parent);
  if (/^https?:\/\//i.test(url)) return url;
  const [, host, path = ''] =
    /^(?:ssh:\/\/)?git@([A-Za-z0-9.-]{1,253})[:/]([^:]{1,300})$/.exec(url) ??
    /^git:\/\/([A-Za-z0-9.-]{1,253})\/([^:]{1,300})$/.exec(url) ??
    [];
  return host === undefined || isAbsolute(path) ? undefined : `https://${host}/${path}`;
}

function resolveRelativeUrl(url: string, parent: string): string | undefined {
  const base = `${parent.replace(/\/+$/, '')}/`;
  return URL.canParse(url, base) ? new URL(url, base).href : undefined;
}
