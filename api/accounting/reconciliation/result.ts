// The result of a reconciliation, as it is stored and published: amounts are decimal strings in USD.
import { z } from 'zod';

export const comparisonNames = ['gateway', 'ledger', 'router', 'prices', 'sums'] as const;
export type ComparisonName = (typeof comparisonNames)[number];

/**
 * Kinds of differences, each with whether it explains itself. What is explained needs no look; any other is a fault of
 * ours, of the router or of somebody with access to the database.
 */
export const differenceKinds = {
  lost: 'explained',
  lost_before: 'explained',
  missing: 'explained',
  refused: 'explained',
  unaccounted_requests: 'unexplained',
  late_without_use: 'explained',
  no_use: 'unexplained',
  no_hold: 'unexplained',
  not_booked: 'unexplained',
  cost_differs: 'unexplained',
  hold_differs: 'unexplained',
  above_hold: 'unexplained',
  pending: 'explained',
  not_yet_billed: 'explained',
  estimated: 'explained',
  not_in_bill: 'unexplained',
  not_in_ledger: 'unexplained',
  abandoned: 'unexplained',
  released: 'unexplained',
  amount_differs: 'unexplained',
  total_differs: 'unexplained',
  billed_nothing: 'unexplained',
  above_list: 'unexplained',
  off_list: 'explained',
  count_differs: 'explained',
  ended_next_day: 'explained',
  other_entries: 'unexplained',
  sum_differs: 'unexplained',
  uses_gone: 'unexplained',
  gone_before: 'explained',
  unaccounted: 'unexplained',
} as const satisfies Record<string, 'explained' | 'unexplained'>;
export type DifferenceKind = keyof typeof differenceKinds;

/** Calls whose cost is not known or estimated, and those that cannot be compared. */
export const apartKinds = ['open', 'pending', 'abandoned', 'estimated', 'own_key_unseen', 'other_callers'] as const;
export type ApartKind = (typeof apartKinds)[number];

/** What the two sides of a comparison are compared by. */
export const lineNames = [
  'run',
  'ask',
  'compare',
  'v1',
  'tool',
  'app',
  'model',
  'platform',
  'own_key',
  'list',
  'account',
  'hours',
  'days',
  'visits',
] as const;
export type LineName = (typeof lineNames)[number];

const count = z.int();
const usd = z.string().regex(/^-?\d+(\.\d+)?$/);
const sum = z.object({
  events: count.describe('How many.'),
  usd: usd.describe('What they cost together, USD, as a decimal string.'),
});

export const comparison = z.object({
  name: z.enum(comparisonNames).describe('gateway, ledger, router, prices or sums.'),
  outcome: z
    .enum(['equal', 'explained', 'different', 'not_known'])
    .describe('equal; explained: every difference has a known cause; different; not_known: one side cannot be read.'),
  reason: z.string().nullable().describe('Why it is not known.'),
  lines: z
    .array(
      z.object({
        name: z.enum(lineNames),
        of: z.string().nullable().describe('Whose, where there are several.'),
        left: sum,
        right: sum,
      }),
    )
    .describe('Both sides, line by line.'),
  differences: z
    .array(
      z.object({
        kind: z.enum(Object.keys(differenceKinds) as [DifferenceKind, ...DifferenceKind[]]).describe('Its cause.'),
        explained: z.boolean(),
        subject: z.string().nullable().describe('What it is about: the id of a call, numbers of a gateway, a sum.'),
        ...sum.shape,
        detail: z.string().nullable(),
      }),
    )
    .describe('Left less right, the unexplained ones first; at most 100.'),
  left_off: count.describe('How many differences are not listed.'),
  apart: z
    .array(z.object({ kind: z.enum(apartKinds), ...sum.shape }))
    .describe(
      'What has no cost to compare; `usd` is the most that it can cost, or the estimate at which it was settled.',
    ),
  explained: sum.describe('What is explained, as absolute figures.'),
  unexplained: sum.describe('What is not, as absolute figures.'),
});
export type ComparisonResult = z.output<typeof comparison>;

export const reconciliation = z.object({
  day: z.iso.date().describe('The day, UTC.'),
  made_at: z.iso.datetime().describe('When it was compared.'),
  complete: z.boolean().describe('Whether the day was over by then.'),
  waits: z.boolean().describe('Whether something of it could still come; it is then compared again.'),
  unexplained: sum.describe('What no record explains, of all comparisons.'),
  explanation: z.string().nullable().describe('What the operator of this installation found out about it.'),
  comparisons: z.array(comparison),
});
export type Reconciliation = z.output<typeof reconciliation>;

const summary = reconciliation.omit({ comparisons: true }).extend({
  comparisons: z.array(comparison.pick({ name: true, outcome: true, explained: true, unexplained: true })),
  url: z.url().describe('All of it.'),
});
export type ReconciliationSummary = z.output<typeof summary>;

export const reconciliationList = z.object({
  days: z.array(summary),
  next: z.url().nullable().describe('The next page.'),
});
