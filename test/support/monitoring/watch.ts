// A lab under the eyes of a real Prometheus with the real rules, whose alerts do not wait.
import { alertGroups } from '../../../charts/monitoring/all.ts';
import { renderRules } from '../../../charts/monitoring/alert.ts';
import { waitFor } from '../operator/world.ts';
import type { Lab } from './lab.ts';
import { type Labels, type Prometheus, startPrometheus } from './prometheus.ts';

export interface Watch {
  readonly prometheus: Prometheus;
  /** Names of the alerts that fire, each once. */
  firing(): Promise<string[]>;
  /** Waits until it fires, with these labels among its own, and returns its summary. */
  summaryOf(name: string, labels?: Labels, seconds?: number): Promise<string>;
  /** Waits until it does not fire. */
  ended(name: string, seconds?: number): Promise<void>;
  stop(): Promise<void>;
}

/** Until an alert fires or ends: processes are started, and samples come once a second. */
const usualSeconds = 60;

/** `intervals`: seconds between scrapes, by job; one unless given. */
export async function watch(
  { targets }: Pick<Lab, 'targets'>,
  intervals: Readonly<Record<string, number>> = {},
): Promise<Watch> {
  const hasty = alertGroups.map((group) => ({
    ...group,
    alerts: group.alerts.map((alert) => ({ ...alert, for: '1s' })),
  }));
  const prometheus = await startPrometheus({ targets, rules: renderRules(hasty), intervals });
  const all = async (): ReturnType<Prometheus['alerts']> =>
    (await prometheus.alerts()).filter(({ state }) => state === 'firing');
  const firing = async (): Promise<string[]> =>
    [...new Set((await all()).map(({ labels }) => labels['alertname'] ?? ''))].sort();
  return {
    prometheus,
    firing,
    async summaryOf(name, labels = {}, seconds = usualSeconds) {
      const wanted = Object.entries({ ...labels, alertname: name });
      return waitFor(
        `${name} to fire`,
        async () =>
          (await all()).find((alert) => wanted.every(([label, value]) => alert.labels[label] === value))?.annotations[
            'summary'
          ],
        seconds,
      );
    },
    async ended(name, seconds = usualSeconds) {
      await waitFor(`${name} to end`, async () => !(await firing()).includes(name), seconds);
    },
    stop: () => prometheus.stop(),
  };
}
