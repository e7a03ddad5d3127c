// The product's own definitions, as the reference reads them. The only file here that knows how the API is put
// together: it is made, but not started, so nothing listens and nothing is asked.
import { BlockList } from 'node:net';
import { pino } from 'pino';
import { Registry, type MetricObject } from 'prom-client';
import { createActivatorMetrics } from '../../activator/gate.ts';
import { readAppSettings } from '../../api/apps/start.ts';
import { createAppIndex, appIndexers, type App } from '../../api/apps/hosted-apps.ts';
import {
  createBillingMetrics,
  createDailyLimitMetrics,
  createDatabaseMetrics,
  createOverrunMetrics,
} from '../../api/billing/metrics.ts';
import { createLogMetrics } from '../../api/apps/logs/collector.ts';
import { createApi } from '../../api/create-api.ts';
import { collectDocumentedProblems } from '../../api/protocols/index.ts';
import type { Endpoint } from '../../api/http/index.ts';
import { readModelSettings } from '../../api/models/config.ts';
import { createShipperMetrics } from '../../api/accounting/metering/shipper/ship.ts';
import { createModelMetrics } from '../../api/models/metered-router.ts';
import {
  createSubmitEndpoints,
  createSubmitMetrics,
  createSubmitWithoutCluster,
} from '../../api/apps/submit/endpoints.ts';
import { readToolSettings } from '../../api/tools/config.ts';
import { registerWorkerMetrics } from '../../api/tools/engine/workers/remote/worker-server.ts';
import { GuardedFetcher } from '../../api/tools/fetch/fetcher.ts';
import type { Tool } from '../../api/tools/tool.ts';
import { registerQueueMetrics } from '../../controller/build-queue/build-queue.ts';
import { createSpaceMetrics, createDiskMetrics } from '../../controller/space/space.ts';
import { createGatewayMetrics } from '../../controller/gateway-certificate.ts';
import { registerAppMetrics, createBuildMetrics } from '../../controller/reconcile/metrics.ts';
import { createFailureCounter } from '../../controller/usage/compute.ts';
import { createUsageMetrics } from '../../controller/usage/usage.ts';
import { createStore, getRuntimeMetrics } from '../../lib/kubernetes/index.ts';
import type { ProblemType } from '../../lib/problem.ts';

export const baseUrl = 'https://moorage.localhost';
const site = { domain: 'moorage-apps.localhost', port: 443 };

export interface Product {
  readonly endpoints: readonly Endpoint[];
  readonly tools: readonly Tool[];
  readonly problems: readonly ProblemType[];
  /** Paths that answer by a protocol of their own. */
  readonly protocols: readonly string[];
  /** Metrics by process. */
  readonly metrics: Readonly<Record<'operator' | 'API' | 'workers' | 'shipper' | 'activator', readonly MetricObject[]>>;
}

let product: Product | undefined;

/** Assembles everything that the reference describes, on first use. */
export function describeProduct(): Product {
  return (product ??= assemble());
}

function refuseCall(): never {
  throw new Error('not called');
}

function assemble(): Product {
  const registry = new Registry();
  const apps = createAppIndex(createStore<App>({ indexers: appIndexers }), 'none');
  const api = createApi({
    baseUrl,
    registry,
    callers: { salt: 'none', trustedProxies: new BlockList() },
    models: readModelSettings({}),
    tools: readToolSettings({}),
    appCalls: readAppSettings({}),
    apps: { apps, site },
    findModelApp: () => undefined,
    submitting: createSubmitEndpoints({
      apps,
      baseUrl,
      site,
      hosts: { allowed: [], insecure: [] },
      logStreams: 1,
      submit: () => Promise.reject(new Error('not called')),
      openLog: () => Promise.reject(new Error('not called')),
      identifyAuthor: () => Promise.reject(new Error('not called')),
      metrics: createSubmitMetrics(registry),
    }),
    author: {
      lookUpKeys: () => Promise.reject(new Error('not called')),
      writeControl: () => Promise.reject(new Error('not called')),
      createSecret: () => Promise.reject(new Error('not called')),
      readApp: () => Promise.reject(new Error('not called')),
      maximumReplicas: 1,
      forgeTokens: { read: refuseCall, write: refuseCall, removeUnknown: refuseCall },
      logs: {
        client: { list: refuseCall, watch: refuseCall },
        openLog: () => Promise.reject(new Error('not called')),
        namespace: 'moorage-apps',
        key: undefined,
        streams: 1,
        metrics: createLogMetrics(new Registry()),
      },
    },
    fetcher: new GuardedFetcher(),
    log: pino({ level: 'silent' }),
    ending: new AbortController().signal,
  });
  // These are made only once the database is there.
  const holds = { open: 0, pending: 0, abandoned: 0 };
  createBillingMetrics(registry, {
    holds: () => Promise.resolve(holds),
    oldestPendingSeconds: () => Promise.resolve(0),
  });
  createDatabaseMetrics(registry, () => Promise.resolve());
  createDailyLimitMetrics(registry, 0, () => Promise.resolve(0));
  createOverrunMetrics(registry, () => Promise.resolve({ calls: 0, excessUsd: 0 }));
  createModelMetrics(registry);
  createLogMetrics(registry);
  return {
    endpoints: api.endpoints,
    tools: api.tools.toolRegistry.tools,
    problems: [...collectDocumentedProblems([...api.endpoints, ...createSubmitWithoutCluster(baseUrl)]).values()],
    protocols: [api.mcp.path, api.apps.byPath.path],
    metrics: {
      operator: createRuntimeRegistry().getMetricsAsArray(),
      API: registry.getMetricsAsArray(),
      workers: createWorkersRegistry().getMetricsAsArray(),
      shipper: createShipperRegistry().getMetricsAsArray(),
      activator: createActivatorRegistry().getMetricsAsArray(),
    },
  };
}

function createShipperRegistry(): Registry {
  const registry = new Registry();
  createShipperMetrics(registry);
  return registry;
}

function createActivatorRegistry(): Registry {
  const registry = new Registry();
  createActivatorMetrics(registry, () => ({ held: 0, open: 0 }));
  return registry;
}

function createWorkersRegistry(): Registry {
  const registry = new Registry();
  registerWorkerMetrics(registry, () => ({ waiting: 0, running: 0 }));
  return registry;
}

/** What the operator has, and the API too, which watches HostedApps by the same parts. */
function createRuntimeRegistry(): Registry {
  const registry = new Registry();
  getRuntimeMetrics(registry);
  createSpaceMetrics(registry);
  const counts = { queued: 0, running: 0, without_room: 0 };
  registerQueueMetrics(registry, () => ({ counts, oldestWaitSeconds: 0 }));
  createBuildMetrics(registry);
  registerAppMetrics(registry, () => ({ statuses: { live: 0, in_pipeline: 0, rejected: 0 }, reasons: new Map() }));
  createGatewayMetrics(registry);
  createDiskMetrics(registry, '');
  createUsageMetrics(registry);
  createFailureCounter(registry);
  return registry;
}
