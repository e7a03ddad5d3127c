// Runs a buildkitd for one build, configures what the build may use, and afterwards stops it and removes everything it
// mounted.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { platformFolders } from '../../../crds/names.ts';
import { buildChildEnvironment, OutputTail } from '../../../lib/child-process.ts';
import type { WorkspacePaths } from '../config.ts';
import { Fault, type PipelineInput } from '../contract.ts';
import { run } from '../process.ts';
import { keepTail, toOneLine } from '../text.ts';

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
