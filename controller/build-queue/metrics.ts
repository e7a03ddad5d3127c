// Metrics of the build queue, counted when they are asked for.
import { Gauge, type Registry } from 'prom-client';

/** Pipelines by state. `without_room`: no node takes their pod. */
export type QueueCounts = Readonly<Record<'queued' | 'running' | 'without_room', number>>;

export interface QueueView {
  readonly counts: QueueCounts;
  /** Seconds for which the oldest one waits; 0 where none does. */
  readonly oldestWaitSeconds: number;
}

export function queueMetrics(registry: Registry, view: () => QueueView): void {
  const registers = [registry];
  new Gauge({
    name: 'moorage_pipelines',
    help: 'Pipelines that wait in the queue, that have a slot, and for which no node has room.',
    labelNames: ['state'],
    registers,
    collect() {
      for (const [state, count] of Object.entries(view().counts)) this.set({ state }, count);
    },
  });
  new Gauge({
    name: 'moorage_pipelines_oldest_wait_seconds',
    help: 'Seconds for which the oldest pipeline waits in the queue; 0 if none does.',
    registers,
    collect() {
      this.set(view().oldestWaitSeconds);
    },
  });
}
