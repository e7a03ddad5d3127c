// Runs git as a tool that trusts nothing: no configuration, hooks, helpers, prompts or protocols but the ones named
// here.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { PipelineInput } from '../contract.ts';
import { run, type RunOptions, type RunResult } from '../process.ts';
import { childEnvironment, type Places } from '../settings.ts';

/** Old repositories carry these harmless slips in their history; refusing them would refuse half of the world. */
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

const settings = [
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
  'credential.helper=',
  'protocol.version=2',
  'protocol.allow=never',
  'protocol.https.allow=always',
  'protocol.file.allow=never',
  'protocol.ext.allow=never',
  'http.followRedirects=false',
  'http.lowSpeedLimit=1024',
  'http.lowSpeedTime=30',
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

export interface GitOptions extends Pick<RunOptions, 'onStdout' | 'signal' | 'keepBytes'> {
  /** Largest file that git may write, in bytes; the kernel ends it when it tries to write more. */
  readonly fileBytes?: number;
}

export type Git = (args: readonly string[], options?: GitOptions) => Promise<RunResult>;

/** Where the repository's own data stands while it is fetched: beside the author's tree, never in it. */
export function gitFolder(places: Places): string {
  return join(places.notes, 'git');
}

/** A git that works on one workspace. It never throws for an exit code; callers judge it. */
export function makeGit(input: Pick<PipelineInput, 'insecure'>, places: Places): Git {
  const home = join(places.notes, 'home');
  mkdirSync(home, { recursive: true });
  mkdirSync(places.source, { recursive: true });
  const env = {
    ...childEnvironment(),
    HOME: home,
    XDG_CONFIG_HOME: home,
    GIT_DIR: gitFolder(places),
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_SYSTEM: '/dev/null',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TEMPLATE_DIR: '',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: '/bin/false',
    SSH_ASKPASS: '/bin/false',
    GIT_SSH_COMMAND: '/bin/false',
    GIT_LFS_SKIP_SMUDGE: '1',
    GIT_NO_LAZY_FETCH: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_ALLOW_PROTOCOL: input.insecure ? 'https:http' : 'https',
  };
  const base = [...settings, ...(input.insecure ? ['protocol.http.allow=always'] : [])].flatMap((setting) => [
    '-c',
    setting,
  ]);
  return (args, options = {}) => {
    const limit = options.fileBytes === undefined ? [] : [`--fsize=${Math.ceil(options.fileBytes)}`];
    return run('prlimit', ['--core=0', ...limit, '--', 'git', ...base, ...args], {
      env,
      cwd: places.source,
      keepBytes: 64 * 1024,
      ...options,
    });
  };
}
