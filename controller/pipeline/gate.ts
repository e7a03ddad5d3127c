// Lets a stage wait for the one before it, in a container beside it: a socket that the earlier one holds for as long as
// it lives, and a note once it has passed.
import { once } from 'node:events';
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { WorkspacePaths } from './config.ts';
import { Fault } from './outcome.ts';

const longestStart = 120_000;
const pollMs = 20;

/** A stage that another one waits for. */
type Gate = 'clone' | 'review';

const socketOf = (paths: WorkspacePaths, stage: Gate): string => join(paths.notes, `${stage}.sock`);
const passedOf = (paths: WorkspacePaths, stage: Gate): string => join(paths.notes, `${stage}.passed`);

/** Runs a stage while it holds the socket. Only a stage that returns is noted as passed, however it ends otherwise. */
export async function withGate<Result>(
  paths: WorkspacePaths,
  stage: Gate,
  run: () => Promise<Result>,
): Promise<Result> {
  await mkdir(paths.notes, { recursive: true });
  await rm(passedOf(paths, stage), { force: true });
  const release = await hold(socketOf(paths, stage));
  try {
    const result = await run();
    await writeFile(passedOf(paths, stage), '');
    return result;
  } finally {
    await release();
  }
}

/** Waits for the end of a stage. True when it passed. @throws Fault when it does not begin */
export async function hasPassed(paths: WorkspacePaths, stage: Gate, signal?: AbortSignal): Promise<boolean> {
  const deadline = Date.now() + longestStart;
  for (;;) {
    signal?.throwIfAborted();
    if (await exists(passedOf(paths, stage))) return true;
    const found = await untilReleased(socketOf(paths, stage), signal);
    // It may have passed between the two looks.
    if (found === 'released') return exists(passedOf(paths, stage));
    if (Date.now() > deadline) throw new Fault(`the ${stage} did not begin within ${longestStart / 1000} s`);
    await delay(pollMs, undefined, signal === undefined ? {} : { signal });
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

async function hold(path: string): Promise<() => Promise<void>> {
  const held = new Set<Socket>();
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    held.add(socket);
  });
  // Takes its name once it listens: a socket that has its name and does not answer is one whose holder is gone.
  const draft = `${path}.draft`;
  await rm(draft, { force: true });
  server.listen({ path: draft, readableAll: true, writableAll: true });
  await once(server, 'listening');
  await rename(draft, path);
  return async () => {
    const closed = once(server, 'close');
    server.close();
    for (const socket of held) socket.destroy();
    await closed;
  };
}

/**
 * Waits as long as somebody holds the socket. `absent`: nobody has yet. A socket that refuses was left by a holder who
 * is gone.
 */
async function untilReleased(path: string, signal?: AbortSignal): Promise<'absent' | 'released'> {
  const socket = connect(path);
  const abort = (): void => {
    socket.destroy();
  };
  signal?.addEventListener('abort', abort);
  try {
    return await new Promise((resolve) => {
      socket.once('error', (error: NodeJS.ErrnoException) => {
        resolve(error.code === 'ENOENT' ? 'absent' : 'released');
      });
      socket.once('close', () => {
        resolve('released');
      });
      socket.resume();
    });
  } finally {
    signal?.removeEventListener('abort', abort);
    socket.destroy();
  }
}
