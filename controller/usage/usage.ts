// Measures what the pods of apps use, fits their requests to it in place, so that a node is full only when it is used, and
// reports the usage.
import { Counter, Gauge, type Registry } from 'prom-client';
import {
  askKubelet,
  isApiStatus,
  toErrorMessage,
  sleep,
  systemClock,
  type Client,
  type Connection,
  type Logger,
} from '../../lib/kubernetes/index.ts';
import { createTimeLimit } from '../../lib/values.ts';
import { listContainers, pods as podResource, type Pod, parseBytes, parseMilli } from '../objects/kinds.ts';

export interface UsageOptions {
  readonly client: Client;
  readonly read: UsageReader;
  /** All pods of apps and of their backing services. */
  readonly listPods: () => readonly Pod[];
  /** Whether the requests of a pod may be changed to fit its use. */
  readonly isFitted: (pod: Pod) => boolean;
  /** Receives the samples of these pods. */
  readonly report?: ((pods: readonly Pod[], samples: readonly UsageSample[]) => Promise<void>) | undefined;
  /** Receives what the containers of these pods used since the look before. */
  readonly observe?: ((pods: readonly Pod[], findUse: UseLookup) => void) | undefined;
  readonly intervalMs: number;
  readonly log: Logger;
  readonly registry: Registry;
}

/** Finds what a container used between its last two samples; undefined if it has not got two. */
export type UseLookup = (pod: string, container: string) => Use | undefined;

/** A container's last sample and its recent uses. Another leader has them again within a minute. */
interface History {
  readonly sample: UsageSample;
  readonly uses: readonly Use[];
}

/** Reads all nodes that run apps at the interval until the signal is aborted. */
export function createUsageTask(options: UsageOptions): (signal: AbortSignal) => Promise<void> {
  const { client, read, log } = options;
  const metrics = createUsageMetrics(options.registry);
  let histories: ReadonlyMap<string, History> = new Map();

  async function readNode(address: string, signal: AbortSignal): Promise<UsageSample[]> {
    try {
      return await read(address, AbortSignal.any([signal, createTimeLimit(options.intervalMs)]));
    } catch (error) {
      if (!signal.aborted) {
        metrics.failures.inc();
        log.warn(
          { node: address, error: toErrorMessage(error) },
          'cannot read usage: apps on the node keep their requests',
        );
      }
      return [];
    }
  }

  async function resize(pod: Pod, requests: ContainerRequests, signal: AbortSignal): Promise<void> {
    try {
      if (await resizePod(client, pod, requests, signal)) metrics.resizes.inc();
    } catch (error) {
      // A cluster that cannot resize pods refuses each time.
      metrics.failures.inc();
      log.warn({ pod: pod.metadata.name, error: toErrorMessage(error) }, 'could not change the requests of a pod');
    }
  }

  async function look(signal: AbortSignal): Promise<void> {
    const running = options.listPods().filter(isRunning);
    const nodes = new Set(running.flatMap(({ status }) => status?.hostIP ?? []));
    const allSamples = (await Promise.all([...nodes].map((node) => readNode(node, signal)))).flat();
    const ofApps = new Set(
      running.flatMap((pod) => listContainers(pod).map(({ name }) => toKey(pod.metadata.name, name))),
    );
    const samples = allSamples.filter(({ pod, container }) => ofApps.has(toKey(pod, container)));
    histories = rememberUses(histories, samples);
    for (const pod of running.filter(options.isFitted)) {
      const better = fitContainers(pod, histories);
      if (Object.keys(better).length > 0 && !signal.aborted) await resize(pod, better, signal);
    }
    options.observe?.(running, (pod, container) => {
      const { sample, uses } = histories.get(toKey(pod, container)) ?? {};
      return uses?.findLast(({ at }) => at === sample?.at);
    });
    metrics.apps.set(new Set(samples.map(({ pod }) => pod)).size);
    await options.report?.(running, allSamples);
  }

  return async (signal) => {
    while (!signal.aborted) {
      await look(signal);
      await sleep(systemClock, options.intervalMs, signal);
    }
  };
}

/** Names of pods and containers have no slash. */
function toKey(pod: string, container: string): string {
  return `${pod}/${container}`;
}

/** Better requests for each container of the pod whose present ones do not fit its use. */
function fitContainers(pod: Pod, histories: ReadonlyMap<string, History>): ContainerRequests {
  const better = listContainers(pod).flatMap(({ name, resources }) => {
    const requests = toAmounts(resources?.requests);
    const limits = toAmounts(resources?.limits);
    if (requests === undefined || limits === undefined) return [];
    const uses = histories.get(toKey(pod.metadata.name, name))?.uses ?? [];
    const to = improveRequests(uses, requests, limits);
    return to === undefined ? [] : [[name, { cpu: `${to.cpuMilli}m`, memory: String(to.memoryBytes) }] as const];
  });
  return Object.fromEntries(better);
}

/** Adds the uses that new samples show; a container without a sample is forgotten. */
function rememberUses(before: ReadonlyMap<string, History>, samples: readonly UsageSample[]): Map<string, History> {
  return new Map(
    samples.map((sample) => {
      const key = toKey(sample.pod, sample.container);
      const history = before.get(key);
      const use = history === undefined ? undefined : measureUse(history.sample, sample);
      // The kubelet measures at its own interval: the same sample twice is no news.
      if (history?.sample.at === sample.at) return [key, history];
      const uses = [...(history?.uses ?? []), ...(use === undefined ? [] : [use])];
      return [key, { sample, uses: uses.filter(({ at }) => sample.at - at < rememberedMs) }];
    }),
  );
}

function isRunning({ metadata, status }: Pod): boolean {
  return metadata.deletionTimestamp === undefined && status?.phase === 'Running';
}

function toAmounts(of: Readonly<Record<string, string>> | undefined): Amounts | undefined {
  const { cpu, memory } = of ?? {};
  return cpu === undefined || memory === undefined
    ? undefined
    : { cpuMilli: parseMilli(cpu), memoryBytes: Number(parseBytes(memory)) };
}

// Chooses requests: the measured use and a little more, within the limits.

/** CPU in thousandths, memory in bytes. */
export interface Amounts {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
}

/** What a container used between two samples. */
export interface Use extends Amounts {
  readonly at: number;
}

const mebibyte = 1024 * 1024;
/** Timers and probes use a little even in an idle app. */
const least: Amounts = { cpuMilli: 2, memoryBytes: 16 * mebibyte };
/** Headroom above the measured use. */
const headroom = 1.25;
/** How far back uses count: an app that was busy a moment ago may be busy again. */
export const rememberedMs = 5 * 60_000;
/** Requests are lowered only after this long: the use at startup is not typical. */
const settledMs = 60_000;
/** Smaller changes are not worth a write. */
const worthwhile = { raise: 1.2, lower: 0.7 };

/** Measures the use between two samples; undefined if the container was restarted between them. */
export function measureUse(earlier: UsageSample, later: UsageSample): Use | undefined {
  const seconds = (later.at - earlier.at) / 1000;
  const used = later.cpuSeconds - earlier.cpuSeconds;
  if (seconds <= 0 || used < 0) return undefined;
  return { at: later.at, cpuMilli: (used / seconds) * 1000, memoryBytes: later.memoryBytes };
}

/** Chooses requests that fit the uses better than the present ones; undefined if these are good enough. */
export function improveRequests(uses: readonly Use[], present: Amounts, limits: Amounts): Amounts | undefined {
  const first = uses[0];
  const last = uses.at(-1);
  if (first === undefined || last === undefined) return undefined;
  const isSettled = last.at - first.at >= settledMs;
  const choose = (name: keyof Amounts, step: number): number => {
    const seen = Math.max(...uses.map((use) => use[name])) * headroom;
    const request = Math.min(limits[name], Math.max(least[name], Math.ceil(seen / step) * step));
    if (request > present[name] * worthwhile.raise) return request;
    return isSettled && request < present[name] * worthwhile.lower ? request : present[name];
  };
  const better = { cpuMilli: choose('cpuMilli', 1), memoryBytes: choose('memoryBytes', mebibyte) };
  return better.cpuMilli === present.cpuMilli && better.memoryBytes === present.memoryBytes ? undefined : better;
}

/** Quantities that containers request, by their names. */
export type ContainerRequests = Readonly<Record<string, { readonly cpu: string; readonly memory: string }>>;

/** Changes requests in place, without a restart. False if the pod is gone or changed meanwhile. @throws ApiError from a cluster that cannot resize */
export async function resizePod(
  client: Client,
  pod: Pod,
  requests: ContainerRequests,
  signal: AbortSignal,
): Promise<boolean> {
  const sidecars = new Set(pod.status?.initContainerStatuses?.map(({ name }) => name));
  const [first, rest] = [true, false].map((wanted) =>
    Object.entries(requests)
      .filter(([name]) => sidecars.has(name) === wanted)
      .map(([name, each]) => ({ name, resources: { requests: each } })),
  );
  const body = {
    metadata: { uid: pod.metadata.uid },
    spec: {
      ...(first === undefined || first.length === 0 ? {} : { initContainers: first }),
      ...(rest === undefined || rest.length === 0 ? {} : { containers: rest }),
    },
  };
  const type = 'application/strategic-merge-patch+json';
  try {
    await client.patch(podResource, pod.metadata, body, { type, subresource: 'resize', signal });
    return true;
  } catch (error) {
    if (isApiStatus(error, 404) || isApiStatus(error, 409)) return false;
    throw error;
  }
}

// Reads from the kubelets what apps use.

/** What a container in a pod of an app, or of one of its backing services, has used. */
export interface UsageSample {
  readonly pod: string;
  readonly container: string;
  /** CPU seconds since the container started. */
  readonly cpuSeconds: number;
  /** Bytes of memory that cannot be reclaimed (working set). */
  readonly memoryBytes: number;
  /** When it was measured, in milliseconds since 1970. */
  readonly at: number;
}

/** Reads a node by its address. @throws ApiError when the kubelet refuses or is out of reach */
export type UsageReader = (address: string, signal: AbortSignal) => Promise<UsageSample[]>;

const line =
  /^container_(cpu_usage_seconds_total|memory_working_set_bytes)\{([^}\n]{1,600})\} ([0-9.e+-]{1,40})(?: (\d{1,16}))?$/;

/** Reads what apps use; needs the right to nodes/metrics. */
export function createUsageReader(connection: Connection, namespace: string, port: number): UsageReader {
  const request = { port, path: '/metrics/resource', accept: 'text/plain', userAgent: 'moorage-operator' };
  return async (address, signal) => {
    const text = await askKubelet(connection, { ...request, address }, signal);
    return parseUsage(text, namespace);
  };
}

/** The samples of the containers in one namespace, out of the kubelet's Prometheus text. */
export function parseUsage(text: string, namespace: string, now = Date.now()): UsageSample[] {
  const readings = text.split('\n').flatMap((each) => parseReading(each, namespace, now) ?? []);
  const memory = new Map(
    readings.filter(({ isMemory }) => isMemory).map((one) => [toKey(one.pod, one.container), one.value]),
  );
  return readings.flatMap(({ pod, container, isMemory, value, at }) => {
    const memoryBytes = memory.get(toKey(pod, container));
    return isMemory || memoryBytes === undefined ? [] : [{ pod, container, cpuSeconds: value, memoryBytes, at }];
  });
}

interface Reading {
  readonly pod: string;
  readonly container: string;
  readonly isMemory: boolean;
  readonly value: number;
  readonly at: number;
}

function parseReading(text: string, namespace: string, now: number): Reading | undefined {
  const [, metric, labels = '', value = '', time] = line.exec(text) ?? [];
  const container = readLabel(labels, 'container');
  const pod = readLabel(labels, 'pod');
  if (metric === undefined || container === undefined || pod === undefined) return undefined;
  if (readLabel(labels, 'namespace') !== namespace) return undefined;
  const at = time === undefined ? now : Number(time);
  return { pod, container, isMemory: metric === 'memory_working_set_bytes', value: Number(value), at };
}

function readLabel(labels: string, name: string): string | undefined {
  return new RegExp(`(?:^|,)${name}="([^"]{0,253})"`).exec(labels)?.[1];
}

export interface UsageMetrics {
  /** Apps of which the last look had a sample. */
  readonly apps: Gauge;
  readonly resizes: Counter;
  readonly failures: Counter;
}

export function createUsageMetrics(registry: Registry): UsageMetrics {
  const registers = [registry];
  return {
    apps: new Gauge({ name: 'moorage_usage_apps', help: 'Pods of apps whose use was measured last.', registers }),
    resizes: new Counter({
      name: 'moorage_usage_resizes_total',
      help: 'Pods of apps whose requests were changed to fit their use.',
      registers,
    }),
    failures: new Counter({
      name: 'moorage_usage_failures_total',
      help: 'Nodes whose usage could not be read, and pods whose requests could not be changed.',
      registers,
    }),
  };
}
