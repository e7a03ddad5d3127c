// What a git that trusts nobody is given: no configuration, hooks, helpers, prompts or protocols but the ones named here.
import { fileURLToPath } from 'node:url';
import type { SimpleGitOptions } from 'simple-git';
import { childEnvironment } from '../child-environment.ts';

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
  // A repository's server must not be given anybody's credentials, nor lead us to another host.
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

/** What a git may reach and use. */
export interface GitBounds {
  /** Plain http is allowed beside https. */
  readonly insecure: boolean;
  /** Below this rate for this long, a transfer is given up. */
  readonly slowTransfer: { readonly bytesPerSecond: number; readonly seconds: number };
  /** Limit of the address space of git and of each program that it starts. */
  readonly memoryBytes?: number | undefined;
  /** Limit of each file that git writes; the kernel ends git when it tries to write more. */
  readonly fileBytes?: number | undefined;
  /** Sent to this address and to no other. */
  readonly credential?: { readonly url: string; readonly token: string } | undefined;
  /** Where the repository's own data is kept; default: found from the folder that git runs in. */
  readonly gitFolder?: string | undefined;
}

/** The environment of git: nothing is inherited but what the allow-list names. */
export function gitEnvironment(bounds: GitBounds): Record<string, string> {
  const { insecure, memoryBytes, fileBytes, gitFolder } = bounds;
  return {
    ...childEnvironment(),
    XDG_CONFIG_HOME: '/nonexistent',
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
    GIT_ALLOW_PROTOCOL: insecure ? 'https:http' : 'https',
    ...(gitFolder === undefined ? {} : { GIT_DIR: gitFolder }),
    ...(memoryBytes === undefined ? {} : { GIT_MEMORY_BYTES: String(Math.ceil(memoryBytes)) }),
    ...(fileBytes === undefined ? {} : { GIT_FILE_BYTES: String(Math.ceil(fileBytes)) }),
  };
}

function authorization({ credential }: GitBounds): string[] {
  if (credential === undefined) return [];
  const basic = Buffer.from(`moorage:${credential.token}`).toString('base64');
  return [`http.${credential.url}.extraHeader=Authorization: Basic ${basic}`];
}

/**
 * Options of simple-git. It refuses variables and configuration that can be turned against its user; those that close a
 * door are named here, so that it lets them through.
 */
export function simpleGitOptions(bounds: GitBounds): Partial<SimpleGitOptions> {
  const { bytesPerSecond, seconds } = bounds.slowTransfer;
  return {
    binary: ['/bin/sh', fileURLToPath(new URL('bounded-git.sh', import.meta.url))],
    config: [
      ...config,
      ...(bounds.insecure ? ['protocol.http.allow=always'] : []),
      ...authorization(bounds),
      `http.lowSpeedLimit=${bytesPerSecond}`,
      `http.lowSpeedTime=${seconds}`,
    ],
    allowEnvironment: Object.keys(gitEnvironment(bounds)),
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
