// Runs the pure steps through simulated time: a Deployment controller and a kubelet in a few lines, and commits that
// serve well, crash every half minute, or never start.
import { applyControl, type Control } from '../../../crds/control.ts';
import type { HostedAppSpec, HostedAppStatus } from '../../../crds/hosted-app.ts';
import { annotations } from '../../../crds/names.ts';
import type { ContainerStatus, Deployment, Pod } from '../../../controller/objects/kinds.ts';
import type { Action } from '../../../controller/reconcile/outcome.ts';
import type { ProbeResult, Snapshot } from '../../../controller/reconcile/snapshot.ts';
import type { KubeObject, Manifest } from '../../../lib/kubernetes/index.ts';
import { omitUndefined } from '../../../lib/values.ts';
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
 * `broken` crashes at once. `faulty` is ready and responds with errors, `fading` does so after 20 s, `mute` accepts
 * connections and does not respond.
 */
export type Behaviour = 'good' | 'restless' | 'shaky' | 'broken' | 'faulty' | 'fading' | 'mute';

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
const lifeSeconds: Readonly<Record<Behaviour, number>> = {
  ...{ good: Infinity, restless: 30, shaky: 30, broken: 0 },
  ...{ faulty: Infinity, fading: Infinity, mute: Infinity },
};
const fadingSeconds = 20;
const readyAfterSeconds = 5;

export interface Timeline {
  /** Pushes a commit that behaves like this. Its letter counts up from a. */
  push(behaviour: Behaviour): string;
  /** Sets what the author controls, in addition to what was set before; undefined removes a field. */
  control(change: { readonly [Field in keyof Control]?: Control[Field] | undefined }): void;
  /** Lets the pods of a commit behave in another way from now on. */
  behave(letter: string, behaviour: Behaviour): void;
  /** Lets time pass, with a reconcile every few seconds. */
  run(seconds: number): Moment[];
  readonly last: Moment;
  /** Returns a copy that continues from this moment. */
  fork(): Timeline;
}

/** Everything that changes as time passes. */
interface SimulatedWorld {
  readonly behaviours: Map<string, Behaviour>;
  control: Control;
  status: HostedAppStatus;
  deployment: Deployment | undefined;
  route: Snapshot['route'];
  pods: SimulatedPod[];
  trial: Deployment | undefined;
  trying: SimulatedPod[];
  second: number;
  made: number;
  last: Moment | undefined;
  /** A probe was started at the last reconcile. */
  isProbing: boolean;
}

/** @param options further members of each snapshot @param world what it begins with; empty by default */
export function createTimeline(
  spec: Deep<HostedAppSpec> = {},
  options: Partial<Snapshot> = {},
  world: SimulatedWorld = {
    behaviours: new Map(),
    control: {},
    status: {},
    deployment: undefined,
    route: undefined,
    pods: [],
    trial: undefined,
    trying: [],
    second: 0,
    made: 0,
    last: undefined,
    isProbing: false,
  },
): Timeline {
  function rollOut(of: Deployment): void {
    const { replicas, strategy, template } = readSpec(of);
    const hash = template[annotations.template];
    const isWanted = ({ marks }: SimulatedPod): boolean => replicas > 0 && marks[annotations.template] === hash;
    const hasOther = world.pods.some((pod) => !isWanted(pod));
    if (replicas === 0 || strategy === 'Recreate') world.pods = world.pods.filter(isWanted);
    else if (world.pods.some((pod) => isWanted(pod) && pod.readyAt !== undefined))
      world.pods = world.pods.filter(isWanted);
    // Recreate makes the new pod only once the old one is gone.
    if (world.pods.some(isWanted) || replicas === 0 || (strategy === 'Recreate' && hasOther)) return;
    world.pods.push(start(template));
  }

  function start(marks: Record<string, string>): SimulatedPod {
    const behaviour = world.behaviours.get(marks[annotations.commit] ?? '') ?? 'good';
    const waiting = { startedAt: undefined, restarts: 0, readyAt: undefined, crashedAt: undefined };
    return { name: `hello-${(world.made += 1)}`, marks, behaviour, restartsAt: world.second, ...waiting };
  }

  function rollOutTrial(): void {
    const template = world.trial === undefined ? undefined : readSpec(world.trial).template;
    world.trying = world.trying.filter(({ marks }) => marks[annotations.template] === template?.[annotations.template]);
    if (template !== undefined && world.trying.length === 0) world.trying.push(start(template));
  }

  function readTrial(actions: readonly Action[]): void {
    const isTrial = ({ metadata }: KubeObject | Manifest): boolean =>
      metadata.annotations?.[annotations.trial] !== undefined;
    for (const action of actions) {
      if (action.kind === 'delete' && isTrial(action.object)) world.trial = undefined;
      if (action.kind === 'apply' && isTrial(action.manifest)) world.trial = toObject(action.manifest);
    }
  }

  function live(pod: SimulatedPod): void {
    if (pod.startedAt === undefined && world.second >= pod.restartsAt) pod.startedAt = world.second;
    if (pod.startedAt === undefined) return;
    const age = world.second - pod.startedAt;
    const isShaken = pod.behaviour === 'shaky' && pod.restarts >= 4;
    if (!isShaken && age >= lifeSeconds[pod.behaviour]) {
      const backoff = Math.min(300, 10 * 2 ** pod.restarts);
      Object.assign(pod, {
        startedAt: undefined,
        readyAt: undefined,
        crashedAt: world.second,
        restartsAt: world.second + backoff,
      });
      pod.restarts += 1;
    } else if (age >= readyAfterSeconds) pod.readyAt ??= world.second;
  }

  function reconcile(): Moment {
    const plain = app({ ...spec, control: world.control }, world.status);
    const of = { ...plain, spec: applyControl(plain.spec) };
    const ready = world.pods.filter(({ readyAt }) => readyAt !== undefined);
    const snapshot = createSnapshot(of, {
      now: new Date(now.getTime() + world.second * 1000),
      pods: world.pods.map((pod) => toPod(pod)),
      route: world.route,
      deployment: world.deployment === undefined ? undefined : withCounts(world.deployment, world.pods, ready),
      trial: { deployment: world.trial, pods: world.trying.map((pod) => toPod(pod)) },
      probe: world.isProbing ? probePods(ready, world.second) : undefined,
      ...options,
    });
    const { decision, status: next } = decideStatus(snapshot);
    world.status = next;
    world.deployment = createApplied(decision, 'Deployment');
    readTrial(decision.actions.map(({ action }) => action));
    world.isProbing = decision.actions.some(({ action }) => action.kind === 'probe');
    world.route = createApplied(decision, 'HTTPRoute', accepted);
    const { replicas, template } = readSpec(world.deployment);
    const commits = ready.map(({ marks }) => marks[annotations.commit]?.charAt(0) ?? '?');
    return {
      second: world.second,
      status: world.status,
      ready: [...new Set(commits)].join(''),
      tries: world.trying.map(({ marks }) => marks[annotations.commit]?.charAt(0) ?? '?').join(''),
      runs: `${replicas} ${template[annotations.commit]?.charAt(0) ?? '?'}`,
    };
  }

  return {
    push(behaviour) {
      const letter = String.fromCharCode('a'.charCodeAt(0) + world.behaviours.size);
      const commit = letter.repeat(40);
      world.behaviours.set(commit, behaviour);
      const { built: image, source } = createBuiltStatus(commit, {}, app(spec));
      world.status = { ...world.status, built: { ...image, image: digest(letter), commit } as never, source };
      return letter;
    },
    control(change) {
      world.control = omitUndefined({ ...world.control, ...change });
    },
    behave(letter, behaviour) {
      world.behaviours.set(letter.repeat(40), behaviour);
      for (const [index, pod] of world.pods.entries())
        if (pod.marks[annotations.commit]?.startsWith(letter) === true) world.pods[index] = { ...pod, behaviour };
    },
    run(seconds) {
      const moments: Moment[] = [];
      for (const end = world.second + seconds; world.second < end; world.second += stepSeconds) {
        if (world.deployment !== undefined) rollOut(world.deployment);
        rollOutTrial();
        [...world.pods, ...world.trying].forEach(live);
        world.last = reconcile();
        moments.push(world.last);
      }
      return moments;
    },
    get last() {
      if (world.last === undefined) throw new Error('nothing has run');
      return world.last;
    },
    fork: () => createTimeline(spec, options, structuredClone(world)),
  };
}

/** What the gateway finds behind the URL. */
function probePods(ready: readonly SimulatedPod[], second: number): ProbeResult {
  const [pod] = ready;
  if (pod === undefined) return { responds: false, status: 503, detail: 'the response was HTTP 503' };
  if (pod.behaviour === 'mute')
    return { responds: false, isDoubtful: true, detail: 'there was no response within 5 s' };
  const isFaded = pod.behaviour === 'fading' && second - (pod.readyAt ?? second) >= fadingSeconds;
  const status = pod.behaviour === 'faulty' || isFaded ? 500 : 200;
  return { responds: true, status, detail: `the response was HTTP ${status}` };
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
