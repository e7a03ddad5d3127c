// What the rest of the API uses of this room: money and its keeping: the ledger, holds, prices, payers, quotas and idempotent requests.
export { Database, prefixStatements, runAsTask, type Statement, type Transaction } from './database/database.ts';
export { openDatabase } from './database/open.ts';
export { CallsInFlight } from './calls-in-flight.ts';
export { IdempotencyKeys, type NoteCall } from './idempotency/keys.ts';
export { idempotencyKey, idempotently, isUnguessable, Replays, replayHeaders } from './idempotency/request.ts';
export { authorAccount, marginAccount, revenueAccount, toolAccount } from './ledger/accounts.ts';
export { type CostSource, type FlightLimits, Ledger, type Line } from './ledger/ledger.ts';
export { moneyField } from './ledger/money-field.ts';
export {
  formatMoney,
  formatUsd,
  type Money,
  MoneyError,
  moneyToNumber,
  negate,
  parseBilled,
  parseMoney,
  picoDollars,
  priceOf,
  sumMoney,
  zero,
} from './ledger/money.ts';
export { openLedgerDatabase } from './database/open.ts';
export { dailyLimitMetrics, overrunMetrics, readForScrape } from './metrics.ts';
export { isDoubtful, type LookupResult, reconcile } from './ledger/reconciler.ts';
export { money } from './ledger/shapes.ts';
export { recordUses, type Usage, type UsageEvent } from './ledger/usage.ts';
export { type LedgerHandle, openLedger, type OpenLedger } from './open-ledger.ts';
export { type Spend, type SpendingItem, Wallet } from './wallet.ts';
export {
  anonymousPayer,
  appPayer,
  keyPayer,
  type Limits,
  type Payer,
  platformDay,
  type QuotaNetworks,
  selectPriceAccounts,
} from './payer.ts';
export type { BilledCall, BillRequest, BillWindow, RouterBill } from './router-bill.ts';
export { maxCallCost, type Prices, type Prompt } from './prices/max-cost.ts';
export { chargedOf, chargedText, marginOf } from './prices/charge.ts';
export {
  contentOf,
  daysBetween,
  isFree,
  PriceList,
  type PriceVersion,
  readPriceList,
  readVersion,
  toolPrice,
} from './prices/price-list.ts';
export {
  billingProblems,
  callsInFlight,
  callsStopped,
  idempotencyInFlight,
  idempotencyMismatch,
  ledgerUnavailable,
  ledgerUnconfigured,
  quotaExhausted,
} from './problems.ts';
export {
  lowQuotaFields,
  lowQuotaHeaders,
  lowQuotaHint,
  type Quota,
  quotaFields,
  rateLimitHeaders,
  remaining,
  viewLowQuota,
  viewQuota,
} from './quota.ts';
