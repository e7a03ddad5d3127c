// The whole API over HTTP with the demo router, one hosted app and no backing service, as guides are read and followed.
import { createServer, type Server } from 'node:http';
import { Registry } from 'prom-client';
import { readAppSettings } from '../../../api/apps/start.ts';
import { createApi, type Api } from '../../../api/create-api.ts';
import { startServer, type PublicServer } from '../../../api/http/server.ts';
import { readCatalog } from '../../../api/models/catalog.ts';
import { readModelSettings } from '../../../api/models/config.ts';
import { startDemoRouter } from '../../../api/models/router/demo-router.ts';
import { createSubmitWithoutCluster } from '../../../api/apps/submit/endpoints.ts';
import { readToolSettings } from '../../../api/tools/config.ts';
import { GuardedFetcher } from '../../../api/tools/fetch/fetcher.ts';
import { createBlockList } from '../../../lib/subnets.ts';
import { sampleApp, sampleApps, silent, site } from '../api/sample.ts';
import { createLiveStatus } from '../discovery/sample.ts';
import { findFreePort } from '../free-port.ts';
import { migratedDatabase } from '../ledger/snapshot.ts';

export interface GuideSite {
  readonly baseUrl: string;
  readonly api: Api;
  stop(): Promise<void>;
}

export async function startGuideSite(): Promise<GuideSite> {
  const baseUrl = `http://127.0.0.1:${await findFreePort()}`;
  const router = await startDemoRouter(readCatalog());
  const hello = await startHello();
  const api = createApi({
    baseUrl,
    callers: { salt: 'salt', trustedProxies: createBlockList([]) },
    models: readModelSettings({ DATABASE_URL: migratedDatabase, MOORAGE_ROUTER_URL: router.url }),
    tools: readToolSettings({}),
    appCalls: readAppSettings({}),
    apps: {
      apps: sampleApps(sampleApp('hello', undefined, createLiveStatus('https://hello.apps.test/'))).apps,
      site,
      resolveOrigin: () => hello.origin,
    },
    findModelApp: () => undefined,
    submitting: createSubmitWithoutCluster(baseUrl),
    fetcher: new GuardedFetcher(),
    registry: new Registry(),
    log: silent,
    ending: new AbortController().signal,
  });
  await api.models.ready;
  const port = Number(new URL(baseUrl).port);
  const server: PublicServer = await startServer({ port, host: '127.0.0.1', listener: api.app, log: silent, baseUrl });
  return {
    baseUrl,
    api,
    async stop() {
      await server.drain({
        graceMs: 0,
        limitMs: 1_000,
        endStreams: () => {
          api.closeStreams();
        },
      });
      await api.stop();
      await router.close();
      hello.server.closeAllConnections();
      hello.server.close();
    },
  };
}

async function startHello(): Promise<{ server: Server; origin: string }> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"hello":"guide"}');
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  return {
    server,
    origin: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
  };
}
