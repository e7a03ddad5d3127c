// What a caller is charged: the price of a tool or a call, and a margin on the cost of models. Only who has a key is charged
// anything; the free quota counts costs, and nobody pays it.
import { keyAccount, marginAccount } from '../ledger/accounts.ts';
import type { Line } from '../ledger/ledger.ts';
import { type Money, negate, shareOf, zero } from '../ledger/money.ts';
import type { Payer } from '../payer.ts';
import { isFree, type PriceVersion } from './price-list.ts';

/** What the field `charged_usd` of an answer says. */
export const chargedText =
  'What you are charged for this call in USD: 0 while the free quota covers it, and for what the price list names as free. With an API key, the price of the tool or the app and the margin on model costs; what the model router bills to your key comes on top of it, and is in the cost.';

/** What of a price of our own is charged. `item`: the name of the tool, or `call`. */
export function chargedOf(price: Money, { kind }: Payer, version: PriceVersion, item: string): Money {
  return kind === 'key' && !isFree(version, item) ? price : zero;
}

/** The margin on the cost of a model call, rounded down to the pico-dollar. */
export function marginOf(cost: Money, payer: Payer, version: PriceVersion, item: string): Money {
  return chargedOf(shareOf(cost, version.modelMargin), payer, version, item);
}

/** The lines that add a margin to the transaction of a call; none for a margin of 0. */
export function marginLines(margin: Money, { owner }: Payer, router: string): Line[] {
  return margin === zero
    ? []
    : [
        { account: keyAccount(owner), amount: margin },
        { account: marginAccount(router), amount: negate(margin) },
      ];
}
