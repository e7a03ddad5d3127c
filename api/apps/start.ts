// Makes the ways to call hosted apps, and keeps what their operations are.
import type { Registry } from 'prom-client';
import type { Logger } from '../../lib/log.ts';
import type { OfferedOperations } from './offer.ts';
import type { Endpoint, ProtocolMount } from '../http/endpoint.ts';
import type { ExternalTools } from '../tools/engine/external-tools.ts';
import type { Models } from '../models/start.ts';
import { Slots, type SlotsOptions } from '../tools/engine/slots.ts';
import type { PayerFor } from '../models/callers/payers.ts';
import type { Workers } from '../tools/engine/workers/workers.ts';
import { AppCalls } from './calls.ts';
import type { AppSettings } from './config.ts';
import { Courier } from './app-client.ts';
import type { Directory } from './directory.ts';
import { appEndpoints } from './endpoints.ts';
import { appMetrics } from './metrics.ts';
import { OperationBook, type OperationBookOptions } from './operations/operation-cache.ts';
import { learner } from './operations/discover.ts';
import { operationTools } from './operations/tools.ts';
import { pathCalls } from './path-calls.ts';

export interface AppsOptions {
  readonly directory: Directory;
  readonly settings: AppSettings;
  readonly concurrency: SlotsOptions;
  readonly models: Pick<Models, 'books'>;
  readonly payerFor: PayerFor;
  readonly workers: Workers;
  readonly baseUrl: string;
  readonly registry: Registry;
  readonly log: Logger;
  /** For tests: how often apps are asked. */
  readonly asking?: Pick<OperationBookOptions, 'everyMs' | 'staleMs' | 'limitMs'>;
}

export interface Apps {
  readonly endpoints: Endpoint[];
  readonly byPath: ProtocolMount;
  readonly more: ExternalTools;
  readonly operations: (slug: string) => OfferedOperations | undefined;
  /** Begins to ask apps what they can do; once it is known which are live. */
  start(): void;
  stop(): Promise<void>;
}

export function startApps({
  directory,
  settings,
  concurrency,
  models,
  payerFor,
  workers,
  baseUrl,
  registry,
  log,
  asking = {},
}: AppsOptions): Apps {
  const courier = new Courier({ limitMs: settings.limitMs });
  const slots = new Slots(concurrency);
  const book = new OperationBook({ directory, learn: learner({ courier, workers }), log, ...asking });
  const calls = new AppCalls({
    courier,
    slots,
    placesPerApp: Math.ceil(concurrency.maxConcurrent / 2),
    price: settings.price,
    bookings: () => models.books.get().bookings,
    metrics: appMetrics(registry, () => ({ calls: slots.taken, operations: book.count })),
  });
  return {
    endpoints: appEndpoints({ directory, calls, payerFor }),
    byPath: pathCalls({ directory, calls, payerFor, baseUrl }),
    more: operationTools({ book, calls, courier, payerFor }),
    operations(slug) {
      const target = directory.find(slug);
      const standing = target === undefined ? undefined : book.of(target);
      return standing === undefined
        ? undefined
        : { names: standing.operations.map(({ name }) => name), fault: standing.fault };
    },
    start() {
      book.start();
    },
    async stop() {
      await book.stop();
      await courier.close();
    },
  };
}
