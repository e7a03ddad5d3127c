// Looks again and again how full the disks of the nodes are that run apps and builds, for metrics.
import type { Registry } from 'prom-client';
import { messageOf, sleep, systemClock, type Logger } from '../../lib/kubernetes/index.ts';
import type { Pod } from '../objects/kinds.ts';
import type { ReadSpaces, Space } from './kubelet-summary.ts';
import { diskMetrics } from './metrics.ts';

export interface DisksOptions {
  readonly read: ReadSpaces;
  /** Pods of apps and builds: where they are is what counts. */
  readonly pods: () => readonly Pod[];
  readonly intervalMs: number;
  readonly log: Logger;
  readonly registry: Registry;
}

/** Looks at all nodes that run something of ours, until the signal is aborted. */
export function createDisksTask(options: DisksOptions): (signal: AbortSignal) => Promise<void> {
  const { read, log, intervalMs } = options;
  const metrics = diskMetrics(options.registry);

  async function readNode(address: string, signal: AbortSignal): Promise<Space[]> {
    try {
      return await read(address, AbortSignal.any([signal, AbortSignal.timeout(intervalMs)]));
    } catch (error) {
      if (!signal.aborted) log.warn({ node: address, error: messageOf(error) }, 'disks of a node cannot be read');
      return [];
    }
  }

  return async (signal) => {
    while (!signal.aborted) {
      const nodes = new Set(options.pods().flatMap(({ status }) => status?.hostIP ?? []));
      metrics.seen((await Promise.all([...nodes].map((node) => readNode(node, signal)))).flat());
      await sleep(systemClock, intervalMs, signal);
    }
  };
}
