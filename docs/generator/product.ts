// The product's own definitions, as the reference reads them. The only file here that knows how the API is put
// together: none of it is started, so nothing listens and nothing is asked.
import { pino } from 'pino';
import { Registry, type MetricObject } from 'prom-client';
import { readAppSettings } from '../../api/apps/config.ts';
import { directory } from '../../api/apps/directory.ts';
import { appIndex, appIndexers, type App } from '../../api/apps/hosted-apps.ts';
import { startApps } from '../../api/apps/start.ts';
import { discoveryEndpoints } from '../../api/discovery/endpoints.ts';
import type { Endpoint } from '../../api/http/endpoint.ts';
import { readModelSettings } from '../../api/models/config.ts';
import { payersOf } from '../../api/models/callers/payers.ts';
import { modelMetrics } from '../../api/models/metrics.ts';
import { startModels } from '../../api/models/start.ts';
import { submitEndpoints } from '../../api/submit/endpoints.ts';
import { submitMetrics } from '../../api/submit/metrics.ts';
import { readToolSettings } from '../../api/tools/config.ts';
import { startTools } from '../../api/tools/start.ts';
import type { Workers } from '../../api/tools/engine/workers/workers.ts';
import type { Fetcher } from '../../api/tools/fetch/fetcher.ts';
import type { Tool } from '../../api/tools/tool.ts';
import { httpMetrics } from '../../lib/metrics.ts';
import { createStore, runtimeMetrics } from '../../lib/kubernetes/index.ts';

export const baseUrl = 'https://moorage.localhost';

export interface Product {
  readonly endpoints: readonly Endpoint[];
  readonly tools: readonly Tool[];
  /** Paths that answer by a protocol of their own. */
  readonly protocols: readonly string[];
  /** Metrics by process. */
  readonly metrics: Readonly<Record<'operator' | 'API', readonly MetricObject[]>>;
}

/** Stands for what is only used when something is called. */
const absent = new Proxy(
  {},
  {
    get() {
      throw new Error('the reference only describes the product');
    },
  },
);

let described: Product | undefined;

/** Everything that is described. @throws Error when a part of it is really used */
export function describeProduct(): Product {
  return (described ??= assemble());
}

function assemble(): Product {
  const registry = new Registry();
  const apps = appIndex(createStore<App>({ indexers: appIndexers }), 'none');
  const modelSettings = readModelSettings({});
  const settings = readToolSettings({});
  const common = { baseUrl, registry, log: pino({ level: 'silent' }), workers: absent as Workers };
  const models = startModels({ ...common, settings: modelSettings, callerSalt: 'none', findApp: () => undefined });
  const calls = startApps({
    ...common,
    models,
    directory: directory({ apps, baseUrl }),
    settings: readAppSettings({}),
    places: settings,
    payerFor: payersOf(modelSettings, models.services),
  });
  const tools = startTools({
    ...common,
    settings,
    modelSettings,
    models,
    fetcher: absent as Fetcher,
    apps: () => [],
    more: calls.more,
    operations: calls.operations,
  });
  const submit = submitEndpoints({
    apps,
    baseUrl,
    hosts: { allowed: [], insecure: [] },
    logStreams: 1,
    submit: () => Promise.reject(new Error('not called')),
    openLog: () => Promise.reject(new Error('not called')),
    metrics: submitMetrics(registry),
  });
  httpMetrics(registry);
  // Those of models are made once the database is there.
  modelMetrics(registry, () => Promise.resolve({ open: 0, pending: 0, abandoned: 0 }));
  const own = [...submit, ...models.endpoints, ...tools.endpoints, ...calls.endpoints];
  return {
    endpoints: [...own, ...discoveryEndpoints(own, baseUrl, tools.offered)],
    tools: tools.offered.tools,
    protocols: [tools.mcp.path, calls.byPath.path],
    metrics: { operator: runtimeRegistry().getMetricsAsArray(), API: registry.getMetricsAsArray() },
  };
}

/** What the operator has, and the API too, which watches HostedApps by the same parts. */
function runtimeRegistry(): Registry {
  const registry = new Registry();
  runtimeMetrics(registry);
  return registry;
}
