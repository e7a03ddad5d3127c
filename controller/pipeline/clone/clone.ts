// Stage 1: fetches the files of one commit into the workspace, and nothing else from the repository.
import { lutimes, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  findAuthorKeyHashes,
  maximumOwnershipBytes,
  ownershipFile,
  findOwnershipTokens,
} from '../../../lib/ownership-file.ts';
import { createGit, type Git, type GitOptions } from '../../../lib/git/git.ts';
import type { WorkspacePaths } from '../config.ts';
import type { CloneResult, PipelineInput } from '../contract.ts';
import { writeNotes } from '../handover.ts';
import { LimitCounter } from '../review/rules/files.ts';
import { formatBytes } from '../text.ts';
import { readFileText } from '../tree.ts';
import { checkOut, fetchCommit, listCommit } from './fetch.ts';
import { fetchSubmodules, removeStores } from './submodules.ts';

const latestTime = 4_102_444_800;

export interface CloneOptions {
  readonly printLine: (line: string) => void;
  /** Grants read access to the repository, but not to its submodules. */
  readonly gitToken?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Fetches, measures and checks out the commit. @throws Rejected for exceeded limits and damaged objects, Fault for
 * anything that a retry may fix
 */
export async function clone(
  input: PipelineInput,
  paths: WorkspacePaths,
  { printLine, gitToken, signal }: CloneOptions,
): Promise<CloneResult> {
  process.umask(0o022);
  // Next to the author's tree, never inside it.
  const gitFolder = join(paths.notes, 'git');
  for (const folder of [paths.source, gitFolder]) await rm(folder, { recursive: true, force: true });
  for (const folder of [paths.source, paths.notes]) await mkdir(folder, { recursive: true });
  const makeGit = (options: Pick<GitOptions, 'folder' | 'gitFolder' | 'insecure' | 'credential'>): Git =>
    createGit({ ...options, slowTransfer: { bytesPerSecond: 1024, seconds: 30 } });
  const credential = gitToken === undefined ? undefined : { url: input.repo, token: gitToken };
  const git = makeGit({ folder: paths.source, gitFolder, insecure: input.insecure, credential });
  printLine(`fetching commit ${input.commit} of ${input.repo}`);
  await fetchCommit(git, gitFolder, input, signal);
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
  await setTreeTimes(paths.source, time);
  await writeNotes(paths.notes, 'clone', { commit: input.commit, time, submodules });
  const { files, bytes } = counter;
  return { commit: input.commit, files, bytes, ...readOwnership(paths.source) };
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
