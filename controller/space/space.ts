// Watches the disks of nodes and the registry, so that builds wait before something is full.
import { z } from 'zod';
import type { Pod } from '../objects/kinds.ts';
import { messageOf, sleep, systemClock, type Logger, type Watch } from '../../lib/kubernetes/index.ts';
import type { DiskMetrics } from './disk-metrics.ts';
import type { NodeDisks, ReadDisks } from './kubelet.ts';
import type { SpaceMetrics } from './metrics.ts';
import { shortageOf, type Reserve } from './shortage.ts';
import { timeLimit } from '../../lib/values.ts';

export interface SpaceOptions {
  readonly read: ReadDisks;
  /** Pods of apps and pipelines: their nodes are those that are looked at. */
  readonly pods: () => readonly Pod[];
  /** Base URL of the registry proxy. */
  readonly proxyUrl: string;
  readonly registryClaim?: string | undefined;
  readonly reserve: Reserve;
  readonly intervalMs: number;
  readonly log: Logger;
  readonly metrics: SpaceMetrics;
  readonly disks: DiskMetrics;
  readonly now?: () => number;
}

export interface Space {
  /** Why no build may start, as a sentence; undefined where one may. */
  shortage(): string | undefined;
  /** Wakes `keys` when that begins or ends. */
  changes(keys: () => readonly string[]): Watch;
  /** Looks again and again until the signal is aborted. */
  run(signal: AbortSignal): Promise<void>;
}

const proxyAnswer = z.object({ refusal: z.object({ at: z.iso.datetime() }).optional() });
const askMilliseconds = 10_000;

/** Makes the watch; until its first look there is space. */
export function createSpace(options: SpaceOptions): Space {
  const { log, metrics, disks, registryClaim, now = Date.now } = options;
  const listeners = new Set<() => void>();
  let shortage: string | undefined;

  async function readNode(address: string, signal: AbortSignal): Promise<[string, NodeDisks] | undefined> {
    try {
      return [address, await options.read(address, AbortSignal.any([signal, timeLimit(askMilliseconds)]))];
    } catch (error) {
      if (signal.aborted) return undefined;
      metrics.failures.inc({ of: 'node' });
      log.warn({ node: address, error: messageOf(error) }, 'the disks of a node cannot be read');
      return undefined;
    }
  }

  /** A proxy that does not answer says nothing about space: builds find out by themselves. */
  async function refusedAt(signal: AbortSignal): Promise<number | undefined> {
    try {
      const ended = AbortSignal.any([signal, timeLimit(askMilliseconds)]);
      const answer = await fetch(new URL('/space', options.proxyUrl), { signal: ended });
      const { refusal } = proxyAnswer.parse(await answer.json());
      return refusal === undefined ? undefined : Date.parse(refusal.at);
    } catch {
      return undefined;
    }
  }

  async function look(signal: AbortSignal): Promise<void> {
    const addresses = new Set(options.pods().flatMap(({ status }) => status?.hostIP ?? []));
    const [read, refused] = await Promise.all([
      Promise.all([...addresses].map((address) => readNode(address, signal))),
      refusedAt(signal),
    ]);
    if (signal.aborted) return;
    const nodes = new Map(read.filter((each) => each !== undefined));
    disks.seen([...nodes.values()]);
    const found = shortageOf({ nodes, registryClaim, refusedAt: refused }, options.reserve, now());
    metrics.short.set(found === undefined ? 0 : 1);
    const isNews = (found === undefined) !== (shortage === undefined);
    shortage = found;
    if (!isNews) return;
    if (found === undefined) log.info({}, 'there is disk space for builds again');
    else log.warn({ shortage: found }, 'no build is started for lack of disk space');
    for (const listener of listeners) listener();
  }

  return {
    shortage: () => shortage,
    changes: (keys) => ({
      start: (enqueue) => {
        const listener = (): void => {
          keys().forEach(enqueue);
        };
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      resyncKeys: () => [],
      hasSynced: true,
      whenSynced: () => Promise.resolve(),
    }),
    async run(signal) {
      while (!signal.aborted) {
        await look(signal);
        await sleep(systemClock, options.intervalMs, signal);
      }
    },
  };
}
