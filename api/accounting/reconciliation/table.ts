// Formats a reconciliation as text for a terminal, with the English titles of comparisons, lines and causes.
import { formatUsd } from '../../billing/index.ts';
import type {
  ApartKind,
  ComparisonName,
  ComparisonResult,
  DifferenceKind,
  LineName,
  Reconciliation,
} from './result.ts';

interface Row {
  readonly name: string;
  readonly left: string;
  readonly right: string;
}

const outcomes: Readonly<Record<ComparisonResult['outcome'], string>> = {
  equal: 'equal',
  explained: 'explained',
  different: 'DIFFERENT',
  not_known: 'not known',
};

/** Lines that end with a newline. */
export function formatReconciliation(made: Reconciliation): string {
  const { events, usd } = made.unexplained;
  const head = `${made.day} (UTC)${made.complete ? '' : ', until now'}, compared at ${made.made_at}\n`;
  const end =
    events === 0
      ? 'Nothing is unexplained.'
      : `Unexplained: ${events}, ${formatUsd(usd)}.${made.explanation === null ? '' : ` Explained by hand: ${made.explanation}`}`;
  return `${head}\n${made.comparisons.map(formatComparison).join('\n')}\n${end}\n${made.waits ? 'Something of it is still awaited; it is compared again.\n' : ''}`;
}

function formatComparison(one: ComparisonResult): string {
  const rows = one.lines.map((line): Row => ({
    name: line.of === null ? lineTitles[line.name] : `${lineTitles[line.name]} ${line.of}`,
    left: formatAmount(line.left),
    right: formatAmount(line.right),
  }));
  const differences = one.differences.map(
    (difference) =>
      `  ${difference.explained ? ' ' : '!'} ${formatAmount(difference)}: ${causes[difference.kind]}${difference.subject === null ? '' : ` (${difference.subject})`}${difference.detail === null ? '' : `, ${difference.detail}`}`,
  );
  return [
    `${comparisonTitles[one.name]}: ${outcomes[one.outcome]}${one.reason === null ? '' : `, because ${one.reason}`}`,
    ...alignRows(rows),
    ...one.apart.map(({ kind, ...sum }) => `    apart: ${formatAmount(sum)} ${apartTitles[kind]}`),
    ...differences,
    ...(one.left_off === 0 ? [] : [`    and ${one.left_off} more`]),
    '',
  ].join('\n');
}

function alignRows(rows: readonly Row[]): string[] {
  const computeWidth = (of: (row: Row) => string): number => Math.max(0, ...rows.map((row) => of(row).length));
  const [name, left, right] = [
    computeWidth((row) => row.name),
    computeWidth((row) => row.left),
    computeWidth((row) => row.right),
  ];
  return rows.map(
    (row) =>
      `    ${row.name.padEnd(name)}  ${row.left.padStart(left)}  ${row.left === row.right ? '=' : '≠'}  ${row.right.padStart(right)}`,
  );
}

function formatAmount({ events, usd }: { readonly events: number; readonly usd: string }): string {
  return usd === '0' ? String(events) : `${events}, ${formatUsd(usd)}`;
}

export const comparisonTitles: Readonly<Record<ComparisonName, string>> = {
  gateway: 'Requests counted by gateways = uses recorded',
  ledger: 'Uses of metered calls = settled in the ledger',
  router: 'Owed to the router by the ledger = billed by the router',
  prices: 'Settled for model calls = their tokens at list prices',
  sums: 'Single uses = their sums',
};

export const lineTitles: Readonly<Record<LineName, string>> = {
  run: 'gateway',
  ask: 'ask',
  compare: 'compare',
  v1: '/v1',
  tool: 'tools',
  app: 'apps',
  model: 'model calls without a use',
  platform: 'platform key',
  own_key: 'keys of callers',
  list: 'model',
  account: 'account of the day',
  hours: 'uses and sums by hour',
  days: 'sums by hour and by day',
  visits: 'all requests ever recorded and their sums',
};

export const causes: Readonly<Record<DifferenceKind, string>> = {
  lost: 'lost on the way from the gateway',
  lost_before: 'lost on other days of this run',
  missing: 'not come yet',
  refused: 'refused for its time, too old or in the future',
  unaccounted_requests: 'neither recorded, refused, missing nor lost',
  late_without_use: 'the process ended before it wrote the use; the cost was found later',
  no_use: 'settled, and its use is not there',
  no_hold: 'its hold is not there',
  not_booked: 'the use has a cost, and nothing is booked',
  cost_differs: 'the use has another cost than the ledger',
  hold_differs: 'its hold says something else than what was booked',
  above_hold: 'cost more than was reserved for it',
  pending: 'the router knows the cost, the ledger does not yet',
  not_yet_billed: 'settled within the last minutes, not in the bill yet',
  estimated: 'settled at an estimate, since the router had no record of the call',
  not_in_bill: 'settled, and not in the bill',
  not_in_ledger: 'in the bill, and not in the ledger',
  abandoned: 'in the bill, and given up in the ledger',
  released: 'in the bill, and released in the ledger',
  amount_differs: 'the bill has another amount than the ledger',
  total_differs: 'the bill of the day has another sum than the ledger',
  billed_nothing: 'the router billed 0 for tokens that have a price',
  above_list: 'the router billed more than the list price',
  off_list: 'the router’s prices differ from the list, such as for cached tokens',
  count_differs: 'the router counts other requests, such as failed ones',
  ended_next_day: 'calls over midnight, which the router counts by their end',
  other_entries: 'entries of the account that settle no call of this day',
  sum_differs: 'the sum is not that of its uses',
  uses_gone: 'recorded once, and no longer there',
  gone_before: 'gone on an earlier day, and reported there',
  unaccounted: 'not found in any single record',
};

export const apartTitles: Readonly<Record<ApartKind, string>> = {
  open: 'in progress',
  pending: 'cost being looked up',
  abandoned: 'cost never found',
  estimated: 'settled at an estimate',
  own_key_unseen: 'with keys of callers, not in the bill that this key can see',
  other_callers: 'of others who use the router',
};
