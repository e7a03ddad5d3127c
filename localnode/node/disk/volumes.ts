// The volumes of the one-machine node: each a file system of its size in a file, mounted where pods find its folder.
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { run, succeeds } from '../../shell.ts';

const suffix = '.img';

/** Mounts the volumes that were made before the machine was started anew. Returns how many there are. */
export async function mountVolumes(volumes: string): Promise<number> {
  const images = (await readdir(volumes)).filter((name) => name.endsWith(suffix));
  for (const image of images) {
    const folder = join(volumes, image.slice(0, -suffix.length));
    await mkdir(folder, { recursive: true });
    if (!(await succeeds('mountpoint', ['--quiet', folder])))
      await run('mount', ['-o', 'loop,discard,nodev', join(volumes, image), folder]);
  }
  return images.length;
}
