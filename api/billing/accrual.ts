// Revenue of a use, and the share of it that its author accrues, as the lines of one transaction.
import { authorAccount, receivableAccount, revenueAccount, type Account } from './ledger/accounts.ts';
import { negate, shareOf, type Money } from './ledger/money.ts';
import type { Payer } from './payer.ts';

/** One line of a transaction; debits are positive, credits negative. */
export interface Line {
  readonly account: Account;
  readonly amount: Money;
}

export interface Charge {
  readonly payer: string;
  readonly app: string;
  readonly author: string;
  /** What the payer is charged. */
  readonly price: Money;
  /** The author's share in parts per million, rounded down to the pico-dollar; the rest stays revenue. */
  readonly authorShare: number;
}

/** The lines of a charge; they sum to zero. None for a price of zero. */
export function chargeLines(charge: Charge): Line[] {
  const { payer, app, price } = charge;
  if (price === 0n) return [];
  return [
    { account: receivableAccount(payer), amount: price },
    { account: revenueAccount(app), amount: negate(price) },
    ...appLines(charge),
  ];
}

/**
 * Whether an author accrues a share of a charge: only of money that somebody is charged, so not of the free quota, which
 * nobody pays; and not of a call that he makes himself. `submitter`: whoever submitted the app, as payers are named.
 */
export function accrues({ kind, owner }: Payer, submitter: string | undefined): boolean {
  return kind === 'key' && owner !== submitter;
}

/** What goes on from an app's revenue to its author; the lines sum to zero. */
export function appLines({ app, author, price, authorShare }: Omit<Charge, 'payer'>): Line[] {
  const share = shareOf(price, authorShare);
  return share === 0n
    ? []
    : [
        { account: revenueAccount(app), amount: share },
        { account: authorAccount(author), amount: negate(share) },
      ];
}
