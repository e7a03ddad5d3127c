// Checks before `up` begins that the disk has room for what it writes: on a full disk the kubelet evicts every pod.
import { existsSync } from 'node:fs';
import { stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { binary } from '../../binaries/build.ts';
import { paths } from '../../paths.ts';
import { evictionGibibytes, gibibyte } from './thresholds.ts';

/** GiB that `up` writes, as `df` shows it before and after; services of tools come on top. */
const written = {
  /** Go's own caches count here too, though they are beside ours. */
  cache: { base: 10, tools: 5, again: 0 },
  /** Where a cluster stands: new images of Moorage. */
  state: { base: 7, tools: 6, again: 3 },
};

/** A folder that is about to grow. Folders may share a file system (`device`). */
export interface Growth {
  readonly folder: string;
  readonly gibibytes: number;
  /** What else than freeing space makes room. */
  readonly fix: string;
  readonly device: number;
  readonly freeBytes: number;
}

/** The file systems that are too small, with the fixes; undefined when each has room for all that grows on it. */
export function shortage(growths: readonly Growth[]): string | undefined {
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

/** The folder, or the nearest above it that exists. */
function existing(folder: string): string {
  return existsSync(folder) ? folder : existing(dirname(folder));
}

async function growthOf(folder: string, gibibytes: number, fix: string): Promise<Growth> {
  const path = existing(folder);
  const [{ dev: device }, { bavail, bsize }] = await Promise.all([stat(path), statfs(path)]);
  return { folder, gibibytes, fix, device, freeBytes: bavail * bsize };
}

/** Throws when the disk is too small for what `up` still has to write. */
export async function requireSpace(withTools: boolean): Promise<void> {
  const first = ({ base, tools }: { base: number; tools: number }): number => base + (withTools ? tools : 0);
  const { cache, state } = written;
  const fault = shortage(
    await Promise.all([
      growthOf(
        paths.cache,
        existsSync(binary('kubernetes', 'kubectl')) ? cache.again : first(cache),
        'set MOORAGE_CACHE to a folder on another disk',
      ),
      growthOf(
        paths.state,
        existsSync(paths.kubeconfig) ? state.again : first(state),
        withTools ? 'skip the backing services of tools (--tools none)' : 'mount a larger disk there',
      ),
    ]),
  );
  if (fault !== undefined) throw new Error(fault);
}
