// Situations of an app, and what the reconciler says in each.
import type { HostedAppStatus } from '../../../../crds/hosted-app.ts';
import type { Snapshot, ProbeResult } from '../../../../controller/reconcile/snapshot.ts';
import {
  app,
  formatTime,
  createBuiltStatus,
  createCloneEnd,
  complete,
  createDeployed,
  createEvictedPod,
  digest,
  createEndedContainer,
  first,
  job,
  createFailedStatus,
  createLiveStatus,
  createSnapshot,
  pipelinePod,
  createPolledStatus,
  createBuildEnd,
  reviewed,
  createRunningContainer,
  decideStatus,
  second,
  config,
} from '../../../support/operator/scenario.ts';

interface Scenario {
  readonly name: string;
  readonly snapshot: Snapshot;
  readonly conditions: readonly string[];
  readonly phase: HostedAppStatus['phase'];
  readonly public: 'live' | 'in_pipeline' | 'rejected';
  readonly asks: readonly string[];
  readonly served?: string;
  readonly rule?: string;
}

const upkeep = ['apply NetworkPolicy', 'apply Service', 'apply Deployment', 'apply HTTPRoute'];

const unreached = {
  pipeline: ['Reviewed=Unknown NotReached', 'Built=Unknown NotReached'],
  run: ['Deployed=Unknown NotReached', 'Routed=Unknown NotReached'],
};

const resolved = 'SourceResolved=True Resolved';

const standing = [resolved, 'Reviewed=True ReviewPassed', 'Built=True Built'];

const serving = ['Deployed=True Available', 'Routed=True Routed'];

const conditions = (...lines: (string | readonly string[])[]): string[] => lines.flat();

const unreachable = {
  ok: false,
  final: false,
  reason: 'RepositoryUnreachable',
  rule: 'source/repository-unreachable',
  message: 'No answer.',
  fix: 'Wait.',
} as const;

const unreachedSince = {
  type: 'SourceResolved',
  status: 'False',
  reason: 'RepositoryUnreachable',
  message: 'None.',
} as const;

const missing = {
  ok: false,
  final: true,
  reason: 'RepositoryNotFound',
  rule: 'source/repository-not-found',
  message: 'None.',
  fix: 'Correct it.',
} as const;

const finding = {
  rule: 'secrets/aws-access-token',
  severity: 'error',
  file: 'app.py',
  line: 7,
  message: 'A key.',
  fix: 'Remove it.',
} as const;

const refusal = { rejected: true, findings: [finding], log: 'tail' };

const [one, two] = [job(first), job(second, { number: 2 })];

const queued = job(first, { suspend: true });

const done = job(first, complete);

const refusedByReview = job(first, createFailedStatus('PodFailurePolicy'));

const oldLive = createLiveStatus(first);

/** The first commit serves, and the second is built. */
const newerBuilt = createLiveStatus(first, { ...createBuiltStatus(second), phase: 'Deploying' });

function besideOlderPod(): Partial<Snapshot> {
  const { pods: older = [] } = createDeployed(app({}, createLiveStatus(first)));
  const { pods = [], ...seen } = createDeployed(app({}, newerBuilt));
  return { ...seen, pods: [...older, ...pods] };
}

export const scenarios: readonly Scenario[] = [
  {
    name: 'a new app asks its repository',
    snapshot: createSnapshot(app()),
    phase: 'Pending',
    public: 'in_pipeline',
    asks: ['poll'],
    conditions: conditions(
      'Ready=Unknown Resolving',
      'Reconciling=True Resolving',
      'SourceResolved=Unknown Resolving',
      unreached.pipeline,
      unreached.run,
    ),
  },
  {
    name: 'the repository is missing',
    snapshot: createSnapshot(app(), { poll: missing }),
    phase: 'Rejected',
    public: 'rejected',
    asks: [],
    rule: 'source/repository-not-found',
    conditions: conditions(
      'Ready=False RepositoryNotFound',
      'Stalled=True RepositoryNotFound',
      'SourceResolved=False RepositoryNotFound',
      unreached.pipeline,
      unreached.run,
    ),
  },
  {
    name: 'the repository cannot be reached at first',
    snapshot: createSnapshot(app(), { poll: unreachable }),
    phase: 'Pending',
    public: 'in_pipeline',
    asks: [],
    conditions: conditions(
      'Ready=False RepositoryUnreachable',
      'Reconciling=True RepositoryUnreachable',
      'SourceResolved=False RepositoryUnreachable',
      unreached.pipeline,
      unreached.run,
    ),
  },
  {
    name: 'the server has not been reached for an hour',
    snapshot: createSnapshot(app({}, { conditions: [{ ...unreachedSince, lastTransitionTime: formatTime(-3600) }] }), {
      poll: unreachable,
    }),
    phase: 'Rejected',
    public: 'rejected',
    rule: 'source/repository-unreachable',
    asks: [],
    conditions: conditions(
      'Ready=False RepositoryUnreachable',
      'Stalled=True RepositoryUnreachable',
      'SourceResolved=False RepositoryUnreachable',
      unreached.pipeline,
      unreached.run,
    ),
  },
  {
    name: 'the server has not been reached for less than an hour',
    snapshot: createSnapshot(app({}, { conditions: [{ ...unreachedSince, lastTransitionTime: formatTime(-3590) }] }), {
      poll: unreachable,
    }),
    phase: 'Pending',
    public: 'in_pipeline',
    asks: [],
    conditions: conditions(
      'Ready=False RepositoryUnreachable',
      'Reconciling=True RepositoryUnreachable',
      'SourceResolved=False RepositoryUnreachable',
      unreached.pipeline,
      unreached.run,
    ),
  },
  {
    name: 'a commit is found',
    snapshot: createSnapshot(app(), { poll: { ok: true, commit: first, reference: 'refs/heads/main' } }),
    phase: 'Queued',
    public: 'in_pipeline',
    asks: ['create Job'],
    conditions: conditions(
      'Ready=Unknown Queued',
      'Reconciling=True Queued',
      resolved,
      'Reviewed=Unknown Queued',
      'Built=Unknown NotReached',
      unreached.run,
    ),
  },
  {
    name: 'the Job waits for its turn',
    snapshot: createSnapshot(app({}, createPolledStatus(first)), {
      jobs: [queued],
      queue: ['other', queued.metadata.name],
    }),
    phase: 'Queued',
    public: 'in_pipeline',
    asks: [],
    conditions: conditions(
      'Ready=Unknown Queued',
      'Reconciling=True Queued',
      resolved,
      'Reviewed=Unknown Queued',
      'Built=Unknown NotReached',
      unreached.run,
    ),
  },
  {
    name: 'it is being cloned',
    snapshot: createSnapshot(app({}, createPolledStatus(first)), {
      jobs: [one],
      pipelinePods: [pipelinePod(one, [createRunningContainer('clone')])],
    }),
    phase: 'Cloning',
    public: 'in_pipeline',
    asks: [],
    conditions: conditions(
      'Ready=Unknown Cloning',
      'Reconciling=True Cloning',
      resolved,
      'Reviewed=Unknown Cloning',
      'Built=Unknown NotReached',
      unreached.run,
    ),
  },
  {
    name: 'it is being reviewed',
    snapshot: createSnapshot(app({}, createPolledStatus(first)), {
      jobs: [one],
      pipelinePods: [pipelinePod(one, [createCloneEnd(first), createRunningContainer('review')])],
    }),
    phase: 'Reviewing',
    public: 'in_pipeline',
    asks: [],
    conditions: conditions(
      'Ready=Unknown Reviewing',
      'Reconciling=True Reviewing',
      resolved,
      'Reviewed=Unknown Reviewing',
      'Built=Unknown NotReached',
      unreached.run,
    ),
  },
  {
    name: 'it is being built',
    snapshot: createSnapshot(app({}, createPolledStatus(first)), {
      jobs: [one],
      pipelinePods: [pipelinePod(one, [createCloneEnd(first), reviewed, createRunningContainer('build')])],
    }),
    phase: 'Building',
    public: 'in_pipeline',
    asks: [],
    conditions: conditions(
      'Ready=Unknown Building',
      'Reconciling=True Building',
      resolved,
      'Reviewed=True ReviewPassed',
      'Built=Unknown Building',
      unreached.run,
    ),
  },
  {
    name: 'the review refuses it',
    snapshot: createSnapshot(app({}, createPolledStatus(first)), {
      jobs: [refusedByReview],
      pipelinePods: [
        pipelinePod(refusedByReview, [createCloneEnd(first), createEndedContainer('review', 42, refusal)]),
      ],
    }),
    phase: 'Rejected',
    public: 'rejected',
    asks: [],
    rule: 'secrets/aws-access-token',
    conditions: conditions(
      'Ready=False ReviewRejected',
      'Stalled=True ReviewRejected',
      resolved,
      'Reviewed=False ReviewRejected',
      'Built=Unknown NotReached',
      unreached.run,
    ),
  },
  {
    name: 'the build takes too long',
    snapshot: createSnapshot(app({}, createPolledStatus(first)), {
      jobs: [job(first, createFailedStatus('DeadlineExceeded'))],
    }),
    phase: 'Rejected',
    public: 'rejected',
    asks: [],
    rule: 'build/timeout',
    conditions: conditions(
      'Ready=False BuildTimedOut',
      'Stalled=True BuildTimedOut',
      resolved,
      'Reviewed=Unknown NotReached',
      'Built=False BuildTimedOut',
      unreached.run,
    ),
  },
  {
    name: 'the platform fails',
    snapshot: createSnapshot(app({}, createPolledStatus(first)), {
      jobs: [job(first, createFailedStatus('BackoffLimitExceeded'))],
    }),
    phase: 'Queued',
    public: 'in_pipeline',
    asks: [],
    conditions: conditions(
      'Ready=False PipelineFaulted',
      'Reconciling=True PipelineFaulted',
      resolved,
      'Reviewed=Unknown NotReached',
      'Built=False PipelineFaulted',
      unreached.run,
    ),
  },
  {
    name: 'the image is there',
    snapshot: createSnapshot(app({}, createPolledStatus(first)), {
      jobs: [done],
      pipelinePods: [
        pipelinePod(done, [createCloneEnd(first), reviewed, createBuildEnd(digest('a'))], { phase: 'Succeeded' }),
      ],
    }),
    phase: 'Deploying',
    public: 'in_pipeline',
    asks: upkeep,
    conditions: conditions(
      'Ready=Unknown RollingOut',
      'Reconciling=True RollingOut',
      standing,
      'Deployed=Unknown RollingOut',
      'Routed=Unknown RoutePending',
    ),
  },
  {
    name: 'it starts',
    snapshot: createSnapshot(
      app({}, createBuiltStatus(first)),
      createDeployed(
        app({}, createBuiltStatus(first)),
        { replicas: 1, updatedReplicas: 1 },
        { state: { running: { startedAt: formatTime(-5) } } },
      ),
    ),
    phase: 'Deploying',
    public: 'in_pipeline',
    asks: upkeep,
    conditions: conditions(
      'Ready=Unknown RollingOut',
      'Reconciling=True RollingOut',
      standing,
      'Deployed=Unknown RollingOut',
      'Routed=True Routed',
    ),
  },
  {
    name: 'it crashes',
    rule: 'run/crashed',
    phase: 'Rejected',
    public: 'rejected',
    asks: upkeep,
    snapshot: createSnapshot(
      app({}, createBuiltStatus(first)),
      createDeployed(
        app({}, createBuiltStatus(first)),
        { replicas: 1, updatedReplicas: 1 },
        {
          restartCount: 3,
          state: { waiting: { reason: 'CrashLoopBackOff' } },
          lastState: {
            terminated: {
              exitCode: 1,
              reason: 'Error',
              message: 'KeyError',
              startedAt: formatTime(-9),
              finishedAt: formatTime(-8),
            },
          },
        },
      ),
    ),
    conditions: conditions(
      'Ready=False AppCrashed',
      'Stalled=True AppCrashed',
      standing,
      'Deployed=False AppCrashed',
      'Routed=True Routed',
    ),
  },
  {
    name: 'it never listens',
    rule: 'run/never-listened',
    phase: 'Rejected',
    public: 'rejected',
    asks: upkeep,
    snapshot: createSnapshot(
      app({}, createBuiltStatus(first)),
      createDeployed(
        app({}, createBuiltStatus(first)),
        { replicas: 1, updatedReplicas: 1 },
        { started: false, state: { running: { startedAt: formatTime(-121) } } },
      ),
    ),
    conditions: conditions(
      'Ready=False AppNeverListened',
      'Stalled=True AppNeverListened',
      standing,
      'Deployed=False AppNeverListened',
      'Routed=True Routed',
    ),
  },
  {
    name: 'it names a user that it does not have',
    rule: 'run/no-such-user',
    phase: 'Rejected',
    public: 'rejected',
    asks: upkeep,
    snapshot: createSnapshot(
      app({}, createBuiltStatus(first)),
      createDeployed(
        app({}, createBuiltStatus(first)),
        { replicas: 1, updatedReplicas: 1 },
        {
          state: {
            waiting: {
              reason: 'CreateContainerError',
              message: 'failed to create containerd container: mount callback failed on /var/lib/x: no users found',
            },
          },
        },
      ),
    ),
    conditions: conditions(
      'Ready=False AppMisconfigured',
      'Stalled=True AppMisconfigured',
      standing,
      'Deployed=False AppMisconfigured',
      'Routed=True Routed',
    ),
  },
  ...[
    {
      name: 'its container cannot be made for a reason of the node',
      waiting: { reason: 'CreateContainerError', message: 'context deadline exceeded' },
    },
    {
      name: 'the kubelet has not read its Secret yet',
      waiting: {
        reason: 'CreateContainerConfigError',
        message: 'failed to sync secret cache: timed out waiting for the condition',
      },
    },
  ].map(({ name, waiting }) => ({
    name,
    phase: 'Deploying' as const,
    public: 'in_pipeline' as const,
    asks: upkeep,
    snapshot: createSnapshot(
      app({}, createBuiltStatus(first)),
      createDeployed(app({}, createBuiltStatus(first)), { replicas: 1, updatedReplicas: 1 }, { state: { waiting } }),
    ),
    conditions: conditions(
      'Ready=Unknown RollingOut',
      'Reconciling=True RollingOut',
      standing,
      'Deployed=Unknown RollingOut',
      'Routed=True Routed',
    ),
  })),
  {
    name: 'it was stopped for its disk, and the next one starts',
    rule: 'run/out-of-disk',
    phase: 'Rejected',
    public: 'rejected',
    asks: upkeep,
    snapshot: createSnapshot(
      app({}, createBuiltStatus(first)),
      createEvictedPod(
        app({}, createBuiltStatus(first)),
        1,
        60,
        { replicas: 1, updatedReplicas: 1 },
        { state: { running: { startedAt: formatTime(-1) } } },
      ),
    ),
    conditions: conditions(
      'Ready=False AppOutOfDisk',
      'Stalled=True AppOutOfDisk',
      standing,
      'Deployed=False AppOutOfDisk',
      'Routed=True Routed',
    ),
  },
  {
    name: 'it is stopped for its disk the second time, and serves in between',
    rule: 'run/out-of-disk',
    phase: 'Rejected',
    public: 'live',
    asks: upkeep,
    served: first,
    snapshot: createSnapshot(
      app({}, createLiveStatus(first)),
      createEvictedPod(app({}, createLiveStatus(first)), 2, 60),
    ),
    conditions: conditions(
      'Ready=False StoppedForDisk',
      'Stalled=True StoppedForDisk',
      standing,
      'Deployed=False StoppedForDisk',
      'Routed=True Routed',
    ),
  },
  {
    name: 'it was stopped for its disk and no replica runs',
    rule: 'run/out-of-disk',
    phase: 'Rejected',
    public: 'rejected',
    asks: upkeep,
    snapshot: createSnapshot(app({}, createLiveStatus(first)), haltedForDisk()),
    conditions: conditions(
      'Ready=False StoppedForDisk',
      'Stalled=True StoppedForDisk',
      standing,
      'Deployed=False StoppedForDisk',
      'Routed=True Routed',
    ),
  },
  {
    name: 'it was stopped for its disk long ago',
    phase: 'Live',
    public: 'live',
    asks: upkeep,
    served: first,
    snapshot: createSnapshot(
      app({}, createLiveStatus(first)),
      createEvictedPod(app({}, createLiveStatus(first)), 1, 3_600),
    ),
    conditions: conditions('Ready=True Live', standing, 'Deployed=True Available', 'Routed=True Routed'),
  },
  {
    name: 'it needs too much memory',
    rule: 'run/out-of-memory',
    phase: 'Rejected',
    public: 'rejected',
    asks: upkeep,
    snapshot: createSnapshot(
      app({}, createBuiltStatus(first)),
      createDeployed(
        app({}, createBuiltStatus(first)),
        { replicas: 1, updatedReplicas: 1 },
        { restartCount: 1, lastState: { terminated: { exitCode: 137, reason: 'OOMKilled' } } },
      ),
    ),
    conditions: conditions(
      'Ready=False AppOutOfMemory',
      'Stalled=True AppOutOfMemory',
      standing,
      'Deployed=False AppOutOfMemory',
      'Routed=True Routed',
    ),
  },
  {
    name: 'a Secret is missing',
    rule: 'run/misconfigured',
    phase: 'Rejected',
    public: 'rejected',
    asks: upkeep,
    snapshot: createSnapshot(
      app({}, createBuiltStatus(first)),
      createDeployed(
        app({}, createBuiltStatus(first)),
        { replicas: 1, updatedReplicas: 1 },
        { state: { waiting: { reason: 'CreateContainerConfigError', message: 'secret "x" not found' } } },
      ),
    ),
    conditions: conditions(
      'Ready=False AppMisconfigured',
      'Stalled=True AppMisconfigured',
      standing,
      'Deployed=False AppMisconfigured',
      'Routed=True Routed',
    ),
  },
  {
    name: 'the cluster refuses its pods',
    phase: 'Deploying',
    public: 'in_pipeline',
    asks: upkeep,
    snapshot: createSnapshot(
      app({}, createBuiltStatus(first)),
      createDeployed(app({}, createBuiltStatus(first)), {
        conditions: [{ type: 'ReplicaFailure', status: 'True', message: 'quota' }],
      }),
    ),
    conditions: conditions(
      'Ready=False ReplicaRefused',
      'Reconciling=True ReplicaRefused',
      standing,
      'Deployed=False ReplicaRefused',
      'Routed=True Routed',
    ),
  },
  {
    name: 'the quota of apps is used up',
    phase: 'Deploying',
    public: 'in_pipeline',
    asks: upkeep,
    snapshot: createSnapshot(
      app({}, createBuiltStatus(first)),
      createDeployed(app({}, createBuiltStatus(first)), {
        conditions: [{ type: 'ReplicaFailure', status: 'True', message: 'forbidden: exceeded quota: moorage' }],
      }),
    ),
    conditions: conditions(
      'Ready=Unknown WaitingForRoom',
      'Reconciling=True WaitingForRoom',
      standing,
      'Deployed=Unknown WaitingForRoom',
      'Routed=True Routed',
    ),
  },
  {
    name: 'no node has room for its pipeline, which has its turn',
    phase: 'Queued',
    public: 'in_pipeline',
    asks: [],
    snapshot: createSnapshot(app({}, createPolledStatus(first)), {
      jobs: [job(first)],
      pipelinePods: [
        pipelinePod(job(first), [], {
          phase: 'Pending',
          conditions: [
            {
              type: 'PodScheduled',
              status: 'False',
              message: '0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available.',
            },
          ],
        }),
      ],
    }),
    conditions: conditions(
      'Ready=Unknown WaitingForRoom',
      'Reconciling=True WaitingForRoom',
      resolved,
      'Reviewed=Unknown WaitingForRoom',
      'Built=Unknown NotReached',
      unreached.run,
    ),
  },
  {
    name: 'its pipeline waits for disk space, with another release serving',
    phase: 'Queued',
    public: 'live',
    asks: upkeep,
    served: first,
    snapshot: createSnapshot(app({}, createLiveStatus(first, createPolledStatus(second))), {
      ...createDeployed(app({}, createLiveStatus(first))),
      shortage: 'the node has 2 GiB free, and 5 GiB are kept free. Delete something.',
      jobs: [job(second, { suspend: true, number: 2 })],
    }),
    conditions: conditions(
      'Ready=Unknown WaitingForSpace',
      'Reconciling=True WaitingForSpace',
      resolved,
      'Reviewed=Unknown WaitingForSpace',
      'Built=Unknown NotReached',
      serving,
    ),
  },
  {
    name: 'the gateway has not answered',
    phase: 'Routing',
    public: 'in_pipeline',
    asks: upkeep,
    snapshot: createSnapshot(
      app({}, createBuiltStatus(first)),
      withoutVerdict(createDeployed(app({}, createBuiltStatus(first)))),
    ),
    conditions: conditions(
      'Ready=Unknown RoutePending',
      'Reconciling=True RoutePending',
      standing,
      'Deployed=True Available',
      'Routed=Unknown RoutePending',
    ),
  },
  {
    name: 'it is live, and the gateway neither confirms its new route nor answers',
    phase: 'Failing',
    public: 'live',
    asks: upkeep,
    served: first,
    snapshot: {
      ...probed({ responds: false, detail: 'the request failed: connect ECONNREFUSED' }),
      ...withoutVerdict(createDeployed(app({}, oldLive))),
      app: app({}, oldLive),
    },
    conditions: conditions(
      'Ready=False Unreachable',
      'Reconciling=True Unreachable',
      standing,
      'Deployed=True Available',
      'Routed=Unknown RoutePending',
    ),
  },
  {
    name: 'it is live',
    phase: 'Live',
    public: 'live',
    asks: upkeep,
    served: first,
    snapshot: createSnapshot(app({}, createBuiltStatus(first)), createDeployed(app({}, createBuiltStatus(first)))),
    conditions: conditions('Ready=True Live', standing, serving),
  },
  {
    name: 'it is rolled out, and the end of the last older pod is not seen yet',
    phase: 'Routing',
    public: 'live',
    asks: upkeep,
    served: first,
    snapshot: createSnapshot(app({}, newerBuilt), besideOlderPod()),
    conditions: conditions('Ready=Unknown Confirming', 'Reconciling=True Confirming', standing, serving),
  },
  {
    name: 'it is asked through the gateway first',
    phase: 'Routing',
    public: 'in_pipeline',
    asks: [...upkeep, 'probe'],
    snapshot: probed(undefined),
    conditions: conditions('Ready=Unknown Confirming', 'Reconciling=True Confirming', standing, serving),
  },
  {
    name: 'it answers through the gateway',
    phase: 'Live',
    public: 'live',
    asks: [...upkeep, 'look'],
    served: first,
    snapshot: probed({ responds: true, detail: 'the response was HTTP 200' }),
    conditions: conditions('Ready=True Live', standing, serving),
  },
  {
    name: 'its first response is an error',
    phase: 'Routing',
    public: 'in_pipeline',
    asks: upkeep,
    snapshot: probed({ responds: true, status: 500, detail: 'the response was HTTP 500' }),
    conditions: conditions('Ready=Unknown Confirming', 'Reconciling=True Confirming', standing, serving),
  },
  {
    name: 'it has responded with errors for half a minute, and there is no other release',
    phase: 'Rejected',
    public: 'rejected',
    asks: upkeep,
    rule: 'run/server-error',
    snapshot: failingFor(30, { responds: true, status: 500, detail: 'the response was HTTP 500' }),
    conditions: conditions(
      'Ready=False AppRespondsWithErrors',
      'Stalled=True AppRespondsWithErrors',
      standing,
      serving,
    ),
  },
  {
    name: 'nothing has been found at its URL for half a minute',
    phase: 'Rejected',
    public: 'rejected',
    asks: upkeep,
    rule: 'run/no-page',
    snapshot: failingFor(30, { responds: true, status: 404, detail: 'the response was HTTP 404' }),
    conditions: conditions('Ready=False AppResponds404', 'Stalled=True AppResponds404', standing, serving),
  },
  {
    name: 'it has accepted connections for its startup time and never responded',
    phase: 'Rejected',
    public: 'rejected',
    asks: upkeep,
    rule: 'run/no-response',
    snapshot: failingFor(120, { responds: false, isDoubtful: true, detail: 'there was no response within 30 s' }),
    conditions: conditions('Ready=False AppSilent', 'Stalled=True AppSilent', standing, serving),
  },
  {
    name: 'it has no page at / but an API description',
    phase: 'Live',
    public: 'live',
    asks: [...upkeep, 'look'],
    served: first,
    snapshot: probed({ responds: true, status: 404, detail: 'the response was HTTP 404', instead: '/docs' }),
    conditions: conditions('Ready=True Live', standing, serving),
  },
  {
    name: 'a live app responds with errors',
    phase: 'Failing',
    public: 'live',
    asks: [...upkeep, 'look'],
    served: first,
    snapshot: {
      ...probed({ responds: true, status: 500, detail: 'the response was HTTP 500' }),
      app: app({}, oldLive),
    },
    conditions: conditions('Ready=False RespondsWithErrors', 'Reconciling=True RespondsWithErrors', standing, serving),
  },
  {
    name: 'the gateway does not reach a live app',
    phase: 'Failing',
    public: 'live',
    asks: [...upkeep, 'look'],
    served: first,
    snapshot: {
      ...probed({ responds: false, detail: 'the request failed: connect ECONNREFUSED' }),
      app: app({}, oldLive),
    },
    conditions: conditions('Ready=False Unreachable', 'Reconciling=True Unreachable', standing, serving),
  },
  {
    name: 'its page cannot load its files',
    phase: 'Live',
    public: 'live',
    asks: upkeep,
    served: first,
    snapshot: {
      ...probed({ responds: true, status: 200, detail: 'the response was HTTP 200' }),
      page: { status: 200, assets: 4, faults: ['cannot load 1 of the 4 files of its page: /app.js (404)'] },
    },
    conditions: conditions('Ready=True LiveWithErrors', standing, serving),
  },
  {
    name: 'a new commit is built while the old one serves',
    phase: 'Queued',
    public: 'live',
    asks: ['create Job', ...upkeep],
    served: first,
    snapshot: createSnapshot(app({}, oldLive), {
      ...createDeployed(app({}, oldLive)),
      poll: { ok: true, commit: second, reference: 'refs/heads/main' },
    }),
    conditions: conditions(
      'Ready=Unknown Queued',
      'Reconciling=True Queued',
      resolved,
      'Reviewed=Unknown Queued',
      'Built=Unknown NotReached',
      serving,
    ),
  },
  {
    name: 'a newer commit overtakes one that is being built',
    phase: 'Cloning',
    public: 'in_pipeline',
    asks: [`delete ${one.metadata.name}`],
    snapshot: createSnapshot(app({}, createPolledStatus(second)), {
      jobs: [one, two],
      pipelinePods: [
        pipelinePod(one, [createRunningContainer('clone')]),
        pipelinePod(two, [createRunningContainer('clone')]),
      ],
    }),
    conditions: conditions(
      'Ready=Unknown Cloning',
      'Reconciling=True Cloning',
      resolved,
      'Reviewed=Unknown Cloning',
      'Built=Unknown NotReached',
      unreached.run,
    ),
  },
  {
    name: 'the new commit is refused and the old one serves on',
    phase: 'Rejected',
    public: 'live',
    asks: upkeep,
    served: first,
    rule: 'build/timeout',
    snapshot: createSnapshot(app({}, { ...oldLive, ...createPolledStatus(second) }), {
      ...createDeployed(app({}, oldLive)),
      jobs: [job(second, createFailedStatus('DeadlineExceeded'))],
    }),
    conditions: conditions(
      'Ready=False BuildTimedOut',
      'Stalled=True BuildTimedOut',
      resolved,
      'Reviewed=Unknown NotReached',
      'Built=False BuildTimedOut',
      serving,
    ),
  },
  {
    name: 'the new commit never listens and the old one serves on',
    phase: 'Rejected',
    public: 'live',
    asks: upkeep,
    served: first,
    rule: 'run/never-listened',
    snapshot: failedRollout(),
    conditions: conditions(
      'Ready=False AppNeverListened',
      'Stalled=True AppNeverListened',
      standing,
      'Deployed=False AppNeverListened',
      'Routed=True Routed',
    ),
  },
  {
    name: 'the git server is down while the app serves',
    phase: 'Live',
    public: 'live',
    asks: upkeep,
    served: first,
    snapshot: createSnapshot(app({}, oldLive), { ...createDeployed(app({}, oldLive)), poll: unreachable }),
    conditions: conditions(
      'Ready=True Live',
      'SourceResolved=False RepositoryUnreachable',
      'Reviewed=True ReviewPassed',
      'Built=True Built',
      serving,
    ),
  },
  {
    name: 'the repository goes away while the app serves',
    phase: 'Live',
    public: 'live',
    asks: upkeep,
    served: first,
    rule: 'source/repository-not-found',
    snapshot: createSnapshot(app({}, oldLive), { ...createDeployed(app({}, oldLive)), poll: missing }),
    conditions: conditions(
      'Ready=False RepositoryNotFound',
      'Stalled=True RepositoryNotFound',
      'SourceResolved=False RepositoryNotFound',
      'Reviewed=True ReviewPassed',
      'Built=True Built',
      serving,
    ),
  },
  {
    name: 'its only pod stops serving',
    phase: 'Deploying',
    public: 'in_pipeline',
    asks: upkeep,
    snapshot: createSnapshot(
      app({}, oldLive),
      createDeployed(
        app({}, oldLive),
        { replicas: 1, updatedReplicas: 1 },
        { started: true, state: { running: { startedAt: formatTime(-500) } } },
      ),
    ),
    conditions: conditions(
      'Ready=Unknown RollingOut',
      'Reconciling=True RollingOut',
      standing,
      'Deployed=Unknown RollingOut',
      'Routed=True Routed',
    ),
  },
  {
    name: 'it is suspended',
    phase: 'Suspended',
    public: 'rejected',
    asks: [
      'apply NetworkPolicy',
      'apply Service',
      'apply Deployment',
      'apply HTTPRoute',
      `delete ${one.metadata.name}`,
    ],
    snapshot: createSnapshot(app({ suspend: true }, oldLive), {
      ...createDeployed(app({ suspend: true }, oldLive), {}),
      pods: [],
      jobs: [one],
    }),
    conditions: conditions('Ready=False Suspended', standing, 'Deployed=True Suspended', 'Routed=True Routed'),
  },
];

function withoutVerdict(rest: Partial<Snapshot>): Partial<Snapshot> {
  return rest.route === undefined ? rest : { ...rest, route: { ...rest.route, status: {} } };
}

function haltedForDisk(): Partial<Snapshot> {
  const seen = createEvictedPod(app({}, createLiveStatus(first)), 2, 3_600);
  return { ...seen, pods: (seen.pods ?? []).filter(({ status }) => status?.phase === 'Failed') };
}

export function probed(probe: ProbeResult | undefined): Snapshot {
  const of = app({}, createBuiltStatus(first));
  return createSnapshot(of, { ...createDeployed(of), probe, config: { ...config, probeUrl: 'https://gateway.test' } });
}

/** It has never worked, and a probe that fails like this is `seconds` after the first. */
function failingFor(seconds: number, probe: ProbeResult): Snapshot {
  const failed = decideStatus(probed(probe)).status;
  const answer = failed.answer === undefined ? undefined : { ...failed.answer, failingSince: formatTime(-seconds) };
  return { ...probed(probe), app: app({}, { ...failed, answer }) };
}

/** The old pod and the new one side by side, as RollingUpdate leaves them. */
function failedRollout(): Snapshot {
  const before = createDeployed(app({}, oldLive));
  const of = app({}, { ...oldLive, ...createBuiltStatus(second) });
  const after = createDeployed(
    of,
    { replicas: 2, updatedReplicas: 1, availableReplicas: 1 },
    { started: false, state: { running: { startedAt: formatTime(-300) } } },
  );
  return createSnapshot(of, { ...after, pods: [...(before.pods ?? []), ...(after.pods ?? [])] });
}
