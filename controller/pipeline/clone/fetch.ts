// Fetches exactly one commit, and cuts off whatever is larger than a repository may be.
import { readdir, stat } from 'node:fs/promises';
import { constants } from 'node:os';
import { join } from 'node:path';
import type { Git, GitResult } from '../../../lib/git/index.ts';
import { tooLargeSource, type PipelineInput } from '../contract.ts';
import { Fault, Rejected } from '../outcome.ts';
import { oneLine, size, tail } from '../text.ts';
import { followRedirect } from './redirect.ts';

/** Room for a pack beyond the bytes of the tree: commit and tree objects, and headers of what does not compress. */
const packSlackBytes = 8 * 1024 * 1024;

type FetchInput = Pick<PipelineInput, 'repo' | 'commit' | 'limits'>;

/**
 * Brings the commit into the (new, empty) object store, which is `folder`. @throws Rejected when it is too large or
 * damaged, Fault otherwise.
 */
export async function fetchCommit(git: Git, folder: string, input: FetchInput, signal?: AbortSignal): Promise<void> {
  const format = input.commit.length === 64 ? 'sha256' : 'sha1';
  const made = await git(['init', '--quiet', '--bare', '--template=', `--object-format=${format}`]);
  if (made.code !== 0) throw new Fault(`git could not create an object store: ${said(made)}`);
  const fetch = (url: string, references: readonly string[], depth: readonly string[]): Promise<GitResult> =>
    git(
      [
        'fetch',
        '--quiet',
        '--no-tags',
        '--no-recurse-submodules',
        '--no-auto-maintenance',
        ...depth,
        '--',
        url,
        ...references,
      ],
      { fileBytes: maximumPackBytes(input), signal },
    );
  let url = input.repo;
  let fetched = await fetch(url, [input.commit], ['--depth=1']);
  if (fetched.code !== 0 && /redirect|requested URL returned error: 30[1278]/i.test(fetched.stderr)) {
    url = await followRedirect(url, signal);
    fetched = await fetch(url, [input.commit], ['--depth=1']);
  }
  // Servers that speak only the old protocol refuse a commit that is no tip; its branch then has to come whole.
  if (
    fetched.code !== 0 &&
    /unadvertised object|not our ref|dumb http transport|couldn't find remote ref/i.test(fetched.stderr)
  ) {
    fetched = await fetch(url, ['+refs/heads/*:refs/fetched/heads/*', '+refs/tags/*:refs/fetched/tags/*'], []);
  }
  if (fetched.code !== 0) throw await verdict(fetched, folder, input);
  const found = await git(['rev-parse', '--verify', '--quiet', '--end-of-options', `${input.commit}^{commit}`]);
  if (found.stdout.trim() !== input.commit) {
    throw new Fault(`commit ${input.commit} is no longer in the repository; a force push may have replaced it`);
  }
}

function maximumPackBytes(input: FetchInput): number {
  return input.limits.repositoryBytes + packSlackBytes;
}

/** Did the kernel end git for the size of its pack? git itself does not say so; what it left behind does. */
async function cutOff(folder: string, input: FetchInput): Promise<boolean> {
  const packs = join(folder, 'objects', 'pack');
  for (const name of await readdir(packs))
    if ((await stat(join(packs, name))).size >= maximumPackBytes(input)) return true;
  return false;
}

/** Exit code of a program that SIGKILL ended. */
const killed = 128 + constants.signals.SIGKILL;

/**
 * Ended by the kernel for its memory, or out of it: git itself, or the program it started to read the pack. The
 * server's own trouble is not ours.
 */
function isOutOfMemory({ code, stderr }: GitResult): boolean {
  return code === killed || /^(?!remote:).*(?:died of signal 9\b|out of memory|cannot allocate memory)/im.test(stderr);
}

/** What a git that failed means: the commit is too large for it, or `doing` may go well another time. */
export function gitFailure(doing: string, result: GitResult): Rejected | Fault {
  return isOutOfMemory(result)
    ? new Rejected([{ ...tooLargeSource, severity: 'error' }])
    : new Fault(`${doing}: ${said(result)}`);
}

async function verdict(result: GitResult, folder: string, input: FetchInput): Promise<Error> {
  if (await cutOff(folder, input)) {
    return new Rejected([
      {
        rule: 'limits/repository-bytes',
        severity: 'error',
        message: `The repository is larger than ${size(input.limits.repositoryBytes)}, so the fetch was stopped.`,
        fix: 'Keep models, datasets and media out of the repository; download them when the app starts, or store them on a volume.',
      },
    ]);
  }
  if (/fsck error|error in packed object|^error: object [0-9a-f]{40,}: \w+: /m.test(result.stderr)) {
    return new Rejected([
      {
        rule: 'git/damaged',
        severity: 'error',
        message: `git rejected an object of this commit: ${said(result)}`,
        fix: 'Run "git fsck --strict" in a fresh clone, fix what it reports, and push a new commit.',
      },
    ]);
  }
  return gitFailure('the repository could not be fetched', result);
}

/** What git said, on one short line. */
export function said(result: GitResult): string {
  const text = oneLine(tail(result.stderr, 600));
  if (text !== '') return text;
  return `exit code ${result.code}`;
}
