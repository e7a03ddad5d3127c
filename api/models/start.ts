// Starts what model calls need (router, ledger, reconciler) and makes their endpoints. Without a router or a database,
// these report what is missing. Logs what the router cannot do before a call has to find out.
import type { Registry } from 'prom-client';
import type { Logger } from '../../lib/telemetry.ts';
import { Problem } from '../../lib/problem.ts';
import { type Endpoint, computeKeyedHash } from '../http/index.ts';
import {
  type BillWindow,
  CallsInFlight,
  createDailyLimitMetrics,
  type Database,
  IdempotencyKeys,
  type LedgerHandle,
  toDollarNumber,
  type OpenLedger,
  openLedger,
  createOverrunMetrics,
  toPlatformDay,
  reconcile,
  type RouterBill,
  sumMoney,
} from '../billing/index.ts';
import { readCatalog, type Catalog, createListEndpoint } from './catalog.ts';
import type { ModelSettings } from './config.ts';
import { CallerKeys } from './caller-keys.ts';
import {
  type AppTokens,
  type ModelApp,
  type PayerFor,
  type PayerRules,
  readLimits,
  createPayerResolver,
} from './payers.ts';
import { MeteredRouter, type ModelMetrics, createModelMetrics } from './metered-router.ts';
import { modelsUnconfigured } from './problems.ts';
import { RouterClient } from './router/client.ts';
import {
  type ModelServices,
  type ModelEndpointsOptions,
  createAskEndpoint,
  createCompareEndpoint,
  createServicesAccess,
} from './endpoints.ts';
import { createUsageEndpoints } from './usage.ts';
import { Assignments } from './v1/assignments.ts';
import { createV1Endpoints } from './v1/endpoints.ts';

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
  /** Resolves who pays for a request. Without a router, callers without a key can still use tools and apps. */
  readonly payerFor: PayerFor;
  /** Opened as soon as a database is configured, with or without a router. */
  readonly ledger: LedgerHandle;
  /** What the router billed in a time. */
  readonly fetchBill: (window: BillWindow) => Promise<RouterBill>;
  /** Resolves when the database is open, or immediately where none is configured. Until then calls are refused. */
  readonly ready: Promise<void>;
  /** Ends the periodic tasks, finishes ledger writes, closes database and router. */
  stop(): Promise<void>;
}

/** Starts in the background, so that all else of the API serves while the database is away. */
export function startModels(options: ModelsOptions): Models {
  const { settings, baseUrl, log } = options;
  const catalog = readCatalog(settings.modelsFile);
  const { databaseUrl, auditMs, journal } = settings;
  const ledger = openLedger({ databaseUrl, auditMs, journal, registry: options.registry, log, open: options.open });
  let client: RouterClient | undefined;
  const { services, open } = createServicesAccess(describeMissingSetting(settings));
  const shared = { catalog, maxTokens: settings.maxTokens, services };
  const payers: PayerRules = {
    limits: readLimits(settings),
    keys() {
      if (settings.router === undefined)
        throw new Problem(
          modelsUnconfigured,
          'Your API key cannot be checked because no model router is configured. Omit the Authorization header to use the free quota. The operator of this installation can set MOORAGE_ROUTER_URL.',
        );
      return services().keys;
    },
  };
  const payerFor = createPayerResolver(payers);
  const tokens = { secret: settings.appTokenSecret, find: options.findApp };
  const ready = ledger.opened.then((opened) => {
    if (opened === undefined) return;
    const idempotency = new IdempotencyKeys(opened.database, { leaseMs: settings.callMs + 30_000, keepMs: 86_400_000 });
    opened.repeat('purge idempotency keys', 600_000, () => idempotency.purge());
    opened.repeat('purge old detail', 3_600_000, () => opened.ledger.purge(settings.keepDays));
    if (settings.router === undefined) return;
    const router = new RouterClient(settings.router, { callMs: settings.callMs });
    client = router;
    const metrics = createModelMetrics(options.registry);
    startReconciling(opened, router, metrics, log);
    const { limits } = payers;
    createDailyLimitMetrics(options.registry, toDollarNumber(limits.dailyCap), async () => {
      const { used, held } = await opened.ledger.budget(toPlatformDay(limits));
      return toDollarNumber(sumMoney([used, held]));
    });
    createOverrunMetrics(options.registry, async () => {
      const { calls, excess } = await opened.ledger.overruns();
      return { calls, excessUsd: toDollarNumber(excess) };
    });
    void reportUnknownUpstreams(catalog, router, log);
    void reportMissingRecords(router, log);
    void reportPlatformLimit(router, log);
    open({
      idempotency,
      baseUrl,
      maxTokens: settings.maxTokens,
      router: new MeteredRouter({
        wallet: opened.wallet,
        router,
        metrics,
        log,
        callMs: settings.callMs,
        prices: settings.prices,
        inFlight: new CallsInFlight({ limits: settings.inFlight }),
      }),
      assignments: new Assignments(opened.database),
      keys: new CallerKeys({ router, hash: (key) => computeKeyedHash(`key:${key}`, options.callerSalt) }),
      payers,
    });
  });
  return {
    ready,
    catalog,
    services,
    payerFor,
    ledger,
    fetchBill: (window) => client?.fetchBill(window) ?? Promise.resolve(noBill),
    endpoints: [...createModelEndpoints(shared, tokens), ...createUsageEndpoints({ ledger, payerFor, baseUrl })],
    appEndpoints: createAppEndpoints(shared, tokens),
    async stop() {
      ledger.end();
      await ready;
      await ledger.close();
      await client?.close();
    },
  };
}

/** The endpoints that every caller reaches. */
function createModelEndpoints(options: ModelEndpointsOptions, tokens: AppTokens): Endpoint[] {
  return [
    createAskEndpoint(options),
    createCompareEndpoint(options),
    createListEndpoint(options.catalog),
    ...createV1Endpoints(options, { tokens, open: true }),
  ];
}

/** /v1 where hosted apps reach it without the gateway: for them alone. */
function createAppEndpoints(options: ModelEndpointsOptions, tokens: AppTokens): Endpoint[] {
  return createV1Endpoints(options, { tokens, open: false });
}

const noBill: RouterBill = { outcome: 'not known', why: 'no model router is configured' };

function describeMissingSetting({ router, databaseUrl }: ModelSettings): string | undefined {
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
      metrics.countEstimated(estimated);
      log.warn({ estimated }, 'costs settled at an estimate: the router has no record of the calls');
    }
    return settled + released + deferred + estimated;
  });
}

/** The models whose `upstream` is not in the router's list. @throws RouterFailure when it has none */
export async function findUnknownUpstreams(
  { models }: Pick<Catalog, 'models'>,
  router: Pick<RouterClient, 'offers'>,
): Promise<string[]> {
  const offered = await router.offers();
  return models
    .filter(({ upstream }) => !offered.has(upstream))
    .map(({ id, upstream }) => `${id} (upstream ${upstream})`);
}

/** Logs them. A router that is unreachable, or has no list, stops nothing: calls will show what it offers. */
export async function reportUnknownUpstreams(catalog: Catalog, router: RouterClient, log: Logger): Promise<void> {
  try {
    const unknown = await findUnknownUpstreams(catalog, router);
    if (unknown.length > 0)
      log.error(
        { models: unknown, router: router.name },
        'the router does not offer these models; set their upstream in models.yaml to names that it knows',
      );
  } catch (error) {
    log.warn(
      { err: error, router: router.name },
      'cannot list the models of the router, so models.yaml was not checked',
    );
  }
}

/** Logs that the cost of a call that breaks off can only be estimated, where that is so. */
export async function reportMissingRecords(router: RouterClient, log: Logger): Promise<void> {
  try {
    const why = await router.missingRecords();
    if (why !== undefined)
      log.warn(
        { router: router.name, why },
        `this router cannot bill aborted streams: ${why}. What they cost is settled at an estimate (tokens at list prices), and may differ from the bill`,
      );
  } catch (error) {
    log.warn({ err: error, router: router.name }, 'cannot ask the router whether it keeps records of calls');
  }
}

/** Warns where nothing at the router bounds what the platform key may spend if our own limits fail. */
export async function reportPlatformLimit(
  router: Pick<RouterClient, 'name' | 'platformLimit' | 'limitAdvice'>,
  log: Logger,
): Promise<void> {
  const limit = await router.platformLimit();
  if (limit.outcome === 'limited') {
    log.info({ router: router.name, limit_usd: limit.usd, per: limit.per }, 'the router limits the platform key');
    return;
  }
  log.warn(
    { router: router.name, ...(limit.outcome === 'not known' ? { why: limit.why } : {}) },
    `${limit.outcome === 'unlimited' ? 'the router has no limit on what the platform key may spend' : 'cannot see whether the router limits what the platform key may spend'}: ${router.limitAdvice} (docs/how-to/limit-the-platform-key.md)`,
  );
}
