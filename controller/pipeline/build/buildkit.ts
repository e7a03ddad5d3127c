// Drives BuildKit: runs a buildkitd for one build and stops it with everything it mounted, builds the arguments of buildctl, and
// parses its Dockerfile checks.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join, basename, dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { platformFolders, cacheTags, formatComponentTag } from '../../../crds/names.ts';
import { buildChildEnvironment, OutputTail, run } from '../../../lib/child-process.ts';
import { type WorkspacePaths, Fault, type PipelineInput } from '../contract.ts';
import { keepTail, toOneLine } from '../text.ts';
import type { PlanNotes } from '../handover.ts';
import { bridgeContext } from '../plan/mcp/bridge.ts';
import type { Finding } from '../../../crds/hosted-app.ts';

export interface Daemon extends AsyncDisposable {
  /** Address for buildctl. */
  readonly address: string;
  /** Folder of its content store. */
  readonly root: string;
  /** Returns the end of its log. */
  log(): string;
}

const startMilliseconds = 60_000;
const stopMilliseconds = 10_000;

/** Starts the daemon and waits until it is ready. @throws Fault if it does not become ready */
export async function startDaemon(input: PipelineInput, paths: WorkspacePaths, signal?: AbortSignal): Promise<Daemon> {
  const root = paths.builder;
  const socket = join(root, 'buildkitd.sock');
  const config = join(root, 'buildkitd.toml');
  await rm(socket, { force: true });
  await mkdir(root, { recursive: true });
  await writeFile(config, formatDaemonConfig(input, { root, socket }, availableParallelism()));
  const output = new OutputTail(32 * 1024);
  // The daemon has no credentials. They stay with buildctl, so build steps cannot read them.
  const child = spawn('buildkitd', ['--config', config], {
    env: { ...buildChildEnvironment(), HOME: root, XDG_RUNTIME_DIR: root },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const failed: { error?: Error } = {};
  child.on('error', (error) => {
    failed.error = error;
  });
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output.add(chunk);
    });
  const daemon: Daemon = {
    address: `unix://${socket}`,
    root,
    log: () => output.toText(),
    [Symbol.asyncDispose]: () => stopDaemon(child),
  };
  try {
    await waitUntilReady(
      daemon,
      () => failed.error ?? (child.exitCode === null ? undefined : new Error(`exit code ${child.exitCode}`)),
      signal,
    );
    return daemon;
  } catch (error) {
    await stopDaemon(child);
    throw error;
  }
}

async function waitUntilReady(daemon: Daemon, ended: () => Error | undefined, signal?: AbortSignal): Promise<void> {
  const deadline = Date.now() + startMilliseconds;
  while (Date.now() < deadline) {
    signal?.throwIfAborted();
    const failure = ended();
    if (failure !== undefined)
      throw new Fault(`buildkitd did not start: ${failure.message}: ${toOneLine(keepTail(daemon.log(), 600))}`);
    const check = await run('buildctl', ['--addr', daemon.address, '--timeout', '5', 'debug', 'workers'], {
      env: buildChildEnvironment(),
      ...(signal === undefined ? {} : { signal }),
    });
    if (check.code === 0) return;
    await delay(50, undefined, signal === undefined ? {} : { signal });
  }
  throw new Fault(
    `buildkitd did not answer within ${startMilliseconds / 1000} s: ${toOneLine(keepTail(daemon.log(), 600))}`,
  );
}

/** Sends SIGTERM, which also ends the daemon's steps and mounts, and SIGKILL after a while. */
async function stopDaemon(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, 'exit');
  child.kill('SIGTERM');
  const insist = setTimeout(() => child.kill('SIGKILL'), stopMilliseconds);
  await closed;
  clearTimeout(insist);
}

type ConfigInput = Pick<PipelineInput, 'plainHosts' | 'mirror' | 'mirrorOf'>;

/** Folders of the daemon's state and its socket. */
interface DaemonPaths {
  readonly root: string;
  readonly socket: string;
}

/** Wrapper around runc that starts build steps with fewer capabilities. */
const stepRuntime = fileURLToPath(new URL('step-runtime.sh', import.meta.url));

/**
 * Formats the TOML configuration of a daemon for a single build: no garbage collection, no external frontends, no
 * entitlements.
 */
export function formatDaemonConfig(input: ConfigInput, paths: DaemonPaths, processors: number): string {
  const quoted = JSON.stringify;
  return [
    `root = ${quoted(paths.root)}`,
    'insecure-entitlements = []',
    '[log]',
    '  format = "text"',
    '  level = "warn"',
    '[grpc]',
    `  address = [${quoted(`unix://${paths.socket}`)}]`,
    '[otel]',
    `  socketPath = ${quoted(`${paths.root}/otel.sock`)}`,
    '[cdi]',
    '  disabled = true',
    '[history]',
    '  maxEntries = 2',
    '[worker.containerd]',
    '  enabled = false',
    '[worker.oci]',
    '  enabled = true',
    '  snapshotter = "overlayfs"',
    '  gc = false',
    '  networkMode = "host"',
    `  binary = ${quoted(stepRuntime)}`,
    '  noProcessSandbox = false',
    `  max-parallelism = ${Math.max(1, processors)}`,
    '[frontend."gateway.v0"]',
    '  enabled = false',
    '[frontend."dockerfile.v0"]',
    '  enabled = true',
    ...listMirroredHosts(input).flatMap((host) => [
      `[registry.${quoted(host)}]`,
      `  mirrors = [${quoted(input.mirror)}]`,
    ]),
    ...input.plainHosts.flatMap((host) => [`[registry.${quoted(host)}]`, '  http = true']),
    '',
  ].join('\n');
}

/** Lists the registry hosts that the mirror replaces. */
function listMirroredHosts({ mirror, mirrorOf }: Pick<PipelineInput, 'mirror' | 'mirrorOf'>): readonly string[] {
  return mirror === undefined ? [] : mirrorOf;
}

/** Extracts the registry host, with its port, from an image name. */
export function parseRegistryHost(image: string): string {
  const [first = '', ...rest] = image.split('/');
  return rest.length > 0 && /[.:]|^localhost$/.test(first) ? first : 'docker.io';
}

/**
 * Formats a BuildKit source policy as JSON. A build must not read the platform's own repositories, which its token does
 * not open either. Where the registry proxy mirrors other registries, the same repositories could also be addressed
 * under those hosts. Git sources are denied because BuildKit would run git next to the daemon, outside the sandbox of
 * the steps.
 */
export function formatSourcePolicy({
  image,
  push,
  ...mirroring
}: Pick<PipelineInput, 'image' | 'push' | 'mirror' | 'mirrorOf'>): string {
  const host = parseRegistryHost(push);
  // Builds cannot reach the registry itself. Denying its name fails immediately instead of waiting for a timeout.
  const hosts = new Set([
    host,
    parseRegistryHost(image),
    ...(host === mirroring.mirror ? listMirroredHosts(mirroring) : []),
  ]);
  const closed = [...hosts].flatMap((each) => platformFolders.map((folder) => `docker-image://${each}/${folder}/*`));
  return JSON.stringify({
    rules: [...closed, 'git://*'].map((identifier) => ({
      action: 'DENY',
      selector: { identifier, matchType: 'WILDCARD' },
    })),
  });
}

/** Metadata that buildctl writes about an image that it pushed. */
export const buildMetadata = z.object({
  'containerimage.digest': z.string().regex(/^sha256:[0-9a-f]{64}$/),
  'containerimage.config.digest': z
    .string()
    .regex(/^sha256:[0-9a-f]{64}$/)
    .optional(),
});

// The arguments of buildctl, and the layer cache that a build reads and updates.

export interface Solve {
  readonly input: PipelineInput;
  readonly notes: Omit<PlanNotes, 'name' | 'isPortMovable'>;
  /** If absent, no layer cache is used. */
  readonly cache?: LayerCache | undefined;
  readonly address: string;
  /** Commit time in seconds since 1970. */
  readonly time: number;
  readonly policyFile: string;
  readonly metadataFile: string;
  /** Environment of buildctl, the only process with the push token. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Where this image has the bridge of MCP servers, and nothing else. */
const bridgeFolder = '/usr/lib/moorage';

/** The context of a build has no .git folder, so Dockerfiles get the commit as most builders name it. */
export const commitArguments = ['SOURCE_COMMIT', 'GIT_COMMIT', 'GIT_SHA', 'COMMIT_SHA'];

function buildCommonArguments({ input, notes, address, policyFile }: Solve): string[] {
  const variables = new Map(
    [...input.build.args, ...(notes.authored ? [] : input.build.env)].map((each) => [each.name, each.value]),
  );
  const options = [
    `filename=${basename(notes.dockerfile)}`,
    // Marks the "# syntax=" line as already processed, so that the built-in frontend handles the build.
    'cmdline=docker/dockerfile',
    // An extended Dockerfile ends with a stage that is based on the target.
    ...(notes.authored && notes.extended === undefined && input.build.target !== undefined
      ? [`target=${input.build.target}`]
      : []),
    ...(notes.bridge === true ? [`context:${bridgeContext}=local:${bridgeContext}`] : []),
    ...[...variables].map(([name, value]) => `build-arg:${name}=${value}`),
    // Only a Dockerfile that declares one of them changes by it.
    ...commitArguments
      .filter((name) => notes.authored && !variables.has(name))
      .map((name) => `build-arg:${name}=${input.commit}`),
  ];
  return [
    '--addr',
    address,
    'build',
    '--frontend',
    'dockerfile.v0',
    '--progress',
    'plain',
    '--source-policy-file',
    policyFile,
    '--local',
    `context=${notes.context}`,
    '--local',
    `dockerfile=${dirname(notes.dockerfile)}`,
    ...(notes.bridge === true ? ['--local', `${bridgeContext}=${bridgeFolder}`] : []),
    ...options.flatMap((option) => ['--opt', option]),
  ];
}

/** Builds the arguments for a lint run. */
export function buildLintArguments(solve: Solve): string[] {
  return [...buildCommonArguments(solve), '--opt', 'requestid=frontend.lint'];
}

/** Builds the arguments for build and push. If there is a cache, the build updates it, and reads it unless `noCache` is set. */
export function buildImageArguments(solve: Solve): string[] {
  const { input, cache, metadataFile, time } = solve;
  const output = [
    'type=image',
    // Push under a tag: most registries garbage-collect untagged images.
    `name=${input.push}:${input.tag}`,
    'push=true',
    'oci-mediatypes=true',
    'compression=zstd',
    'compression-level=3',
    'store=true',
    // The date of the image alone. As a build argument it would date every folder that WORKDIR makes, so that no step after
    // one could be taken from the cache for the next commit.
    `source-date-epoch=${time}`,
  ];
  return [
    ...buildCommonArguments(solve),
    '--output',
    output.join(','),
    '--metadata-file',
    metadataFile,
    ...(input.noCache === true ? ['--no-cache'] : []),
    ...(cache === undefined || input.noCache === true ? [] : ['--import-cache', `type=registry,ref=${cache.ref}`]),
    ...(cache === undefined ? [] : buildExportArguments(cache)),
  ];
}

/** Builds the arguments that fill a cache from the daemon's latest build. */
export function buildCacheArguments(solve: Solve, cache: LayerCache): string[] {
  return [...buildCommonArguments(solve), ...buildExportArguments(cache)];
}

function buildExportArguments({ ref, mode }: LayerCache): string[] {
  const options = 'image-manifest=true,oci-mediatypes=true,compression=zstd,ignore-error=true';
  return ['--export-cache', `type=registry,ref=${ref},mode=${mode},${options}`];
}

/** Returns the file that buildctl writes the digest of an image to. */
export function toMetadataPath(folder: string, image: string): string {
  return join(folder, `${image}.build-metadata.json`);
}

interface LayerCache {
  /** Reference with tag, at the registry proxy. */
  readonly ref: string;
  /** BuildKit's names of the two modes. */
  readonly mode: 'max' | 'min';
}

const cacheManifest = z.object({ layers: z.array(z.object({ size: z.int().min(0) })) });
const requestMilliseconds = 30_000;

/**
 * Chooses the cache for this build; undefined if the installation keeps none. An app normally has a cache of all steps.
 * If that became too large, it has one with only the image's layers, which are stored anyway. Only the registry knows
 * which of the two an app has. Each component has its own.
 */
export async function chooseCache(
  input: PipelineInput,
  component: string | undefined,
  token: string | undefined,
): Promise<LayerCache | undefined> {
  if (input.cache === undefined) return undefined;
  const [all, image] = [cacheTags.all, cacheTags.image].map((tag) => formatComponentTag(tag, component));
  const isSmall = (await readCacheSize(input, image ?? '', token)) !== undefined;
  return isSmall ? { ref: `${input.cache}:${image}`, mode: 'min' } : { ref: `${input.cache}:${all}`, mode: 'max' };
}

/**
 * Returns the smaller cache to fill as well if the cache of all steps exceeds its limit. Later builds use only the
 * smaller one.
 */
export async function chooseSmallerCache(
  input: PipelineInput,
  component: string | undefined,
  used: LayerCache | undefined,
  token: string | undefined,
): Promise<LayerCache | undefined> {
  if (input.cache === undefined || input.cacheBytes === undefined || used?.mode !== 'max') return undefined;
  const size = await readCacheSize(input, formatComponentTag(cacheTags.all, component), token);
  const isOver = size !== undefined && size > input.cacheBytes;
  const ref = `${input.cache}:${formatComponentTag(cacheTags.image, component)}`;
  return isOver ? { ref, mode: 'min' } : undefined;
}

/** Encodes the login at the registry proxy, which reads only the token. */
export function encodeRegistryLogin(token: string): string {
  return Buffer.from(`moorage:${token}`).toString('base64');
}

/** A manifest or blob at a registry, by host, repository and tag or digest. */
export interface RegistryName {
  readonly host: string;
  readonly repository: string;
  /** Of a manifest: its tag or digest. Of a blob: its digest. */
  readonly tag: string;
  readonly kind?: 'manifests' | 'blobs';
}

/** Requests it as a build does: over plain http where the installation says so, with the token of its app. */
export async function requestRegistry(
  plainHosts: readonly string[],
  { host, repository, tag, kind = 'manifests' }: RegistryName,
  token: string | undefined,
  { method = 'GET', accept, timeoutMs }: { method?: 'GET' | 'HEAD'; accept: string; timeoutMs: number },
): Promise<Response> {
  return fetch(`${plainHosts.includes(host) ? 'http' : 'https'}://${host}/v2/${repository}/${kind}/${tag}`, {
    method,
    headers: { accept, ...(token === undefined ? {} : { authorization: `Basic ${encodeRegistryLogin(token)}` }) },
    signal: AbortSignal.timeout(timeoutMs),
  });
}

/** Returns the total size of a cache's layers; undefined if there is no cache or the registry does not report it. */
async function readCacheSize(
  { cache = '', plainHosts }: PipelineInput,
  tag: string,
  token: string | undefined,
): Promise<number | undefined> {
  const host = parseRegistryHost(cache);
  const manifest = { host, repository: cache.slice(host.length + 1), tag };
  try {
    const answer = await requestRegistry(plainHosts, manifest, token, {
      accept: 'application/vnd.oci.image.manifest.v1+json',
      timeoutMs: requestMilliseconds,
    });
    if (answer.ok) return cacheManifest.parse(await answer.json()).layers.reduce((bytes, { size }) => bytes + size, 0);
    await answer.body?.cancel();
    return undefined;
  } catch {
    return undefined;
  }
}

// The findings of BuildKit's Dockerfile checks, in buildctl's text output.

const maximumFindings = 15;
const manual = 'https://docs.docker.com/reference/build-checks/';

/** Fixes for the most frequent checks. Other findings link to the manual. */
const lintFixes: Readonly<Record<string, string>> = {
  SecretsUsedInArgOrEnv:
    'Remove it from ARG and ENV, which anyone who has the image can read; give it to the app at run time with PUT /api/apps/{slug}/secrets/NAME.',
  JSONArgsRecommended:
    'Write the command as a JSON array, like CMD ["node", "server.js"], so that the app receives the stop signal.',
  UndefinedVar: 'Declare the variable with ARG or ENV before using it, or correct its spelling.',
  UndefinedArgInFrom: 'Declare it with ARG above the first FROM, and give it a default.',
  InvalidDefaultArgInFrom: 'Give the ARG a default that makes FROM a valid image name.',
  WorkdirRelativePath: 'Use an absolute path for WORKDIR.',
  CopyIgnoredFile: 'Remove the file from .dockerignore, or do not copy it.',
  DuplicateStageName: 'Give each stage a unique name.',
  MultipleInstructionsDisallowed: 'Keep only the last one; the others have no effect.',
  FromPlatformFlagConstDisallowed: 'Remove --platform from FROM.',
};

/** Parses the output of a `frontend.lint` request; `file` is the Dockerfile's path in the repository. */
export function readLint(text: string, file: string): Finding[] {
  const [warnings = '', ...rest] = splitErrors(text);
  const lines = warnings
    .split(/^WARNING: /m)
    .slice(1, maximumFindings + 1)
    .map((block) => toWarning(block, file));
  return [...rest.flatMap((error) => toInvalidFindings(error, file)), ...lines];
}

/** Splits off the error. An error follows all warnings. */
function splitErrors(text: string): string[] {
  const blocks = text.split(/^-{20}\n(?=(?!\s*\d+ \||WARNING: |\n)\S)/m);
  return [blocks[0] ?? '', ...blocks.slice(1).filter((block) => block.trim() !== '')];
}

function toWarning(block: string, file: string): Finding {
  const [title = '', ...lines] = block.split('\n');
  const rule = /^\w+/.exec(title)?.[0] ?? 'check';
  const at = findExcerpt(block);
  const before = lines.findIndex((line) => /:\d+$/.test(line));
  const message = toOneLine((before < 0 ? lines : lines.slice(0, before)).join(' '));
  const slug = rule.replace(/([a-z0-9])([A-Z])|([A-Z]+)([A-Z][a-z])/g, '$1$3-$2$4').toLowerCase();
  return {
    rule: `dockerfile/${rule}`,
    severity: 'warning',
    file,
    ...(at === undefined ? {} : { line: at.line }),
    message: message === '' ? toOneLine(title) : message,
    fix: lintFixes[rule] ?? `See ${manual}${slug}/.`,
  };
}

function toInvalidFindings(block: string, file: string): Finding[] {
  const message = toOneLine(block.split('\n')[0] ?? '');
  const at = findExcerpt(block);
  return message === ''
    ? []
    : [
        {
          rule: 'dockerfile/invalid',
          severity: 'error',
          file,
          ...(at === undefined ? {} : { line: at.line }),
          message,
          fix: 'Fix this line; see https://docs.docker.com/reference/dockerfile/ for all instructions.',
        },
      ];
}

export interface Excerpt {
  readonly file: string;
  readonly line: number;
  /** The marked lines of the Dockerfile, verbatim. */
  readonly text: string;
}

/** Returns the last excerpt in a text; undefined if there is none. */
export function findExcerpt(text: string): Excerpt | undefined {
  const matches = [...text.matchAll(/^([^\n:]{1,300}):(\d{1,7})\n-{20}\n((?: +\d{1,7} \|[^\n]*\n?)+)/gm)];
  const last = matches.at(-1);
  if (last === undefined) return undefined;
  const meant = [...(last[3] ?? '').matchAll(/^ +(\d+) \| >>> ?(.*)$/gm)];
  return {
    file: last[1] ?? '',
    line: Number(meant[0]?.[1] ?? last[2]),
    text: meant.map((match) => match[2] ?? '').join('\n'),
  };
}
