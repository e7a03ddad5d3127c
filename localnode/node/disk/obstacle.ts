// Whether this machine can make disks of a size: file systems in files of the node, mounted by loop devices.
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { paths } from '../../paths.ts';
import { run } from '../../shell.ts';

async function tryOne(): Promise<string | undefined> {
  const folder = join(paths.state, 'disk-test');
  const [image, mount] = [join(folder, 'image'), join(folder, 'mount')];
  await mkdir(mount, { recursive: true });
  try {
    await run('truncate', ['--size=4M', image]);
    await run('mkfs.ext4', ['-q', '-F', image]);
    await run('mount', ['-o', 'loop', image, mount]);
    await run('umount', [mount]);
    return undefined;
  } catch (error) {
    return (error instanceof Error ? error.message : String(error)).replaceAll(/\s+/g, ' ').slice(0, 200);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

let tried: Promise<string | undefined> | undefined;

/** Why it cannot, such as a container without loop devices; undefined when it can. Tried once, after `packages`. */
export function diskObstacle(): Promise<string | undefined> {
  return (tried ??= tryOne());
}
