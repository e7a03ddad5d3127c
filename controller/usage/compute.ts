// Reports to the API what the containers of apps use. Samples that could not be sent are sent with the next ones.
import { Counter, type Registry } from 'prom-client';
import { labels } from '../../crds/names.ts';
import { computeSample, samplesAtOnce, type ComputeReport, type ComputeSample } from '../../crds/reports.ts';
import { toErrorMessage, type Logger } from '../../lib/kubernetes/index.ts';
import { listContainers, type ContainerStatus, type Pod } from '../objects/kinds.ts';
import type { UsageSample } from './usage.ts';

export interface ComputeReporterOptions {
  readonly url: string;
  readonly token: string;
  readonly log: Logger;
  readonly registry: Registry;
  /** Maximum number of unsent samples. Dropping the oldest loses no CPU time: its counters are in those that follow. */
  readonly waitingLimit?: number;
}

const limitMs = 10_000;

/** Creates the reporter, which takes the samples of each scrape. It never throws. */
export function createComputeReporter(
  options: ComputeReporterOptions,
): (pods: readonly Pod[], samples: readonly UsageSample[]) => Promise<void> {
  const { url, token, log, waitingLimit = 50_000 } = options;
  const failures = createFailureCounter(options.registry);
  let waiting: readonly ComputeSample[] = [];

  async function send(samples: readonly ComputeSample[]): Promise<void> {
    const body: ComputeReport = { samples: [...samples] };
    const response = await fetch(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(limitMs),
    });
    const answer = await response.text();
    if (!response.ok) throw new Error(`${url} answered ${response.status}: ${answer.slice(0, 300)}`);
  }

  return async (pods, samples) => {
    waiting = [...waiting, ...toComputeSamples(pods, samples)].slice(-waitingLimit);
    try {
      while (waiting.length > 0) {
        await send(waiting.slice(0, samplesAtOnce));
        waiting = waiting.slice(samplesAtOnce);
      }
    } catch (error) {
      failures.inc();
      log.warn({ error: toErrorMessage(error), waiting: waiting.length }, 'could not report the usage of apps');
    }
  };
}

/** The use of each running container. A sample that the API would reject is left out, since it would block all others. */
export function toComputeSamples(pods: readonly Pod[], samples: readonly UsageSample[]): ComputeSample[] {
  const byName = new Map(pods.map((pod) => [pod.metadata.name, pod]));
  return samples.flatMap((sample) => {
    const { at, cpuSeconds, memoryBytes } = sample;
    const container = findProcess(byName.get(sample.pod), sample.container);
    // A sample from before this start, which has whole seconds, is about the previous container.
    if (container === undefined || !(at >= container.startedAt + 1_000)) return [];
    const read = computeSample.safeParse({
      container: container.name,
      app: container.app,
      started_at: new Date(container.startedAt).toISOString(),
      at: new Date(at).toISOString(),
      cpu_us: Math.round(cpuSeconds * 1_000_000),
      memory_bytes: Math.round(memoryBytes),
    });
    return read.data ?? [];
  });
}

interface AppProcess {
  /** Unique: a restart of the same container gets another name. */
  readonly name: string;
  readonly app: string | undefined;
  readonly startedAt: number;
}

/** The process that runs in a container now. */
function findProcess(pod: Pod | undefined, name: string): AppProcess | undefined {
  const found = pod === undefined ? undefined : listProcesses(pod).find((each) => each.name === name);
  if (pod === undefined || found?.state?.running?.startedAt === undefined) return undefined;
  const { uid, labels: marks = {} } = pod.metadata;
  return {
    name: `${uid}/${name}/${found.restartCount}`,
    app: marks[labels.app],
    startedAt: Date.parse(found.state.running.startedAt),
  };
}

/** The containers of an app's components, or that of a backing service. */
function listProcesses(pod: Pod): readonly ContainerStatus[] {
  const services = pod.status?.containerStatuses?.filter(({ name }) => name === 'service') ?? [];
  return [...listContainers(pod), ...services];
}

/** Counts reports that failed. */
export function createFailureCounter(registry: Registry): Counter {
  return new Counter({
    name: 'moorage_compute_report_failures_total',
    help: 'Reports of what apps use that the API did not take; they are sent again.',
    registers: [registry],
  });
}
