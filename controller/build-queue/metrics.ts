// Metrics of the build queue, counted when they are asked for.
import { Gauge, type Registry } from 'prom-client';

/** Pipelines by state. `without_room`: no node takes their pod. */
export type QueueCounts = Readonly<Record<'queued' | 'running' | 'without_room', number>>;

export function queueMetrics(registry: Registry, counts: () => QueueCounts): Gauge<'state'> {
  return new Gauge({
    name: 'moorage_pipelines',
    help: 'Pipelines that wait in the queue, that have a slot, and for which no node has room.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      for (const [state, count] of Object.entries(counts())) this.set({ state }, count);
    },
  });
}
