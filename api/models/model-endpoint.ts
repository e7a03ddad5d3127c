// What the model endpoints depend on, and the measurements that their answers show.
import { type IdempotencyKeys, type Limits, formatMoney, moneyToNumber } from '../billing/index.ts';
import type { Catalog } from './catalog.ts';
import type { CallerKeys } from './caller-keys.ts';
import type { MeteredRouter, ModelCallResult, Settlement } from './metered-router.ts';
import type { Assignments } from './v1/assignments.ts';

export interface ModelServices {
  readonly router: MeteredRouter;
  readonly keys: CallerKeys;
  /** Models that benchmark runs have assigned to apps. */
  readonly assignments: Assignments;
  readonly limits: Limits;
  /** Where the pages of problems are. */
  readonly baseUrl: string;
  readonly idempotency: IdempotencyKeys;
  readonly maxTokens: { readonly default: number; readonly max: number };
}

export interface ModelEndpointsOptions {
  readonly catalog: Catalog;
  readonly maxTokens: ModelServices['maxTokens'];
  /** The services. @throws Problem (models-unconfigured, ledger-unavailable) while there are none */
  readonly services: () => ModelServices;
}

/** What was measured of a call: cost, latency and tokens, as ask and compare show them. */
export interface Measurement {
  cost_usd?: number;
  charged_usd: number;
  latency_ms: number;
  tokens_in?: number;
  tokens_out?: number;
}

/** Fields that are not known are left out; a cost of 0 is shown only where nothing was billed. */
export function measurementOf({ settlement, answer }: ModelCallResult): Measurement {
  const { cost, charged, source, latencyMs } = settlement;
  const nothing = source === 'none' ? 0 : undefined;
  const cost_usd = cost === undefined ? nothing : moneyToNumber(cost);
  return {
    ...(cost_usd === undefined ? {} : { cost_usd }),
    charged_usd: moneyToNumber(charged),
    latency_ms: latencyMs,
    ...(answer?.tokensIn === undefined ? {} : { tokens_in: answer.tokensIn }),
    ...(answer?.tokensOut === undefined ? {} : { tokens_out: answer.tokensOut }),
  };
}

/** The same in headers, in exact digits, for clients that read no other field than their own. */
export function costHeaders({ cost, charged, source }: Settlement): Record<string, string> {
  return {
    'x-cost-source': source,
    'x-charged-usd': formatMoney(charged),
    ...(cost === undefined ? {} : { 'x-cost-usd': formatMoney(cost) }),
  };
}
