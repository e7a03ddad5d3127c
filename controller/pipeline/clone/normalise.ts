// Gives every file of a tree the time of its commit, so that the same commit always makes the same layers.
import { lutimes, readdir } from 'node:fs/promises';

/**
 * Sets the times of a tree to `seconds`. The time of the commit, not a constant: web servers make ETags of time and
 * size,
 * and a constant would have browsers keep a file that changed without changing its length.
 */
export async function normalise(root: string, seconds: number): Promise<void> {
  const folders = [Buffer.from(root)];
  // Names are bytes: one that is not UTF-8 must not be missed. Folders come last, since touching their files touches
  // them.
  for (let index = 0; index < folders.length; index += 1) {
    const folder = folders[index] ?? Buffer.from(root);
    for (const entry of await readdir(folder, { withFileTypes: true, encoding: 'buffer' })) {
      const path = Buffer.concat([folder, Buffer.from('/'), entry.name]);
      if (entry.isDirectory()) folders.push(path);
      else await lutimes(path, seconds, seconds);
    }
  }
  for (const folder of folders.toReversed()) await lutimes(folder, seconds, seconds);
}
