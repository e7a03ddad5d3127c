// Who pays for a call: the caller's free quota, the caller's own API key, or the budget of a hosted app. And which accounts it is reserved
// and settled between.
import {
  type Account,
  toAppAccount,
  toCallerAccount,
  toKeyAccount,
  toOwnKeyAccount,
  toOwnKeyRouterAccount,
  toPlatformAccount,
  toPromotionAccount,
} from './ledger/accounts.ts';
import type { LimitedAccount } from './ledger/ledger.ts';
import type { Money } from './ledger/money.ts';

export interface Payer {
  /** Fit for a label of a metric. */
  readonly kind: 'anonymous' | 'key' | 'app';
  /** Salted hash of the caller, or the name of the app: whose idempotency keys and uses they are. */
  readonly owner: string;
  /** The caller's own key, passed on to the router and kept nowhere. */
  readonly key: string | undefined;
  /** Who is debited for a model call, and who is owed for it. */
  readonly debit: LimitedAccount;
  readonly credit: LimitedAccount;
  /** Who is debited for what we charge ourselves: the prices of tools and apps, and the margin on model calls. */
  readonly charge: LimitedAccount;
  /** Of a caller without a key at an IPv6 address: its /64 and its /48, as salted hashes. */
  readonly networks?: QuotaNetworks | undefined;
}

/** The networks of IPv6 for which the free quota is counted in addition to that of the caller's /56. */
export interface QuotaNetworks {
  /** The /64, which has its own quota. */
  readonly subnet: string;
  /** The /48. */
  readonly site: string;
}

/** What the platform pays for, and how far. */
export interface Limits {
  /** Name of the router in the ledger. */
  readonly router: string;
  readonly freeQuota: Money;
  readonly dailyCap: Money;
  /** What one caller with a key may be charged for tools, apps and margins in a day. */
  readonly keyLimit: Money;
}

/** What all calls with the platform's key cost in a day. */
export function toPlatformDay({ router, dailyCap }: Pick<Limits, 'router' | 'dailyCap'>): LimitedAccount {
  return { account: toPlatformAccount(router), limit: dailyCap };
}

/** `caller`: hash of the network that counts as one caller. Of IPv6 that is a /56, with quotas for what is in it and around it. */
export function createAnonymousPayer(
  caller: string,
  { router, freeQuota, dailyCap }: Limits,
  networks?: QuotaNetworks,
): Payer {
  const debit: LimitedAccount =
    networks === undefined
      ? { account: toCallerAccount(caller), limit: freeQuota }
      : {
          account: toCallerAccount(networks.subnet),
          limit: freeQuota,
          within: [
            { network: networks.site, limit: computeSiteQuota({ freeQuota, dailyCap }) },
            { network: caller, limit: (freeQuota * 2n) as Money },
          ],
        };
  return {
    kind: 'anonymous',
    owner: caller,
    key: undefined,
    debit,
    charge: debit,
    credit: toPlatformDay({ router, dailyCap }),
    networks,
  };
}

/** A /48 may spend four quotas, and no more than half of what all callers may together, unless one quota is more. */
function computeSiteQuota({ freeQuota, dailyCap }: Pick<Limits, 'freeQuota' | 'dailyCap'>): Money {
  const [four, half] = [freeQuota * 4n, dailyCap / 2n];
  const lower = four < half ? four : half;
  return (lower > freeQuota ? lower : freeQuota) as Money;
}

/** No quota for model calls: the router bills the key's owner. */
export function createKeyPayer(caller: string, key: string, { router, keyLimit }: Limits): Payer {
  return {
    kind: 'key',
    owner: caller,
    key,
    debit: { account: toOwnKeyAccount(caller), limit: null },
    credit: { account: toOwnKeyRouterAccount(router), limit: null },
    charge: { account: toKeyAccount(caller), limit: keyLimit },
  };
}

export function createAppPayer(app: string, dailyBudget: Money, { router, dailyCap }: Limits): Payer {
  const debit = { account: toAppAccount(app), limit: dailyBudget };
  return {
    kind: 'app',
    owner: app,
    key: undefined,
    debit,
    charge: debit,
    credit: toPlatformDay({ router, dailyCap }),
  };
}

/**
 * The accounts between which a price of our own is paid, to the account of a tool, an app or a margin. `free`: name of what is
 * free for callers with a key, so that the platform bears it. The free quota limits also what is free, so that no caller
 * takes it all.
 */
export function selectPriceAccounts(
  { kind, charge }: Payer,
  account: Account,
  free?: string,
): { readonly debit: LimitedAccount; readonly credit: LimitedAccount } {
  const isBorne = kind === 'key' && free !== undefined;
  return {
    debit: isBorne ? { account: toPromotionAccount(free), limit: null } : charge,
    credit: { account, limit: null },
  };
}
