// Frees the space of images that nothing names any more: one collection of a registry, and when it is time for one.
import { removeUnused } from './storage.ts';

/** A registry on this machine. */
export interface CollectableRegistry {
  /** Root directory of its storage. */
  readonly root: string;
  /** Digests of images and UIDs of apps that are in use. */
  readonly used: () => Promise<ReadonlySet<string>>;
  /** Stops it after the requests in progress, for the time of `work`: its garbage collection must not see a push. */
  readonly whileStopped: (work: () => Promise<number>) => Promise<number>;
  /** Its own garbage collection, which removes the blobs that no manifest refers to. */
  readonly collectGarbage: () => Promise<void>;
}

/** Removes images beyond use, and their blobs. What was written after `since` (milliseconds) stays. Returns how many. */
export async function collect(registry: CollectableRegistry, since: number): Promise<number> {
  const used = await registry.used();
  return await registry.whileStopped(async () => {
    const removed = await removeUnused(registry.root, used, since);
    await registry.collectGarbage();
    return removed;
  });
}

/** Bytes by which a registry may grow before it is worth stopping it. */
const growthBytes = 512 * 1024 ** 2;

/** Whether a registry of `bytes` is worth a collection, if it had `before` bytes after the last one. */
export function isWorthwhile(bytes: number, before: number, growth: number = growthBytes): boolean {
  return bytes - before >= Math.max(growth, before * 0.1);
}
