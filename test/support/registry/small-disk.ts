// A file system of a size, for a registry that fills it.
import { mkdir, mkdtemp, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../../../localnode/shell.ts';

export interface SmallDisk {
  readonly folder: string;
  usedBytes(): Promise<number>;
  remove(): Promise<void>;
}

/** An ext4 of so many MiB by a loop device, as volumes of the one-machine node are made. Needs root. */
export async function makeSmallDisk(mebibytes: number): Promise<SmallDisk> {
  const home = await mkdtemp(join(tmpdir(), 'moorage-disk-'));
  const [image, folder] = [join(home, 'image'), join(home, 'mount')];
  await mkdir(folder);
  await run('truncate', [`--size=${mebibytes}M`, image]);
  await run('mkfs.ext4', ['-q', '-F', '-m0', image]);
  await run('mount', ['-o', 'loop,discard', image, folder]);
  return {
    folder,
    usedBytes: async () => {
      const { blocks, bfree, bsize } = await statfs(folder);
      return (blocks - bfree) * bsize;
    },
    remove: async () => {
      await run('umount', [folder]);
      await rm(home, { recursive: true, force: true });
    },
  };
}
