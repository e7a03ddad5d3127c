// Stage 1: brings the files of one commit into the workspace, and nothing else of the repository.
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { CloneResult, PipelineInput } from '../contract.ts';
import { writeNotes } from '../notes.ts';
import type { WorkspacePaths } from '../config.ts';
import { size } from '../text.ts';
import { checkOut } from './check-out.ts';
import { fetchCommit } from './fetch.ts';
import { createGit, type Git, type GitOptions } from '../../../lib/git/index.ts';
import { LimitCounter } from '../review/rules/limits.ts';
import { listCommit } from './listing.ts';
import { normalise } from './normalise.ts';
import { ownershipOf } from './ownership.ts';
import { fetchSubmodules, removeStores } from './submodules.ts';

const latestTime = 4_102_444_800;

export interface CloneOptions {
  readonly say: (line: string) => void;
  /** Reads the repository itself, and no submodule. */
  readonly gitToken?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Fetches, measures, checks out. @throws Rejected for limits and damage, Fault for what another try may fix. */
export async function clone(
  input: PipelineInput,
  paths: WorkspacePaths,
  { say, gitToken, signal }: CloneOptions,
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
  say(`fetching commit ${input.commit} of ${input.repo}`);
  await fetchCommit(git, gitFolder, input, signal);
  const counter = new LimitCounter(input.limits);
  const { gitlinks } = await listCommit(git, { ...input, counter }, signal);
  say(`checking out ${counter.files} files, ${size(counter.bytes)}`);
  await checkOut(git, { target: paths.source, commit: input.commit, fileBytes: input.limits.fileBytes }, signal);
  const time = await commitTime(git, input.commit);
  const submodules = await fetchSubmodules(
    { git, repo: input.repo, commit: input.commit, gitlinks },
    { input, source: paths.source, notes: paths.notes, counter, say, makeGit, signal },
  );
  await removeStores(paths.notes);
  await rm(gitFolder, { recursive: true, force: true });
  await normalise(paths.source, time);
  await writeNotes(paths.notes, 'clone', { commit: input.commit, time, submodules });
  const { files, bytes } = counter;
  return { commit: input.commit, files, bytes, ...ownershipOf(paths.source) };
}

/** Seconds since 1970. An author may write any time into a commit; what no file system holds is taken as 1970. */
async function commitTime(git: Git, commit: string): Promise<number> {
  const shown = await git(['show', '--no-patch', '--format=%ct', commit]);
  const seconds = Number(shown.stdout.trim());
  return Number.isInteger(seconds) && seconds > 0 && seconds < latestTime ? seconds : 0;
}
