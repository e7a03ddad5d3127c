// Lists references of a remote repository, without fetching anything and without trusting its server.
import type { Repository } from '../repository.ts';
import { createGit } from './git.ts';
import { createReadToken, repositoryPath } from './read-token.ts';

const outputLimit = 1024 * 1024;
const timeoutMs = 20_000;
/** git holds all references that a server sends before it prints one, and a server may send them without end. */
const memoryBytes = 192 * 1024 * 1024;

/** Commits and symbolic references by their full names. */
export interface References {
  readonly commits: ReadonlyMap<string, string>;
  /** What each symbolic reference points to, like HEAD to refs/heads/main. */
  readonly symbolic: ReadonlyMap<string, string>;
}

/**
 * The references of these full names, as far as the repository has them. `readSecret` makes tokens for the git server
 * inside the cluster.
 * @throws Error that says what git said.
 */
export async function listReferences(
  repository: Repository,
  names: readonly string[],
  readSecret?: string,
): Promise<References> {
  const git = createGit({
    folder: '/',
    insecure: repository.insecure,
    slowTransfer: { bytesPerSecond: 1, seconds: 10 },
    credential: credentialFor(repository, readSecret, new Date(Date.now() + 2 * timeoutMs)),
    memoryBytes,
  });
  let received = 0;
  const { code, stdout, stderr } = await git(['ls-remote', '--symref', '--', repository.cloneUrl, ...names], {
    keepBytes: outputLimit,
    signal: AbortSignal.timeout(timeoutMs),
    onStdout(chunk) {
      received += chunk.length;
      if (received > outputLimit) throw new Error('the server sent more than 1 MiB of references');
    },
  }).catch((error: unknown) => {
    throw isTimeout(error) ? new Error(`no response within ${timeoutMs / 1000} s`, { cause: error }) : error;
  });
  if (/out of memory|memory exhausted|malloc failed/i.test(stderr))
    throw new Error('the server sent more references than there is memory for');
  if (code !== 0) throw new Error(stderr.trim() === '' ? `git ended with exit code ${code}` : stderr);
  return parse(stdout);
}

/** What opens a repository of the git server inside the cluster; undefined for any other. */
export function credentialFor(
  { cloneUrl, insecure }: Repository,
  secret: string | undefined,
  expires: Date,
): { readonly url: string; readonly token: string } | undefined {
  if (secret === undefined || !insecure) return undefined;
  return { url: cloneUrl, token: createReadToken(repositoryPath(cloneUrl), secret, expires) };
}

/** Lines `<commit>\t<reference>` and `ref: <reference>\tHEAD`, as `git ls-remote --symref` prints them. */
function parse(output: string): References {
  const [commits, symbolic] = [new Map<string, string>(), new Map<string, string>()];
  for (const line of output.split('\n')) {
    const [value, name] = line.split('\t');
    if (value === undefined || name === undefined) continue;
    if (value.startsWith('ref: ')) symbolic.set(name, value.slice(5));
    else if (isCommitId(value)) commits.set(name, value);
  }
  return { commits, symbolic };
}

/** True for a full commit id. */
export function isCommitId(text: string | undefined): text is string {
  return text !== undefined && /^([0-9a-f]{40}|[0-9a-f]{64})$/.test(text);
}

function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'TimeoutError';
}
