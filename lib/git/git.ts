// Runs git on repositories of unknown origin, through simple-git: hardened, and within bounds of memory, output and time.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { simpleGit, type SimpleGitOptions } from 'simple-git';
import { OutputTail, buildChildEnvironment } from '../child-process.ts';
import type { Repository } from '../repository.ts';
import { type DeployKeys, deriveDeployKey, findSshRemote } from './deploy-keys.ts';
import { createReadToken, toRepositoryPath } from './read-token.ts';

/** What git may reach and use. */
export interface GitBounds {
  /** Allows plain http as well as https. */
  readonly insecure: boolean;
  /** A transfer below this rate for this long is aborted. */
  readonly slowTransfer: { readonly bytesPerSecond: number; readonly seconds: number };
  /** Limit of the address space of git and of each program that it starts. */
  readonly memoryBytes?: number | undefined;
  /** Limit of each file that git writes; the kernel ends git when it tries to write more. */
  readonly fileBytes?: number | undefined;
  /** Sent to this address and to no other. */
  readonly credential?: { readonly url: string; readonly token: string } | undefined;
  /** Allows SSH with this key, to servers that have one of these host keys, and no other protocol. */
  readonly ssh?: { readonly privateKey: string; readonly knownHosts: string } | undefined;
  /** Where the repository's own data is kept; default: found from the folder that git runs in. */
  readonly gitFolder?: string | undefined;
}

export interface GitOptions extends GitBounds {
  /** The folder that git runs in. */
  readonly folder: string;
}

/** Options of one run. */
export interface GitRunOptions {
  readonly signal?: AbortSignal | undefined;
  /** Receives every chunk of stdout. An error that it throws ends git, and the run throws it. */
  readonly onStdout?: (chunk: Buffer) => void;
  /** Maximum number of bytes kept of stdout and stderr each, from the end; default 64 KiB. */
  readonly keepBytes?: number;
  /** Overrides the bound of the same name for this run. */
  readonly fileBytes?: number;
}

export interface GitResult {
  /** Exit code; 128 and the signal's number when a signal ended git. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs git with these arguments. It never throws for an exit code: the caller judges it. */
export type Git = (args: readonly string[], options?: GitRunOptions) => Promise<GitResult>;

/** Creates a hardened git for one folder. */
export function createGit(options: GitOptions): Git {
  return async (args, runOptions = {}) => {
    const { fileBytes = options.fileBytes } = runOptions;
    const { ssh } = options;
    if (ssh === undefined) return run(args, { ...options, fileBytes }, runOptions);
    // ssh reads its key from a file alone. Nothing is kept between two runs.
    const folder = await mkdtemp(join(tmpdir(), 'moorage-ssh-'));
    try {
      await writeFile(join(folder, 'key'), ssh.privateKey, { mode: 0o600 });
      await writeFile(join(folder, 'known_hosts'), ssh.knownHosts, { mode: 0o600 });
      return await run(args, { ...options, fileBytes, sshFolder: folder }, runOptions);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  };
}

/** A run with the folder of its SSH key, if it may use SSH. */
type BoundRun = GitOptions & { readonly sshFolder?: string };

async function run(args: readonly string[], options: BoundRun, runOptions: GitRunOptions): Promise<GitResult> {
  const { signal, onStdout, keepBytes = 64 * 1024 } = runOptions;
  signal?.throwIfAborted();
  const stop = new AbortController();
  const [stdout, stderr] = [new OutputTail(keepBytes), new OutputTail(keepBytes)];
  let code = -1;
  const git = simpleGit({
    ...buildOptions(options),
    baseDir: options.folder,
    abort: signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]),
    completion: { onClose: true, onExit: false },
    // simple-git reports success when a signal ended git, so the code is read here and judged by the caller.
    errors: (_error, result) => {
      code = result.exitCode;
      if (code < 0) stderr.add(Buffer.concat(result.stdErr));
      return undefined;
    },
  });
  const watch = (stream: NodeJS.ReadableStream, tail: OutputTail, sink?: (chunk: Buffer) => void): void => {
    // simple-git keeps all output, however much that is; this replaces its listener with one that does not.
    stream.removeAllListeners('data');
    stream.on('data', (chunk: Buffer) => {
      tail.add(chunk);
      try {
        if (!stop.signal.aborted) sink?.(chunk);
      } catch (error) {
        stop.abort(error);
      }
    });
  };
  git.env(buildEnvironment(options)).outputHandler((_command, out, err) => {
    watch(out, stdout, onStdout);
    watch(err, stderr);
  });
  await git.raw([...args]);
  stop.signal.throwIfAborted();
  signal?.throwIfAborted();
  return { code, stdout: stdout.toText(), stderr: stderr.toText() };
}

/** The environment of git. Only variables on the allow-list are inherited. */
function buildEnvironment(bounds: BoundRun): Record<string, string> {
  const { insecure, memoryBytes, fileBytes, gitFolder, sshFolder } = bounds;
  return {
    ...buildChildEnvironment(),
    XDG_CONFIG_HOME: '/nonexistent',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_SYSTEM: '/dev/null',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TEMPLATE_DIR: '',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: '/bin/false',
    SSH_ASKPASS: '/bin/false',
    GIT_SSH_COMMAND: sshFolder === undefined ? '/bin/false' : formatSshCommand(sshFolder),
    GIT_SSH_VARIANT: 'ssh',
    GIT_LFS_SKIP_SMUDGE: '1',
    GIT_NO_LAZY_FETCH: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_ALLOW_PROTOCOL: sshFolder !== undefined ? 'ssh' : insecure ? 'https:http' : 'https',
    ...(gitFolder === undefined ? {} : { GIT_DIR: gitFolder }),
    ...(memoryBytes === undefined ? {} : { GIT_MEMORY_BYTES: String(Math.ceil(memoryBytes)) }),
    ...(fileBytes === undefined ? {} : { GIT_FILE_BYTES: String(Math.ceil(fileBytes)) }),
  };
}

/** Everything that ssh may do, since it would read the rest from files of the machine. git passes this to a shell. */
function formatSshCommand(folder: string): string {
  const options = [
    ...['BatchMode=yes', 'RequestTTY=no', 'LogLevel=ERROR', 'ConnectTimeout=15'],
    ...['ServerAliveInterval=10', 'ServerAliveCountMax=3'],
    // The server is the one with this key, whatever address its name has.
    ...['StrictHostKeyChecking=yes', `UserKnownHostsFile=${folder}/known_hosts`, 'GlobalKnownHostsFile=/dev/null'],
    ...['KnownHostsCommand=none', 'CheckHostIP=no', 'VerifyHostKeyDNS=no', 'UpdateHostKeys=no'],
    // This key alone.
    ...[`IdentityFile=${folder}/key`, 'IdentitiesOnly=yes', 'IdentityAgent=none', 'PreferredAuthentications=publickey'],
    // The server gets nothing of this machine.
    ...['ClearAllForwardings=yes', 'ForwardAgent=no', 'ForwardX11=no', 'PermitLocalCommand=no', 'Tunnel=no'],
    ...['ControlMaster=no', 'ControlPath=none', 'ProxyCommand=none', 'CanonicalizeHostname=no', 'HashKnownHosts=no'],
  ];
  return ['ssh', '-F', 'none', ...options.map((option) => `-o '${option}'`)].join(' ');
}

/**
 * Options of simple-git. It rejects variables and configuration that can be used against its user. Those that harden git
 * are named here, so that simple-git accepts them.
 */
function buildOptions(bounds: BoundRun): Partial<SimpleGitOptions> {
  const { bytesPerSecond, seconds } = bounds.slowTransfer;
  return {
    binary: ['/bin/sh', fileURLToPath(new URL('bounded-git.sh', import.meta.url))],
    config: [
      ...config,
      ...(bounds.insecure ? ['protocol.http.allow=always'] : []),
      ...(bounds.sshFolder === undefined ? [] : ['protocol.ssh.allow=always']),
      ...buildAuthorization(bounds),
      `http.lowSpeedLimit=${bytesPerSecond}`,
      `http.lowSpeedTime=${seconds}`,
    ],
    allowEnvironment: Object.keys(buildEnvironment(bounds)),
    unsafe: {
      allowUnsafeAskPass: true,
      allowUnsafeConfigPaths: true,
      allowUnsafeCredentialHelper: true,
      allowUnsafeCustomBinary: true,
      allowUnsafeFsMonitor: true,
      allowUnsafeHooksPath: true,
      allowUnsafeProtocolOverride: true,
      allowUnsafeSshCommand: true,
      allowUnsafeTemplateDir: true,
    },
  };
}

/** Harmless slips in the history of many old repositories: rejecting them would reject half of the world. */
const toleratedSlips = [
  'zeroPaddedFilemode',
  'badTimezone',
  'missingSpaceBeforeDate',
  'badDate',
  'badDateOverflow',
  'missingEmail',
  'missingNameBeforeEmail',
  'badEmail',
  'badName',
];

const config = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.attributesFile=/dev/null',
  'core.excludesFile=/dev/null',
  'core.autocrlf=false',
  'core.eol=lf',
  'core.symlinks=true',
  'core.protectNTFS=true',
  'core.protectHFS=true',
  'core.fileMode=true',
  'core.preloadIndex=false',
  'core.bigFileThreshold=32m',
  // A repository's server must not receive credentials of other servers, nor redirect us to another host.
  'credential.helper=',
  'protocol.version=2',
  'protocol.allow=never',
  'protocol.https.allow=always',
  'protocol.file.allow=never',
  'protocol.ext.allow=never',
  'http.followRedirects=false',
  'http.cookieFile=',
  'fetch.recurseSubmodules=false',
  'submodule.recurse=false',
  'transfer.fsckObjects=true',
  'fetch.fsckObjects=true',
  'fetch.unpackLimit=1',
  'transfer.unpackLimit=1',
  'transfer.bundleURI=false',
  'fetch.writeCommitGraph=false',
  'gc.auto=0',
  'maintenance.auto=false',
  'pack.threads=1',
  'advice.detachedHead=false',
  'init.defaultBranch=main',
  ...toleratedSlips.map((slip) => `fetch.fsck.${slip}=ignore`),
];

function buildAuthorization({ credential }: GitBounds): string[] {
  if (credential === undefined) return [];
  const basic = Buffer.from(`moorage:${credential.token}`).toString('base64');
  return [`http.${credential.url}.extraHeader=Authorization: Basic ${basic}`];
}

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

/** What repositories are read with that not everybody may read. */
export interface GitAccess {
  /** Makes tokens for the git server inside the cluster. */
  readonly readSecret?: string | undefined;
  /** Absent: there are no private repositories. */
  readonly deployKeys?: DeployKeys | undefined;
}

/** Where git reads a repository, and with what. */
export type GitRemote = { readonly url: string } & Pick<GitBounds, 'insecure' | 'credential' | 'ssh'>;

/**
 * Resolves how git reads a repository until `expires`: over SSH with its deploy key if it is private.
 * @throws Error if it is private, and this installation has no deploy key for it
 */
export function resolveRemote(repository: Repository, access: GitAccess, expires: Date): GitRemote {
  const { cloneUrl: url, insecure } = repository;
  if (repository.isPrivate !== true)
    return { url, insecure, credential: createCredential(repository, access.readSecret, expires) };
  const { deployKeys } = access;
  const remote = deployKeys && findSshRemote(repository, deployKeys.hostKeys);
  if (deployKeys === undefined || remote === undefined)
    throw new Error(
      `this installation has no SSH host key of ${repository.host}, so private repositories cannot be read`,
    );
  const { privateKey } = deriveDeployKey(repository, deployKeys.secret);
  return { url: remote.url, insecure: false, ssh: { privateKey, knownHosts: remote.knownHosts } };
}

/**
 * The references of these full names, as far as the repository has them.
 * @throws Error with the message of git
 */
export async function listReferences(
  repository: Repository,
  names: readonly string[],
  access?: GitAccess,
): Promise<References> {
  const [commits, symbolic] = [new Map<string, string>(), new Map<string, string>()];
  await scanReferences(
    repository,
    names,
    (value, name) => {
      if (value.startsWith('ref: ')) symbolic.set(name, value.slice(5));
      else if (isCommitId(value)) commits.set(name, value);
    },
    { access, maximumBytes: outputLimit },
  );
  return { commits, symbolic };
}

export interface ScanOptions {
  readonly access?: GitAccess | undefined;
  /** Of what the server lists; more is an error. */
  readonly maximumBytes: number;
}

/**
 * Calls `accept` for each reference that matches one of the patterns, with its commit, or `ref: ` and what it points to.
 * The server can list more than matches: the caller checks the name.
 * @throws Error with the message of git
 */
export async function scanReferences(
  repository: Repository,
  patterns: readonly string[],
  accept: (value: string, name: string) => void,
  { access = {}, maximumBytes }: ScanOptions,
): Promise<void> {
  const { url, ...bounds } = resolveRemote(repository, access, new Date(Date.now() + 2 * timeoutMs));
  const git = createGit({ folder: '/', slowTransfer: { bytesPerSecond: 1, seconds: 10 }, memoryBytes, ...bounds });
  let [received, rest] = [0, ''];
  const { code, stderr } = await git(['ls-remote', '--symref', '--', url, ...patterns], {
    signal: AbortSignal.timeout(timeoutMs),
    onStdout(chunk) {
      received += chunk.length;
      if (received > maximumBytes)
        throw new Error(`the server sent more than ${maximumBytes / outputLimit} MiB of references`);
      const lines = `${rest}${chunk.toString('latin1')}`.split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) acceptLine(line, accept);
    },
  }).catch((error: unknown) => {
    throw isTimeout(error) ? new Error(`no response within ${timeoutMs / 1000} s`, { cause: error }) : error;
  });
  if (/out of memory|memory exhausted|malloc failed/i.test(stderr))
    throw new Error('the server sent more references than there is memory for');
  if (code !== 0) throw new Error(stderr.trim() === '' ? `git ended with exit code ${code}` : stderr);
}

/** A line `<commit>\t<reference>` or `ref: <reference>\tHEAD`, as `git ls-remote --symref` prints it. */
function acceptLine(line: string, accept: (value: string, name: string) => void): void {
  const [value, name] = Buffer.from(line, 'latin1').toString('utf8').split('\t');
  if (value !== undefined && name !== undefined) accept(value, name);
}

/** The credential for a repository of the git server inside the cluster; undefined for any other. */
export function createCredential(
  { cloneUrl, insecure }: Repository,
  secret: string | undefined,
  expires: Date,
): { readonly url: string; readonly token: string } | undefined {
  if (secret === undefined || !insecure) return undefined;
  return { url: cloneUrl, token: createReadToken(toRepositoryPath(cloneUrl), secret, expires) };
}

/** True for a full commit id. */
export function isCommitId(text: string | undefined): text is string {
  return text !== undefined && /^([0-9a-f]{40}|[0-9a-f]{64})$/.test(text);
}

function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'TimeoutError';
}
