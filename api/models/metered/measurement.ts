// What was measured of a call: cost, latency and tokens, as ask and compare show them.
import { formatMoney, moneyToNumber } from '../../billing/index.ts';
import type { ModelCallResult, Settlement } from './metered-router.ts';

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
