// Runs the pure steps through simulated time: a Deployment controller and a kubelet in a few lines, and commits that
// serve well, crash every half minute, or never start.
import type { HostedAppSpec, HostedAppStatus } from '../../../crds/hosted-app.ts';
import { annotations } from '../../../crds/names.ts';
import type { ContainerStatus, Deployment, Pod } from '../../../controller/objects/kinds.ts';
import type { Action } from '../../../controller/reconcile/outcome.ts';
import type { Snapshot } from '../../../controller/reconcile/snapshot.ts';
import type { KubeObject, Manifest } from '../../../lib/kubernetes/index.ts';
import {
  app,
  createApplied,
  toObject,
  formatTime,
  createBuiltStatus,
  digest,
  now,
  decideStatus,
  createSnapshot,
  type Deep,
} from './scenario.ts';

/**
 * How a commit behaves. `restless` is ready at once and crashes every 30 s, `shaky` does so four times and serves then,
 * `broken` crashes at once.
 */
export type Behaviour = 'good' | 'restless' | 'shaky' | 'broken';

interface SimulatedPod {
  readonly name: string;
  readonly marks: Record<string, string>;
  readonly behaviour: Behaviour;
  /** Seconds since the beginning; undefined while the container waits to be restarted. */
  startedAt: number | undefined;
  restartsAt: number;
  restarts: number;
  readyAt: number | undefined;
  crashedAt: number | undefined;
}

/** What was seen at one reconcile. */
export interface Moment {
  readonly second: number;
  readonly status: HostedAppStatus;
  /** Commits, by their first letter, of the pods that take requests. */
  readonly ready: string;
  /** Commits of the pods that are tried beside them. */
  readonly tries: string;
  /** Replicas and commit of the Deployment. */
  readonly runs: string;
}

const stepSeconds = 10;
const lifeSeconds: Readonly<Record<Behaviour, number>> = { good: Infinity, restless: 30, shaky: 30, broken: 0 };
const readyAfterSeconds = 5;

export interface Timeline {
  /** Pushes a commit that behaves like this. Its letter counts up from a. */
  push(behaviour: Behaviour): string;
  /** Lets time pass, with a reconcile every few seconds. */
  run(seconds: number): Moment[];
  readonly last: Moment;
}

/** @param options further members of each snapshot */
export function createTimeline(spec: Deep<HostedAppSpec> = {}, options: Partial<Snapshot> = {}): Timeline {
  const behaviours = new Map<string, Behaviour>();
  let status: HostedAppStatus = {};
  let deployment: Deployment | undefined;
  let route: Snapshot['route'];
  let pods: SimulatedPod[] = [];
  let trial: Deployment | undefined;
  let trying: SimulatedPod[] = [];
  let second = 0;
  let made = 0;
  let last: Moment | undefined;

  function rollOut(of: Deployment): void {
    const { replicas, strategy, template } = readSpec(of);
    const hash = template[annotations.template];
    const isWanted = ({ marks }: SimulatedPod): boolean => replicas > 0 && marks[annotations.template] === hash;
    const hasOther = pods.some((pod) => !isWanted(pod));
    if (replicas === 0 || strategy === 'Recreate') pods = pods.filter(isWanted);
    else if (pods.some((pod) => isWanted(pod) && pod.readyAt !== undefined)) pods = pods.filter(isWanted);
    // Recreate makes the new pod only once the old one is gone.
    if (pods.some(isWanted) || replicas === 0 || (strategy === 'Recreate' && hasOther)) return;
    pods.push(start(template));
  }

  function start(marks: Record<string, string>): SimulatedPod {
    const behaviour = behaviours.get(marks[annotations.commit] ?? '') ?? 'good';
    const waiting = { startedAt: undefined, restarts: 0, readyAt: undefined, crashedAt: undefined };
    return { name: `hello-${(made += 1)}`, marks, behaviour, restartsAt: second, ...waiting };
  }

  function rollOutTrial(): void {
    const template = trial === undefined ? undefined : readSpec(trial).template;
    trying = trying.filter(({ marks }) => marks[annotations.template] === template?.[annotations.template]);
    if (template !== undefined && trying.length === 0) trying.push(start(template));
  }

  function readTrial(actions: readonly Action[]): void {
    const isTrial = ({ metadata }: KubeObject | Manifest): boolean =>
      metadata.annotations?.[annotations.trial] !== undefined;
    for (const action of actions) {
      if (action.kind === 'delete' && isTrial(action.object)) trial = undefined;
      if (action.kind === 'apply' && isTrial(action.manifest)) trial = toObject(action.manifest);
    }
  }

  function live(pod: SimulatedPod): void {
    if (pod.startedAt === undefined && second >= pod.restartsAt) pod.startedAt = second;
    if (pod.startedAt === undefined) return;
    const age = second - pod.startedAt;
    const isShaken = pod.behaviour === 'shaky' && pod.restarts >= 4;
    if (!isShaken && age >= lifeSeconds[pod.behaviour]) {
      const backoff = Math.min(300, 10 * 2 ** pod.restarts);
      Object.assign(pod, { startedAt: undefined, readyAt: undefined, crashedAt: second, restartsAt: second + backoff });
      pod.restarts += 1;
    } else if (age >= readyAfterSeconds) pod.readyAt ??= second;
  }

  function reconcile(): Moment {
    const of = app(spec, status);
    const ready = pods.filter(({ readyAt }) => readyAt !== undefined);
    const snapshot = createSnapshot(of, {
      now: new Date(now.getTime() + second * 1000),
      pods: pods.map((pod) => toPod(pod)),
      route,
      deployment: deployment === undefined ? undefined : withCounts(deployment, pods, ready),
      trial: { deployment: trial, pods: trying.map((pod) => toPod(pod)) },
      ...options,
    });
    const { decision, status: next } = decideStatus(snapshot);
    status = next;
    deployment = createApplied(decision, 'Deployment');
    readTrial(decision.actions.map(({ action }) => action));
    route = createApplied(decision, 'HTTPRoute', accepted);
    const { replicas, template } = readSpec(deployment);
    const commits = ready.map(({ marks }) => marks[annotations.commit]?.charAt(0) ?? '?');
    return {
      second,
      status,
      ready: [...new Set(commits)].join(''),
      tries: trying.map(({ marks }) => marks[annotations.commit]?.charAt(0) ?? '?').join(''),
      runs: `${replicas} ${template[annotations.commit]?.charAt(0) ?? '?'}`,
    };
  }

  return {
    push(behaviour) {
      const letter = String.fromCharCode('a'.charCodeAt(0) + behaviours.size);
      const commit = letter.repeat(40);
      behaviours.set(commit, behaviour);
      const { built: image, source } = createBuiltStatus(commit, {}, app(spec));
      status = { ...status, built: { ...image, image: digest(letter), commit } as never, source };
      return letter;
    },
    run(seconds) {
      const moments: Moment[] = [];
      for (const end = second + seconds; second < end; second += stepSeconds) {
        if (deployment !== undefined) rollOut(deployment);
        rollOutTrial();
        [...pods, ...trying].forEach(live);
        last = reconcile();
        moments.push(last);
      }
      return moments;
    },
    get last() {
      if (last === undefined) throw new Error('nothing has run');
      return last;
    },
  };
}

const accepted = {
  parents: [
    {
      parentRef: { name: 'moorage', namespace: 'moorage-system' },
      conditions: ['Accepted', 'ResolvedRefs'].map((type) => ({ type, status: 'True', observedGeneration: 2 })),
    },
  ],
};

function readSpec(deployment: Deployment): {
  replicas: number;
  strategy: string;
  template: Record<string, string>;
} {
  const { replicas, strategy, template } = deployment.spec as unknown as {
    replicas: number;
    strategy: { type: string };
    template: { metadata: { annotations: Record<string, string> } };
  };
  return { replicas, strategy: strategy.type, template: template.metadata.annotations };
}

function withCounts(deployment: Deployment, all: readonly SimulatedPod[], ready: readonly SimulatedPod[]): Deployment {
  const hash = readSpec(deployment).template[annotations.template];
  const isUpdated = ({ marks }: SimulatedPod): boolean => marks[annotations.template] === hash;
  const counts = {
    replicas: all.length,
    updatedReplicas: all.filter(isUpdated).length,
    availableReplicas: ready.length,
  };
  return { ...deployment, status: { observedGeneration: 2, ...counts } };
}

function toPod({ name, marks, restarts, startedAt, readyAt, crashedAt }: SimulatedPod): Pod {
  const ended = {
    exitCode: 1,
    reason: 'Error',
    message: 'Traceback\nRuntimeError: no',
    startedAt: formatTime((crashedAt ?? 0) - 1),
    finishedAt: formatTime(crashedAt ?? 0),
  };
  const status: ContainerStatus = {
    name: 'app',
    ready: readyAt !== undefined,
    started: readyAt !== undefined,
    restartCount: restarts,
    state:
      startedAt === undefined
        ? { waiting: { reason: restarts === 0 ? 'ContainerCreating' : 'CrashLoopBackOff' } }
        : { running: { startedAt: formatTime(startedAt) } },
    ...(crashedAt === undefined ? {} : { lastState: { terminated: ended } }),
  };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'moorage-apps',
      uid: name,
      resourceVersion: '1',
      creationTimestamp: formatTime(0),
      annotations: marks,
    },
    status: {
      conditions: [
        {
          type: 'Ready',
          status: readyAt === undefined ? 'False' : 'True',
          lastTransitionTime: formatTime(readyAt ?? crashedAt ?? 0),
        },
      ],
      containerStatuses: [status],
    },
  };
}
