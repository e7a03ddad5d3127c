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
  /** All apps: each is routed in another way once there is no activator, and again once there is one. */
  readonly apps: () => readonly string[];
  readonly log: Logger;
}

/** Runs until the signal is aborted. */
export function createActivityTask(options: ActivityTaskOptions): (signal: AbortSignal) => Promise<void> {
  const { pool, record, changed, apps, log } = options;
  return async (signal) => {
    let known = record.activators(Date.now());
    while (!signal.aborted) {
      try {
        record.take(await pool.reports(signal), Date.now()).forEach(changed);
      } catch (error) {
        log.warn({ error: messageOf(error) }, 'the activators could not be asked: no app is put to rest');
      }
      const activators = record.activators(Date.now());
      if (activators !== known) apps().forEach(changed);
      known = activators;
      await sleep(systemClock, options.intervalMs, signal);
    }
  };
}
