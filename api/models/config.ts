// The config of model calls, read from the environment. A router and a database are optional; without them no model
// can be called.
import { z } from 'zod';
import { count, readConfig } from '../../lib/config.ts';
import { parseMoney, type Money } from '../billing/ledger/money.ts';
import { moneyField } from '../billing/ledger/money-field.ts';
import { modelsFile } from './catalog.ts';

export interface RouterSettings {
  readonly kind: 'openrouter' | 'litellm';
  /** Like `https://router.example/api/v1`, without a slash at the end. */
  readonly url: string;
  /** The platform's key, for callers without one of their own. */
  readonly key: string | undefined;
}

export interface ModelSettings {
  readonly router: RouterSettings | undefined;
  readonly databaseUrl: string | undefined;
  readonly modelsFile: string;
  /** What one caller without a key may spend a day (UTC). */
  readonly freeQuota: Money;
  /** What all calls with the platform's key may cost together a day. */
  readonly dailyCap: Money;
  /** Longest call. */
  readonly callMs: number;
  /** Output tokens when a caller sets no limit, and the maximum that can be set. */
  readonly maxTokens: { readonly default: number; readonly max: number };
  /** How many days single uses and finished holds are kept; what they sum up to is kept for good. */
  readonly keepDays: number;
  /** Makes the tokens of hosted apps; without it /v1 is closed. */
  readonly appTokenSecret: string | undefined;
}

const environment = z.object({
  DATABASE_URL: z
    .string()
    .regex(/^(postgres(ql)?:\/\/|pglite:)/, 'must begin with postgres:// or pglite:')
    .optional(),
  MOORAGE_ROUTER_KIND: z.enum(['openrouter', 'litellm'], 'must be openrouter or litellm').default('openrouter'),
  MOORAGE_ROUTER_URL: z
    .url({
      protocol: /^https?$/,
      error: 'must be the base URL of a model router, such as https://openrouter.ai/api/v1',
    })
    .optional(),
  MOORAGE_ROUTER_KEY: z.string().optional(),
  MOORAGE_MODELS_FILE: z.string().default(modelsFile),
  MOORAGE_FREE_QUOTA_USD: moneyField.default(parseMoney('0.05')),
  MOORAGE_DAILY_CAP_USD: moneyField.default(parseMoney('5')),
  MOORAGE_CALL_SECONDS: count.max(900).default(120),
  MOORAGE_USUAL_TOKENS: count.default(1024),
  MOORAGE_MAX_TOKENS: count.default(16_384),
  MOORAGE_KEEP_DAYS: count.min(7, 'must be at least 7').default(400),
  MOORAGE_APP_TOKEN_SECRET: z.string().min(32, 'must be a secret of at least 32 characters').optional(),
});

/** Reads the settings. @throws Error that names every variable that is wrong. */
export function readModelSettings(variables: NodeJS.ProcessEnv = process.env): ModelSettings {
  const read = readConfig(environment, variables);
  const url = read.MOORAGE_ROUTER_URL?.replace(/\/+$/, '');
  return {
    router: url === undefined ? undefined : { kind: read.MOORAGE_ROUTER_KIND, url, key: read.MOORAGE_ROUTER_KEY },
    databaseUrl: read.DATABASE_URL,
    modelsFile: read.MOORAGE_MODELS_FILE,
    freeQuota: read.MOORAGE_FREE_QUOTA_USD,
    dailyCap: read.MOORAGE_DAILY_CAP_USD,
    callMs: read.MOORAGE_CALL_SECONDS * 1000,
    maxTokens: { default: Math.min(read.MOORAGE_USUAL_TOKENS, read.MOORAGE_MAX_TOKENS), max: read.MOORAGE_MAX_TOKENS },
    keepDays: read.MOORAGE_KEEP_DAYS,
    appTokenSecret: read.MOORAGE_APP_TOKEN_SECRET,
  };
}
