// For each alert: series by which it fires and what it says then, and series by which it must not. Values are in
// promtool's notation, one a minute: 0+1x90 counts up by one, 5x90 stays.

export interface AlertCase {
  readonly alert: string;
  readonly fires: {
    readonly series: Readonly<Record<string, string>>;
    /** When it is looked at. */
    readonly at: string;
    /** Besides the severity. */
    readonly labels?: Readonly<Record<string, string>>;
    readonly summary: string;
  };
  /** When it has ended by the same series: of those whose end takes longer than a test with real processes. */
  readonly ended?: string;
  /** Almost the same, and all is well. */
  readonly quiet: { readonly series: Readonly<Record<string, string>>; readonly at: string };
}

const build = (result: string): string => `moorage_builds_total{result="${result}"}`;
const pipelines = (state: string): string => `moorage_pipelines{state="${state}"}`;
const requests = (status: string): string => `moorage_http_request_duration_seconds_count{status="${status}"}`;
const model = (outcome: string): string => `moorage_model_calls_total{outcome="${outcome}"}`;
const reconciles = (result: string): string => `moorage_reconcile_total{controller="hosted-apps",result="${result}"}`;
const disk = (what: string): string => `moorage_node_filesystem_${what}_bytes{node="a",filesystem="images"}`;
const volume = (what: string): string => `moorage_volume_${what}_bytes{claim="data-moorage-postgres-0"}`;
const unaccounted = (state: string): string => `moorage_metering_requests_unaccounted{state="${state}"}`;
const up = (component: string): Record<string, string> => ({
  [`process_start_time_seconds{job="moorage-${component}",instance="a"}`]: '1x90',
});
const certificate = 'moorage_gateway_certificate_expiry_timestamp_seconds{domain="apps.example.org"}';
const days = (count: number): number => count * 86_400;

export const alertCases: readonly AlertCase[] = [
  {
    alert: 'MoorageBuildsFailing',
    fires: {
      series: {
        ...up('registry-proxy'),
        [build('faulted')]: '0+1x90',
        [build('succeeded')]: '0+1x90',
        [build('rejected')]: '0x90',
      },
      at: '80m',
      summary: '50% of the builds of the last hour failed by a fault of the platform',
    },
    // Rejections are the doing of authors, and one fault in four is tried again.
    quiet: {
      series: { [build('faulted')]: '0+1x90', [build('succeeded')]: '0+2x90', [build('rejected')]: '0+1x90' },
      at: '80m',
    },
  },
  {
    alert: 'MoorageBuildQueueStuck',
    fires: {
      series: { [pipelines('queued')]: '3x30', [pipelines('running')]: '0x30' },
      at: '15m',
      summary: '3 builds wait, and none runs',
    },
    quiet: { series: { [pipelines('queued')]: '3x30', [pipelines('running')]: '1x30' }, at: '15m' },
  },
  {
    alert: 'MoorageBuildQueueLong',
    fires: {
      series: { moorage_pipelines_oldest_wait_seconds: '0+60x90' },
      at: '80m',
      summary: 'A build has waited in the queue for 1h 20m 0s',
    },
    quiet: { series: { moorage_pipelines_oldest_wait_seconds: '0+40x90' }, at: '80m' },
  },
  {
    alert: 'MoorageBuildsWithoutRoom',
    fires: {
      series: { [pipelines('without_room')]: '2x30' },
      at: '20m',
      summary: 'No node has room for 2 builds',
    },
    // A node was added after ten minutes.
    quiet: { series: { [pipelines('without_room')]: '2x10 0x20' }, at: '20m' },
  },
  {
    alert: 'MoorageOperatorWithoutLeader',
    fires: {
      series: { 'moorage_leader{instance="a"}': '1x5 0x20', 'moorage_leader{instance="b"}': '0x25' },
      at: '10m',
      summary: 'No replica of the operator leads',
    },
    // The other one took over.
    quiet: { series: { 'moorage_leader{instance="a"}': '1x5', 'moorage_leader{instance="b"}': '0x5 1x20' }, at: '15m' },
  },
  ...(
    [
      ['MoorageActivatorsAbsent', 'activator', 'No activator can be scraped'],
      ['MoorageRegistryProxyAbsent', 'registry-proxy', 'No registry proxy can be scraped'],
      ['MoorageWorkersAbsent', 'workers', 'No pod of the workers can be scraped'],
    ] as const
  ).map(([alert, component, summary]) => ({
    alert,
    fires: {
      series: {
        [`process_start_time_seconds{job="moorage-${component}",instance="a"}`]: '1x5 stale',
        [`process_start_time_seconds{job="moorage-${component}",instance="b"}`]: '1x5 stale',
        'process_start_time_seconds{job="moorage-api",instance="c"}': '1x25',
      },
      at: '16m',
      labels: { job: `moorage-${component}` },
      summary,
    },
    // One of two is enough.
    quiet: {
      series: {
        [`process_start_time_seconds{job="moorage-${component}",instance="a"}`]: '1x5 stale',
        [`process_start_time_seconds{job="moorage-${component}",instance="b"}`]: '1x25',
      },
      at: '16m',
    },
  })),
  {
    alert: 'MoorageReconcileErrors',
    fires: {
      series: { [reconciles('error')]: '0+30x60', [reconciles('done')]: '0+10x60' },
      at: '40m',
      labels: { controller: 'hosted-apps' },
      summary: '75% of the reconciles of hosted-apps end in an error',
    },
    quiet: { series: { [reconciles('error')]: '0+10x60', [reconciles('done')]: '0+30x60' }, at: '40m' },
  },
  {
    alert: 'MoorageProcessRestarting',
    fires: {
      series: { 'process_start_time_seconds{job="moorage-api",instance="a"}': '0+60x5 300x60' },
      at: '10m',
      labels: { job: 'moorage-api', instance: 'a' },
      summary: 'moorage-api (a) was started 5 times in half an hour',
    },
    ended: '40m',
    // A rollout starts it once; what others of the cluster do is not ours.
    quiet: {
      series: {
        'process_start_time_seconds{job="moorage-api",instance="a"}': '0x5 300x30',
        'process_start_time_seconds{job="other",instance="b"}': '0+60x30',
      },
      at: '10m',
    },
  },
  {
    alert: 'MoorageApiAbsent',
    fires: {
      series: { 'moorage_http_open_requests{instance="a"}': '0x5' },
      at: '20m',
      summary: 'No replica of the API can be scraped',
    },
    quiet: { series: { 'moorage_http_open_requests{instance="a"}': '0x30' }, at: '20m' },
  },
  {
    alert: 'MoorageApiErrors',
    fires: {
      series: { ...up('workers'), [requests('200')]: '0+540x30', [requests('500')]: '0+60x30' },
      at: '20m',
      summary: '10% of the requests to the API are answered with a status of 5xx',
    },
    // Problems of callers are no errors of ours, nor is an app that is down.
    quiet: {
      series: {
        [requests('200')]: '0+540x30',
        [requests('402')]: '0+300x30',
        [requests('500')]: '0+6x30',
        'moorage_http_request_duration_seconds_count{status="502",route="/api/projects/{slug}/call/{path}"}':
          '0+300x30',
      },
      at: '20m',
    },
  },
  {
    alert: 'MoorageRouterFailing',
    fires: {
      series: { [model('answered')]: '0+5x40', [model('broken')]: '0+4x40', [model('unreachable')]: '0+1x40' },
      at: '30m',
      summary: '50% of the model calls of the last ten minutes failed at the model router',
    },
    // Refused requests and spent credit are no failures of the router.
    quiet: {
      series: { [model('answered')]: '0+5x40', [model('request')]: '0+5x40', [model('broken')]: '0+1x40' },
      at: '30m',
    },
  },
  {
    alert: 'MoorageWorkersBusy',
    fires: {
      series: {
        ...up('workers'),
        'moorage_worker_tasks{state="waiting",instance="a"}': '2x30',
        'moorage_worker_tasks{state="waiting",instance="b"}': '1x30',
      },
      at: '15m',
      summary: '3 tasks of tools wait for a worker',
    },
    quiet: {
      series: {
        'moorage_worker_tasks{state="waiting"}': '2x5 0x3 2x5 0x20',
        'moorage_worker_tasks{state="running"}': '4x30',
      },
      at: '12m',
    },
  },
  {
    alert: 'MoorageDatabaseUnreachable',
    fires: {
      series: { 'moorage_database_up{instance="a"}': '1x10', 'moorage_database_up{instance="b"}': '0x10' },
      at: '5m',
      summary: 'A replica of the API does not reach the database',
    },
    // Absent: none is configured.
    quiet: { series: { 'moorage_database_up{instance="a"}': '1x10' }, at: '5m' },
  },
  {
    alert: 'MoorageLedgerImbalance',
    fires: {
      series: { moorage_ledger_audit_faults: '2x10' },
      at: '1m',
      summary: 'The audit of the ledger found 2 faults',
    },
    quiet: { series: { moorage_ledger_audit_faults: '0x10' }, at: '1m' },
  },
  {
    alert: 'MoorageLedgerAuditOverdue',
    fires: {
      series: { 'moorage_ledger_audit_timestamp_seconds{instance="a"}': '0x300' },
      at: '4h',
      summary: 'A replica of the API has not audited the ledger for 4h 0m 0s',
    },
    // Another replica was started after an hour, and has not audited it yet. A process without a database never does.
    quiet: {
      series: {
        'moorage_ledger_audit_timestamp_seconds{instance="a"}': '0x59 3600x300',
        'process_start_time_seconds{instance="a"}': '0x300',
        'moorage_database_up{instance="a"}': '1x300',
        'process_start_time_seconds{instance="b"}': '_x59 3600x300',
        'moorage_database_up{instance="b"}': '_x59 1x300',
        'process_start_time_seconds{instance="c"}': '0x300',
      },
      at: '3h50m',
    },
  },
  {
    alert: 'MoorageReceiptsBehind',
    fires: {
      series: { moorage_receipts_days_behind: '1x30', moorage_receipts_links_behind_seconds: '0x30' },
      at: '15m',
      summary: 'The signed record of the ledger is not continued',
    },
    quiet: {
      series: { moorage_receipts_days_behind: '1x5 0x30', moorage_receipts_links_behind_seconds: '400x40' },
      at: '15m',
    },
  },
  {
    alert: 'MoorageCostsPending',
    fires: {
      series: { moorage_ledger_oldest_pending_seconds: '0+60x90' },
      at: '45m',
      summary: 'The cost of a model call has been looked up for 45m 0s',
    },
    quiet: { series: { moorage_ledger_oldest_pending_seconds: '0+60x25 0+60x25 0+60x25' }, at: '45m' },
  },
  {
    alert: 'MoorageDailyLimitNear',
    fires: {
      series: { moorage_daily_limit_used_usd: '4.75x5', moorage_daily_limit_usd: '5x5' },
      at: '1m',
      summary: '95% of the daily limit of the platform key is used',
    },
    quiet: { series: { moorage_daily_limit_used_usd: '4.25x5', moorage_daily_limit_usd: '5x5' }, at: '1m' },
  },
  {
    alert: 'MoorageCallAboveHold',
    fires: {
      series: { moorage_model_calls_above_hold: '1x5' },
      at: '1m',
      summary: '1 model calls of today cost more than was reserved for them',
    },
    quiet: { series: { moorage_model_calls_above_hold: '0x5' }, at: '1m' },
  },
  {
    alert: 'MoorageReconciliationDifference',
    fires: {
      series: {
        'moorage_reconciliation_difference_events{comparison="router",instance="a"}': '0x5',
        'moorage_reconciliation_difference_usd{comparison="router",instance="a"}': '0.25x5',
        'moorage_reconciliation_difference_events{comparison="ledger",instance="a"}': '0x5',
        'moorage_reconciliation_difference_usd{comparison="ledger",instance="a"}': '0x5',
      },
      at: '1m',
      labels: { comparison: 'router' },
      summary: 'Records of the last days differ, unexplained: router by 250m',
    },
    quiet: {
      series: {
        'moorage_reconciliation_difference_events{comparison="router"}': '0x5',
        'moorage_reconciliation_difference_usd{comparison="router"}': '0x5',
      },
      at: '1m',
    },
  },
  {
    alert: 'MoorageReconciliationOverdue',
    fires: {
      series: { moorage_reconciliation_until_timestamp_seconds: '-98000x30' },
      at: '15m',
      summary: 'The last day that was reconciled ended 1d 3h 28m 20s ago',
    },
    // As it stands just before the next day is compared.
    quiet: { series: { moorage_reconciliation_until_timestamp_seconds: '-90000x30' }, at: '15m' },
  },
  {
    alert: 'MoorageGatewayUnreachable',
    fires: {
      series: { 'moorage_gateway_up{domain="apps.example.org"}': '1 0x30' },
      at: '15m',
      labels: { domain: 'apps.example.org' },
      summary: 'The gateway takes no TLS connection for apps.example.org',
    },
    // One that was restarted.
    quiet: { series: { 'moorage_gateway_up{domain="apps.example.org"}': '1 0x4 1x30' }, at: '15m' },
  },
  {
    alert: 'MoorageCertificateExpiring',
    fires: {
      series: { [certificate]: `${days(10)}x120` },
      at: '2h',
      labels: { domain: 'apps.example.org' },
      summary: 'The certificate for apps.example.org ends in 9d 22h 0m 0s',
    },
    quiet: { series: { [certificate]: `${days(30)}x120` }, at: '2h' },
  },
  {
    alert: 'MoorageCertificateEnding',
    fires: {
      series: { [certificate]: `${days(1)}x10` },
      at: '0m',
      labels: { domain: 'apps.example.org' },
      summary: 'The certificate for apps.example.org ends in 1d 0h 0m 0s',
    },
    quiet: { series: { [certificate]: `${days(3)}x10` }, at: '0m' },
  },
  {
    alert: 'MoorageMeterGap',
    fires: {
      series: { [unaccounted('lost')]: '0x30 60x60' },
      at: '1h',
      summary: '60 requests that a gateway counted were lost within an hour',
    },
    quiet: { series: { [unaccounted('lost')]: '60x200' }, at: '2h' },
  },
  {
    alert: 'MoorageMeterDifference',
    fires: {
      series: { [unaccounted('difference')]: '-2x30' },
      at: '15m',
      summary: 'Requests counted by gateways and recorded uses differ by 2, unexplained',
    },
    quiet: { series: { [unaccounted('difference')]: '0x30' }, at: '15m' },
  },
  {
    alert: 'MoorageNodeDiskFilling',
    fires: {
      series: { [disk('avail')]: '10x30', [disk('size')]: '100x30' },
      at: '15m',
      labels: { node: 'a', filesystem: 'images' },
      summary: '10% of the disk (images) of node a are free',
    },
    quiet: { series: { [disk('avail')]: '10x5 40x30', [disk('size')]: '100x40' }, at: '15m' },
  },
  {
    alert: 'MoorageBuildsWithoutSpace',
    fires: {
      series: { 'moorage_disk_short{job="moorage-operator"}': '1x30' },
      at: '15m',
      labels: { job: 'moorage-operator' },
      summary: 'No build is started, for lack of disk space',
    },
    quiet: { series: { 'moorage_disk_short{job="moorage-operator"}': '1x5 0x30' }, at: '15m' },
  },
  {
    alert: 'MoorageVolumeFilling',
    fires: {
      series: { [volume('avail')]: '5x30', [volume('size')]: '100x30' },
      at: '15m',
      labels: { claim: 'data-moorage-postgres-0' },
      summary: '5% of the volume data-moorage-postgres-0 are free',
    },
    quiet: { series: { [volume('avail')]: '50x30', [volume('size')]: '100x30' }, at: '15m' },
  },
];
