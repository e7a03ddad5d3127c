// The public face of billing: what the other rooms of the API import.
export { appLines, chargeLines, type Line } from './accrual.ts';
export type { Database, Statement } from './database/database.ts';
export { openLedgerDatabase } from './database/open.ts';
export { Holds, type Hold } from './holds.ts';
export { IdempotencyKeys } from './idempotency/keys.ts';
export { idempotencyKey, idempotently } from './idempotency/request.ts';
export * from './ledger/accounts.ts';
export type { CostSource, Ledger } from './ledger/ledger.ts';
export { moneyField } from './ledger/money-field.ts';
export {
  formatMoney,
  moneyToNumber,
  negate,
  parseBilled,
  parseMoney,
  picoDollars,
  priceOf,
  sumMoney,
  zero,
  MoneyError,
  type Money,
} from './ledger/money.ts';
export { reconcile, type LookupResult } from './ledger/reconciler.ts';
export { money } from './ledger/shapes.ts';
export type { Usage } from './ledger/usage.ts';
export { openLedger, type LedgerHandle, type OpenLedger } from './open-ledger.ts';
export { anonymousPayer, appPayer, keyPayer, type Limits, type Payer } from './payer.ts';
export { maxCallCost, type Prompt } from './price.ts';
export * from './problems.ts';
export { lowQuotaHint, rateLimitHeaders, remaining, type Quota } from './quota.ts';
