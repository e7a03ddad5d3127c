// The config of model calls, read from the environment. A router and a database are optional; without them no model
// can be called.
import { z } from 'zod';
import { count, readConfig, secret } from '../../lib/config.ts';
import { defineSetting, kinds, valueTypes } from '../../lib/settings.ts';
import { type FlightLimits, type Money, moneyField, type PriceList, readPriceList } from '../billing/index.ts';
import { modelsFile } from './catalog.ts';

export interface RouterSettings {
  readonly kind: 'openrouter' | 'litellm';
  /** Like `https://router.example/api/v1`, without a slash at the end. */
  readonly url: string;
  /** The platform's key, for callers without one of their own. */
  readonly key: string | undefined;
  /** A key that may read what the router billed, where the platform's may not. */
  readonly billKey?: string;
}

export interface ModelSettings {
  readonly router: RouterSettings | undefined;
  readonly databaseUrl: string | undefined;
  readonly modelsFile: string;
  /** What one caller without a key may spend a day (UTC). */
  readonly freeQuota: Money;
  /** What all calls with the platform's key may cost together a day. */
  readonly dailyCap: Money;
  /** What one caller with a key may be charged for tools and apps a day. */
  readonly keyLimit: Money;
  /** What uses, calls, tools and models cost whom. */
  readonly prices: PriceList;
  /** Days for which a version of them is announced before it comes into effect. */
  readonly noticeDays: number;
  /** Longest call. */
  readonly callMs: number;
  /** How many model calls that the platform pays may be in flight, on all replicas together. */
  readonly inFlight: FlightLimits;
  /** Output tokens when a caller sets no limit, and the maximum that can be set. */
  readonly maxTokens: { readonly default: number; readonly max: number };
  /** How many days single uses and finished holds are kept; what they sum up to is kept for good. */
  readonly keepDays: number;
  /** How often the whole ledger is audited. */
  readonly auditMs?: number;
  /** Folder of this process alone, where the cost of a call is kept until the ledger has it. */
  readonly journal?: string | undefined;
  /** Makes the tokens of hosted apps; without it /v1 is closed. */
  readonly appTokenSecret: string | undefined;
}

const routerSettings = {
  MOORAGE_ROUTER_KIND: defineSetting(kinds.choice(['openrouter', 'litellm'], 'must be openrouter or litellm'), {
    value: 'models.router.kind',
    default: 'openrouter',
    description: 'Kind of router, which decides how the cost of a call is read.',
  }),
  MOORAGE_ROUTER_URL: defineSetting(
    kinds.optional(
      kinds.text(
        valueTypes.url,
        z.url({
          protocol: /^https?$/,
          error: 'must be the base URL of a model router, such as https://openrouter.ai/api/v1',
        }),
      ),
    ),
    {
      value: 'models.router.baseUrl',
      description:
        'Base URL of the model router, such as https://openrouter.ai/api/v1 or http://litellm.llm.svc.cluster.local:4000. If empty, models are not available.',
    },
  ),
};

const usd = kinds.text(valueTypes.usd, moneyField);

/** Every variable of model calls and of the ledger. */
export const environment = z.object({
  DATABASE_URL: z
    .string()
    .regex(/^(postgres(ql)?:\/\/|pglite:)/, 'must begin with postgres:// or pglite:')
    .optional()
    .describe('PostgreSQL 15 or newer, as postgres://user:password@host/database; pglite:FOLDER is the embedded one.'),
  ...routerSettings,
  MOORAGE_ROUTER_KEY: z.string().optional().describe('The platform key of the router, for callers without a key.'),
  MOORAGE_ROUTER_BILL_KEY: z
    .string()
    .optional()
    .describe(
      'A key that may read what the router billed, for the daily reconciliation: a management key of OpenRouter, or a key of an administrator of LiteLLM. Default: the platform key.',
    ),
  MOORAGE_MODELS_FILE: z.string().default(modelsFile).describe('The list of models and their prices.'),
  MOORAGE_FREE_QUOTA_USD: defineSetting(usd, {
    value: 'models.freeQuotaUsd',
    default: '0.05',
    description: 'Daily quota in USD of a caller without an API key.',
  }),
  MOORAGE_DAILY_CAP_USD: defineSetting(usd, {
    value: 'models.dailyCapUsd',
    default: '5',
    description: 'Daily limit in USD of all calls that are paid with the platform key.',
  }),
  MOORAGE_KEY_LIMIT_USD: defineSetting(usd, {
    value: 'models.keyLimitUsd',
    default: '5',
    description:
      'Daily limit of what a caller with a key is charged for tools, apps and the margin on model calls, USD. What the router bills to the key is not in it.',
    chartDescription:
      'Daily limit in USD of what a caller with an API key is charged for tools, apps and the margin on model calls.',
  }),
  MOORAGE_PRICES: defineSetting(
    {
      text: z.string().optional(),
      value: z.array(z.record(z.string(), z.unknown())).max(200),
      format: 'json',
      unset: [],
    },
    {
      value: 'prices.versions',
      description:
        'The price list, JSON: versions, each with the day from which it is in effect. GET /api/prices shows it. Without it, the prices of the beta.',
      chartDescription:
        'Versions of the price list, the oldest first (docs/how-to/set-prices-and-pay-authors.md). GET /api/prices shows them. If empty, the prices of the beta.',
      omitEmpty: true,
    },
  ),
  MOORAGE_PRICE_NOTICE_DAYS: defineSetting(kinds.number({ min: 0, chart: { max: 365 } }), {
    value: 'prices.noticeDays',
    default: 14,
    description: 'Days for which a version of the price list must be announced before it comes into effect.',
  }),
  MOORAGE_CALL_SECONDS: defineSetting(kinds.number({ min: 1, max: 900 }), {
    value: 'models.callSeconds',
    default: 120,
    description: 'Time limit of a model call, in seconds.',
    chartDescription: 'Time limit of a call, in seconds.',
  }),
  MOORAGE_CALLS_PER_CALLER: defineSetting(kinds.number({ min: 1 }), {
    value: 'models.callsPerCaller',
    default: 8,
    description:
      'Maximum number of model calls that one caller without a key, or one app, may have in flight at a time. Until the first call of a day (of an app: of a week) is settled, it is one.',
  }),
  MOORAGE_CALLS_IN_FLIGHT: defineSetting(kinds.number({ min: 1 }), {
    value: 'models.callsInFlight',
    default: 256,
    description:
      'Maximum number of model calls in flight with the platform key, on all replicas together. Others wait for up to 20 seconds.',
    chartDescription: 'Maximum number of model calls in flight with the platform key, on all replicas together.',
  }),
  MOORAGE_USUAL_TOKENS: count.default(1024).describe('Output tokens when a caller names no number.'),
  MOORAGE_MAX_TOKENS: count.default(16_384).describe('Maximum number of output tokens that a caller can ask for.'),
  MOORAGE_KEEP_DAYS: defineSetting(
    { ...kinds.number({ min: 7 }), text: count.min(7, 'must be at least 7') },
    {
      value: 'database.keepDays',
      default: 400,
      description:
        'Days for which individual uses and finished reservations are kept. The ledger, and with it every balance, is kept forever.',
    },
  ),
  MOORAGE_LEDGER_AUDIT_SECONDS: defineSetting(kinds.number({ min: 1, chart: { min: 60 } }), {
    value: 'database.auditSeconds',
    default: 3600,
    description: 'How often each replica audits the whole ledger, in seconds, for the metrics moorage_ledger_audit_*.',
    chartDescription: 'How often each replica of the API audits the whole ledger, in seconds.',
  }),
  MOORAGE_JOURNAL: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Folder in which the cost of a model call is kept until the ledger has it, so that its answer need not wait for that. It must outlive the process and belong to it alone. Without it, answers wait.',
    ),
  MOORAGE_APP_TOKEN_SECRET: secret
    .optional()
    .describe(
      'Secret of at least 32 characters that makes the tokens of hosted apps and the tokens that authors prove ownership with. Without it, /v1 is closed.',
    ),
});

/** Reads the settings. @throws Error that names every variable that is wrong. */
export function readModelSettings(variables: NodeJS.ProcessEnv = process.env): ModelSettings {
  const read = readConfig(environment, variables);
  const url = read.MOORAGE_ROUTER_URL?.replace(/\/+$/, '');
  return {
    router:
      url === undefined
        ? undefined
        : {
            kind: read.MOORAGE_ROUTER_KIND,
            url,
            key: read.MOORAGE_ROUTER_KEY,
            ...(read.MOORAGE_ROUTER_BILL_KEY === undefined ? {} : { billKey: read.MOORAGE_ROUTER_BILL_KEY }),
          },
    databaseUrl: read.DATABASE_URL,
    modelsFile: read.MOORAGE_MODELS_FILE,
    freeQuota: read.MOORAGE_FREE_QUOTA_USD,
    dailyCap: read.MOORAGE_DAILY_CAP_USD,
    keyLimit: read.MOORAGE_KEY_LIMIT_USD,
    noticeDays: read.MOORAGE_PRICE_NOTICE_DAYS,
    prices: readPriceList(read.MOORAGE_PRICES, read.MOORAGE_PRICE_NOTICE_DAYS),
    callMs: read.MOORAGE_CALL_SECONDS * 1000,
    inFlight: { caller: read.MOORAGE_CALLS_PER_CALLER, all: read.MOORAGE_CALLS_IN_FLIGHT },
    maxTokens: { default: Math.min(read.MOORAGE_USUAL_TOKENS, read.MOORAGE_MAX_TOKENS), max: read.MOORAGE_MAX_TOKENS },
    keepDays: read.MOORAGE_KEEP_DAYS,
    auditMs: read.MOORAGE_LEDGER_AUDIT_SECONDS * 1000,
    journal: read.MOORAGE_JOURNAL,
    appTokenSecret: read.MOORAGE_APP_TOKEN_SECRET,
  };
}
