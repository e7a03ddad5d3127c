// The ledger: whether it balances, what is held, and what quotas let through.
import type { Dashboard } from '../dashboard.ts';

export const ledger: Dashboard = {
  name: 'ledger',
  title: 'Moorage / Ledger',
  about: 'Whether the ledger balances, what is held and pending, the daily limit, and refusals by quotas.',
  rows: [
    {
      title: 'Audit',
      panels: [
        {
          title: 'Faults',
          description: 'What the last audit found. Anything but 0 needs a look at once.',
          kind: 'number',
          unit: 'short',
          width: 6,
          limit: { value: 1, worse: 'above' },
          queries: [{ expr: 'max(moorage_ledger_audit_faults)', legend: 'faults' }],
        },
        {
          title: 'Sum of all entries',
          description: '0 in a ledger that balances.',
          kind: 'number',
          unit: 'currencyUSD',
          width: 6,
          queries: [{ expr: 'max(abs(moorage_ledger_imbalance_usd))', legend: 'USD' }],
        },
        {
          title: 'Last audit',
          description: 'How long ago, of the replica that is furthest behind.',
          kind: 'number',
          unit: 's',
          width: 6,
          limit: { value: 3 * 3_600, worse: 'above' },
          queries: [{ expr: 'time() - min(moorage_ledger_audit_timestamp_seconds)', legend: 'ago' }],
        },
        {
          title: 'Database',
          description: '1 where every replica of the API reaches it.',
          kind: 'number',
          unit: 'short',
          width: 6,
          limit: { value: 1, worse: 'below' },
          queries: [{ expr: 'min(moorage_database_up)', legend: 'up' }],
        },
      ],
    },
    {
      title: 'Receipts',
      panels: [
        {
          title: 'Days behind',
          description: 'Days (UTC) that have ended and are not sealed. Anything but 0 needs a look.',
          kind: 'number',
          unit: 'short',
          width: 8,
          limit: { value: 1, worse: 'above' },
          queries: [{ expr: 'max(moorage_receipts_days_behind)', legend: 'days' }],
        },
        {
          title: 'Waiting to be linked',
          description: 'Age of the oldest transaction that is not in the signed record; some seconds are usual.',
          kind: 'lines',
          unit: 's',
          width: 8,
          limit: { value: 600, worse: 'above' },
          queries: [{ expr: 'max(moorage_receipts_links_behind_seconds)', legend: 'oldest' }],
        },
        {
          title: 'Linked, and failures',
          description:
            'Transactions put into the signed record in five minutes, and times that it could not be continued.',
          kind: 'lines',
          unit: 'short',
          width: 8,
          queries: [
            { expr: 'sum(increase(moorage_receipts_linked_total[5m]))', legend: 'linked' },
            { expr: 'sum(increase(moorage_receipts_failures_total[5m]))', legend: 'failures' },
          ],
        },
      ],
    },
    {
      title: 'Money that is held',
      panels: [
        {
          title: 'Holds',
          description:
            'open: calls in progress; pending: their cost is being looked up; abandoned: an earlier version gave it up.',
          kind: 'lines',
          unit: 'short',
          width: 12,
          queries: [{ expr: 'max by (state) (moorage_ledger_holds)', legend: '{{state}}' }],
        },
        {
          title: 'Oldest pending cost',
          description: 'For how long it has been looked up.',
          kind: 'lines',
          unit: 's',
          width: 12,
          limit: { value: 1_800, worse: 'above' },
          queries: [{ expr: 'max(moorage_ledger_oldest_pending_seconds)', legend: 'oldest' }],
        },
        {
          title: 'Daily limit',
          description: 'What of the limit of the platform key is used or held today (UTC).',
          kind: 'lines',
          unit: 'currencyUSD',
          width: 8,
          queries: [
            { expr: 'max(moorage_daily_limit_used_usd)', legend: 'used' },
            { expr: 'max(moorage_daily_limit_usd)', legend: 'limit' },
          ],
        },
        {
          title: 'Calls above their hold',
          description:
            'Model calls of today (UTC) that cost the platform more than was reserved for them, and what they cost beyond that. Their callers and models are stopped.',
          kind: 'lines',
          unit: 'short',
          width: 8,
          limit: { value: 1, worse: 'above' },
          queries: [
            { expr: 'max(moorage_model_calls_above_hold)', legend: 'calls' },
            { expr: 'max(moorage_model_calls_above_hold_usd)', legend: 'USD' },
          ],
        },
        {
          title: 'Refusals by quotas',
          description: 'In an hour, by kind of caller and by whose quota was used up.',
          kind: 'bars',
          unit: 'short',
          width: 8,
          queries: [
            {
              expr: 'sum by (caller, quota) (increase(moorage_quota_refusals_total[1h]))',
              legend: '{{caller}}: quota of {{quota}}',
            },
          ],
        },
        {
          title: 'Costs that were not known at once',
          description: 'Model calls in an hour whose cost the router did not report with its answer.',
          kind: 'bars',
          unit: 'short',
          width: 24,
          queries: [
            {
              expr: 'sum by (model) (increase(moorage_model_costs_pending_total[1h]))',
              legend: '{{model}}',
            },
            { expr: 'sum(increase(moorage_model_costs_estimated_total[1h]))', legend: 'settled at an estimate' },
          ],
        },
      ],
    },
    {
      title: 'Reconciliation',
      panels: [
        {
          title: 'Unexplained differences',
          description:
            'Requests, uses or calls of the last 35 days in which two records differ and nothing explains why. 0 where all is well.',
          kind: 'lines',
          unit: 'short',
          width: 8,
          limit: { value: 1, worse: 'above' },
          queries: [
            { expr: 'max by (comparison) (moorage_reconciliation_difference_events)', legend: '{{comparison}}' },
          ],
        },
        {
          title: 'Unexplained money',
          description: 'By how much they differ.',
          kind: 'lines',
          unit: 'currencyUSD',
          width: 8,
          queries: [{ expr: 'max by (comparison) (moorage_reconciliation_difference_usd)', legend: '{{comparison}}' }],
        },
        {
          title: 'Last reconciled day',
          description: 'How long ago it ended. A day is compared within an hour after its end.',
          kind: 'number',
          unit: 's',
          width: 8,
          limit: { value: 27 * 3_600, worse: 'above' },
          queries: [{ expr: 'time() - min(moorage_reconciliation_until_timestamp_seconds)', legend: 'ago' }],
        },
      ],
    },
  ],
};
