// Starts a buildkitd for one build, configures what the build may use, and stops it together with everything it mounted.
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
  /** Where it keeps its content store. */
  readonly root: string;
  /** What it logged last. */
  log(): string;
}

const startMilliseconds = 60_000;
const stopMilliseconds = 10_000;

/** Starts the daemon and waits until it answers. @throws Fault when it does not. */
export async function startDaemon(input: PipelineInput, paths: WorkspacePaths, signal?: AbortSignal): Promise<Daemon> {
  const root = paths.builder;
  const socket = join(root, 'buildkitd.sock');
  const config = join(root, 'buildkitd.toml');
  await rm(socket, { force: true });
  await mkdir(root, { recursive: true });
  await writeFile(config, formatDaemonConfig(input, { root, socket }, availableParallelism()));
  const output = new OutputTail(32 * 1024);
  // The daemon has no credentials: they stay with buildctl, and build steps see neither of the two.
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
    const asked = await run('buildctl', ['--addr', daemon.address, '--timeout', '5', 'debug', 'workers'], {
      env: buildChildEnvironment(),
      ...(signal === undefined ? {} : { signal }),
    });
    if (asked.code === 0) return;
    await delay(50, undefined, signal === undefined ? {} : { signal });
  }
  throw new Fault(
    `buildkitd did not answer within ${startMilliseconds / 1000} s: ${toOneLine(keepTail(daemon.log(), 600))}`,
  );
}

/** Asks the daemon to end, which also ends its steps and mounts, and insists after a while. */
async function stopDaemon(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, 'exit');
  child.kill('SIGTERM');
  const insist = setTimeout(() => child.kill('SIGKILL'), stopMilliseconds);
  await closed;
  clearTimeout(insist);
}

type ConfigInput = Pick<PipelineInput, 'plainHosts' | 'mirror' | 'mirrorOf'>;

/** Where the daemon keeps its state and listens. */
interface DaemonPaths {
  readonly root: string;
  readonly socket: string;
}

/** Runs the steps, with less than runc would give them. */
const stepRuntime = fileURLToPath(new URL('step-runtime.sh', import.meta.url));

/**
 * TOML of a daemon for a single build: nothing is collected, nobody else's frontend runs, no entitlement can be asked
 * for.
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

/** Registry hosts that a mirror stands in for. */
function listMirroredHosts({ mirror, mirrorOf }: Pick<PipelineInput, 'mirror' | 'mirrorOf'>): readonly string[] {
  return mirror === undefined ? [] : mirrorOf;
}

/** Registry host of an image name, with its port. */
export function parseRegistryHost(image: string): string {
  const [first = '', ...rest] = image.split('/');
  return rest.length > 0 && /[.:]|^localhost$/.test(first) ? first : 'docker.io';
}

/**
 * A source policy in BuildKit's JSON. A build must not read what the platform keeps in its registry, which its token
 * does not open either; where the registry proxy stands in for others, the same repositories could also be named as if
 * they were there. And no git: BuildKit would run it beside the daemon, outside of the sandbox of the steps.
 */
export function formatSourcePolicy({
  image,
  push,
  ...mirroring
}: Pick<PipelineInput, 'image' | 'push' | 'mirror' | 'mirrorOf'>): string {
  const host = parseRegistryHost(push);
  // The registry itself is out of a build's reach; naming it is refused at once, without waiting for an answer.
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

/** What buildctl leaves behind about an image that it pushed. */
export const buildMetadata = z.object({
  'containerimage.digest': z.string().regex(/^sha256:[0-9a-f]{64}$/),
  'containerimage.config.digest': z
    .string()
    .regex(/^sha256:[0-9a-f]{64}$/)
    .optional(),
});
