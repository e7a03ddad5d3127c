// Checks before `up` that the one-machine node can run here and that the disk has enough space: on a full disk the
// kubelet evicts every pod.
import { existsSync } from 'node:fs';
import { stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { getBinaryPath } from '../../binaries/build.ts';
import { paths } from '../../paths.ts';
import { canRun } from '../../shell.ts';

/** GiB that `up` writes, measured with `df`; services for tools come on top. */
const growthGibibytes = {
  /** Includes Go's own caches, although they are outside our folder. */
  cache: { base: 10, tools: 5, again: 0 },
  /** If there is already a cluster: new images of Moorage. */
  state: { base: 7, tools: 6, again: 3 },
};

/** A folder that is about to grow. Folders may share a file system (`device`). */
export interface Growth {
  readonly folder: string;
  readonly gibibytes: number;
  /** How to gain space, other than freeing it. */
  readonly fix: string;
  readonly device: number;
  readonly freeBytes: number;
}

/** Describes the file systems that are too small, with fixes; undefined if all have enough space. */
export function describeShortage(growths: readonly Growth[]): string | undefined {
  const devices = Map.groupBy(growths, ({ device }) => device);
  const faults = [...devices.values()].flatMap((onOne) => {
    const needed = onOne.reduce((sum, { gibibytes }) => sum + gibibytes, evictionGibibytes);
    const free = Math.min(...onOne.map(({ freeBytes }) => freeBytes)) / gibibyte;
    if (free >= needed) return [];
    const growing = onOne.filter(({ gibibytes }) => gibibytes > 0);
    const parts = [
      ...growing.map(({ folder, gibibytes }) => `${gibibytes} GiB for ${folder}`),
      `${evictionGibibytes} GiB to spare`,
    ];
    const fixes = ['free some space', ...growing.map(({ fix }) => fix)].join(', or ');
    return [`not enough disk space: ${free.toFixed(1)} GiB free, ${needed} GiB needed (${parts.join(', ')}): ${fixes}`];
  });
  return faults.length === 0 ? undefined : faults.join('\n');
}

/** Returns the folder, or its nearest existing parent. */
function findExisting(folder: string): string {
  return existsSync(folder) ? folder : findExisting(dirname(folder));
}

async function measureGrowth(folder: string, gibibytes: number, fix: string): Promise<Growth> {
  const path = findExisting(folder);
  const [{ dev: device }, { bavail, bsize }] = await Promise.all([stat(path), statfs(path)]);
  return { folder, gibibytes, fix, device, freeBytes: bavail * bsize };
}

/** Throws if the disk is too small for what `up` still has to write. */
export async function requireSpace(withTools: boolean): Promise<void> {
  const computeGrowth = ({ base, tools }: { base: number; tools: number }): number => base + (withTools ? tools : 0);
  const { cache, state } = growthGibibytes;
  const fault = describeShortage(
    await Promise.all([
      measureGrowth(
        paths.cache,
        existsSync(getBinaryPath('kubectl', 'kubectl')) ? cache.again : computeGrowth(cache),
        'set MOORAGE_CACHE to a folder on another disk',
      ),
      measureGrowth(
        paths.state,
        existsSync(paths.kubeconfig) ? state.again : computeGrowth(state),
        withTools ? 'skip the backing services of tools (--tools none)' : 'mount a larger disk there',
      ),
    ]),
  );
  if (fault !== undefined) throw new Error(fault);
}

export const gibibyte = 1024 ** 3;
/**
 * GiB of free space below which pods are evicted, unless the disk is so small that this would be more than 5 % of it.
 * The disk is shared with everything else on the machine: unused images are removed first, then builds wait
 * (builds.keepFree), and pods are evicted last.
 */
export const evictionGibibytes = 2;

export interface DiskThresholds {
  /** Disk usage in per cent at which unused images are removed, and down to which. */
  readonly imageGCHighThresholdPercent: number;
  readonly imageGCLowThresholdPercent: number;
  /** Free space below which pods are evicted, in the kubelet's format. */
  readonly eviction: string;
}

/**
 * Computes the thresholds for a disk of this capacity in bytes. With percentages alone, a large disk three quarters
 * full of other data would keep no unused images, and evict pods with 10 GiB free.
 */
export function computeDiskThresholds(capacity: number): DiskThresholds {
  const high = Math.min(95, Math.max(50, 100 - Math.ceil((100 * 10 * gibibyte) / capacity)));
  return {
    imageGCHighThresholdPercent: high,
    imageGCLowThresholdPercent: high - 5,
    eviction: capacity * 0.05 < evictionGibibytes * gibibyte ? '5%' : `${evictionGibibytes}Gi`,
  };
}

const instead = 'start Docker (kind is used then), or use --context NAME with a cluster that you have';

/** Returns why the one-machine node cannot run here and what to do instead; undefined if it can. */
export async function findNodeObstacle(): Promise<string | undefined> {
  if (process.platform !== 'linux') return `the one-machine node runs on Linux, not on ${process.platform}: ${instead}`;
  if (process.getuid?.() !== 0)
    return `the one-machine node sets up network devices and containers, for which it must be root: run this with sudo, ${instead}`;
  if (!(await canRun('apt-get', ['--version'])))
    return `the one-machine node is built from Debian packages, and this machine has no apt-get: ${instead}`;
  return undefined;
}

/** Throws an error with the alternative if the one-machine node cannot run here. */
export async function requireNodeMachine(): Promise<void> {
  const obstacle = await findNodeObstacle();
  if (obstacle !== undefined) throw new Error(obstacle);
}
