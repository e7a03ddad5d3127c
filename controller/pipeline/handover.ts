// Passes work from stage to stage: notes as JSON files, and a gate on which the next stage waits in its own container.
import { once } from 'node:events';
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { plan } from '../../crds/hosted-app.ts';
import { packageRegistries } from '../../lib/repository.ts';
import { type WorkspacePaths, Fault } from './contract.ts';

const longestStart = 120_000;
const pollMs = 20;

/** A stage that another stage waits for. */
type Gate = 'clone' | 'review';

const toSocketPath = (paths: WorkspacePaths, stage: Gate): string => join(paths.notes, `${stage}.sock`);
const toPassedPath = (paths: WorkspacePaths, stage: Gate): string => join(paths.notes, `${stage}.passed`);

/**
 * Runs a stage while its process holds a socket. However the process ends, the socket closes with it, so the next stage
 * never waits for a dead one. The stage is recorded as passed only if it returns.
 */
export async function runWithGate<Result>(
  paths: WorkspacePaths,
  stage: Gate,
  run: () => Promise<Result>,
): Promise<Result> {
  await mkdir(paths.notes, { recursive: true });
  await rm(toPassedPath(paths, stage), { force: true });
  const release = await holdSocket(toSocketPath(paths, stage));
  try {
    const result = await run();
    await writeFile(toPassedPath(paths, stage), '');
    return result;
  } finally {
    await release();
  }
}

/** Waits until a stage ends. Returns true if it passed. @throws Fault if it does not start */
export async function hasPassed(paths: WorkspacePaths, stage: Gate, signal?: AbortSignal): Promise<boolean> {
  const deadline = Date.now() + longestStart;
  for (;;) {
    signal?.throwIfAborted();
    if (await isExistingPath(toPassedPath(paths, stage))) return true;
    const found = await waitUntilReleased(toSocketPath(paths, stage), signal);
    // The stage may have passed between the two checks.
    if (found === 'released') return isExistingPath(toPassedPath(paths, stage));
    if (Date.now() > deadline) throw new Fault(`the ${stage} did not begin within ${longestStart / 1000} s`);
    await delay(pollMs, undefined, signal === undefined ? {} : { signal });
  }
}

async function isExistingPath(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

async function holdSocket(path: string): Promise<() => Promise<void>> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    sockets.add(socket);
  });
  // Rename the socket only once it listens. So a socket with the final name that refuses connections belongs to a
  // process that has ended.
  const draft = `${path}.draft`;
  await rm(draft, { force: true });
  server.listen({ path: draft, readableAll: true, writableAll: true });
  await once(server, 'listening');
  await rename(draft, path);
  return async () => {
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
}

/**
 * Waits while a process holds the socket. `absent`: no process holds it yet. If the socket refuses the connection, its
 * process has ended.
 */
async function waitUntilReleased(path: string, signal?: AbortSignal): Promise<'absent' | 'released'> {
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

const submodule = z.object({
  path: z.string(),
  commit: z.string(),
  problem: z.string().optional().describe('Why it was not fetched; absent: its files are in the tree.'),
  passing: z.boolean().optional().describe('Another try may fetch it.'),
});
/** A path at which a commit refers to another repository. */
export type Submodule = z.infer<typeof submodule>;

const cloneNotes = z.object({
  commit: z.string(),
  time: z.int().describe('Time of the commit, seconds since 1970.'),
  submodules: z.array(submodule).describe('Where the commit points into other repositories.'),
  package: z
    .enum(packageRegistries)
    .optional()
    .describe('Registry whose published package the files are; absent: they are those of a repository.'),
});

const imageNotes = z.object({
  name: z.string().describe('Its component; `app` for an app of one process.'),
  plan,
  dockerfile: z.string().describe('Absolute path of the Dockerfile to build.'),
  authored: z.boolean().describe("The Dockerfile is the author's own."),
  context: z.string().describe('Absolute path of the build context.'),
  isPortMovable: z.boolean().describe('The planned app listens on $PORT, whatever port its image names.'),
  extended: z.string().optional().describe("Absolute path of the author's Dockerfile that `dockerfile` extends."),
  bridge: z.boolean().optional().describe('The image gets the bridge of MCP servers.'),
});
/** What to build for one image. */
export type PlanNotes = z.infer<typeof imageNotes>;

const planNotes = z.object({ images: z.array(imageNotes).min(1) });

const noteFiles = { clone: 'clone.json', plan: 'plan.json' } as const;
const noteSchemas = { clone: cloneNotes, plan: planNotes } as const;
type NoteKind = keyof typeof noteFiles;

export async function writeNotes<K extends NoteKind>(
  folder: string,
  kind: K,
  value: z.infer<(typeof noteSchemas)[K]>,
): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, noteFiles[kind]), `${JSON.stringify(value, null, 2)}\n`);
}

/** @throws Error if the earlier stage left no notes */
export async function readNotes<K extends NoteKind>(
  folder: string,
  kind: K,
): Promise<z.infer<(typeof noteSchemas)[K]>> {
  const parsed: unknown = noteSchemas[kind].parse(JSON.parse(await readFile(join(folder, noteFiles[kind]), 'utf8')));
  return parsed as z.infer<(typeof noteSchemas)[K]>;
}
