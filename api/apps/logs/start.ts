// Starts the collection of what apps print, and the endpoints that read it.
import type { Client } from '../../../lib/kubernetes/index.ts';
import type { Logger } from '../../../lib/telemetry.ts';
import type { LedgerHandle } from '../../billing/index.ts';
import type { Endpoint } from '../../http/index.ts';
import type { AuthorAccess } from '../author/access.ts';
import type { AppIndex } from '../hosted-apps.ts';
import type { OpenLog } from '../submit/follow-log.ts';
import { type CollectorTimes, LogCollector, type LogMetrics } from './collector.ts';
import { createLogEndpoints, type LogServices } from './endpoints.ts';
import { type LogLimits, LogStore } from './log-store.ts';
import type { QueueLimits } from './log-queue.ts';

/** Where logs come from. */
export interface LogSettings {
  readonly client: Pick<Client, 'list' | 'watch'>;
  /** Opens logs of pods in the namespace of the apps. */
  readonly openLog: OpenLog;
  readonly namespace: string;
  /** Key of the fingerprints of secrets that authors set; without it, there are none. */
  readonly key: string | undefined;
  /** Maximum concurrent streams. */
  readonly streams: number;
  readonly metrics: LogMetrics;
  /** For tests: shorter times, smaller limits. */
  readonly times?: Partial<CollectorTimes> & { readonly pollMs?: number };
  readonly limits?: Partial<LogLimits & QueueLimits>;
}

export interface LogsOptions extends LogSettings {
  readonly apps: Pick<AppIndex, 'get' | 'listAll'>;
  readonly access: AuthorAccess;
  readonly ledger: LedgerHandle;
  readonly getRun: LogServices['getRun'];
  readonly log: Logger;
}

export interface Logs {
  readonly endpoints: Endpoint[];
  /** Starts to collect. Call it once the cache knows the apps. */
  start(): void;
  stop(): Promise<void>;
}

export function startLogs({ access, ledger, getRun, streams, times = {}, limits = {}, ...options }: LogsOptions): Logs {
  const store = new LogStore(() => ledger.get().database, limits);
  const collector = new LogCollector({ ...options, store, times, limits });
  const { pollMs } = times;
  return {
    endpoints: createLogEndpoints({ access, store, getRun, streams, ...(pollMs === undefined ? {} : { pollMs }) }),
    start() {
      void ledger.opened.then((opened) => {
        if (opened !== undefined) collector.start(opened);
      });
    },
    stop: () => collector.stop(),
  };
}
