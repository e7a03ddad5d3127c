// Small file helpers: atomic writes and removals, content keys, and reads that treat a missing file as absence.
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Reads a file's text; undefined if the file does not exist. */
export async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/**
 * Returns true for the errors of a missing path, such as that of a process that exits while its files in /proc are
 * read.
 */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && ['ENOENT', 'ENOTDIR', 'ESRCH'].includes(String(error.code));
}

/** Writes by rename, so that a crash leaves either the old text or the new one. Returns true if the text changed. */
export async function writeText(path: string, text: string, mode = 0o644): Promise<boolean> {
  if ((await readText(path)) === text) return false;
  await mkdir(dirname(path), { recursive: true });
  const draft = `${path}.${randomUUID()}.draft`;
  await writeFile(draft, text, { mode });
  await rename(draft, path);
  return true;
}

/**
 * Removes a folder. It is renamed first, so that a crash leaves either the whole folder or none under its name: no
 * program starts on half of its data. Call `removeRemains` where the folder is created again.
 */
export async function removeFolder(folder: string): Promise<void> {
  await removeRemains(folder);
  try {
    await rename(folder, getDoomedPath(folder));
  } catch (error) {
    if (isMissing(error)) return;
    throw error;
  }
  await removeRemains(folder);
}

/** Removes what a crash of `removeFolder` left behind. */
export async function removeRemains(folder: string): Promise<void> {
  await rm(getDoomedPath(folder), { recursive: true, force: true, maxRetries: 3 });
}

const getDoomedPath = (folder: string): string => `${folder}.removed`;

/** Computes a short digest over parts, each length-prefixed so that no two lists of parts share one. */
export function computeContentKey(parts: readonly (string | Buffer)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${Buffer.byteLength(part)}:`).update(part);
  return hash.digest('hex').slice(0, 16);
}

/** Lists all files under a folder, as sorted relative paths. Skips names in `skip` at every level. */
export async function listFilesUnder(folder: string, skip: readonly string[] = []): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const nested = await Promise.all(
    entries
      .filter((entry) => !skip.includes(entry.name))
      .map(async (entry) => {
        if (!entry.isDirectory()) return [entry.name];
        return (await listFilesUnder(join(folder, entry.name), skip)).map((name) => join(entry.name, name));
      }),
  );
  return nested.flat().sort();
}

/** Computes the content key of a folder, from names and bytes of all its files. */
export async function computeFolderKey(folder: string, skip: readonly string[] = []): Promise<string> {
  const names = await listFilesUnder(folder, skip);
  const parts: (string | Buffer)[] = [];
  for (const name of names) parts.push(name, await readFile(join(folder, name)));
  return computeContentKey(parts);
}
