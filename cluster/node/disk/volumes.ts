// The volumes of the one-machine node: each a file system of its size in a file, mounted where pods find its folder.
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { paths } from '../../paths.ts';
import { run, succeeds } from '../../shell.ts';
import { diskObstacle } from './obstacle.ts';

const suffix = '.img';

/** Mounts the volumes that were made before the machine was started anew. Returns what there is to say. */
export async function mountVolumes(): Promise<string> {
  const images = (await readdir(paths.volumes)).filter((name) => name.endsWith(suffix));
  for (const image of images) {
    const folder = join(paths.volumes, image.slice(0, -suffix.length));
    await mkdir(folder, { recursive: true });
    if (!(await succeeds('mountpoint', ['--quiet', folder])))
      await run('mount', ['-o', 'loop,discard,nodev', join(paths.volumes, image), folder]);
  }
  const obstacle = await diskObstacle();
  if (obstacle !== undefined) return `volumes and disks of apps have no enforced size on this machine: ${obstacle}`;
  return images.length === 0 ? 'sized' : `sized, ${images.length} mounted`;
}
