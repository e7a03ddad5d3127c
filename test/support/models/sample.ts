// The whole application over a router and a database of the test's choice.
import { Registry } from 'prom-client';
import { migratedDatabase } from '../ledger/snapshot.ts';
import { createRequestListener } from '../../../api/http/application.ts';
import { createBlockList } from '../../../lib/subnets.ts';
import { createDiscoveryEndpoints } from '../../../api/protocols/discovery/endpoints.ts';
import { Ledger } from '../../../api/billing/ledger/ledger.ts';
import { openLedgerDatabase, type Database } from '../../../api/billing/database/database.ts';
import { readCatalog, type Catalog } from '../../../api/models/catalog.ts';
import { readModelSettings } from '../../../api/models/config.ts';
import { startModels } from '../../../api/models/start.ts';
import { toOpenAiError } from '../../../api/models/v1/answers.ts';
import type { ModelApp } from '../../../api/models/payers.ts';
import { createHttpMetrics } from '../../../lib/telemetry.ts';
import { baseUrl, silent } from '../api/sample.ts';
import { send } from '../api/send.ts';

export const appTokenSecret = 'a-secret-of-the-tests-of-enough-length';

export interface Sample {
  /** Sends a request from this machine, so that X-Forwarded-For is believed. */
  readonly request: (path: string, init?: RequestInit) => Promise<Response>;
  /** The same, as the port of hosted apps answers it. */
  readonly requestOfApps: Sample['request'];
  /** For a server, where a client needs one. */
  readonly listener: ReturnType<typeof createRequestListener>;
  readonly catalog: Catalog;
  readonly registry: Registry;
  readonly database: Database;
  /** The ledger, read beside the application. */
  readonly ledger: Ledger;
  readonly stop: () => Promise<void>;
}

export interface SampleOptions {
  readonly environment: Readonly<Record<string, string>>;
  readonly apps?: readonly ModelApp[];
  /** Another database than one in memory. */
  readonly databaseUrl?: string;
}

/** Starts it; the callers' addresses are those in X-Forwarded-For. */
export async function sampleModels({
  environment,
  apps = [],
  databaseUrl = migratedDatabase,
}: SampleOptions): Promise<Sample> {
  const registry = new Registry();
  const database = await openLedgerDatabase(databaseUrl);
  const settings = readModelSettings({
    MOORAGE_APP_TOKEN_SECRET: appTokenSecret,
    ...environment,
    DATABASE_URL: databaseUrl,
  });
  const models = startModels({
    settings,
    callerSalt: 'salt',
    baseUrl,
    registry,
    log: silent,
    findApp: (name) => apps.find((app) => app.name === name),
    open: () => Promise.resolve(database),
  });
  await models.ready;
  const serving = {
    baseUrl,
    callers: { salt: 'salt', trustedProxies: createBlockList(['127.0.0.0/8']) },
    log: silent,
    metrics: createHttpMetrics(registry),
    problemMembers: toOpenAiError,
    ending: new AbortController().signal,
  };
  const app = createRequestListener({
    ...serving,
    endpoints: [...models.endpoints, ...createDiscoveryEndpoints(models.endpoints, baseUrl)],
  });
  const appsOnly = createRequestListener({ ...serving, endpoints: models.appEndpoints });
  return {
    request: async (path, init = {}) => send(app, path, init),
    requestOfApps: async (path, init = {}) => send(appsOnly, path, init),
    listener: app,
    catalog: readCatalog(settings.modelsFile),
    registry,
    database,
    ledger: new Ledger(database),
    stop: () => models.stop(),
  };
}

/** A JSON request. */
export function json(body: unknown, headers: Readonly<Record<string, string>> = {}): RequestInit {
  return {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  };
}
