// Whether the disk has room for what `up` writes: said before it begins, as later the kubelet evicts every pod.
import { existsSync } from 'node:fs';
import { stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { binary } from '../../binaries/build.ts';
import { paths } from '../../paths.ts';

const gibibyte = 1024 ** 3;

/** GiB that `up` writes, as `df` shows it before and after; services of tools come on top. */
const written = {
  /** Go's own caches count here too, though they are beside ours. */
  cache: { base: 10, tools: 5, again: 0 },
  /** Where a cluster stands: new images of Moorage. */
  state: { base: 7, tools: 6, again: 3 },
};
/** GiB below which the kubelet evicts pods; see daemons/kubelet.ts. */
const kept = 2;

/** A folder that is about to grow, on a file system that may be that of another one. */
export interface Growth {
  readonly folder: string;
  readonly gibibytes: number;
  readonly advice: string;
  readonly device: number;
  readonly freeBytes: number;
}

/** What stands in the way, with what to do; undefined when each file system has room for all that grows on it. */
export function shortage(growths: readonly Growth[]): string | undefined {
  const devices = Map.groupBy(growths, ({ device }) => device);
  const faults = [...devices.values()].flatMap((onOne) => {
    const needed = onOne.reduce((sum, { gibibytes }) => sum + gibibytes, kept);
    const free = Math.min(...onOne.map(({ freeBytes }) => freeBytes)) / gibibyte;
    if (free >= needed) return [];
    const growing = onOne.filter(({ gibibytes }) => gibibytes > 0);
    const parts = [...growing.map(({ folder, gibibytes }) => `${gibibytes} GiB for ${folder}`), `${kept} GiB to spare`];
    const advice = ['free some', ...growing.map((each) => each.advice)].join(', or ');
    return [
      `not enough space on the disk: ${needed} GiB are needed (${parts.join(', ')}), ` +
        `and ${free.toFixed(1)} GiB are free: ${advice}`,
    ];
  });
  return faults.length === 0 ? undefined : faults.join('\n');
}

/** The folder, or the nearest above it that exists. */
function existing(folder: string): string {
  return existsSync(folder) ? folder : existing(dirname(folder));
}

async function growthOf(folder: string, gibibytes: number, advice: string): Promise<Growth> {
  const path = existing(folder);
  const [{ dev: device }, { bavail, bsize }] = await Promise.all([stat(path), statfs(path)]);
  return { folder, gibibytes, advice, device, freeBytes: bavail * bsize };
}

/** Throws where the disk is too small for what `up` has still to write. */
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
        withTools ? 'go without the services of tools (--tools none)' : 'mount a larger disk there',
      ),
    ]),
  );
  if (fault !== undefined) throw new Error(fault);
}
