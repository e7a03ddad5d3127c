// At what free space the kubelet acts on this machine's disk, which it shares with all else that a person keeps there:
// first unused images go, then builds wait (builds.keepFree), and pods are evicted last.
export const gibibyte = 1024 ** 3;
/** GiB of free space at which pods are evicted, unless the disk is so small that this would be more than 5 % of it. */
export const evictionGibibytes = 2;

export interface DiskThresholds {
  /** Per cent of the disk in use at which unused images are removed, and down to which. */
  readonly imageGCHighThresholdPercent: number;
  readonly imageGCLowThresholdPercent: number;
  /** Free space at which pods are evicted, as the kubelet writes it. */
  readonly eviction: string;
}

/**
 * For a disk of so many bytes. By per cent alone, a big disk that is three quarters full of other things would have no
 * unused image left, and evict pods with 10 GiB free.
 */
export function diskThresholds(capacity: number): DiskThresholds {
  const high = Math.min(95, Math.max(50, 100 - Math.ceil((100 * 10 * gibibyte) / capacity)));
  return {
    imageGCHighThresholdPercent: high,
    imageGCLowThresholdPercent: high - 5,
    eviction: capacity * 0.05 < evictionGibibytes * gibibyte ? '5%' : `${evictionGibibytes}Gi`,
  };
}
