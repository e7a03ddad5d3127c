// The application with hosted apps behind it that are real HTTP servers on loopback.
import { createServer, type RequestListener, type Server } from 'node:http';
import { Registry } from 'prom-client';
import { migratedDatabase } from '../ledger/snapshot.ts';
import { createApi, type Api, type ApiOptions } from '../../../api/create-api.ts';
import { createSubmitEndpoints, type SubmitServices } from '../../../api/apps/submit/endpoints.ts';
import { readAppSettings, type AppsOptions } from '../../../api/apps/start.ts';
import { createBlockList } from '../../../lib/subnets.ts';
import { readModelSettings } from '../../../api/models/config.ts';
import type { App } from '../../../api/apps/hosted-apps.ts';
import { readToolSettings } from '../../../api/tools/config.ts';
import { GuardedFetcher } from '../../../api/tools/fetch/fetcher.ts';
import type { ToolDependencies, Tool } from '../../../api/tools/tool.ts';
import type { WritableStore } from '../../../lib/kubernetes/index.ts';
import { baseUrl, site, sampleApp, sampleApps, sampleServices, silent } from '../api/sample.ts';
import { createLiveStatus } from '../discovery/sample.ts';
import type { Logger } from '../../../lib/telemetry.ts';
import { sampleTools } from '../tools/sample-tools.ts';
import { send } from '../api/send.ts';

export interface AppsSample extends Pick<Api, 'app' | 'apps' | 'models'> {
  /** Sends a request from this machine, so that X-Forwarded-For is believed. */
  readonly request: (path: string, init?: RequestInit) => Promise<Response>;
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
  /** Where a browser reaches the API; default: nowhere. */
  readonly baseUrl?: string;
  readonly operationDiscovery?: AppsOptions['operationDiscovery'];
  readonly mcpSessions?: AppsOptions['mcpSessions'];
  /** How authors run their apps; default: they cannot. */
  readonly author?: ApiOptions['author'];
  /** How repositories are submitted, and their status read; default: they are not. */
  readonly submit?: Partial<SubmitServices>;
  /** Forges with whose accounts authors sign in. */
  readonly signInProviders?: ApiOptions['signInProviders'];
  /** Default: nothing is logged. */
  readonly log?: Logger;
  readonly notificationTimes?: ApiOptions['notificationTimes'];
  /** Makes the tools beside the operations; default: sample tools. */
  readonly make?: (services: ToolDependencies) => readonly Tool[];
}

export async function sampleAppsServer({
  environment = {},
  baseUrl: address = baseUrl,
  operationDiscovery = { everyMs: 20, staleMs: 60_000, limitMs: 30_000 },
  mcpSessions = {},
  author,
  submit,
  signInProviders = [],
  log = silent,
  notificationTimes,
  make = () => sampleTools,
}: AppsSampleOptions = {}): Promise<AppsSample> {
  const registry = new Registry();
  const origins = new Map<string, string>();
  const servers: Server[] = [];
  const { store, apps: index } = sampleApps();
  const api: Api = createApi({
    baseUrl: address,
    callers: { salt: 'salt', trustedProxies: createBlockList(['127.0.0.0/8']) },
    models: readModelSettings({ DATABASE_URL: migratedDatabase, ...environment }),
    tools: readToolSettings(environment),
    appCalls: readAppSettings(environment),
    apps: { apps: index, site, resolveOrigin: ({ metadata }) => origins.get(metadata.name) ?? 'http://127.0.0.1:1' },
    findModelApp: () => undefined,
    submitting:
      submit === undefined
        ? []
        : createSubmitEndpoints(
            sampleServices({
              apps: index,
              identifyAuthor: (slug, context, what) => api.identifyAuthor(slug, context, what),
              ...submit,
            }),
          ),
    ...(author === undefined ? {} : { author }),
    notificationTimes,
    signInProviders,
    fetcher: new GuardedFetcher(),
    registry,
    log,
    ending: new AbortController().signal,
    makeTools: make,
    guides: [],
    operationDiscovery,
    mcpSessions,
  });
  await api.models.ready;
  api.start();
  return {
    ...api,
    registry,
    store,
    request: async (path, init = {}) => send(api.app, path, init),
    async host(slug, listener, change = (one) => one) {
      const server = createServer(listener);
      await new Promise<void>((resolve) => {
        server.listen(0, '127.0.0.1', resolve);
      });
      servers.push(server);
      const address = server.address();
      origins.set(slug, `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`);
      const made = change(sampleApp(slug, undefined, createLiveStatus(`https://${slug}.moorage.test/`)));
      store.set(made);
      return made;
    },
    hostNothing(slug) {
      store.set(sampleApp(slug, undefined, createLiveStatus(`https://${slug}.moorage.test/`)));
    },
    async stop() {
      await api.stop();
      for (const server of servers) {
        server.closeAllConnections();
        server.close();
      }
    },
  };
}

/** A preview of an app as the operator creates it, with the status of the app and these changes. */
export function buildPreview(app: App, label: string, reference: string, changes: Partial<App['status']> = {}): App {
  const { apiVersion, kind, metadata, spec, status } = app;
  const name = `${metadata.name}--${label}`;
  const owner = { apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true };
  return {
    ...app,
    metadata: { ...metadata, name, uid: name, ownerReferences: [owner] },
    spec: { ...spec, previewOf: { app: metadata.name, reference } },
    status: { ...status, url: `https://${name}.moorage.test/`, ...changes },
  };
}

/** Switches the operations of an app on. */
export function addAgentPaths(app: App, paths: { openapi?: string; mcp?: string } = {}): App {
  return { ...app, spec: { ...app.spec, agents: { enabled: true, openapi: '/openapi.json', mcp: '/mcp', ...paths } } };
}
