// Fetches the submodules of a commit: the exact commits, from allowed git servers, within the limits of the repository.
import { lstat, mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { createGit, Git } from '../../../lib/git/index.ts';
import type { PipelineInput } from '../contract.ts';
import type { Submodule } from '../notes.ts';
import { Fault, Rejected } from '../outcome.ts';
import type { LimitCounter } from '../review/rules/limits.ts';
import { size } from '../text.ts';
import { checkOut } from './check-out.ts';
import { fetchCommit } from './fetch.ts';
import { readDeclarations, submoduleRepository, type Declarations } from './gitmodules.ts';
import { listCommit, type Gitlink } from './listing.ts';
import { timeLimit } from '../../../lib/time-limit.ts';

const maximumDepth = 3;
const maximumModules = 20;
const maximumSeconds = 180;
const maximumFileBytes = 256 * 1024;
const storePrefix = 'submodule-';

interface Parent {
  readonly git: Git;
  readonly repo: string;
  readonly commit: string;
  /** Folder in the tree, '' for the top. */
  readonly prefix: string;
  readonly gitlinks: readonly Gitlink[];
  readonly depth: number;
}

export interface SubmoduleWork {
  readonly input: PipelineInput;
  readonly source: string;
  /** Folder for object stores, outside the tree. */
  readonly notes: string;
  /** Counts the files of all of them together. */
  readonly counter: LimitCounter;
  readonly say: (line: string) => void;
  readonly makeGit: (options: Pick<Parameters<typeof createGit>[0], 'folder' | 'gitFolder' | 'insecure'>) => Git;
  readonly signal?: AbortSignal | undefined;
}

interface Running extends SubmoduleWork {
  /** Git hosts that could not be reached: they are not asked again, since each try may take minutes. */
  readonly unreachable: Set<string>;
}

/** What became of each submodule. None of them ends the clone: the review says which of the missing are needed. */
export async function fetchSubmodules(
  top: Omit<Parent, 'prefix' | 'depth'>,
  work: SubmoduleWork,
): Promise<Submodule[]> {
  const done: Submodule[] = [];
  const deadline = timeLimit(maximumSeconds * 1000);
  const within: Running = {
    ...work,
    unreachable: new Set(),
    signal: work.signal === undefined ? deadline : AbortSignal.any([work.signal, deadline]),
  };
  const waiting: Parent[] = [{ ...top, prefix: '', depth: 1 }];
  for (let parent = waiting.shift(); parent !== undefined; parent = waiting.shift()) {
    const declared = parent.gitlinks.length === 0 ? new Map<string, string[]>() : await declarations(parent);
    for (const link of parent.gitlinks) {
      const tooMany = limitOf(parent, done);
      const found =
        tooMany === undefined ? await one(link, parent, declared, within, deadline) : missing(link, tooMany);
      done.push(named(found, parent.prefix));
      const below = 'below' in found ? found.below : undefined;
      if (below !== undefined) waiting.push(below);
      if (found.problem !== undefined)
        work.say(`submodule ${parent.prefix}${link.path} is not fetched: ${found.problem}`);
    }
  }
  return done;
}

type Result = Submodule & { readonly below?: Parent };

function named({ path, commit, problem, passing }: Result, prefix: string): Submodule {
  return {
    path: `${prefix}${path}`,
    commit,
    ...(problem === undefined ? {} : { problem }),
    ...(passing === undefined ? {} : { passing }),
  };
}

function missing({ path, commit }: Gitlink, problem: string, passing?: true): Result {
  return { path, commit, problem, ...(passing === undefined ? {} : { passing }) };
}

function limitOf({ depth }: Parent, done: readonly Submodule[]): string | undefined {
  if (depth > maximumDepth) return `submodules are fetched to a depth of ${maximumDepth}`;
  return done.length >= maximumModules ? `at most ${maximumModules} submodules are fetched` : undefined;
}

/** git reads its own file, from the commit and not from the disk: no link is followed. */
async function declarations({ git, commit }: Parent): Promise<Declarations> {
  const listed = await git(['config', '--null', '--list', '--no-includes', `--blob=${commit}:.gitmodules`], {
    keepBytes: maximumFileBytes,
  });
  return listed.code === 0 ? readDeclarations(listed.stdout) : new Map();
}

async function one(
  link: Gitlink,
  parent: Parent,
  declared: Declarations,
  work: Running,
  deadline: AbortSignal,
): Promise<Result> {
  const repository = submoduleRepository(declared, link.path, parent.repo, work.input.gitHosts);
  if (typeof repository === 'string') return missing(link, repository);
  if (work.unreachable.has(repository.host))
    return missing(link, `the git host ${repository.host} could not be reached`, true);
  const target = join(work.source, parent.prefix, link.path);
  if (!(await isEmptyFolder(work.source, `${parent.prefix}${link.path}`)))
    return missing(link, 'its path is not an empty folder of the repository');
  const gitFolder = await mkdtemp(join(work.notes, storePrefix));
  try {
    return await fetched(
      link,
      parent,
      { url: repository.cloneUrl, insecure: repository.insecure, target, gitFolder },
      work,
    );
  } catch (error) {
    await rm(gitFolder, { recursive: true, force: true });
    if (deadline.aborted) return missing(link, `fetching submodules took more than ${maximumSeconds} s`, true);
    const result = missingFor(link, error, work.signal);
    if (result.passing === true) work.unreachable.add(repository.host);
    return result;
  }
}

/** A submodule that is too large or damaged is missing like one that is gone; the review says what that means. */
function missingFor(link: Gitlink, error: unknown, signal: AbortSignal | undefined): Result {
  if (signal?.aborted === true) throw error;
  if (error instanceof Rejected) return missing(link, error.message.replace(/\.$/, ''));
  if (!(error instanceof Fault)) throw error;
  return missing(link, error.message, isPassing(error.message) ? true : undefined);
}

interface Place {
  readonly url: string;
  readonly insecure: boolean;
  readonly target: string;
  readonly gitFolder: string;
}

async function fetched(link: Gitlink, parent: Parent, place: Place, work: SubmoduleWork): Promise<Result> {
  const { input, counter, say, signal } = work;
  // Each has an object store of its own, since one repository must not hand objects to another.
  const { url, insecure, target, gitFolder } = place;
  const git = work.makeGit({ folder: target, gitFolder, insecure });
  const prefix = `${parent.prefix}${link.path}/`;
  const left = Math.max(1, input.limits.repositoryBytes - counter.bytes);
  await fetchCommit(
    git,
    gitFolder,
    { repo: url, commit: link.commit, limits: { ...input.limits, repositoryBytes: left } },
    signal,
  );
  const total = counter.copy();
  const listing = await listCommit(git, { commit: link.commit, limits: input.limits, counter: total, prefix }, signal);
  await checkOut(git, { target, commit: link.commit, fileBytes: input.limits.fileBytes }, signal);
  const [files, bytes] = [total.files - counter.files, total.bytes - counter.bytes];
  say(`submodule ${parent.prefix}${link.path}: ${files} files, ${size(bytes)} of ${url} at ${link.commit}`);
  counter.take(total);
  return {
    ...link,
    below: { git, repo: url, commit: link.commit, prefix, gitlinks: listing.gitlinks, depth: parent.depth + 1 },
  };
}

/** Removes what the fetching left beside the tree. */
export async function removeStores(notes: string): Promise<void> {
  for (const name of await readdir(notes))
    if (name.startsWith(storePrefix)) await rm(join(notes, name), { recursive: true, force: true });
}

/** git leaves an empty folder for each. No step on the way to it may be a link. */
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

/** Trouble of the network or the server, which may be gone another time; not a repository that is private or gone. */
function isPassing(message: string): boolean {
  return !/could not read Username|askpass|Authentication failed|terminal prompts disabled|not found|returned error: 40\d|not our ref|no longer in the repository|redirects/i.test(
    message,
  );
}
