// Alerts about builds and their queue, about the operator, and about processes that end again and again.
import { isAbsent, suppressDuringCause, type AlertGroup, type Alert } from '../alert.ts';

const buildEndedBuildsQuery = (results: string): string =>
  `sum(increase(moorage_builds_total{result=~"${results}"}[1h]))`;

export const builds: AlertGroup = {
  name: 'moorage-builds',
  title: 'Builds',
  alerts: [
    {
      name: 'MoorageBuildsFailing',
      expr: suppressDuringCause(
        isAbsent('registry-proxy'),
        `${buildEndedBuildsQuery('faulted')} / ${buildEndedBuildsQuery('succeeded|rejected|faulted')} > 0.3 and ${buildEndedBuildsQuery('faulted')} >= 3`,
      ),
      for: '5m',
      severity: 'warning',
      summary: '{{ $value | humanizePercentage }} of the builds of the last hour failed by a fault of the platform',
      meaning:
        'Builds end by something that is not the doing of their authors. Each is tried again after a while, up to a limit; apps that are live stay live.',
      runbook: [
        'See what the pipelines say: `kubectl get happ -A -o wide` and `kubectl -n moorage-builds get jobs,pods`. `.status.history` of a HostedApp has the message of each fault.',
        'If the images cannot be pushed or pulled, look at the registry proxy (`kubectl -n moorage-system logs deploy/moorage-registry-proxy`) and at the registry: a full disk and wrong credentials are the usual causes.',
        'If pods are evicted or run out of memory, give builds more room (`builds.maximum`, `builds.concurrency`).',
        'Once the cause is fixed, have a HostedApp built again by a new value of its annotation `moorage.dev/rebuild`.',
      ],
    },
    {
      name: 'MoorageBuildQueueStuck',
      expr: 'max(moorage_pipelines{state="queued"}) > 0 and max(moorage_pipelines{state="running"}) == 0',
      for: '10m',
      severity: 'critical',
      summary: '{{ $value }} builds wait, and none runs',
      meaning: 'Submitted apps and new commits are not built at all.',
      runbook: [
        'See whether an operator leads (`moorage_leader`); without a leader nothing is started.',
        'Read its log for `build-queue`: `kubectl -n moorage-system logs deploy/moorage-operator | grep build-queue`.',
        'See whether the quota of the builds namespace is used up: `kubectl -n moorage-builds describe resourcequota`.',
      ],
    },
    {
      name: 'MoorageBuildQueueLong',
      expr: 'max(moorage_pipelines_oldest_wait_seconds) > 3600',
      for: '10m',
      severity: 'warning',
      summary: 'A build has waited in the queue for {{ $value | humanizeDuration }}',
      meaning: 'Builds run, but more arrive than can be done. Authors wait long for their apps.',
      runbook: [
        'See who submits: `kubectl -n moorage-builds get jobs` and the label `moorage.dev/network` of the HostedApps. One submitter has `builds.perSubmitter` slots at once.',
        'If the nodes have room, raise `builds.concurrency`; else add nodes.',
      ],
    },
    {
      name: 'MoorageBuildsWithoutRoom',
      expr: 'max(moorage_pipelines{state="without_room"}) > 0',
      for: '15m',
      severity: 'warning',
      summary: 'No node has room for {{ $value }} builds',
      meaning: 'These builds have their turn, and the scheduler finds no node for their pods.',
      runbook: [
        'Read what the scheduler says: `kubectl -n moorage-builds describe pods`. The condition `Built` of the HostedApp repeats it.',
        'Add a node, lower `builds.maximum`, or lower `apps.quota` to leave builds more room.',
      ],
    },
  ],
};

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
