// Names of comparisons, lines and causes in plain English, for the terminal. Pages have their own, in each language.
import type { ApartKind, ComparisonName, DifferenceKind, LineName } from './result.ts';

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
