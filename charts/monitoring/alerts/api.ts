// Alerts about the API, the model router and the workers.
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
