// Alerts about the database and the ledger in it, and about the counting of uses.
import { isDatabaseAway, suppressDuringCause, type AlertGroup } from '../alert.ts';

/** Of a process that has a database: one that has never audited it is overdue by the time for which it runs. */
const started = '(process_start_time_seconds and on (instance) moorage_database_up)';

export const ledger: AlertGroup = {
  name: 'moorage-ledger',
  title: 'Database and ledger',
  alerts: [
    {
      name: 'MoorageDatabaseUnreachable',
      expr: 'min(moorage_database_up) == 0',
      for: '2m',
      severity: 'critical',
      summary: 'A replica of the API does not reach the database',
      meaning: 'Every call that is charged is refused (503) by that replica. Apps, submissions and pages go on.',
      runbook: [
        'See whether PostgreSQL runs and has a free disk and free connections. The one of the chart: `kubectl -n moorage-system logs moorage-postgres-0`.',
        'Read what the API says: `kubectl -n moorage-system logs deploy/moorage-api | grep database`. It connects again by itself.',
      ],
    },
    {
      name: 'MoorageLedgerImbalance',
      expr: 'max(moorage_ledger_audit_faults) > 0',
      for: '0m',
      severity: 'critical',
      summary: 'The audit of the ledger found {{ $value }} faults',
      meaning:
        'Sums in the ledger disagree with its entries: somebody changed rows by hand, a restore was not whole, or there is a bug. Money that is shown may be wrong.',
      runbook: [
        'Read the faults: `kubectl -n moorage-system logs deploy/moorage-api | grep "ledger audit"`, or ask the database: `select * from ledger.audit()`.',
        'Find out who changed rows before anything is changed again. Keep a copy of the database as it is (`pg_dump`).',
        'Entries are never edited: correct a wrong amount by a transaction that reverses it, or restore a backup from before.',
        'The alert ends with the next audit that finds nothing (hourly, or at the start of a replica).',
      ],
    },
    {
      name: 'MoorageLedgerAuditOverdue',
      expr: suppressDuringCause(
        isDatabaseAway,
        `time() - min(moorage_ledger_audit_timestamp_seconds or on (instance) ${started}) > 3 * 3600`,
      ),
      for: '10m',
      severity: 'warning',
      summary: 'A replica of the API has not audited the ledger for {{ $value | humanizeDuration }}',
      meaning: 'A fault in the ledger would not be seen.',
      runbook: [
        'Read why it fails: `kubectl -n moorage-system logs deploy/moorage-api | grep audit`. The usual cause is a database that is away or slow.',
      ],
    },
    {
      name: 'MoorageReceiptsBehind',
      expr: suppressDuringCause(
        isDatabaseAway,
        'max(moorage_receipts_days_behind) > 0 or max(moorage_receipts_links_behind_seconds) > 600',
      ),
      for: '10m',
      severity: 'critical',
      summary: 'The signed record of the ledger is not continued',
      meaning:
        'Transactions are not linked, or a day that has ended is not sealed: statements and charges have no proofs. Either no replica of the API gets to it, or the record in the database is not the one that was signed last, and is not signed again.',
      runbook: [
        'Read why: `kubectl -n moorage-system logs deploy/moorage-api | grep "link and seal"`.',
        'If it names the record, somebody changed the database: keep a copy of it as it is (`pg_dump`), and see what was changed: `kubectl -n moorage-system exec deploy/moorage-api -- sh -c \'node api/accounting/receipts/verify/main.ts --database "$DATABASE_URL"\'`. Restore a backup from before, or put back what the findings name.',
        'If the key was replaced, add the public half of the earlier one to `receipts.publicKeys`.',
      ],
    },
    {
      name: 'MoorageCostsPending',
      expr: suppressDuringCause(isDatabaseAway, 'max(moorage_ledger_oldest_pending_seconds) > 1800'),
      for: '10m',
      severity: 'warning',
      summary: 'The cost of a model call has been looked up for {{ $value | humanizeDuration }}',
      meaning:
        'The router does not say what a call cost. What it could cost at most stays held, against the quota of the caller and the daily limit.',
      runbook: [
        'See how many: `moorage_ledger_holds{state="pending"}`. After ten attempts a cost is settled at an estimate, which counts against the quota and the daily limit.',
        'Ask the router for the record of the call: the log of the API names it (`cost of a model call is pending`).',
      ],
    },
    {
      name: 'MoorageDailyLimitNear',
      expr: 'max(moorage_daily_limit_used_usd) / max(moorage_daily_limit_usd) > 0.9',
      for: '0m',
      severity: 'warning',
      summary: '{{ $value | humanizePercentage }} of the daily limit of the platform key is used',
      meaning: 'Once it is used up, callers without a key of their own are refused until 00:00 UTC.',
      runbook: [
        'See what it went to: `sum by (model, caller) (increase(moorage_model_cost_usd_total[1d]))`.',
        'If it is real use, raise `models.dailyCapUsd`. If not, lower `models.freeQuotaUsd`.',
      ],
    },
    {
      name: 'MoorageCallAboveHold',
      expr: 'max(moorage_model_calls_above_hold) > 0',
      for: '0m',
      severity: 'critical',
      summary: '{{ $value }} model calls of today cost more than was reserved for them',
      meaning:
        'The router bills more than the prices of models.yaml allow for, or somebody found a way to make a call cost more. The callers and the models of these calls are stopped on the platform key until 00:00 UTC, so no more than what is in flight is lost.',
      runbook: [
        'See what they cost and what was reserved: the page `/reconciliation` of the API, or ask the database: `select * from ledger.overrun order by settled_at desc`. What is lost so far: `moorage_model_calls_above_hold_usd`.',
        'Compare the price of the model at the router with models.yaml (`models.listConfigMap`), and correct it.',
        'Look the calls up in the records of the router, and see what was billed in addition to their tokens.',
        'Once the cause is gone, lift the stop before the day is over, as the owner of the schema: `update ledger.overrun set lifted_at = now() where lifted_at is null`. That also ends the alert.',
        'See that the router itself limits what the platform key may spend (docs/how-to/limit-the-platform-key.md).',
      ],
    },
    {
      name: 'MoorageReconciliationDifference',
      expr: 'max by (comparison) (moorage_reconciliation_difference_events) > 0 or max by (comparison) (moorage_reconciliation_difference_usd) > 0',
      for: '0m',
      severity: 'critical',
      summary: 'Records of the last days differ, unexplained: {{ $labels.comparison }} by {{ $value | humanize }}',
      meaning:
        'gateway: requests counted and uses recorded; ledger: uses and what was settled for them; router: the ledger and the bill of the model router; prices: what was settled for models and their list prices; sums: uses and their sums. Somebody changed rows by hand, a restore was not whole, the platform key is used elsewhere, or there is a bug.',
      runbook: [
        'See the days and each difference by name: the page `/reconciliation` of the API, or `kubectl -n moorage-system exec deploy/moorage-api -- node api/accounting/reconciliation/command.ts --day YYYY-MM-DD`.',
        'Keep a copy of the database as it is (`pg_dump`) before anything is corrected.',
        'Correct it, and compare the day again by the same command; or keep what you found out with `--explain "…"`. Either ends the alert.',
      ],
    },
    {
      name: 'MoorageReconciliationOverdue',
      expr: suppressDuringCause(
        isDatabaseAway,
        'time() - min(moorage_reconciliation_until_timestamp_seconds) > 27 * 3600',
      ),
      for: '10m',
      severity: 'warning',
      summary: 'The last day that was reconciled ended {{ $value | humanizeDuration }} ago',
      meaning: 'Each day is compared within an hour after it ends. Differences of yesterday are not seen.',
      runbook: [
        'Read why it fails: `kubectl -n moorage-system logs deploy/moorage-api | grep "reconcile days"`. The usual cause is a database that is away or slow.',
        'Try it by hand: `kubectl -n moorage-system exec deploy/moorage-api -- node api/accounting/reconciliation/command.ts --day YYYY-MM-DD`.',
      ],
    },
  ],
};

export const metering: AlertGroup = {
  name: 'moorage-metering',
  title: 'Metering',
  alerts: [
    {
      name: 'MoorageMeterGap',
      expr: 'max(delta(moorage_metering_requests_unaccounted{state="lost"}[1h])) > 0',
      for: '0m',
      severity: 'warning',
      summary: '{{ $value | humanize }} requests that a gateway counted were lost within an hour',
      meaning: 'Their records did not come. Uses, and the shares of authors, are short by them; statements name them.',
      runbook: [
        'See which gateway and when: `select * from metering.loss` in the database.',
        'Read what its shipper says: `kubectl -n moorage-gateway logs deploy/traefik -c shipper`. A full log volume, and a pod that was deleted while the API was away, are the usual causes.',
        'A record that comes later is counted all the same, and the loss is withdrawn.',
      ],
    },
    {
      name: 'MoorageMeterDifference',
      expr: 'max(abs(moorage_metering_requests_unaccounted{state="difference"})) > 0',
      for: '10m',
      severity: 'critical',
      summary: 'Requests counted by gateways and recorded uses differ by {{ $value }}, unexplained',
      meaning:
        'Neither missing nor lost: rows of uses were changed by hand, a restore was not whole, or there is a bug.',
      runbook: [
        'Compare run by run: `select * from metering.reconciliation where difference <> 0` in the database.',
        'Keep a copy of the database as it is (`pg_dump`) before anything is corrected.',
      ],
    },
  ],
};
