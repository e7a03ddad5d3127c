// Alerts about the operator, and about processes that end again and again.
import { isAbsent, type Alert, type AlertGroup } from '../alert.ts';

/** Other workloads that the API and the operator cannot do without. */
function createAbsenceAlert(component: string, name: string, title: string, meaning: string): Alert {
  return {
    name,
    expr: isAbsent(component),
    for: '5m',
    severity: 'critical',
    summary: `No ${title} can be scraped`,
    meaning,
    runbook: [
      `See whether its pods run and are ready: \`npm run status\`, or \`kubectl -n moorage-system get deploy moorage-${component}\`, then its events and the log. Scaled to zero by hand: \`kubectl -n moorage-system scale deploy moorage-${component} --replicas=2\`.`,
      'If they serve, Prometheus does not reach port 9090: see `network.metricsNamespaceLabels`.',
    ],
  };
}

export const operator: AlertGroup = {
  name: 'moorage-operator',
  title: 'Operator and processes',
  alerts: [
    {
      name: 'MoorageOperatorWithoutLeader',
      expr: '(max(moorage_leader) or vector(0)) == 0',
      for: '2m',
      severity: 'critical',
      summary: 'No replica of the operator leads',
      meaning:
        'Apps that run go on serving, but nothing new is built, started, routed or repaired. It also fires if the operator cannot be scraped.',
      runbook: [
        'See whether its pods run: `kubectl -n moorage-system get pods -l app.kubernetes.io/component=operator`.',
        'If they do, read why none takes the lease: `kubectl -n moorage-system logs deploy/moorage-operator`, `kubectl -n moorage-system get lease moorage-operator -o yaml`.',
        'If all is well there, Prometheus does not reach port 9090: see `network.metricsNamespaceLabels`.',
      ],
    },
    createAbsenceAlert(
      'activator',
      'MoorageActivatorsAbsent',
      'activator',
      'Apps that may rest are not reached: the gateway answers for them with 503, also while they are awake.',
    ),
    createAbsenceAlert(
      'registry-proxy',
      'MoorageRegistryProxyAbsent',
      'registry proxy',
      'Images are neither pushed nor removed, so every build fails at its end. Apps that serve keep serving.',
    ),
    createAbsenceAlert(
      'workers',
      'MoorageWorkersAbsent',
      'pod of the workers',
      'Tools that work on files (PDF, OCR, diagrams, code) answer 503.',
    ),
    {
      name: 'MoorageReconcileErrors',
      expr: 'sum by (controller) (rate(moorage_reconcile_total{result="error"}[10m])) / sum by (controller) (rate(moorage_reconcile_total[10m])) > 0.5',
      for: '15m',
      severity: 'warning',
      summary: '{{ $value | humanizePercentage }} of the reconciles of {{ $labels.controller }} end in an error',
      meaning: 'The operator tries the same again and again. Apps that it concerns stay as they are.',
      runbook: [
        'Read the errors: `kubectl -n moorage-system logs deploy/moorage-operator`. A refusal (403) means that its rights or an admission policy changed: upgrade the release again.',
        'If the API server is slow or away, that is the cause: look there first.',
      ],
    },
    {
      name: 'MoorageProcessRestarting',
      expr: 'changes(process_start_time_seconds{job=~"moorage-.*"}[30m]) > 3',
      for: '0m',
      severity: 'warning',
      summary: '{{ $labels.job }} ({{ $labels.instance }}) was started {{ $value }} times in half an hour',
      meaning: 'A process ends again and again; calls that it had in progress fail.',
      runbook: [
        'Read why it ended: `kubectl -n moorage-system describe pods` (OOMKilled: raise the memory limit of that component) and `kubectl -n moorage-system logs --previous POD`.',
      ],
    },
  ],
};
