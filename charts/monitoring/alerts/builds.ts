// Alerts about builds and their queue.
import { isAbsent, suppressDuringCause, type AlertGroup } from '../alert.ts';

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
        'Add a node, lower `builds.maximum`, or leave builds more room beside apps (`apps.quota`).',
      ],
    },
  ],
};
