// Asks the activators again and again what they have seen, while this replica leads.
import { messageOf, sleep, systemClock, type Logger } from '../../lib/kubernetes/index.ts';
import type { ActivatorPool } from './activators.ts';
import type { ActivityRecord } from './activity.ts';

export interface ActivityTaskOptions {
  readonly pool: Pick<ActivatorPool, 'reports'>;
  readonly record: ActivityRecord;
  readonly intervalMs: number;
  /** Called with the name of an app of which something is to be written down. */
  readonly changed: (app: string) => void;
  readonly log: Logger;
}

/** Runs until the signal is aborted. */
export function createActivityTask(options: ActivityTaskOptions): (signal: AbortSignal) => Promise<void> {
  const { pool, record, changed, log } = options;
  return async (signal) => {
    while (!signal.aborted) {
      try {
        record.take(await pool.reports(signal), Date.now()).forEach(changed);
      } catch (error) {
        log.warn({ error: messageOf(error) }, 'the activators could not be asked: no app is put to rest');
      }
      await sleep(systemClock, options.intervalMs, signal);
    }
  };
}
