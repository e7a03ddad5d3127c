// Starts a buildkitd for one build and ends it with all that it mounted.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { PipelineInput } from '../contract.ts';
import { Fault } from '../outcome.ts';
import { run } from '../process.ts';
import { OutputTail } from '../../../lib/output-tail.ts';
import { childEnvironment } from '../../../lib/child-environment.ts';
import type { WorkspacePaths } from '../config.ts';
import { oneLine, tail } from '../text.ts';
import { daemonConfig } from './daemon-config.ts';

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
  await writeFile(config, daemonConfig(input, { root, socket }, availableParallelism()));
  const output = new OutputTail(32 * 1024);
  // The daemon has no credentials: they stay with buildctl, and build steps see neither of the two.
  const child = spawn('buildkitd', ['--config', config], {
    env: { ...childEnvironment(), HOME: root, XDG_RUNTIME_DIR: root },
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
    log: () => output.text(),
    [Symbol.asyncDispose]: () => stop(child),
  };
  try {
    await answering(
      daemon,
      () => failed.error ?? (child.exitCode === null ? undefined : new Error(`exit code ${child.exitCode}`)),
      signal,
    );
    return daemon;
  } catch (error) {
    await stop(child);
    throw error;
  }
}

async function answering(daemon: Daemon, ended: () => Error | undefined, signal?: AbortSignal): Promise<void> {
  const deadline = Date.now() + startMilliseconds;
  while (Date.now() < deadline) {
    signal?.throwIfAborted();
    const failure = ended();
    if (failure !== undefined)
      throw new Fault(`buildkitd did not start: ${failure.message}: ${oneLine(tail(daemon.log(), 600))}`);
    const asked = await run('buildctl', ['--addr', daemon.address, '--timeout', '5', 'debug', 'workers'], {
      env: childEnvironment(),
      ...(signal === undefined ? {} : { signal }),
    });
    if (asked.code === 0) return;
    await delay(50, undefined, signal === undefined ? {} : { signal });
  }
  throw new Fault(`buildkitd did not answer within ${startMilliseconds / 1000} s: ${oneLine(tail(daemon.log(), 600))}`);
}

/** Asks the daemon to end, which also ends its steps and mounts, and insists after a while. */
async function stop(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, 'exit');
  child.kill('SIGTERM');
  const insist = setTimeout(() => child.kill('SIGKILL'), stopMilliseconds);
  await closed;
  clearTimeout(insist);
}
