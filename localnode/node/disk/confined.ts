// Confines app pods on the one-machine node: files of the node are read-only for them, and their disks and volumes have
// a fixed size, as file systems in loop-mounted files.
import { readFileSync } from 'node:fs';
import { chmod, mkdir, rm, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { getBinaryPath } from '../../binaries/build.ts';
import { writeText } from '../../files.ts';
import { fillIn } from '../../kubectl.ts';
import { paths } from '../../paths.ts';
import { run, canRun } from '../../shell.ts';

/** Name of the RuntimeClass in the cluster, and of its handler in containerd. */
export const confinedClass = 'moorage-confined';

/** Folders for container disks and their mounts. Disk files have no name once they are mounted. */
export const layerFolders = { images: join(paths.state, 'layers'), mounts: join(paths.run, 'layers') };

/**
 * Runs in the mount namespace of each container before it starts. The kubelet and containerd mount files of the node
 * into it (/etc/hosts, /etc/hostname, /etc/resolv.conf, /dev/termination-log), whose size nothing measures or limits,
 * so every single file becomes read-only. If that fails, the container does not start.
 */
export const readOnlyFiles = `set -eu
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
cat > /dev/null
root=$(pwd -P)
mounts=$(cat /proc/self/mountinfo)
printf '%s\\n' "$mounts" | while IFS=' ' read -r id parent device source point options rest; do
  case $point in "$root"/*) ;; *) continue ;; esac
  path=$(printf '%b_' "$(printf '%s' "$point" | sed 's/\\\\\\([0-7][0-7][0-7]\\)/\\\\0\\1/g')")
  path=\${path%_}
  case ,$options, in *,ro,*) continue ;; esac
  if [ -f "$path" ]; then
    mount --no-mtab --options "remount,bind,ro$(printf '%s' "\${options#rw}" | sed 's/,idmapped//')" "$path"
  fi
done`;

/** Renders the script that replaces runc. */
export function renderConfinedRunc(runc: string, { images, mounts }: typeof layerFolders): string {
  const script = readFileSync(join(import.meta.dirname, 'confined-runc.sh'), 'utf8');
  return fillIn(script, { RUNC: runc, IMAGES: images, MOUNTS: mounts });
}

const runtimeSpec = z.looseObject({ process: z.looseObject({}) });

/**
 * Builds the spec that app containers start from: containerd's own with the hook, and without its limit of open files,
 * which containerd removes from its own as well.
 */
export function buildConfinedSpec(baseSpec: unknown): string {
  const spec = runtimeSpec.parse(baseSpec);
  const process = Object.fromEntries(Object.entries(spec.process).filter(([key]) => key !== 'rlimits'));
  const hooks = { createContainer: [{ path: '/bin/sh', args: ['sh', '-c', readOnlyFiles], timeout: 30 }] };
  return `${JSON.stringify({ ...spec, process, hooks }, undefined, 2)}\n`;
}

/** A containerd runtime, as its configuration names it. */
export interface ConfinedRuntime {
  /** The program that runs as runc. */
  runc: string;
  spec: string;
  /** Pod annotations that are passed to it. */
  annotations: readonly string[];
}

/**
 * Writes the runtime's files. `annotations` are the pod annotations with the disk size. Without loop devices, disks
 * have no fixed size.
 */
export async function ensureConfined(annotations: readonly string[]): Promise<ConfinedRuntime> {
  const runc = getBinaryPath('runc', 'runc');
  const spec = join(paths.state, 'confined-spec.json');
  await writeText(
    spec,
    buildConfinedSpec(JSON.parse(await run(getBinaryPath('containerd', 'ctr'), ['oci', 'spec']))),
    0o600,
  );
  const runtime = { runc, spec, annotations };
  if ((await findDiskObstacle()) !== undefined) return runtime;
  const wrapper = join(paths.state, 'confined-runc');
  await writeText(wrapper, renderConfinedRunc(runc, layerFolders));
  await chmod(wrapper, 0o700);
  return { ...runtime, runc: wrapper };
}

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

/**
 * Returns why this machine cannot create disks with a fixed size, such as a container without loop devices; undefined
 * if it can. Checked once, after `packages`.
 */
export function findDiskObstacle(): Promise<string | undefined> {
  return (tried ??= tryOne());
}

const suffix = '.img';

/** Mounts the volumes that existed before the machine restarted, each a file system in a file. Returns the count. */
export async function mountVolumes(volumes: string): Promise<number> {
  const images = (await readdir(volumes)).filter((name) => name.endsWith(suffix));
  for (const image of images) {
    const folder = join(volumes, image.slice(0, -suffix.length));
    await mkdir(folder, { recursive: true });
    if (!(await canRun('mountpoint', ['--quiet', folder])))
      await run('mount', ['-o', 'loop,discard,nodev', join(volumes, image), folder]);
  }
  return images.length;
}
