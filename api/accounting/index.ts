// What the rest of the API uses of this room: what was used and what it cost, from access logs to the shares of authors.
export { internalProblems } from './problems.ts';
export { type Metering, type MeteringSettings, readMeteringSettings, startMetering } from './metering/index.ts';
export { readReceiptSettings, type ReceiptSettings, startReceipts } from './receipts/index.ts';
export {
  authorView,
  bindAuthor,
  priceListView,
  type PriceListView,
  provenStatement,
  readRevenueSettings,
  type RevenueSettings,
  startRevenue,
  type StatementView,
} from './revenue/index.ts';
export {
  apartTitles,
  causes,
  type ComparisonResult,
  comparisonTitles,
  lineTitles,
  type Reconciliation,
  reconciliation,
  reconciliationList,
  type ReconciliationSummary,
  startReconciliation,
} from './reconciliation/index.ts';
