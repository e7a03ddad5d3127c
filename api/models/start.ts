// Starts what model calls need (router, ledger, reconciler) and makes their endpoints. Without a router or a database,
// these report what is missing.
import type { Registry } from 'prom-client';
import type { Logger } from '../../lib/log.ts';
import { Problem } from '../../lib/problem.ts';
import { type Endpoint, computeKeyedHash } from '../http/index.ts';
import {
  type BillWindow,
  CallsInFlight,
  dailyLimitMetrics,
  type Database,
  IdempotencyKeys,
  type LedgerHandle,
  ledgerUnavailable,
  moneyToNumber,
  type OpenLedger,
  openLedger,
  overrunMetrics,
  platformDay,
  reconcile,
  type RouterBill,
  sumMoney,
} from '../billing/index.ts';
import { readCatalog, type Catalog } from './catalog.ts';
import type { ModelSettings } from './config.ts';
import { appEndpoints, modelEndpoints } from './endpoints.ts';
import { CallerKeys } from './callers/keys.ts';
import { limitsOf, payersOf } from './callers/payers.ts';
import { MeteredRouter } from './metered/metered-router.ts';
import { type ModelMetrics, modelMetrics } from './metrics.ts';
import { modelsUnconfigured } from './problems.ts';
import { RouterClient } from './router/client.ts';
import type { ModelServices } from './services.ts';
import { reportMissingRecords, reportPlatformLimit, reportUnknownUpstreams } from './router/upstreams.ts';
import type { ModelApp } from './v1/apps.ts';
import { usageEndpoints } from './usage/endpoints.ts';
import { Assignments } from './v1/assignments.ts';

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
  /** /v1 for hosted apps alone, for a port that they reach without the gateway. */
  readonly appEndpoints: Endpoint[];
  readonly catalog: Catalog;
  /** @throws Problem (models-unconfigured, ledger-unavailable) while models cannot be called */
  readonly services: () => ModelServices;
  /** Opened as soon as a database is configured, with or without a router. */
  readonly ledger: LedgerHandle;
  /** What the router billed in a time. */
  readonly billOf: (window: BillWindow) => Promise<RouterBill>;
  /** Resolves when the database is open, or at once where none is configured. Until then calls are refused. */
  readonly ready: Promise<void>;
  /** Ends the periodic tasks, finishes ledger writes, closes database and router. */
  stop(): Promise<void>;
}

/** Starts in the background, so that all else of the API serves while the database is away. */
export function startModels(options: ModelsOptions): Models {
  const { settings, baseUrl, log } = options;
  const missing = missingSetting(settings);
  const catalog = readCatalog(settings.modelsFile);
  const { databaseUrl, auditMs, journal } = settings;
  const ledger = openLedger({ databaseUrl, auditMs, journal, registry: options.registry, log, open: options.open });
  let current: ModelServices | undefined;
  let client: RouterClient | undefined;
  const services = (): ModelServices => current ?? absent(missing);
  const shared = { catalog, maxTokens: settings.maxTokens, services };
  const tokens = { secret: settings.appTokenSecret, find: options.findApp };
  const ready = ledger.opened.then((opened) => {
    if (opened === undefined) return;
    const idempotency = new IdempotencyKeys(opened.database, { leaseMs: settings.callMs + 30_000, keepMs: 86_400_000 });
    opened.repeat('purge idempotency keys', 600_000, () => idempotency.purge());
    opened.repeat('purge old detail', 3_600_000, () => opened.ledger.purge(settings.keepDays));
    if (settings.router === undefined) return;
    const router = new RouterClient(settings.router, { callMs: settings.callMs });
    client = router;
    const metrics = modelMetrics(options.registry);
    startReconciling(opened, router, metrics, log);
    const limits = limitsOf(settings);
    dailyLimitMetrics(options.registry, moneyToNumber(limits.dailyCap), async () => {
      const { used, held } = await opened.ledger.budget(platformDay(limits));
      return moneyToNumber(sumMoney([used, held]));
    });
    overrunMetrics(options.registry, async () => {
      const { calls, excess } = await opened.ledger.overruns();
      return { calls, excessUsd: moneyToNumber(excess) };
    });
    void reportUnknownUpstreams(catalog, router, log);
    void reportMissingRecords(router, log);
    void reportPlatformLimit(router, log);
    current = {
      idempotency,
      baseUrl,
      maxTokens: settings.maxTokens,
      router: new MeteredRouter({
        ...opened,
        router,
        metrics,
        log,
        callMs: settings.callMs,
        prices: settings.prices,
        inFlight: new CallsInFlight({ limits: settings.inFlight }),
      }),
      assignments: new Assignments(opened.database),
      keys: new CallerKeys({ router, hash: (key) => computeKeyedHash(`key:${key}`, options.callerSalt) }),
      limits: { ...limits, router: router.name },
    };
  });
  return {
    ready,
    catalog,
    services,
    ledger,
    billOf: (window) => client?.billOf(window) ?? Promise.resolve(noBill),
    endpoints: [
      ...modelEndpoints(shared, tokens),
      ...usageEndpoints({ ledger, payerFor: payersOf(settings, services), baseUrl }),
    ],
    appEndpoints: appEndpoints(shared, tokens),
    async stop() {
      ledger.end();
      await ready;
      await ledger.close();
      await client?.close();
    },
  };
}

const noBill: RouterBill = { outcome: 'not known', why: 'no model router is configured' };

function absent(missing: string | undefined): never {
  if (missing !== undefined) throw new Problem(modelsUnconfigured, missing);
  throw new Problem(ledgerUnavailable, 'The database is not available yet. Try again in 5 seconds.', {
    headers: { 'retry-after': '5' },
  });
}

function missingSetting({ router, databaseUrl }: ModelSettings): string | undefined {
  if (router === undefined) {
    return (
      'Set MOORAGE_ROUTER_URL to the base URL of a model router (such as https://openrouter.ai/api/v1, or a LiteLLM proxy with MOORAGE_ROUTER_KIND=litellm) and MOORAGE_ROUTER_KEY to its API key. ' +
      'To try Moorage on your own machine without a router, run `npm start -- --demo-router`.'
    );
  }
  return databaseUrl === undefined
    ? 'Set DATABASE_URL to a PostgreSQL server, such as postgres://user:password@host/database.'
    : undefined;
}

function startReconciling(ledger: OpenLedger, router: RouterClient, metrics: ModelMetrics, log: Logger): void {
  const lookUp = {
    lookUp: (pending: { hold: string; reference: string | null }) => router.lookUp(pending),
    waitMs: 4_000,
    attempts: 10,
    leaseMs: 60_000,
  };
  ledger.repeat('reconcile', 2_000, async () => {
    const { settled, released, deferred, estimated } = await reconcile(ledger.ledger, lookUp);
    if (settled + released + estimated > 0) log.info({ settled, released, estimated }, 'pending costs reconciled');
    if (estimated > 0) {
      metrics.estimated(estimated);
      log.warn({ estimated }, 'costs settled at an estimate: the router has no record of the calls');
    }
    return settled + released + deferred + estimated;
  });
}
