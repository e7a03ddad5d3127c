// Looks at what the pods of apps use: lets them request that, in place and without a restart, so that a node is full
// when it is used; and reports it.
import type { Registry } from 'prom-client';
import type { Pod } from '../objects/kinds.ts';
import { bytesOf, milliOf } from '../objects/quantity.ts';
import { messageOf, sleep, systemClock, type Client, type Logger } from '../../lib/kubernetes/index.ts';
import type { ReadUsage, UsageSample } from './kubelet.ts';
import { usageMetrics } from './metrics.ts';
import { resizePod } from './resize.ts';
import { betterRequests, rememberedMs, useBetween, type Amounts, type Use } from './requests.ts';
import { timeLimit } from '../../lib/values.ts';

export interface UsageOptions {
  readonly client: Client;
  readonly read: ReadUsage;
  /** All pods of apps and of their backing services. */
  readonly pods: () => readonly Pod[];
  /** Whether the requests of a pod may be changed to fit its use. */
  readonly isFitted: (pod: Pod) => boolean;
  /** Takes what was seen of these pods. */
  readonly report?: ((pods: readonly Pod[], samples: readonly UsageSample[]) => Promise<void>) | undefined;
  readonly intervalMs: number;
  readonly log: Logger;
  readonly registry: Registry;
}

/** A pod's last sample and its uses; nothing that another leader could not see again in a minute. */
interface History {
  readonly sample: UsageSample;
  readonly uses: readonly Use[];
}

/** Looks at all nodes that run apps, again and again, until the signal is aborted. */
export function createUsageTask(options: UsageOptions): (signal: AbortSignal) => Promise<void> {
  const { client, read, log } = options;
  const metrics = usageMetrics(options.registry);
  let histories: ReadonlyMap<string, History> = new Map();

  async function readNode(address: string, signal: AbortSignal): Promise<UsageSample[]> {
    try {
      return await read(address, AbortSignal.any([signal, timeLimit(options.intervalMs)]));
    } catch (error) {
      if (!signal.aborted) {
        metrics.failures.inc();
        log.warn({ node: address, error: messageOf(error) }, 'usage cannot be read: apps there keep their requests');
      }
      return [];
    }
  }

  async function resize(pod: Pod, to: Amounts, signal: AbortSignal): Promise<void> {
    const requests = { cpu: `${to.cpuMilli}m`, memory: String(to.memoryBytes) };
    try {
      if (await resizePod(client, pod, requests, signal)) metrics.resizes.inc();
    } catch (error) {
      // A cluster that cannot says so each time.
      metrics.failures.inc();
      log.warn({ pod: pod.metadata.name, error: messageOf(error) }, 'the requests of a pod could not be changed');
    }
  }

  async function look(signal: AbortSignal): Promise<void> {
    const running = options.pods().filter(isRunning);
    const nodes = new Set(running.flatMap(({ status }) => status?.hostIP ?? []));
    const all = (await Promise.all([...nodes].map((node) => readNode(node, signal)))).flat();
    const samples = all.filter(({ container }) => container === 'app');
    histories = remembered(histories, samples);
    for (const pod of running.filter(options.isFitted)) {
      const present = amountsOf(pod);
      const uses = histories.get(pod.metadata.name)?.uses ?? [];
      const better = present === undefined ? undefined : betterRequests(uses, present.requests, present.limits);
      if (better !== undefined && !signal.aborted) await resize(pod, better, signal);
    }
    metrics.apps.set(samples.length);
    await options.report?.(running, all);
  }

  return async (signal) => {
    while (!signal.aborted) {
      await look(signal);
      await sleep(systemClock, options.intervalMs, signal);
    }
  };
}

/** With the uses that the new samples show; a pod without a sample is forgotten. */
function remembered(before: ReadonlyMap<string, History>, samples: readonly UsageSample[]): Map<string, History> {
  return new Map(
    samples.map((sample) => {
      const known = before.get(sample.pod);
      const use = known === undefined ? undefined : useBetween(known.sample, sample);
      // The kubelet measures in its own time: the same sample twice says nothing new.
      if (known?.sample.at === sample.at) return [sample.pod, known];
      const uses = [...(known?.uses ?? []), ...(use === undefined ? [] : [use])];
      return [sample.pod, { sample, uses: uses.filter(({ at }) => sample.at - at < rememberedMs) }];
    }),
  );
}

function isRunning({ metadata, status }: Pod): boolean {
  return metadata.deletionTimestamp === undefined && status?.phase === 'Running';
}

/** What the app's container requests now, and its limits. */
function amountsOf({ status }: Pod): { requests: Amounts; limits: Amounts } | undefined {
  const resources = status?.containerStatuses?.find(({ name }) => name === 'app')?.resources;
  const requests = amounts(resources?.requests);
  const limits = amounts(resources?.limits);
  return requests === undefined || limits === undefined ? undefined : { requests, limits };
}

function amounts(of: Readonly<Record<string, string>> | undefined): Amounts | undefined {
  const { cpu, memory } = of ?? {};
  return cpu === undefined || memory === undefined
    ? undefined
    : { cpuMilli: milliOf(cpu), memoryBytes: Number(bytesOf(memory)) };
}
