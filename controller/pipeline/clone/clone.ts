// Stage 1: brings the files of one commit into the workspace, and nothing else of the repository.
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
  /** Reads the repository itself, and no submodule. */
  readonly gitToken?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Fetches, measures, checks out. @throws Rejected for limits and damage, Fault for what another try may fix. */
export async function clone(
  input: PipelineInput,
  paths: WorkspacePaths,
  { printLine, gitToken, signal }: CloneOptions,
): Promise<CloneResult> {
  process.umask(0o022);
  // Beside the author's tree, never in it.
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

/** Seconds since 1970. An author may write any time into a commit; what no file system holds is taken as 1970. */
async function readCommitTime(git: Git, commit: string): Promise<number> {
  const shown = await git(['show', '--no-patch', '--format=%ct', commit]);
  const seconds = Number(shown.stdout.trim());
  return Number.isInteger(seconds) && seconds > 0 && seconds < latestTime ? seconds : 0;
}

/**
 * Sets the times of a tree to `seconds`. The time of the commit, not a constant: web servers make ETags of time and
 * size,
 * and a constant would have browsers keep a file that changed without changing its length.
 */
async function setTreeTimes(root: string, seconds: number): Promise<void> {
  const folders = [Buffer.from(root)];
  // Names are bytes: one that is not UTF-8 must not be missed. Folders come last, since touching their files touches
  // them.
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

/** Nothing where the file is missing, or is no regular file. */
export function readOwnership(source: string): { ownership?: string[]; authorKeys?: string[] } {
  const text = readFileText(source, ownershipFile, maximumOwnershipBytes) ?? '';
  const [ownership, authorKeys] = [findOwnershipTokens(text), findAuthorKeyHashes(text)];
  return {
    ...(ownership.length === 0 ? {} : { ownership }),
    ...(authorKeys.length === 0 ? {} : { authorKeys }),
  };
}
