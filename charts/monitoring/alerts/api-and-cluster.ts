// Alerts about the API, the model router and the workers, and about what the cluster provides: the gateway, its
// certificate, and disks.
import { isAbsent, isDatabaseAway, suppressDuringCause, type AlertGroup } from '../alert.ts';

const buildCallsQuery = (matcher: string): string => `sum(increase(moorage_model_calls_total${matcher}[10m]))`;
const failed = buildCallsQuery('{outcome=~"unreachable|broken|timeout|interrupted|malformed"}');
/** Calls of apps are left out: an app that is down is the affair of its author. */
const buildRequestsQuery = (matcher = ''): string =>
  `sum(rate(moorage_http_request_duration_seconds_count{route!~"/api/projects/.*/call.*"${matcher}}[5m]))`;
const errors = buildRequestsQuery(',status=~"5.."');

export const api: AlertGroup = {
  name: 'moorage-api',
  title: 'API, model router and workers',
  alerts: [
    {
      name: 'MoorageApiAbsent',
      expr: 'absent(moorage_http_open_requests)',
      for: '5m',
      severity: 'critical',
      summary: 'No replica of the API can be scraped',
      meaning: 'The API is down, or Prometheus does not reach it. Apps that run go on serving by themselves.',
      runbook: [
        'See whether its pods run and are ready: `kubectl -n moorage-system get pods -l app.kubernetes.io/component=api`, then their logs.',
        'If they serve, Prometheus does not reach port 9090: see `network.metricsNamespaceLabels`.',
      ],
    },
    {
      name: 'MoorageApiErrors',
      expr: suppressDuringCause(
        `${isDatabaseAway} or ${isAbsent('workers')}`,
        `${errors} / ${buildRequestsQuery()} > 0.05 and ${errors} > 0.05`,
      ),
      for: '5m',
      severity: 'critical',
      summary: '{{ $value | humanizePercentage }} of the requests to the API are answered with a status of 5xx',
      meaning: 'Callers are refused through no fault of their own.',
      runbook: [
        'See which routes and which problems: dashboard *API and models*, or `sum by (type) (rate(moorage_http_problems_total[5m]))`.',
        '`ledger-unavailable`: the database is away. `router-unavailable`, `model-failed`, `model-timeout`: the model router fails. 500: read the log of the API for `err`, by the request id of the answer.',
      ],
    },
    {
      name: 'MoorageRouterFailing',
      expr: `${failed} / ${buildCallsQuery('')} > 0.25 and ${failed} > 3`,
      for: '5m',
      severity: 'critical',
      summary:
        '{{ $value | humanizePercentage }} of the model calls of the last ten minutes failed at the model router',
      meaning:
        'A quarter of the model calls or more fail by the router, or by the models behind it. Callers pay nothing for those.',
      runbook: [
        'See which models and how: `sum by (model, outcome) (increase(moorage_model_calls_total[10m]))`. One model alone: its provider is down.',
        '`unreachable` for all: see whether the router answers from the pod of the API, and whether `models.router` and its NetworkPolicy name the right address.',
        '`timeout`: raise `models.callSeconds`, or take slow models off the list.',
      ],
    },
    {
      name: 'MoorageWorkersBusy',
      expr: suppressDuringCause(isAbsent('workers'), 'sum(moorage_worker_tasks{state="waiting"}) > 0'),
      for: '10m',
      severity: 'warning',
      summary: '{{ $value }} tasks of tools wait for a worker',
      meaning: 'Tools that work on files (PDF, OCR, diagrams, code) answer slowly or with a timeout.',
      runbook: [
        'See which tools are called: dashboard *Tools and workers*.',
        'If it is real use, raise `workers.replicas`. If one caller floods, its limits hold the rest off: nothing to do.',
      ],
    },
  ],
};

const certificateSecondsLeft = 'min by (domain) (moorage_gateway_certificate_expiry_timestamp_seconds) - time()';
const buildFreeShareQuery = (of: 'node_filesystem' | 'volume'): string =>
  `moorage_${of}_avail_bytes / moorage_${of}_size_bytes`;

const renew = [
  'See who renews it: with cert-manager, `kubectl get certificate,order,challenge -A` and the events of the Certificate in the namespace of the Gateway.',
  'The Secret is `gateway.tlsSecretName`. The certificate must cover the domain and all names below it (`*.`), so an ACME issuer needs the DNS-01 challenge.',
  'If the Secret is new and the alert stays, the gateway still serves the old one: restart it.',
];

export const cluster: AlertGroup = {
  name: 'moorage-cluster',
  title: 'Gateway, certificate and disks',
  alerts: [
    {
      name: 'MoorageGatewayUnreachable',
      expr: 'max by (domain) (moorage_gateway_up) == 0',
      for: '10m',
      severity: 'critical',
      summary: 'The gateway takes no TLS connection for {{ $labels.domain }}',
      meaning:
        'Visitors probably reach no app. New apps are not called live, since they are probed through the gateway.',
      runbook: [
        'See whether the pods of the gateway run, and what the Gateway says: `kubectl get gateway -A`, `kubectl describe gateway`.',
        'Try it from a pod of the operator at `gateway.probeUrl`. If visitors reach apps and the operator does not, `gateway.probeUrl` or a NetworkPolicy is wrong.',
      ],
    },
    {
      name: 'MoorageCertificateExpiring',
      expr: `${certificateSecondsLeft} < 14 * 86400`,
      for: '1h',
      severity: 'warning',
      summary: 'The certificate for {{ $labels.domain }} ends in {{ $value | humanizeDuration }}',
      meaning: 'It should have been renewed by now. Once it ends, browsers and agents refuse every app.',
      runbook: renew,
    },
    {
      name: 'MoorageCertificateEnding',
      expr: `${certificateSecondsLeft} < 2 * 86400`,
      for: '0m',
      severity: 'critical',
      summary: 'The certificate for {{ $labels.domain }} ends in {{ $value | humanizeDuration }}',
      meaning: 'Once it ends, browsers and agents refuse every app. A negative time: it has ended.',
      runbook: renew,
    },
    {
      name: 'MoorageNodeDiskFilling',
      expr: `${buildFreeShareQuery('node_filesystem')} < 0.2`,
      for: '10m',
      severity: 'warning',
      summary:
        '{{ $value | humanizePercentage }} of the disk ({{ $labels.filesystem }}) of node {{ $labels.node }} are free',
      meaning:
        'Kubelets usually remove images at 15 % and evict pods at 10 %: builds fail first, then apps restart elsewhere.',
      runbook: [
        'See what takes the space on the node: `du` below `/var/lib/containerd`, `/var/lib/kubelet` and the folder of local volumes.',
        'Lower `builds.maximum.disk`, `builds.concurrency` or the disks of apps, or give the node a larger disk.',
        'The one-machine node keeps the registry on the same disk (docs/how-to/manage-registry-space.md).',
      ],
    },
    {
      name: 'MoorageBuildsWithoutSpace',
      expr: 'max by (job) (moorage_disk_short) == 1',
      for: '10m',
      severity: 'critical',
      summary: 'No build is started, for lack of disk space',
      meaning: 'A node or the registry has less free than `builds.keepFree`. Apps that serve keep serving.',
      runbook: [
        '`npm run status`, or the condition of a queued app (`kubectl -n moorage-apps describe happ`), says which disk it is, and how much is free.',
        'Remove apps that nobody uses, lower `builds.imageLimit` or `builds.cacheLimit`, or enlarge the disk.',
      ],
    },
    {
      name: 'MoorageVolumeFilling',
      expr: `${buildFreeShareQuery('volume')} < 0.15`,
      for: '10m',
      severity: 'critical',
      summary: '{{ $value | humanizePercentage }} of the volume {{ $labels.claim }} are free',
      meaning:
        'It belongs to the installation itself. PostgreSQL stops at a full disk, and with it all calls that are charged.',
      runbook: [
        'Enlarge the claim, if its StorageClass allows that: `kubectl -n moorage-system edit pvc`.',
        'Or keep single uses for fewer days (`database.keepDays`), then vacuum.',
      ],
    },
  ],
};
