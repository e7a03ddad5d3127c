// Opens what model calls need (router, books, chores) and makes their endpoints. Without a router or a database, these
// say what is missing.
import type { Registry } from 'prom-client';
import type { Logger } from '../../lib/log.ts';
import { Problem } from '../../lib/problem.ts';
import { keyedHash } from '../http/caller.ts';
import type { Endpoint } from '../http/endpoint.ts';
import type { Database } from '../billing/database/database.ts';
import { IdempotencyKeys } from '../billing/idempotency/keys.ts';
import { reconcile } from '../billing/ledger/reconciler.ts';
import { startBooks, type Books, type BooksHandle } from '../billing/open-ledger.ts';
import { readCatalog, type Catalog } from './catalog.ts';
import type { ModelSettings } from './config.ts';
import { modelEndpoints } from './endpoints.ts';
import { CallerKeys } from './callers/keys.ts';
import { Meter } from './metered/metered-router.ts';
import { modelMetrics } from './metered/metrics.ts';
import { ledgerUnavailable } from '../billing/problems.ts';
import { modelsUnconfigured } from './problems.ts';
import { RouterClient } from './router/client.ts';
import type { ModelServices } from './services.ts';
import { reportUnknownUpstreams } from './router/upstreams.ts';
import type { ModelApp } from './v1/apps.ts';

export interface ModelsOptions {
  readonly settings: ModelSettings;
  readonly callerSalt: string;
  readonly baseUrl: string;
  readonly registry: Registry;
  readonly log: Logger;
  /** Finds hosted apps, for /v1. */
  readonly findApp: (name: string) => ModelApp | undefined;
  /** Opens the database; default openLedgerDatabase. */
  readonly open?: (url: string) => Promise<Database>;
}

export interface Models {
  readonly endpoints: Endpoint[];
  readonly catalog: Catalog;
  /** @throws Problem (models-unconfigured, ledger-unavailable) while no model can be asked */
  readonly services: () => ModelServices;
  /** Open as soon as a database is set, with or without a router. */
  readonly books: BooksHandle;
  /** Resolves when the database is open, or at once where none is set. Until then calls are refused. */
  readonly ready: Promise<void>;
  /** Ends the chores, finishes bookings, closes database and router. */
  stop(): Promise<void>;
}

/** Starts in the background, so that all else of the API serves while the database is away. */
export function startModels(options: ModelsOptions): Models {
  const { settings, baseUrl, log } = options;
  const missing = missingSetting(settings);
  const catalog = readCatalog(settings.modelsFile);
  const books = startBooks({ databaseUrl: settings.databaseUrl, registry: options.registry, log, open: options.open });
  let current: ModelServices | undefined;
  let router: RouterClient | undefined;
  const services = (): ModelServices => current ?? absent(missing);
  const ready = books.opened.then((opened) => {
    if (opened === undefined) return;
    const idempotency = new IdempotencyKeys(opened.database, { leaseMs: settings.callMs + 30_000, keepMs: 86_400_000 });
    opened.chore('purge idempotency keys', 600_000, () => idempotency.purge());
    opened.chore('purge old detail', 3_600_000, () => opened.ledger.purge(settings.keepDays));
    if (settings.router === undefined) return;
    router = new RouterClient(settings.router, { callMs: settings.callMs });
    startReconciling(opened, router, log);
    void reportUnknownUpstreams(catalog, router, log);
    current = {
      idempotency,
      baseUrl,
      maxTokens: settings.maxTokens,
      meter: new Meter({ ...opened, router, metrics: modelMetrics(options.registry), log, callMs: settings.callMs }),
      keys: new CallerKeys({ router, hash: (key) => keyedHash(`key:${key}`, options.callerSalt) }),
      limits: { router: router.name, freeQuota: settings.freeQuota, dailyCap: settings.dailyCap },
    };
  });
  return {
    ready,
    catalog,
    services,
    books,
    endpoints: modelEndpoints(
      { catalog, maxTokens: settings.maxTokens, services },
      { secret: settings.appTokenSecret, find: options.findApp },
    ),
    async stop() {
      books.end();
      await ready;
      await books.close();
      await router?.close();
    },
  };
}

function absent(missing: string | undefined): never {
  if (missing !== undefined) throw new Problem(modelsUnconfigured, missing);
  throw new Problem(ledgerUnavailable, 'the database is not there yet; try again in 5 s', {
    headers: { 'retry-after': '5' },
  });
}

function missingSetting({ router, databaseUrl }: ModelSettings): string | undefined {
  if (router === undefined) {
    return (
      'set MOORAGE_ROUTER_URL to the base URL of a model router (like https://openrouter.ai/api/v1, or that of a LiteLLM proxy with MOORAGE_ROUTER_KIND=litellm) and MOORAGE_ROUTER_KEY to a key of it; ' +
      'on a machine of your own, `npm start -- --demo-router` answers without one'
    );
  }
  return databaseUrl === undefined
    ? 'set DATABASE_URL to a PostgreSQL server: postgres://user:password@host/database'
    : undefined;
}

function startReconciling(books: Books, router: RouterClient, log: Logger): void {
  const lookUp = {
    lookUp: (pending: { hold: string; reference: string | null }) => router.lookUp(pending),
    waitMs: 4_000,
    attempts: 10,
    leaseMs: 60_000,
  };
  books.chore('reconcile', 2_000, async () => {
    const { settled, voided, deferred, abandoned } = await reconcile(books.ledger, lookUp);
    if (settled + voided + abandoned > 0) log.info({ settled, voided, abandoned }, 'pending costs looked up');
    if (abandoned > 0) log.error({ abandoned }, 'costs given up: the router has no record of them');
    return settled + voided + deferred + abandoned;
  });
}
