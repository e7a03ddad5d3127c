// Sums up a comparison: cheapest, fastest, total and spread.
import { type Money, moneyToNumber, negate, sumMoney } from '../../billing/index.ts';

/** One model's part in it. `cost` is absent while it is not known. */
export interface Entry {
  readonly model: string;
  readonly ok: boolean;
  readonly cost: Money | undefined;
  readonly latencyMs: number;
}

export interface Summary {
  cheapest: string;
  fastest: string;
  total_cost_usd: number;
  cost_spread: string;
  /** Models whose cost is not known yet and not in the total. */
  pending?: string[];
}

/**
 * Of several that are equal, the first one is named. Only models that answered are compared; the total is of all costs
 * known. null where no model is the cheapest, since none has answered at a cost that is known.
 */
export function summarise(entries: readonly Entry[], pending: readonly string[]): Summary | null {
  const answered = entries.filter(({ ok }) => ok);
  const priced = answered.flatMap(({ model, cost }) => (cost === undefined ? [] : [{ model, cost }]));
  const cheapest = least(priced, ({ cost }) => cost);
  const fastest = least(answered, ({ latencyMs }) => BigInt(latencyMs));
  if (cheapest === undefined || fastest === undefined) return null;
  return {
    cheapest: cheapest.model,
    fastest: fastest.model,
    total_cost_usd: moneyToNumber(sumMoney(entries.flatMap(({ cost }) => (cost === undefined ? [] : [cost])))),
    cost_spread: `${spreadRatio(priced.map(({ cost }) => cost))}x between cheapest and priciest`,
    ...(pending.length === 0 ? {} : { pending: [...pending] }),
  };
}

function least<Item>(items: readonly Item[], by: (item: Item) => bigint): Item | undefined {
  return items.reduce<Item | undefined>(
    (best, item) => (best === undefined || by(item) < by(best) ? item : best),
    undefined,
  );
}

/**
 * How many times the dearest costs the cheapest, to one decimal: `1`, `12.5`. `∞` when only the cheapest is free of
 * charge.
 */
export function spreadRatio(costs: readonly Money[]): string {
  const cheapest = least(costs, (cost) => cost) ?? 0n;
  const priciest = least(costs, negate) ?? 0n;
  if (priciest === cheapest) return '1';
  if (cheapest === 0n) return '∞';
  const tenths = (priciest * 20n + cheapest) / (cheapest * 2n);
  return tenths % 10n === 0n ? (tenths / 10n).toString() : `${(tenths / 10n).toString()}.${(tenths % 10n).toString()}`;
}
