// Runs a task periodically until its signal: expiring holds, purging keys, reconciling.
import { setTimeout as sleep } from 'node:timers/promises';
import { runAsTask } from './database/database.ts';

export interface PeriodicTask {
  readonly everyMs: number;
  /** @returns how much it did; when not 0 it runs again at once. */
  readonly run: () => Promise<number>;
  readonly failed: (error: unknown) => void;
}

/**
 * Repeats the task, with a jitter so that replicas spread out. Ends soon after the signal, never in the middle of a
 * run.
 */
export async function repeat(task: PeriodicTask, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const did = await runAsTask(task.run).catch((error: unknown) => {
      task.failed(error);
      return 0;
    });
    if (did === 0)
      await sleep(task.everyMs * (0.75 + Math.random() / 2), undefined, { signal, ref: false }).catch(() => undefined);
  }
}
