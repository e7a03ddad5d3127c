// Reads from the kubelet of a node what the apps there use.
import { askKubelet, type Connection } from '../../lib/kubernetes/index.ts';

/** What the container of an app, or of one of its backing services, has used. */
export interface UsageSample {
  readonly pod: string;
  readonly container: AppContainer;
  /** CPU seconds since the container started. */
  readonly cpuSeconds: number;
  /** Bytes of memory that cannot be reclaimed (working set). */
  readonly memoryBytes: number;
  /** When it was measured, in milliseconds since 1970. */
  readonly at: number;
}

/** Names of the containers that are read, as the pods of an app and of its backing services have them. */
const appContainers = ['app', 'service'] as const;
export type AppContainer = (typeof appContainers)[number];

/** Reads a node by its address. @throws ApiError when the kubelet refuses or is out of reach */
export type ReadUsage = (address: string, signal: AbortSignal) => Promise<UsageSample[]>;

const line =
  /^container_(cpu_usage_seconds_total|memory_working_set_bytes)\{([^}\n]{1,600})\} ([0-9.e+-]{1,40})(?: (\d{1,16}))?$/;

/** Reads what apps use; needs the right to nodes/metrics. */
export function kubeletUsage(connection: Connection, namespace: string, port: number): ReadUsage {
  const asked = { port, path: '/metrics/resource', accept: 'text/plain', userAgent: 'moorage-operator' };
  return async (address, signal) => {
    const text = await askKubelet(connection, { ...asked, address }, signal);
    return parseUsage(text, namespace);
  };
}

/** The samples of the containers of apps in one namespace, out of the kubelet's Prometheus text. */
export function parseUsage(text: string, namespace: string, now = Date.now()): UsageSample[] {
  const readings = text.split('\n').flatMap((each) => readingOf(each, namespace, now) ?? []);
  const memory = new Map(readings.filter(({ isMemory }) => isMemory).map(({ pod, value }) => [pod, value]));
  return readings.flatMap(({ pod, container, isMemory, value, at }) => {
    const memoryBytes = memory.get(pod);
    return isMemory || memoryBytes === undefined ? [] : [{ pod, container, cpuSeconds: value, memoryBytes, at }];
  });
}

interface Reading {
  readonly pod: string;
  readonly container: AppContainer;
  readonly isMemory: boolean;
  readonly value: number;
  readonly at: number;
}

function readingOf(text: string, namespace: string, now: number): Reading | undefined {
  const [, metric, labels = '', value = '', time] = line.exec(text) ?? [];
  const container = appContainers.find((name) => name === labelOf(labels, 'container'));
  const pod = labelOf(labels, 'pod');
  if (metric === undefined || container === undefined || pod === undefined) return undefined;
  if (labelOf(labels, 'namespace') !== namespace) return undefined;
  const at = time === undefined ? now : Number(time);
  return { pod, container, isMemory: metric === 'memory_working_set_bytes', value: Number(value), at };
}

function labelOf(labels: string, name: string): string | undefined {
  return new RegExp(`(?:^|,)${name}="([^"]{0,253})"`).exec(labels)?.[1];
}
