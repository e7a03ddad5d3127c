// Asks a git server which commit a revision is at, without fetching anything and without trusting the server.
import { fileURLToPath } from 'node:url';
import { simpleGit } from 'simple-git';
import { parseRepository, RepositoryError, type GitHosts } from '../../../lib/repository.ts';
import { oneLine } from '../../pipeline/text.ts';

/** What is asked. */
export interface SourceQuestion {
  readonly repo: string;
  readonly revision?: string | undefined;
}

/** `final`: asking again will not help until a person changes something. */
export type SourceAnswer =
  | { readonly ok: true; readonly commit: string; readonly reference: string }
  | {
      readonly ok: false;
      readonly final: boolean;
      readonly reason: string;
      readonly rule: string;
      readonly message: string;
      readonly fix: string;
    };

const commitId = /^([0-9a-f]{40}|[0-9a-f]{64})$/;
const outputLimit = 1024 * 1024;
const timeoutMs = 20_000;
const boundedGit = fileURLToPath(new URL('bounded-git.sh', import.meta.url));

/** True for a full commit id, which needs no asking. */
export function isCommit(revision: string | undefined): revision is string {
  return revision !== undefined && commitId.test(revision);
}

/** Asks the repository. Never throws: whatever goes wrong is an answer with a reason and a fix. */
export async function askRepository(question: SourceQuestion, hosts: GitHosts): Promise<SourceAnswer> {
  try {
    const repository = parseRepository(question.repo, hosts);
    if (isCommit(question.revision)) return { ok: true, commit: question.revision, reference: question.revision };
    const output = await listRemote(question.repo, question.revision, hosts.insecure.includes(repository.host));
    return resolve(parseReferences(output), question.revision);
  } catch (error) {
    if (error instanceof RepositoryError) {
      return refuse(
        true,
        'RepositoryRefused',
        'source/repository-refused',
        sentence(error.message),
        sentence(error.fix),
      );
    }
    return explain(error instanceof Error ? error.message : String(error));
  }
}

async function listRemote(repo: string, revision: string | undefined, insecure: boolean): Promise<string> {
  const stop = new AbortController();
  const timer = setTimeout(() => {
    stop.abort();
  }, timeoutMs);
  const git = simpleGit({
    baseDir: '/',
    binary: boundedGit,
    abort: stop.signal,
    // A repository's server must not lead us to another host, nor be given anybody's credentials.
    config: [
      'http.followRedirects=false',
      'credential.helper=',
      'protocol.version=2',
      'http.lowSpeedLimit=1',
      'http.lowSpeedTime=10',
    ],
    allowEnvironment: [
      'GIT_TERMINAL_PROMPT',
      'GIT_ALLOW_PROTOCOL',
      'GIT_CONFIG_NOSYSTEM',
      'GIT_CONFIG_GLOBAL',
      'GIT_ASKPASS',
      'GIT_SSL_CAINFO',
    ],
    unsafe: {
      allowUnsafeCustomBinary: true,
      allowUnsafeCredentialHelper: true,
      allowUnsafeAskPass: true,
      allowUnsafeConfigPaths: true,
    },
  });
  git.env(environment(insecure));
  let received = 0;
  git.outputHandler((_command, stdout) => {
    stdout.on('data', (chunk: Buffer) => {
      received += chunk.length;
      if (received > outputLimit) stop.abort();
    });
  });
  try {
    return await git.raw([
      'ls-remote',
      '--symref',
      '--',
      repo,
      ...candidates(revision).flatMap((name) => [name, `${name}^{}`]),
    ]);
  } catch (error) {
    if (received > outputLimit) throw new Error('the server sent more than 1 MiB of references', { cause: error });
    if (/out of memory|memory exhausted|malloc failed/i.test(String(error)))
      throw new Error('the server sent more references than there is memory for', { cause: error });
    if (stop.signal.aborted) throw new Error(`no answer within ${timeoutMs / 1000} s`, { cause: error });
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

function environment(insecure: boolean): Record<string, string> {
  const kept = [
    'PATH',
    'HTTPS_PROXY',
    'HTTP_PROXY',
    'NO_PROXY',
    'https_proxy',
    'http_proxy',
    'no_proxy',
    'GIT_SSL_CAINFO',
    'SSL_CERT_FILE',
  ];
  const inherited = kept.flatMap((name) =>
    process.env[name] === undefined ? [] : [[name, process.env[name]] as const],
  );
  return {
    ...Object.fromEntries(inherited),
    HOME: '/nonexistent',
    LC_ALL: 'C',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: '',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ALLOW_PROTOCOL: insecure ? 'https:http' : 'https',
  };
}

/** Full names that a revision may have; a branch wins over a tag of the same name. */
function candidates(revision: string | undefined): string[] {
  if (revision === undefined) return ['HEAD'];
  return revision.startsWith('refs/') ? [revision] : [`refs/heads/${revision}`, `refs/tags/${revision}`];
}

/** Lines `<commit>\t<reference>` and `ref: <reference>\tHEAD`, as `git ls-remote --symref` prints them. */
function parseReferences(output: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const line of output.split('\n')) {
    const [value, name] = line.split('\t');
    if (value === undefined || name === undefined) continue;
    if (value.startsWith('ref: ')) found.set(`symref:${name}`, value.slice(5));
    else if (commitId.test(value)) found.set(name, value);
  }
  return found;
}

function resolve(references: ReadonlyMap<string, string>, revision: string | undefined): SourceAnswer {
  for (const name of candidates(revision)) {
    // A tag object stands for the commit that it was made of.
    const commit = references.get(`${name}^{}`) ?? references.get(name);
    if (commit !== undefined) return { ok: true, commit, reference: references.get(`symref:${name}`) ?? name };
  }
  if (revision === undefined) {
    return refuse(
      true,
      'RepositoryEmpty',
      'source/repository-empty',
      'The repository has no commit on its default branch.',
      'Push the app to it.',
    );
  }
  return refuse(
    true,
    'RevisionNotFound',
    'source/revision-not-found',
    `The repository has no branch or tag ${revision}.`,
    'Push it, or have whoever runs this installation set spec.source.revision to one that exists (or to a full commit id).',
  );
}

const redirected = /returned error: 30\d|redirect/i;
const absent =
  /not found|returned error: (401|403|404|410)|could not read Username|Authentication failed|terminal prompts disabled|does not appear to be a git repository|not valid: is this a git repository/i;

function explain(output: string): SourceAnswer {
  const detail = lastLine(output);
  if (redirected.test(output)) {
    return refuse(
      true,
      'RepositoryMoved',
      'source/repository-moved',
      `The repository's address leads to another one (${detail}).`,
      'Submit the address to which it has moved.',
    );
  }
  if (absent.test(output)) {
    return refuse(
      true,
      'RepositoryNotFound',
      'source/repository-not-found',
      `There is no public repository at this address (${detail}).`,
      'Correct the address, or make the repository public.',
    );
  }
  return refuse(
    false,
    'RepositoryUnreachable',
    'source/repository-unreachable',
    `The git server could not be asked (${detail}).`,
    'It is asked again by itself.',
  );
}

function lastLine(output: string): string {
  const lines = output
    .split('\n')
    .map(oneLine)
    .filter((line) => line !== '');
  return (lines.findLast((line) => line.startsWith('fatal:')) ?? lines.at(-1) ?? 'no answer')
    .replace(/^fatal: /, '')
    .slice(0, 300);
}

function refuse(final: boolean, reason: string, rule: string, message: string, fix: string): SourceAnswer {
  return { ok: false, final, reason, rule, message, fix };
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`;
}
