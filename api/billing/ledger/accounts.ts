// The chart of accounts: who is debited and credited for what.

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
