// The whole API with every built-in tool, served on a port, for clients that are generated from its OpenAPI document.
import { Registry } from 'prom-client';
import { readAppSettings } from '../../../api/apps/start.ts';
import type { Database } from '../../../api/billing/index.ts';
import { createApi } from '../../../api/create-api.ts';
import { startServer } from '../../../api/http/server.ts';
import { readCatalog } from '../../../api/models/catalog.ts';
import { readModelSettings } from '../../../api/models/config.ts';
import { startDemoRouter } from '../../../api/models/router/demo-router.ts';
import { readReceiptSettings } from '../../../api/accounting/receipts/index.ts';
import { clusterUnavailable } from '../../../api/http/problems.ts';
import { createSubmitEndpoints } from '../../../api/apps/submit/endpoints.ts';
import { readToolSettings } from '../../../api/tools/config.ts';
import { GuardedFetcher } from '../../../api/tools/fetch/fetcher.ts';
import type { Tool } from '../../../api/tools/tool.ts';
import { Problem } from '../../../lib/problem.ts';
import { createBlockList } from '../../../lib/subnets.ts';
import { sampleApps, sampleServices, silent, site } from '../api/sample.ts';
import { findFreePort } from '../free-port.ts';
import { migratedDatabase } from '../ledger/snapshot.ts';

export interface WholeApi {
  readonly url: string;
  readonly tools: readonly Tool[];
  readonly stop: () => Promise<void>;
}

export interface WholeApiOptions {
  /** Another database than one in memory. */
  readonly databaseUrl?: string;
  readonly open?: (url: string) => Promise<Database>;
}

export async function startWholeApi({ databaseUrl = migratedDatabase, open }: WholeApiOptions = {}): Promise<WholeApi> {
  const router = await startDemoRouter(readCatalog());
  const environment = {
    DATABASE_URL: databaseUrl,
    MOORAGE_ROUTER_URL: router.url,
    MOORAGE_ROUTER_KEY: 'sk-demo-platform',
    MOORAGE_FREE_QUOTA_USD: '10',
    MOORAGE_DAILY_CAP_USD: '100',
  };
  const port = await findFreePort();
  const url = `http://127.0.0.1:${port}`;
  const { apps } = sampleApps();
  const api = createApi({
    baseUrl: url,
    callers: { salt: 'salt', trustedProxies: createBlockList(['127.0.0.0/8']) },
    models: readModelSettings(environment),
    tools: readToolSettings(environment),
    appCalls: readAppSettings(environment),
    receipts: readReceiptSettings({}),
    apps: { apps, site },
    findModelApp: () => undefined,
    submitting: createSubmitEndpoints(
      sampleServices({
        apps,
        submit: () => Promise.reject(new Problem(clusterUnavailable, 'There is no cluster behind this API.')),
      }),
    ),
    fetcher: new GuardedFetcher(),
    registry: new Registry(),
    log: silent,
    ending: new AbortController().signal,
    ...(open === undefined ? {} : { open }),
  });
  await api.models.ready;
  const server = await startServer({ port, host: '127.0.0.1', listener: api.app, log: silent });
  return {
    url,
    tools: api.tools.defined,
    async stop() {
      await server.drain({ graceMs: 0, limitMs: 2_000, endStreams: () => undefined });
      await api.stop();
      await router.close();
    },
  };
}
