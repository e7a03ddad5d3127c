// Opens what model calls need (router, database, chores) and makes their endpoints. Without a router or a database, these say what is missing.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Registry } from 'prom-client';
import type { Logger } from '../../lib/log.ts';
import { Problem } from '../../lib/problem.ts';
import { keyedHash } from '../caller.ts';
import type { Endpoint } from '../endpoint.ts';
import type { Database } from '../ledger/database.ts';
import { IdempotencyKeys } from '../ledger/idempotency.ts';
import { Ledger } from '../ledger/ledger.ts';
import { openLedgerDatabase } from '../ledger/open.ts';
import { reconcile } from '../ledger/reconciler.ts';
import { repeat, type Chore } from '../ledger/sweeper.ts';
import { readCatalog } from './catalog.ts';
import type { ModelSettings } from './config.ts';
import { modelEndpoints } from './endpoints.ts';
import { CallerKeys } from './keys.ts';
import { Meter } from './meter.ts';
import { modelMetrics } from './metrics.ts';
import { ledgerUnavailable, modelsUnconfigured } from './problems.ts';
import { RouterClient } from './router/client.ts';
import type { ModelServices } from './services.ts';
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
  /** Resolves when the database is open, or at once where none is set. Until then calls are refused. */
  readonly ready: Promise<void>;
  /** Ends the chores, finishes bookings, closes database and router. */
  stop(): Promise<void>;
}

/** Starts in the background, so that all else of the API serves while the database is away. */
export function startModels(options: ModelsOptions): Models {
  const { settings, baseUrl } = options;
  const ending = new AbortController();
  const missing = missingSetting(settings);
  let services: ModelServices | undefined;
  let close = (): Promise<void> => Promise.resolve();
  const ready = missing === undefined ? begin() : Promise.resolve();
  return {
    ready,
    endpoints: modelEndpoints(
      { catalog: readCatalog(settings.modelsFile), maxTokens: settings.maxTokens, services: () => services ?? absent(missing) },
      { secret: settings.appTokenSecret, find: options.findApp },
    ),
    async stop() {
      ending.abort();
      await ready;
      await close();
    },
  };

  async function begin(): Promise<void> {
    const database = await openPatiently(() => (options.open ?? openLedgerDatabase)(settings.databaseUrl ?? ''), options.log, ending.signal);
    if (database === undefined || settings.router === undefined) return;
    const router = new RouterClient(settings.router, { callMs: settings.callMs });
    const ledger = new Ledger(database);
    const meter = new Meter({ ledger, router, log: options.log, callMs: settings.callMs, metrics: modelMetrics(options.registry, () => ledger.counts()) });
    const idempotency = new IdempotencyKeys(database, { leaseMs: settings.callMs + 30_000, keepMs: 86_400_000 });
    const chores = startChores({ ledger, router, idempotency, log: options.log, signal: ending.signal });
    services = {
      meter, idempotency, baseUrl, maxTokens: settings.maxTokens,
      keys: new CallerKeys({ router, hash: (key) => keyedHash(`key:${key}`, options.callerSalt) }),
      limits: { router: router.name, freeQuota: settings.freeQuota, dailyCap: settings.dailyCap },
    };
    close = async () => {
      await meter.drain(2_000);
      await chores;
      await router.close();
      await database.close();
    };
  }
}

function absent(missing: string | undefined): never {
  if (missing !== undefined) throw new Problem(modelsUnconfigured, missing);
  throw new Problem(ledgerUnavailable, 'the database is not there yet; try again in 5 s', { headers: { 'retry-after': '5' } });
}

function missingSetting({ router, databaseUrl }: ModelSettings): string | undefined {
  if (router === undefined) {
    return 'set MOORAGE_ROUTER_URL to the base URL of a model router (like https://openrouter.ai/api/v1, or that of a LiteLLM proxy with MOORAGE_ROUTER_KIND=litellm) and MOORAGE_ROUTER_KEY to a key of it; '
      + 'on a machine of your own, `npm start -- --demo-router` answers without one';
  }
  return databaseUrl === undefined ? 'set DATABASE_URL to a PostgreSQL server: postgres://user:password@host/database' : undefined;
}

/** Tries until the database answers. @returns undefined when the process ends before that */
async function openPatiently(open: () => Promise<Database>, log: Logger, signal: AbortSignal): Promise<Database | undefined> {
  for (let wait = 500; ; wait = Math.min(wait * 2, 15_000)) {
    try {
      return await open();
    } catch (error) {
      log.error({ err: error }, 'the database cannot be opened, trying again');
    }
    await sleep(wait, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return undefined;
  }
}

interface ChoreOptions {
  readonly ledger: Ledger;
  readonly router: RouterClient;
  readonly idempotency: IdempotencyKeys;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

async function startChores({ ledger, router, idempotency, log, signal }: ChoreOptions): Promise<void> {
  const chore = (name: string, everyMs: number, run: () => Promise<number>): Chore => ({ everyMs, run, failed: (error) => { log.error({ err: error, chore: name }, 'chore failed'); } });
  const lookUp = { lookUp: (pending: { hold: string; reference: string | null }) => router.lookUp(pending), waitMs: 4_000, attempts: 10, leaseMs: 60_000 };
  await Promise.all([
    repeat(chore('expire', 10_000, () => ledger.expire()), signal),
    repeat(chore('reconcile', 2_000, async () => {
      const { settled, voided, deferred, abandoned } = await reconcile(ledger, lookUp);
      if (settled + voided + abandoned > 0) log.info({ settled, voided, abandoned }, 'pending costs looked up');
      if (abandoned > 0) log.error({ abandoned }, 'costs given up: the router has no record of them');
      return settled + voided + deferred + abandoned;
    }), signal),
    repeat(chore('purge idempotency keys', 600_000, () => idempotency.purge()), signal),
  ]);
}
