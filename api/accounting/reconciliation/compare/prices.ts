// What was settled for the calls of each model against their tokens at list prices: it shows a router that bills nothing, or by
// other prices than the list. Costs at an estimate are left out, since they are list prices themselves.
import { z } from 'zod';
import {
  money,
  type Money,
  negate,
  type Prices,
  computePrice,
  type Statement,
  sumMoney,
  type Transaction,
  zero,
} from '../../../billing/index.ts';
import { type Comparison, type Day, type Difference, type Line, subtract } from '../comparison.ts';

/** Models and embedding models with their list prices. */
export interface ListPrices {
  readonly models: readonly (Prices & { readonly id: string })[];
  readonly embeddings: readonly (Prices & { readonly id: string })[];
}

const bigint = z.coerce.number().int();
const modelSumsRow = z.object({
  model: z.string(),
  calls: bigint,
  usd: money,
  tokens_in: bigint,
  tokens_out: bigint,
  free_calls: bigint,
  free_tokens_in: bigint,
  free_tokens_out: bigint,
});
type ModelSums = z.output<typeof modelSumsRow>;

const modelSums: Statement<ModelSums> = {
  name: 'reconciliation-prices',
  text: `select model, count(*)::text as calls, sum(cost)::text as usd, sum(tokens_in)::text as tokens_in, sum(coalesce(tokens_out, 0))::text as tokens_out,
      count(*) filter (where cost = 0)::text as free_calls, coalesce(sum(tokens_in) filter (where cost = 0), 0)::text as free_tokens_in,
      coalesce(sum(tokens_out) filter (where cost = 0), 0)::text as free_tokens_out
    from ledger.usage where at >= $1 and at < $2 and model is not null and tokens_in is not null
      and cost_source in ('billed', 'router_computed', 'router_record') group by model order by model`,
  row: modelSumsRow,
};

/** Routers round each call, and a list is not always as exact as a bill. */
const toleratedShare = 20n;

export async function comparePrices(
  transaction: Transaction,
  { from, to }: Day,
  { models, embeddings }: ListPrices,
): Promise<Comparison> {
  const listed = new Map<string, Prices>([...models, ...embeddings].map((model) => [model.id, model]));
  const comparedModels = (await transaction.query(modelSums, [from, to])).flatMap((sums) => {
    const prices = listed.get(sums.model);
    return prices === undefined ? [] : [compareModel(sums, prices)];
  });
  return {
    name: 'prices',
    lines: comparedModels.map(({ line }) => line),
    differences: comparedModels.flatMap(({ differences }) => differences),
  };
}

function compareModel(sums: ModelSums, prices: Prices): { line: Line; differences: readonly Difference[] } {
  const { model, calls, usd, free_calls } = sums;
  const left = { events: calls, usd };
  const right = { events: calls, usd: computeListPrice(prices, sums.tokens_in, sums.tokens_out) };
  const missing = computeListPrice(prices, sums.free_tokens_in, sums.free_tokens_out);
  const differences: Difference[] = [];
  if (missing > zero)
    differences.push({
      kind: 'billed_nothing',
      subject: model,
      detail: `${free_calls} calls`,
      events: 0,
      usd: negate(missing),
    });
  const rest = sumMoney([subtract(left, right).usd, missing]);
  if (rest !== zero)
    differences.push({
      kind: rest * toleratedShare > right.usd ? 'above_list' : 'off_list',
      subject: model,
      events: 0,
      usd: rest,
    });
  return { line: { name: 'list', of: model, left, right }, differences };
}

function computeListPrice({ in_per_m, out_per_m = zero }: Prices, tokensIn: number, tokensOut: number): Money {
  return sumMoney([computePrice(tokensIn, in_per_m), computePrice(tokensOut, out_per_m)]);
}
