// How pods of apps are run on the one-machine node: no file of the node is theirs to write, and their disk has a size.
import { readFileSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { binary } from '../../binaries/build.ts';
import { writeText } from '../../files.ts';
import { fillIn } from '../../kubectl.ts';
import { paths } from '../../paths.ts';
import { run } from '../../shell.ts';
import { diskObstacle } from './obstacle.ts';

/** Name of the RuntimeClass in the cluster, and of its handler in containerd. */
export const confinedClass = 'moorage-confined';

/** Where the disks of containers are made, and where they are mounted. Their files have no name once they are mounted. */
export const layerFolders = { images: join(paths.state, 'layers'), mounts: join(paths.run, 'layers') };

/**
 * Run in the mount namespace of each container before it starts. The kubelet and containerd mount files of the node
 * into it (/etc/hosts, /etc/hostname, /etc/resolv.conf, /dev/termination-log), which nothing counts and nothing
 * limits: every single file becomes read-only. Where one cannot be, the container does not start.
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

/** What stands in for runc, as a script. */
export function confinedRunc(runc: string, { images, mounts }: typeof layerFolders): string {
  const script = readFileSync(join(import.meta.dirname, 'confined-runc.sh'), 'utf8');
  return fillIn(script, { RUNC: runc, IMAGES: images, MOUNTS: mounts });
}

const runtimeSpec = z.looseObject({ process: z.looseObject({}) });

/**
 * The spec that containers of apps start from: containerd's own with the hook. Without its limit of open files, which
 * containerd takes off its own as well.
 */
export function confinedSpec(plain: unknown): string {
  const spec = runtimeSpec.parse(plain);
  const process = Object.fromEntries(Object.entries(spec.process).filter(([key]) => key !== 'rlimits'));
  const hooks = { createContainer: [{ path: '/bin/sh', args: ['sh', '-c', readOnlyFiles], timeout: 30 }] };
  return `${JSON.stringify({ ...spec, process, hooks }, undefined, 2)}\n`;
}

/** A runtime of containerd, as its configuration names it. */
export interface ConfinedRuntime {
  /** What is run as runc. */
  runc: string;
  spec: string;
  /** Annotations of pods that it is given. */
  annotations: readonly string[];
}

/**
 * Writes what the runtime consists of. `annotations`: those of pods that say the size of their disk. Without loop devices,
 * disks have no size.
 */
export async function ensureConfined(annotations: readonly string[]): Promise<ConfinedRuntime> {
  const runc = binary('runc', 'runc');
  const spec = join(paths.state, 'confined-spec.json');
  await writeText(spec, confinedSpec(JSON.parse(await run(binary('containerd', 'ctr'), ['oci', 'spec']))), 0o600);
  const runtime = { runc, spec, annotations };
  if ((await diskObstacle()) !== undefined) return runtime;
  const wrapper = join(paths.state, 'confined-runc');
  await writeText(wrapper, confinedRunc(runc, layerFolders));
  await chmod(wrapper, 0o700);
  return { ...runtime, runc: wrapper };
}
