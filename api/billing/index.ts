// What the rest of the API uses of this room: money and its keeping: the ledger, the wallet, prices, payers, quotas and idempotent requests.
export {
  Database,
  openDatabase,
  openLedgerDatabase,
  prefixStatements,
  runAsTask,
  type Statement,
  type Transaction,
} from './database/database.ts';
export { IdempotencyKeys, runOnce, isUnguessable, type NoteCall, replayHeaders, Replays } from './idempotency.ts';
export { type CostSource, type FlightLimits, Ledger, type Line, type Usage } from './ledger/ledger.ts';
export {
  formatMoney,
  formatUsd,
  money,
  type Money,
  MoneyError,
  moneyField,
  toDollarNumber,
  negate,
  parseBilled,
  parseMoney,
  fromPicoDollars,
  computePrice,
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
export { createDailyLimitMetrics, createOverrunMetrics, readForScrape } from './metrics.ts';
export { createNotOpenProblem, type LedgerHandle, openLedger, type OpenLedger } from './open-ledger.ts';
export {
  createAnonymousPayer,
  createAppPayer,
  createKeyPayer,
  type Limits,
  type Payer,
  toPlatformDay,
  type QuotaNetworks,
  selectPriceAccounts,
  toAppAccount,
  toAuthorAccount,
  toMarginAccount,
  toRevenueAccount,
  toToolAccount,
} from './ledger/accounts.ts';
export {
  computeCharge,
  chargedText,
  toVersionJson,
  countDaysBetween,
  isFree,
  computeMargin,
  computeMaxCost,
  PriceList,
  type Prices,
  type PriceVersion,
  type Prompt,
  readPriceList,
  readVersion,
  resolveToolPrice,
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
  formatLowQuotaHint,
  type Quota,
  quotaExhausted,
  quotaFields,
  formatQuotaHeaders,
  computeRemaining,
  toLowQuotaView,
  toQuotaView,
} from './problems.ts';
export { CallsInFlight, type Spend, type SpendingItem, Wallet } from './wallet.ts';
