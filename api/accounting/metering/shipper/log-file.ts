// The log of the gateway as a file: read from a position, freed behind it, followed through a rotation.
import { execFile } from 'node:child_process';
import { open, readdir, stat, unlink, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const blockBytes = 4_096;

/** An open file of the log. */
export class LogFile {
  readonly path: string;
  readonly inode: string;
  readonly #handle: FileHandle;
  #freed = 0;

  private constructor(path: string, inode: string, handle: FileHandle) {
    this.path = path;
    this.inode = inode;
    this.#handle = handle;
  }

  /** Opens it for writing too, which freeing needs. @throws ENOENT where there is none */
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
   * Gives the disk of what lies before `offset` back. The gateway needs to know nothing of it: it appends, and the file
   * keeps its length. @throws Error where the file system cannot
   */
  async free(offset: number): Promise<void> {
    const until = offset - (offset % blockBytes);
    if (until <= this.#freed) return;
    const file = `/proc/${process.pid}/fd/${this.#handle.fd}`;
    await run('fallocate', ['--punch-hole', '--offset', '0', '--length', String(until), file]);
    this.#freed = until;
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  /** Removes a file that the gateway writes into no longer. */
  async remove(): Promise<void> {
    await this.close();
    await unlink(this.path);
  }
}

/** The file of this inode, whatever it was renamed to in the folder of the log; the log itself where there is none. */
export async function findLog(path: string, inode: string | null): Promise<LogFile> {
  const folder = dirname(path);
  const names = (await readdir(folder)).filter((name) => name.startsWith(basename(path)));
  for (const name of names) {
    const found = await inodeOf(join(folder, name));
    if (found !== undefined && found === inode) return LogFile.open(join(folder, name));
  }
  return LogFile.open(path);
}

/** The inode of a path; undefined where there is nothing. */
export async function inodeOf(path: string): Promise<string | undefined> {
  return stat(path).then(
    ({ ino }) => String(ino),
    () => undefined,
  );
}
