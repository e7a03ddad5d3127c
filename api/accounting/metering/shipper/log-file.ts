// Reads the access log: opens it at a position, parses whole lines, frees the disk behind them, and follows a rotation.
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { type FileHandle, open, readdir, readFile, rename, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { attributeNames, removeQuery } from '../gateway-record.ts';
import type { Attributes } from '../log-receiver.ts';

const runCommand = promisify(execFile);
const blockBytes = 4_096;

/** An open file of the log. */
export class LogFile {
  readonly path: string;
  readonly inode: string;
  readonly #handle: FileHandle;

  private constructor(path: string, inode: string, handle: FileHandle) {
    this.path = path;
    this.inode = inode;
    this.#handle = handle;
  }

  /** Opens the file for writing too, which `free` needs. @throws ENOENT if there is none */
  static async open(path: string): Promise<LogFile> {
    const handle = await open(path, 'r+');
    return new LogFile(path, String((await handle.stat()).ino), handle);
  }

  async size(): Promise<number> {
    return (await this.#handle.stat()).size;
  }

  async read(offset: number, limit: number): Promise<Buffer> {
    const { buffer, bytesRead } = await this.#handle.read(Buffer.allocUnsafe(limit), 0, limit, offset);
    return buffer.subarray(0, bytesRead);
  }

  /**
   * Frees the disk space before `offset`. The gateway does not notice: it appends, and the file keeps its length.
   * @throws Error if the file system does not support it
   */
  async free(offset: number): Promise<void> {
    const until = offset - (offset % blockBytes);
    if (until === 0) return;
    const file = `/proc/${process.pid}/fd/${this.#handle.fd}`;
    await runCommand('fallocate', ['--punch-hole', '--offset', '0', '--length', String(until), file]);
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  /** Removes a file that the gateway no longer writes to. */
  async remove(): Promise<void> {
    await unlink(this.path);
  }
}

/** Finds the file with this inode, even if it was renamed within its folder; opens the log itself if there is none. */
export async function findLog(path: string, inode: string | null): Promise<LogFile> {
  const folder = dirname(path);
  const names = (await readdir(folder)).filter((name) => name.startsWith(basename(path)));
  for (const name of names) {
    const candidate = await readInode(join(folder, name));
    if (candidate !== undefined && candidate === inode) return LogFile.open(join(folder, name));
  }
  return LogFile.open(path);
}

/** Returns the inode of a path, or undefined if nothing exists there. */
export async function readInode(path: string): Promise<string | undefined> {
  return stat(path).then(
    ({ ino }) => String(ino),
    () => undefined,
  );
}

const newline = 0x0a;
const lineSchema = z.record(z.string(), z.unknown());

export interface Chunk {
  /** Records from the whole lines. */
  readonly records: Attributes[];
  /** Number of whole lines that are not records. */
  readonly unreadable: number;
  /** Bytes in the whole lines. */
  readonly bytes: number;
}

/** Parses the first whole lines, at most `limit`. */
export function readLines(bytes: Buffer, limit: number): Chunk {
  const records: Attributes[] = [];
  let [from, unreadable] = [0, 0];
  for (let lines = 0; lines < limit; lines += 1) {
    const end = bytes.indexOf(newline, from);
    if (end === -1) break;
    const record = parseRecord(bytes.toString('utf8', from, end));
    if (record === undefined) unreadable += 1;
    else records.push(record);
    from = end + 1;
  }
  return { records, unreadable, bytes: from };
}

/** Keeps only what the receiver reads. Backend addresses, ports, ciphers and queries (which may hold keys) are never sent. */
function parseRecord(text: string): Attributes | undefined {
  const attributes = parseLine(text);
  if (attributes === undefined) return undefined;
  return Object.fromEntries(
    attributeNames.flatMap((name): [string, string | number][] => {
      const value = attributes[name];
      if (typeof value === 'string') return [[name, name === 'RequestPath' ? removeQuery(value) : value]];
      return typeof value === 'number' ? [[name, value]] : [];
    }),
  );
}

function parseLine(text: string): z.output<typeof lineSchema> | undefined {
  try {
    return lineSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

const markSchema = z.object({ counter: z.string(), startNs: z.string(), endNs: z.string() });

const positionSchema = z.object({
  /** A permanent name for this log, so that its records have the same ids whichever pod sends them. */
  gateway: z.string(),
  /** The file being read, and how many of its bytes need not be read again. */
  inode: z.string().nullable(),
  offset: z.number(),
  /** The first and the newest record of each run of which records were dropped and the receiver does not know yet. */
  dropped: z.array(markSchema),
});

/** A record that was dropped, numbers as text. */
export type Mark = z.output<typeof markSchema>;
export type Position = z.output<typeof positionSchema>;

/** Reads the position, or creates one that begins at the first record. @throws Error if the file cannot be read */
export async function readPosition(file: string): Promise<Position> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text !== undefined) return positionSchema.parse(JSON.parse(text));
  const first: Position = { gateway: randomUUID(), inode: null, offset: 0, dropped: [] };
  await writePosition(file, first);
  return first;
}

export async function writePosition(file: string, value: Position): Promise<void> {
  const draft = `${file}.draft`;
  const handle = await open(draft, 'w', 0o644);
  try {
    await handle.writeFile(JSON.stringify(value));
    // Without this, a machine crash could leave an empty file: a new gateway name, and every record sent twice.
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(draft, file);
}
