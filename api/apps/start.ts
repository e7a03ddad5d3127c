// Starts the calls of hosted apps: the client, the metered calls, the operations and the endpoints over them. Reads their
// configuration from the environment.
import type { Registry } from 'prom-client';
import { z } from 'zod';
import type { Logger } from '../../lib/telemetry.ts';
import type { OfferedOperations } from './offer.ts';
import { type PriceList, Replays } from '../billing/index.ts';
import type { Endpoint, ProtocolMount } from '../http/index.ts';
import { type ExternalTools, Slots, type SlotsOptions, type Workers } from '../tools/index.ts';
import type { Models, PayerFor } from '../models/index.ts';
import { AppCalls, createAppMetrics } from './calls/app-calls.ts';
import { AppClient } from './calls/app-client.ts';
import type { Directory } from './directory.ts';
import { createAppEndpoints, createPathCalls } from './calls/endpoints.ts';
import {
  createEndpointCheck,
  OperationCache,
  type OperationCacheOptions,
  createOperationDiscoverer,
  createOperationPins,
} from './operations/operation-cache.ts';
import { createToolEndpoints } from './operations/endpoints.ts';
import { McpSessions, type McpSessionLimits } from './operations/mcp-sessions.ts';
import { createOperationTools } from './operations/tools.ts';
import { readConfig, secret } from '../../lib/config.ts';
import { defineSetting, kinds } from '../../lib/settings.ts';

export interface AppsOptions {
  readonly directory: Directory;
  readonly settings: AppSettings;
  readonly prices: PriceList;
  readonly concurrency: SlotsOptions;
  readonly models: Pick<Models, 'ledger'>;
  readonly payerFor: PayerFor;
  readonly callerSalt: string;
  readonly workers: Workers;
  readonly baseUrl: string;
  readonly registry: Registry;
  readonly log: Logger;
  /** Discovery intervals, for tests. */
  readonly operationDiscovery?: Pick<OperationCacheOptions, 'everyMs' | 'staleMs' | 'limitMs' | 'checkMs' | 'againMs'>;
  /** Limits of MCP sessions with apps, for tests. */
  readonly mcpSessions?: Partial<McpSessionLimits>;
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
  callerSalt,
  workers,
  baseUrl,
  registry,
  log,
  operationDiscovery = {},
  mcpSessions = {},
}: AppsOptions): Apps {
  const appClient = new AppClient(settings);
  const slots = new Slots(concurrency);
  const operationCache = new OperationCache({
    directory,
    discover: createOperationDiscoverer({ appClient, workers }),
    check: createEndpointCheck(appClient),
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
  const sessions = new McpSessions({ ledger: models.ledger, directory, appClient, limits: mcpSessions });
  const replays = new Replays({
    name: 'apps',
    database: () => models.ledger.get().database,
    leaseMs: settings.limitMs + 60_000,
  });
  const more = createOperationTools({ directory, operationCache, calls, appClient, payerFor, sessions });
  return {
    endpoints: [
      ...createAppEndpoints({ directory, calls, payerFor, replays }),
      ...createToolEndpoints({ directory, operationCache, more, calls, payerFor, replays, callerSalt, baseUrl }),
    ],
    byPath: createPathCalls({ directory, calls, payerFor, replays, baseUrl }),
    more,
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
      await Promise.all([operationCache.stop(), sessions.stop()]);
      await appClient.close();
    },
  };
}

export interface AppSettings {
  /** Time limit of a call, until the last byte of the response. */
  readonly limitMs: number;
  /** Milliseconds between an author's deletion of an app and its end. */
  readonly deleteGraceMs: number;
  /** Sent to the activator when the platform lists an app's operations, so that the app is not woken. */
  readonly probeToken: string | undefined;
}

/** Every variable of app calls. */
export const environment = z.object({
  MOORAGE_APP_CALL_SECONDS: defineSetting(kinds.number({ min: 1, max: 3_600 }), {
    value: 'apps.callSeconds',
    default: 120,
    description: 'Time limit in seconds of a call to an app, until the last byte of its response.',
  }),
  MOORAGE_DELETE_GRACE: defineSetting(kinds.duration, {
    value: 'apps.deleteGrace',
    default: '72h',
    description: 'How long an app that its author deletes can be restored. It is suspended until then.',
  }),
  MOORAGE_PROBE_TOKEN: secret
    .optional()
    .describe("Secret that the platform's own requests send to the activator, so that they do not wake apps."),
});

/** Reads the configuration. @throws Error that names every wrong variable */
export function readAppSettings(variables: NodeJS.ProcessEnv = process.env): AppSettings {
  const read = readConfig(environment, variables);
  return {
    limitMs: read.MOORAGE_APP_CALL_SECONDS * 1_000,
    deleteGraceMs: read.MOORAGE_DELETE_GRACE,
    probeToken: read.MOORAGE_PROBE_TOKEN,
  };
}
