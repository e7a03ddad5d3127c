// Manages the node's long-running programs: started detached, found again by pid and start time, and replaced when
// their command changes.
import { spawn } from 'node:child_process';
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { computeContentKey, computeFolderKey, readText, writeText } from '../../files.ts';
import { paths } from '../../paths.ts';
import { waitFor } from '../../shell.ts';

export interface ProcessSpec {
  name: string;
  command: string;
  args: readonly string[];
  env?: Record<string, string>;
  /** Content of the files that it reads at start; a change restarts it. */
  inputs?: readonly string[];
  /** Returns true once it is ready. */
  isReady: () => Promise<boolean>;
  /** Seconds within which it must become ready; default 60. */
  patience?: number;
}

export interface ProcessFolders {
  /** Folder of the pid files. */
  run: string;
  logs: string;
}

export interface ProcessRecord {
  pid: number;
  /** Start time in clock ticks since boot: distinguishes it from a later process with the same pid. */
  startTime: string;
  key: string;
}

const logLimitBytes = 32 * 1024 * 1024;

/**
 * Parses the start time from a line of /proc/PID/stat. The command name may contain spaces and parentheses, so fields
 * are counted from the last ')'.
 */
export function parseStartTime(statLine: string): string | undefined {
  return statLine.slice(statLine.lastIndexOf(')') + 2).split(' ')[19];
}

/** Parses a pid file: the key of its spec, then the stat line that the process wrote before it became the program. */
export function parseRecord(text: string): ProcessRecord | undefined {
  const [key, statLine] = text.split('\n');
  const startTime = parseStartTime(statLine ?? '');
  const pid = Number.parseInt(statLine ?? '', 10);
  if (key === undefined || startTime === undefined || !Number.isInteger(pid)) return undefined;
  return { pid, startTime, key };
}

export function computeSpecKey(spec: Pick<ProcessSpec, 'command' | 'args' | 'env' | 'inputs'>): string {
  return computeContentKey([spec.command, JSON.stringify([spec.args, spec.env ?? {}]), ...(spec.inputs ?? [])]);
}

async function isAlive(record: ProcessRecord): Promise<boolean> {
  const line = await readText(`/proc/${record.pid}/stat`);
  if (line === undefined || parseStartTime(line) !== record.startTime) return false;
  if (line.slice(line.lastIndexOf(')') + 2)[0] !== 'Z') return true;
  // A zombie whose other threads still run keeps its ports and locks.
  return (await readdir(`/proc/${record.pid}/task`).catch(() => [])).length > 1;
}

/** Returns the live process with that name, or undefined. */
export async function findProcess(processFolders: ProcessFolders, name: string): Promise<ProcessRecord | undefined> {
  const record = parseRecord((await readText(join(processFolders.run, `${name}.pid`))) ?? '');
  return record !== undefined && (await isAlive(record)) ? record : undefined;
}

/** Lists the names of all processes with a pid file, alive or not. */
export async function listProcessNames(processFolders: ProcessFolders): Promise<string[]> {
  const names = await readdir(processFolders.run).catch(() => []);
  return names
    .filter((name) => name.endsWith('.pid'))
    .map((name) => name.slice(0, -'.pid'.length))
    .sort();
}

/**
 * The shell writes its own pid and start time and then becomes the program, so that even a crash of `up` never leaves
 * it unrecorded.
 */
const launcher =
  'read -r stat < /proc/$$/stat; printf "%s\\n%s\\n" "$1" "$stat" > "$2.draft"; mv "$2.draft" "$2"; shift 2; exec "$@"';

async function launch(processFolders: ProcessFolders, spec: ProcessSpec): Promise<void> {
  await mkdir(processFolders.run, { recursive: true, mode: 0o700 });
  await mkdir(processFolders.logs, { recursive: true, mode: 0o700 });
  const log = join(processFolders.logs, `${spec.name}.log`);
  if (((await stat(log).catch(() => undefined))?.size ?? 0) > logLimitBytes) await rename(log, `${log}.1`);
  const output = await open(log, 'a', 0o600);
  try {
    const pidFile = join(processFolders.run, `${spec.name}.pid`);
    await rm(pidFile, { force: true });
    const child = spawn('/bin/sh', ['-c', launcher, 'sh', computeSpecKey(spec), pidFile, spec.command, ...spec.args], {
      detached: true,
      stdio: ['ignore', output.fd, output.fd],
      cwd: '/',
      env: { PATH: process.env['PATH'] ?? '', HOME: '/root', ...spec.env },
    });
    child.unref();
    await waitFor(`the pid file of ${spec.name}`, async () => (await readText(pidFile)) !== undefined, {
      seconds: 10,
      every: 10,
    });
  } finally {
    await output.close();
  }
}

async function readLogTail(processFolders: ProcessFolders, name: string): Promise<string> {
  const path = join(processFolders.logs, `${name}.log`);
  const lines = ((await readText(path)) ?? '').trim().split('\n');
  return [`last lines of ${path}:`, ...lines.slice(-12)].join('\n  ');
}

async function waitUntilReady(processFolders: ProcessFolders, spec: ProcessSpec): Promise<void> {
  const seconds = spec.patience ?? 60;
  const outcome = await waitFor(
    `${spec.name} to become ready`,
    async () => {
      if ((await findProcess(processFolders, spec.name)) === undefined) return 'ended';
      return (await spec.isReady()) ? 'ready' : false;
    },
    { seconds, readHint: () => readLogTail(processFolders, spec.name) },
  );
  if (outcome === 'ended')
    throw new Error(`${spec.name} exited right after it started; ${await readLogTail(processFolders, spec.name)}`);
}

/**
 * Ensures that exactly one such process runs with this command, and waits until it is ready. Returns true if it was
 * (re)started.
 */
export async function ensureProcess(processFolders: ProcessFolders, spec: ProcessSpec): Promise<boolean> {
  const current = await findProcess(processFolders, spec.name);
  const keep = current?.key === computeSpecKey(spec);
  if (!keep) {
    if (current !== undefined) await stopProcess(processFolders, spec.name);
    await launch(processFolders, spec);
  }
  await waitUntilReady(processFolders, spec);
  return !keep;
}

/** Sends a signal. @returns false if the process has already exited */
export function sendSignal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false;
    throw error;
  }
}

/** Sends SIGTERM to the process, and SIGKILL after `seconds` (immediately if 0). */
export async function stopProcess(processFolders: ProcessFolders, name: string, seconds = 10): Promise<void> {
  const record = await findProcess(processFolders, name);
  if (record !== undefined) {
    const hasExited = async (): Promise<boolean> => !(await isAlive(record));
    sendSignal(record.pid, seconds === 0 ? 'SIGKILL' : 'SIGTERM');
    const ended = await waitFor(`${name} to exit`, hasExited, { seconds, every: 50 }).catch(() => false);
    if (!ended) {
      sendSignal(record.pid, 'SIGKILL');
      await waitFor(`${name} to exit after SIGKILL`, hasExited, { seconds: 10, every: 50 });
    }
  }
  await rm(join(processFolders.run, `${name}.pid`), { force: true });
}

/** Writes a configuration file that a process reads at start. Returns its text for `inputs`. */
export async function writeConfigFile(path: string, text: string, mode = 0o600): Promise<string> {
  await writeText(path, text, mode);
  return text;
}

/** A program of this checkout: its main file, and the folders whose change restarts it. */
interface Program {
  readonly main: string;
  readonly sources: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Builds the process of a program that talks to the cluster. */
export async function buildProgramSpec(
  processFolders: ProcessFolders,
  name: string,
  { main, sources, env }: Program,
): Promise<ProcessSpec> {
  return {
    name,
    command: process.execPath,
    args: [join(paths.root, main)],
    env: {
      ...env,
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      MOORAGE_CACHE: paths.cache,
    },
    inputs: [
      (await readText(paths.kubeconfig)) ?? '',
      ...(await Promise.all(sources.map((folder) => computeFolderKey(join(paths.root, folder))))),
    ],
    isReady: async () => (await findProcess(processFolders, name)) !== undefined,
  };
}
