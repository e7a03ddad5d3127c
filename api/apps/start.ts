// Starts the calls of hosted apps: the client, the metered calls, the operations and the endpoints over them.
import type { Registry } from 'prom-client';
import type { Logger } from '../../lib/telemetry.ts';
import type { OfferedOperations } from './offer.ts';
import { type PriceList, Replays } from '../billing/index.ts';
import type { Endpoint, ProtocolMount } from '../http/index.ts';
import { type ExternalTools, Slots, type SlotsOptions, type Workers } from '../tools/index.ts';
import type { Models, PayerFor } from '../models/index.ts';
import { AppCalls, createAppMetrics } from './calls/app-calls.ts';
import type { AppSettings } from './config.ts';
import { AppClient } from './calls/app-client.ts';
import type { Directory } from './directory.ts';
import { createAppEndpoints, createPathCalls } from './calls/endpoints.ts';
import {
  OperationCache,
  type OperationCacheOptions,
  createOperationDiscoverer,
  createOperationPins,
} from './operations/operation-cache.ts';
import { createOperationTools } from './operations/tools.ts';

export interface AppsOptions {
  readonly directory: Directory;
  readonly settings: AppSettings;
  readonly prices: PriceList;
  readonly concurrency: SlotsOptions;
  readonly models: Pick<Models, 'ledger'>;
  readonly payerFor: PayerFor;
  readonly workers: Workers;
  readonly baseUrl: string;
  readonly registry: Registry;
  readonly log: Logger;
  /** Discovery intervals, for tests. */
  readonly operationDiscovery?: Pick<OperationCacheOptions, 'everyMs' | 'staleMs' | 'limitMs'>;
}

export interface Apps {
  readonly endpoints: Endpoint[];
  readonly byPath: ProtocolMount;
  readonly more: ExternalTools;
  readonly findOperations: (slug: string) => OfferedOperations | undefined;
  /** Starts the discovery of operations. Call it once the cache knows which apps are live. */
  start(): void;
  stop(): Promise<void>;
}

export function startApps({
  directory,
  settings,
  prices,
  concurrency,
  models,
  payerFor,
  workers,
  baseUrl,
  registry,
  log,
  operationDiscovery = {},
}: AppsOptions): Apps {
  const appClient = new AppClient(settings);
  const slots = new Slots(concurrency);
  const operationCache = new OperationCache({
    directory,
    discover: createOperationDiscoverer({ appClient, workers }),
    pins: createOperationPins(models.ledger),
    log,
    ...operationDiscovery,
  });
  const calls = new AppCalls({
    appClient,
    slots,
    slotsPerApp: Math.ceil(concurrency.maxConcurrent / 2),
    prices,
    wallet: () => models.ledger.get().wallet,
    metrics: createAppMetrics(registry, () => ({ calls: slots.taken, operations: operationCache.count })),
  });
  const replays = new Replays({
    name: 'apps',
    database: () => models.ledger.get().database,
    leaseMs: settings.limitMs + 60_000,
  });
  return {
    endpoints: createAppEndpoints({ directory, calls, payerFor, replays }),
    byPath: createPathCalls({ directory, calls, payerFor, replays, baseUrl }),
    more: createOperationTools({ directory, operationCache, calls, appClient, payerFor }),
    findOperations(slug) {
      const target = directory.find(slug);
      const offered = target === undefined ? undefined : operationCache.getOperations(target);
      return offered === undefined
        ? undefined
        : { names: offered.operations.map(({ name }) => name), fault: offered.fault };
    },
    start() {
      operationCache.start();
    },
    async stop() {
      await operationCache.stop();
      await appClient.close();
    },
  };
}
