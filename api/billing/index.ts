// What the rest of the API uses of this room: money and its keeping: the ledger, the wallet, prices, payers, quotas and idempotent requests.
export { CallsInFlight } from './calls-in-flight.ts';
export { Database, prefixStatements, runAsTask, type Statement, type Transaction } from './database/database.ts';
export { openDatabase, openLedgerDatabase } from './database/open.ts';
export {
  IdempotencyKeys,
  idempotencyKey,
  runOnce,
  isUnguessable,
  type NoteCall,
  replayHeaders,
  Replays,
} from './idempotency.ts';
export { authorAccount, marginAccount, revenueAccount, toolAccount } from './ledger/accounts.ts';
export { type CostSource, type FlightLimits, Ledger, type Line } from './ledger/ledger.ts';
export {
  formatMoney,
  formatUsd,
  type Money,
  MoneyError,
  moneyField,
  moneyToNumber,
  negate,
  parseBilled,
  parseMoney,
  picoDollars,
  priceOf,
  sumMoney,
  zero,
} from './ledger/money.ts';
export {
  type BilledCall,
  type BillRequest,
  type BillWindow,
  isDoubtful,
  type LookupResult,
  reconcile,
  type RouterBill,
} from './ledger/reconciler.ts';
export { money } from './ledger/shapes.ts';
export { recordUses, type Usage, type UsageEvent } from './ledger/usage.ts';
export { createDailyLimitMetrics, createOverrunMetrics, readForScrape } from './metrics.ts';
export { type LedgerHandle, openLedger, type OpenLedger } from './open-ledger.ts';
export {
  createAnonymousPayer,
  createAppPayer,
  createKeyPayer,
  type Limits,
  type Payer,
  toPlatformDay,
  type QuotaNetworks,
  selectPriceAccounts,
} from './payer.ts';
export {
  chargedOf,
  chargedText,
  contentOf,
  daysBetween,
  isFree,
  computeMargin,
  computeMaxCost,
  PriceList,
  type Prices,
  type PriceVersion,
  type Prompt,
  readPriceList,
  readVersion,
  toolPrice,
} from './prices.ts';
export {
  billingProblems,
  callsInFlight,
  callsStopped,
  idempotencyInFlight,
  idempotencyMismatch,
  ledgerUnavailable,
  ledgerUnconfigured,
  lowQuotaFields,
  lowQuotaHeaders,
  formatLowQuotaHint,
  type Quota,
  quotaExhausted,
  quotaFields,
  rateLimitHeaders,
  remaining,
  viewLowQuota,
  viewQuota,
} from './problems.ts';
export { type Spend, type SpendingItem, Wallet } from './wallet.ts';
