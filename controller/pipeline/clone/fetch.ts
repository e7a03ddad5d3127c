// Fetches a single commit, lists its files within the repository limits, and checks it out.
import { readdir, stat } from 'node:fs/promises';
import { constants } from 'node:os';
import { join } from 'node:path';
import type { Git, GitResult } from '../../../lib/git/git.ts';
import { Fault, type PipelineInput, Rejected, tooLargeSource } from '../contract.ts';
import { LimitCounter } from '../review/rules/files.ts';
import { formatBytes, keepTail, toOneLine } from '../text.ts';

/** Allowance for a pack beyond the bytes of its tree: commit and tree objects, and headers of incompressible data. */
const packSlackBytes = 8 * 1024 * 1024;

type FetchInput = Pick<PipelineInput, 'repo' | 'commit' | 'limits'>;

/**
 * Fetches the commit into `folder`, a new and empty object store. @throws Rejected if it is too large or damaged,
 * otherwise Fault
 */
export async function fetchCommit(git: Git, folder: string, input: FetchInput, signal?: AbortSignal): Promise<void> {
  const format = input.commit.length === 64 ? 'sha256' : 'sha1';
  const creation = await git(['init', '--quiet', '--bare', '--template=', `--object-format=${format}`]);
  if (creation.code !== 0) throw new Fault(`git could not create an object store: ${formatGitError(creation)}`);
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
      { fileBytes: computeMaximumPackBytes(input), signal },
    );
  let url = input.repo;
  let fetched = await fetch(url, [input.commit], ['--depth=1']);
  const isWeb = url.startsWith('http');
  if (isWeb && fetched.code !== 0 && /redirect|requested URL returned error: 30[1278]/i.test(fetched.stderr)) {
    url = await followRedirect(url, signal);
    fetched = await fetch(url, [input.commit], ['--depth=1']);
  }
  // Servers with only the old protocol refuse a commit that is not a branch tip; then the whole branch is fetched.
  if (
    fetched.code !== 0 &&
    /unadvertised object|not our ref|dumb http transport|couldn't find remote ref/i.test(fetched.stderr)
  ) {
    fetched = await fetch(url, ['+refs/heads/*:refs/fetched/heads/*', '+refs/tags/*:refs/fetched/tags/*'], []);
  }
  if (fetched.code !== 0) throw await toFetchError(fetched, folder, input);
  const found = await git(['rev-parse', '--verify', '--quiet', '--end-of-options', `${input.commit}^{commit}`]);
  if (found.stdout.trim() !== input.commit) {
    throw new Fault(`commit ${input.commit} is no longer in the repository; a force push may have replaced it`);
  }
}

function computeMaximumPackBytes(input: FetchInput): number {
  return input.limits.repositoryBytes + packSlackBytes;
}

/**
 * Returns whether the kernel stopped git because of its pack's size. git does not report it, but the file it left shows
 * it.
 */
async function isCutOff(folder: string, input: FetchInput): Promise<boolean> {
  const packs = join(folder, 'objects', 'pack');
  for (const name of await readdir(packs))
    if ((await stat(join(packs, name))).size >= computeMaximumPackBytes(input)) return true;
  return false;
}

/** Exit code of a program killed by SIGKILL. */
const killedExitCode = 128 + constants.signals.SIGKILL;

/**
 * Returns whether git, or the program it started to read the pack, ran out of memory or was killed for it. Memory
 * errors on the server do not count.
 */
function isOutOfMemory({ code, stderr }: GitResult): boolean {
  return (
    code === killedExitCode ||
    /^(?!remote:).*(?:died of signal 9\b|out of memory|cannot allocate memory)/im.test(stderr)
  );
}

/** Interprets a failed git command: either the commit is too large, or `doing` may succeed on retry. */
export function toGitFailure(doing: string, result: GitResult): Rejected | Fault {
  return isOutOfMemory(result)
    ? new Rejected([{ ...tooLargeSource, severity: 'error' }])
    : new Fault(`${doing}: ${formatGitError(result)}`);
}

async function toFetchError(result: GitResult, folder: string, input: FetchInput): Promise<Error> {
  if (await isCutOff(folder, input)) {
    return new Rejected([
      {
        rule: 'limits/repository-bytes',
        severity: 'error',
        message: `The repository is larger than ${formatBytes(input.limits.repositoryBytes)}, so the fetch was stopped.`,
        fix: 'Keep models, datasets and media out of the repository; download them when the app starts, or store them on a volume.',
      },
    ]);
  }
  if (/fsck error|error in packed object|^error: object [0-9a-f]{40,}: \w+: /m.test(result.stderr)) {
    return new Rejected([
      {
        rule: 'git/damaged',
        severity: 'error',
        message: `git rejected an object of this commit: ${formatGitError(result)}`,
        fix: 'Run "git fsck --strict" in a fresh clone, fix what it reports, and push a new commit.',
      },
    ]);
  }
  return toGitFailure('the repository could not be fetched', result);
}

/** Formats git's error output as one short line. */
function formatGitError(result: GitResult): string {
  const text = toOneLine(keepTail(result.stderr, 600));
  if (text !== '') return text;
  return `exit code ${result.code}`;
}

const probe = '/info/refs?service=git-upload-pack';
const maximumHops = 3;

/** Resolves redirects of a repository's address. @throws Fault if they lead to another host or to nothing */
async function followRedirect(repo: string, signal?: AbortSignal): Promise<string> {
  let address = repo.replace(/\/$/, '');
  for (let hop = 0; hop < maximumHops; hop += 1) {
    const answer = await fetch(`${address}${probe}`, {
      redirect: 'manual',
      ...(signal === undefined ? {} : { signal }),
    });
    await answer.body?.cancel();
    const location = answer.headers.get('location');
    if (answer.status < 300 || answer.status >= 400 || location === null) return address;
    address = toNextAddress(address, location);
  }
  throw new Fault(`the repository redirects more than ${maximumHops} times`);
}

/** Follows one redirect. @throws Fault if it leaves the host or the protocol */
export function toNextAddress(address: string, location: string): string {
  const target = URL.canParse(location, `${address}${probe}`) ? new URL(location, `${address}${probe}`) : undefined;
  if (
    target === undefined ||
    target.origin !== new URL(address).origin ||
    target.username !== '' ||
    target.password !== ''
  ) {
    throw new Fault(
      `the repository redirects to another host (${target?.host ?? 'no valid address'}); submit it under its new address`,
    );
  }
  if (!target.pathname.endsWith('/info/refs'))
    throw new Fault('the repository redirects to something that is not a git repository');
  return `${target.origin}${target.pathname.slice(0, -'/info/refs'.length)}`;
}

/** A path at which a commit refers to another repository. */
export interface Gitlink {
  readonly path: string;
  readonly commit: string;
}

interface Listing {
  readonly gitlinks: readonly Gitlink[];
}

interface ListInput extends Pick<PipelineInput, 'commit' | 'limits'> {
  /** Counter to continue from if the files are part of a larger tree. */
  readonly counter?: LimitCounter;
  /** Folder that contains them, with a trailing slash. */
  readonly prefix?: string;
}

const longestRecordBytes = 64 * 1024;

/** Parses the records of `git ls-tree -r -l -z`. @throws Rejected at the first limit that is exceeded */
export class ListingReader {
  readonly gitlinks: Gitlink[] = [];
  readonly counter: LimitCounter;
  readonly #prefix: string;
  #rest: Buffer = Buffer.alloc(0);

  constructor(
    limits: PipelineInput['limits'],
    { counter = new LimitCounter(limits), prefix = '' }: Partial<ListInput> = {},
  ) {
    this.counter = counter;
    this.#prefix = prefix;
  }

  read(chunk: Buffer): void {
    let buffer = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (let end = buffer.indexOf(0); end >= 0; end = buffer.indexOf(0)) {
      this.#record(buffer.subarray(0, end).toString('utf8'));
      buffer = buffer.subarray(end + 1);
    }
    if (buffer.length > longestRecordBytes) throw new Fault('git listed a path that is too long to be true');
    this.#rest = Buffer.from(buffer);
  }

  #record(record: string): void {
    const tab = record.indexOf('\t');
    const [mode = '', , object = '', bytes = ''] = record.slice(0, tab).split(/ +/);
    const path = record.slice(tab + 1);
    if (mode === '160000') this.gitlinks.push({ path, commit: object });
    const passed = this.counter.add(`${this.#prefix}${path}`, /^\d+$/.test(bytes) ? Number(bytes) : 0);
    if (passed !== undefined) throw new Rejected([passed]);
  }
}

/** Lists the files of a commit within the limits. @throws Rejected if it exceeds them */
export async function listCommit(git: Git, input: ListInput, signal?: AbortSignal): Promise<Listing> {
  const reader = new ListingReader(input.limits, input);
  const listed = await git(['ls-tree', '-r', '-l', '-z', '--full-tree', input.commit], {
    onStdout: (chunk) => {
      reader.read(chunk);
    },
    keepBytes: 4096,
    signal,
  });
  if (listed.code !== 0) throw toGitFailure('git could not list the commit', listed);
  return { gitlinks: reader.gitlinks };
}

interface CheckOut {
  readonly target: string;
  readonly commit: string;
  /** Maximum file size in the repository. */
  readonly fileBytes: number;
}

/** @throws Rejected or Fault */
export async function checkOut(git: Git, { target, commit, fileBytes }: CheckOut, signal?: AbortSignal): Promise<void> {
  const checkedOut = await git(
    [`--work-tree=${target}`, 'checkout', '--quiet', '--force', '--detach', '--no-recurse-submodules', commit],
    { fileBytes: 2 * fileBytes + 64 * 1024 * 1024, signal },
  );
  if (checkedOut.code !== 0) throw toGitFailure('git could not check out the commit', checkedOut);
}
