// Starts metering: the receivers of access logs and of compute, and the tasks that sum up uses and declare losses.
import type { RequestListener } from 'node:http';
import type { BlockList } from 'node:net';
import type { Registry } from 'prom-client';
import type { ComputeSample } from '../../../crds/reports.ts';
import type { Logger } from '../../../lib/telemetry.ts';
import type { LedgerHandle } from '../../billing/index.ts';
import { addSamples, type ComputeCounts, createComputeReceiver, forgetContainers } from './compute-receiver.ts';
import type { MeteringSettings } from './config.ts';
import { createReceiver } from './log-receiver.ts';
import { createComputeMetrics, createMeteringMetrics } from './metering-metrics.ts';
import { createHostIndex, createVisitorResolver, type HostsOptions } from './request-class.ts';
import { createIntake, requestTotals, startUsageTasks } from './usage-store.ts';

export interface MeteringOptions {
  readonly settings: MeteringSettings;
  readonly ledger: LedgerHandle;
  readonly apps: Pick<HostsOptions, 'apps' | 'site'>;
  /** Like https://moorage.localhost. */
  readonly baseUrl: string;
  readonly callers: { readonly salt: string; readonly trustedProxies: BlockList };
  readonly keepDays: number;
  readonly registry: Registry;
  readonly log: Logger;
}

export interface Metering {
  /** Listeners by path, for the internal port; nothing from outside may reach them. */
  readonly routes: Readonly<Record<string, RequestListener>>;
}

export function startMetering(options: MeteringOptions): Metering {
  const { settings, ledger, log } = options;
  let isOpen = false;
  const metrics = createMeteringMetrics(options.registry, async () =>
    isOpen ? (await ledger.get().database.query(requestTotals, []))[0] : undefined,
  );
  void ledger.opened.then((opened) => {
    if (opened === undefined) return;
    isOpen = true;
    startUsageTasks(opened, settings.graceMs, log);
    opened.repeat('forget containers', 3_600_000, async () => {
      await opened.database.replay(forgetContainers, []);
      return 0;
    });
  });
  const compute = createComputeMetrics(options.registry);
  if (settings.token === undefined) return { routes: {} };
  const take = createIntake({
    ledger,
    resolveHost: createHostIndex({ ...options.apps, platformHost: new URL(options.baseUrl).hostname }),
    resolveVisitor: createVisitorResolver(options.callers),
    metrics,
    keepDays: options.keepDays,
  });
  const { token } = settings;
  const count = (samples: readonly ComputeSample[]): Promise<ComputeCounts> =>
    addSamples(ledger.get().database, samples);
  return {
    routes: {
      '/v1/logs': createReceiver({ token, storeLogs: take, metrics, log }),
      '/compute': createComputeReceiver({ token, baseUrl: options.baseUrl, count, metrics: compute, log }),
    },
  };
}
