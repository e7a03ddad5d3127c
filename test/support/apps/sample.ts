// The application with hosted apps behind it that are real HTTP servers on loopback.
import type { HttpBindings } from '@hono/node-server';
import { createServer, type RequestListener, type Server } from 'node:http';
import { Registry } from 'prom-client';
import { createApp } from '../../../api/http/application.ts';
import { readAppSettings } from '../../../api/apps/config.ts';
import { directory } from '../../../api/apps/directory.ts';
import { startApps, type Apps, type AppsOptions } from '../../../api/apps/start.ts';
import { blockList } from '../../../api/config.ts';
import { discoveryEndpoints } from '../../../api/discovery/endpoints.ts';
import { readModelSettings } from '../../../api/models/config.ts';
import { startModels, type Models } from '../../../api/models/start.ts';
import { liveApps } from '../../../api/apps/live-apps.ts';
import type { App } from '../../../api/apps/hosted-apps.ts';
import { readToolSettings } from '../../../api/tools/config.ts';
import { GuardedFetcher } from '../../../api/tools/fetch/guarded-fetcher.ts';
import { payersOf } from '../../../api/models/callers/payers.ts';
import { startTools } from '../../../api/tools/start.ts';
import { createWorkers } from '../../../api/tools/engine/workers/pool.ts';
import type { WritableStore } from '../../../lib/kubernetes/index.ts';
import { httpMetrics } from '../../../lib/metrics.ts';
import { baseUrl, sampleApp, sampleApps, silent } from '../api/sample.ts';
import { liveAt } from '../discovery/sample.ts';
import { sampleTools } from '../tools/sample-tools.ts';

export interface AppsSample {
  /** Sends a request from this machine, so that X-Forwarded-For is believed. */
  readonly request: (path: string, init?: RequestInit) => Promise<Response>;
  readonly app: ReturnType<typeof createApp>;
  readonly apps: Apps;
  readonly models: Models;
  readonly registry: Registry;
  readonly store: WritableStore<App>;
  /** Starts a server and makes it a live app. */
  readonly host: (slug: string, listener: RequestListener, change?: (app: App) => App) => Promise<App>;
  /** A live app at whose address nothing listens. */
  readonly hostNothing: (slug: string) => void;
  readonly stop: () => Promise<void>;
}

export interface AppsSampleOptions {
  readonly environment?: Readonly<Record<string, string>>;
  readonly asking?: AppsOptions['asking'];
}

export async function sampleAppsServer({
  environment = {},
  asking = { everyMs: 20, staleMs: 60_000, limitMs: 5_000 },
}: AppsSampleOptions = {}): Promise<AppsSample> {
  const registry = new Registry();
  const origins = new Map<string, string>();
  const servers: Server[] = [];
  const { store, apps: index } = sampleApps();
  const modelSettings = readModelSettings({ DATABASE_URL: 'pglite:', ...environment });
  const models = startModels({
    settings: modelSettings,
    callerSalt: 'salt',
    baseUrl,
    registry,
    log: silent,
    findApp: () => undefined,
  });
  await models.ready;
  const workers = createWorkers();
  const settings = readToolSettings(environment);
  const calling = startApps({
    directory: directory({
      apps: index,
      baseUrl,
      originOf: ({ metadata }) => origins.get(metadata.name) ?? 'http://127.0.0.1:1',
    }),
    settings: readAppSettings(environment),
    places: settings,
    payerFor: payersOf(modelSettings, models.services),
    models,
    workers,
    baseUrl,
    registry,
    log: silent,
    asking,
  });
  const tools = startTools({
    settings,
    modelSettings,
    models,
    baseUrl,
    registry,
    log: silent,
    workers,
    fetcher: new GuardedFetcher(),
    apps: () => liveApps(index.all()),
    make: () => sampleTools,
    more: calling.more,
    operations: calling.operations,
  });
  const endpoints = [...models.endpoints, ...tools.endpoints, ...calling.endpoints];
  const app = createApp({
    endpoints: [...endpoints, ...discoveryEndpoints(endpoints, baseUrl, tools.offered)],
    protocols: [tools.mcp, calling.byPath],
    baseUrl,
    callers: { salt: 'salt', trustedProxies: blockList(['127.0.0.0/8']) },
    log: silent,
    metrics: httpMetrics(registry),
    ending: new AbortController().signal,
  });
  const bindings = { incoming: { socket: { remoteAddress: '127.0.0.1' } } } as unknown as HttpBindings;
  calling.start();
  return {
    app,
    apps: calling,
    models,
    registry,
    store,
    request: async (path, init = {}) => app.request(path, init, bindings),
    async host(slug, listener, change = (one) => one) {
      const server = createServer(listener);
      await new Promise<void>((resolve) => {
        server.listen(0, '127.0.0.1', resolve);
      });
      servers.push(server);
      const address = server.address();
      origins.set(slug, `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`);
      const made = change(sampleApp(slug, undefined, liveAt(`https://${slug}.moorage.test/`)));
      store.set(made);
      return made;
    },
    hostNothing(slug) {
      store.set(sampleApp(slug, undefined, liveAt(`https://${slug}.moorage.test/`)));
    },
    async stop() {
      await tools.mcp.close();
      await tools.stop();
      await calling.stop();
      await workers.close();
      await models.stop();
      for (const server of servers) {
        server.closeAllConnections();
        server.close();
      }
    },
  };
}

/** Switches the operations of an app on. */
export function withAgents(app: App, paths: { openapi?: string; mcp?: string } = {}): App {
  return { ...app, spec: { ...app.spec, agents: { enabled: true, openapi: '/openapi.json', mcp: '/mcp', ...paths } } };
}
