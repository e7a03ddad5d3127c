// Stage 1: brings the files of one commit into the workspace, and nothing else of the repository.
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { CloneResult, PipelineInput } from '../contract.ts';
import { writeNotes } from '../notes.ts';
import type { WorkspacePaths } from '../config.ts';
import { size } from '../text.ts';
import { fetchCommit, gitFailure } from './fetch.ts';
import { createGit, type Git } from '../../../lib/git/index.ts';
import { listCommit } from './listing.ts';
import { normalise } from './normalise.ts';
import { ownershipTokens } from './ownership.ts';

const latestTime = 4_102_444_800;

/** Fetches, measures, checks out. @throws Rejected for limits and damage, Fault for what another try may fix. */
export async function clone(
  input: PipelineInput,
  paths: WorkspacePaths,
  say: (line: string) => void,
  signal?: AbortSignal,
): Promise<CloneResult> {
  process.umask(0o022);
  // Beside the author's tree, never in it.
  const gitFolder = join(paths.notes, 'git');
  for (const folder of [paths.source, gitFolder]) await rm(folder, { recursive: true, force: true });
  for (const folder of [paths.source, paths.notes]) await mkdir(folder, { recursive: true });
  const git = createGit({
    folder: paths.source,
    gitFolder,
    insecure: input.insecure,
    slowTransfer: { bytesPerSecond: 1024, seconds: 30 },
  });
  say(`fetching commit ${input.commit} of ${input.repo}`);
  await fetchCommit(git, gitFolder, input, signal);
  const { gitlinks, files, bytes } = await listCommit(git, input, signal);
  say(`checking out ${files} files, ${size(bytes)}`);
  const checkedOut = await git(
    [
      `--work-tree=${paths.source}`,
      'checkout',
      '--quiet',
      '--force',
      '--detach',
      '--no-recurse-submodules',
      input.commit,
    ],
    {
      fileBytes: 2 * input.limits.fileBytes + 64 * 1024 * 1024,
      signal,
    },
  );
  if (checkedOut.code !== 0) throw gitFailure('git could not check out the commit', checkedOut);
  const time = await commitTime(git, input.commit);
  await rm(gitFolder, { recursive: true, force: true });
  await normalise(paths.source, time);
  await writeNotes(paths.notes, 'clone', { commit: input.commit, time, gitlinks });
  const ownership = ownershipTokens(paths.source);
  return { commit: input.commit, files, bytes, ...(ownership.length === 0 ? {} : { ownership }) };
}

/** Seconds since 1970. An author may write any time into a commit; what no file system holds is taken as 1970. */
async function commitTime(git: Git, commit: string): Promise<number> {
  const shown = await git(['show', '--no-patch', '--format=%ct', commit]);
  const seconds = Number(shown.stdout.trim());
  return Number.isInteger(seconds) && seconds > 0 && seconds < latestTime ? seconds : 0;
}
