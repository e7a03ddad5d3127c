// What the rest of the API uses of this room: the records of a day compared with each other.
export {
  type ComparisonName,
  type ComparisonResult,
  type Reconciliation,
  reconciliation,
  type ReconciliationSummary,
  reconciliationList,
} from './result.ts';
export { startReconciliation } from './start-reconciliation.ts';
export { apartTitles, causes, comparisonTitles, lineTitles } from './table.ts';
