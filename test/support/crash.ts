// What the operator finds out about an app that has crashed, from the end of its log.
import type { Pod } from '../../controller/objects/kinds.ts';
import type { Rejection } from '../../controller/reconcile/outcome.ts';
import { diagnose } from '../../controller/steps/deploy/pods.ts';

const limits = [
  {
    ...{ name: 'app', isNamed: false, port: 8080, startupMs: 120_000, startupTime: '2m', healthPath: undefined },
    ...{ memory: '512Mi', disk: '1Gi' },
  },
];

interface Crash {
  /** The last lines. */
  readonly log: string;
  readonly exitCode: number;
  /** Why Kubernetes says that the container ended. */
  readonly reason?: string;
}

/** Diagnoses an app that has exited and was restarted twice. */
export function diagnoseCrash({ log, exitCode, reason = 'Error' }: Crash): Rejection | undefined {
  const at = '2026-01-01T00:00:00Z';
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'app', creationTimestamp: at, uid: '1', resourceVersion: '1' },
    status: {
      containerStatuses: [
        {
          name: 'app',
          ready: false,
          started: false,
          restartCount: 2,
          state: { waiting: { reason: 'CrashLoopBackOff' } },
          lastState: { terminated: { exitCode, reason, message: log, startedAt: at, finishedAt: at } },
        },
      ],
    },
  };
  return diagnose(pod, limits, new Date(at));
}
