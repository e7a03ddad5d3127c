// Metrics of a workers' pod.
import { Gauge, type Registry } from 'prom-client';

export function workerMetrics(
  registry: Registry,
  tasks: () => { readonly waiting: number; readonly running: number },
): void {
  new Gauge({
    name: 'moorage_worker_tasks',
    help: 'Tasks of tools in this pod: those that wait for a worker, and those that have one.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      for (const [state, count] of Object.entries(tasks())) this.set({ state }, count);
    },
  });
}
