// The chart of accounts: who is debited and credited for what. And who pays for a call: the caller's free quota, the caller's own
// API key, or the budget of a hosted app.
import type { LimitedAccount } from './ledger.ts';
import type { Money } from './money.ts';

/** Names an account. A daily one resets at the start of each UTC day; which day is decided by the database's clock. */
export interface Account {
  readonly kind: string;
  readonly owner: string;
  readonly daily: boolean;
}

/** What the free use of one caller (a salted hash) has cost on a day. Its limit is the free quota. */
export function toCallerAccount(caller: string): Account {
  return { kind: 'caller', owner: caller, daily: true };
}

/** What the model calls of a hosted app have cost on a day. Its limit is the app's budget. */
export function toAppAccount(app: string): Account {
  return { kind: 'app', owner: app, daily: true };
}

/**
 * What we owe a router for the calls of a day made with the platform's key: credited. Its limit is the global daily
 * cap.
 */
export function toPlatformAccount(router: string): Account {
  return { kind: 'platform', owner: router, daily: true };
}

/** What callers have spent with their own API keys: debited per caller, owed by them and not by us. */
export function toOwnKeyAccount(caller: string): Account {
  return { kind: 'own-key', owner: caller, daily: false };
}

/** What we have charged a caller with a key for tools and apps on a day. Its limit is that of keys. */
export function toKeyAccount(caller: string): Account {
  return { kind: 'key', owner: caller, daily: true };
}

/** The other side of own keys: what a router has billed to its own customers through us. */
export function toOwnKeyRouterAccount(router: string): Account {
  return { kind: 'own-key-router', owner: router, daily: false };
}

/** What an app has earned, before its author's share is taken out. */
export function toRevenueAccount(app: string): Account {
  return { kind: 'revenue', owner: app, daily: false };
}

/** What we owe an author: credited. */
export function toAuthorAccount(author: string): Account {
  return { kind: 'author', owner: author, daily: false };
}

/** What the platform bears for an item of the price list that is free of charge: debited. */
export function toPromotionAccount(item: string): Account {
  return { kind: 'promotion', owner: item, daily: false };
}

/** What callers with a key are charged on top of the cost of model calls: credited. */
export function toMarginAccount(router: string): Account {
  return { kind: 'margin', owner: router, daily: false };
}

/** What was paid out to authors: credited. */
export function getPayoutAccount(): Account {
  return { kind: 'payout', owner: 'authors', daily: false };
}

/** What the uses of a tool were charged by its tariff: credited. The platform's own, owed to no router. */
export function toToolAccount(tool: string): Account {
  return { kind: 'tool', owner: tool, daily: false };
}

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
