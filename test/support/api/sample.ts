// Apps and an application as the tests of the API need them: real store and router, nothing behind them.
import { Counter, Gauge, Registry } from 'prom-client';
import { pino } from 'pino';
import { createRequestListener } from '../../../api/http/application.ts';
import { createBlockList } from '../../../lib/subnets.ts';
import { createDiscoveryEndpoints } from '../../../api/protocols/discovery/endpoints.ts';
import type { Endpoint } from '../../../api/http/endpoint.ts';
import { createSubmitEndpoints, type SubmitServices } from '../../../api/apps/submit/endpoints.ts';
import { createAppIndex, appIndexers, type App, type AppIndex } from '../../../api/apps/hosted-apps.ts';
import { createStore, type WritableStore } from '../../../lib/kubernetes/index.ts';
import { spec, type HostedAppStatus } from '../../../crds/hosted-app.ts';
import { createHttpMetrics } from '../../../lib/telemetry.ts';

export const namespace = 'apps';
export const baseUrl = 'https://moorage.test';
export const site = { domain: 'apps.test', port: 443 };
export const hosts = { allowed: ['git.test', 'other.test', 'third.test'], insecure: [] };
export const silent = pino({ level: 'silent' });

/** A HostedApp as the API server would return it. */
export function sampleApp(
  name: string,
  repo = `https://git.test/octo/${name}`,
  status?: HostedAppStatus,
  labels: Record<string, string> = {},
): App {
  return {
    apiVersion: 'moorage.dev/v1alpha1',
    kind: 'HostedApp',
    metadata: {
      name,
      namespace,
      uid: `uid-${name}`,
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels,
    },
    spec: spec.parse({ source: { repo } }),
    ...(status === undefined ? {} : { status }),
  };
}

/** A cache that the test fills. */
export function sampleApps(...apps: App[]): { store: WritableStore<App>; apps: AppIndex } {
  const store = createStore<App>({ indexers: appIndexers });
  store.replace(apps);
  return { store, apps: createAppIndex(store, namespace) };
}

/** Services in which nothing may be submitted and no log is kept. */
export function sampleServices(changes: Partial<SubmitServices> = {}): SubmitServices {
  const registers = [new Registry()];
  return {
    apps: sampleApps().apps,
    hosts,
    baseUrl,
    site,
    logStreams: 2,
    submit: () => Promise.reject(new Error('submitted what should have been refused')),
    openLog: () => Promise.resolve({ state: 'gone' }),
    identifyAuthor: () => Promise.reject(new Error('identified who should not have been asked for')),
    metrics: {
      submissions: new Counter({ name: 'submissions', help: '.', labelNames: ['result'], registers }),
      streams: new Gauge({ name: 'streams', help: '.', registers }),
    },
    ...changes,
  };
}

/** The whole application over these services. */
export function sampleServer(
  services: SubmitServices = sampleServices(),
  more: readonly Endpoint[] = [],
): {
  app: ReturnType<typeof createRequestListener>;
  registry: Registry;
  endpoints: Endpoint[];
  ending: AbortController;
} {
  const registry = new Registry();
  const ending = new AbortController();
  const submitting = [...createSubmitEndpoints(services), ...more];
  const endpoints = [...submitting, ...createDiscoveryEndpoints(submitting, baseUrl)];
  const app = createRequestListener({
    endpoints,
    baseUrl,
    callers: { salt: 'salt', trustedProxies: createBlockList(['10.0.0.0/8']) },
    log: silent,
    metrics: createHttpMetrics(registry),
    ending: ending.signal,
  });
  return { app, registry, endpoints, ending };
}
