// An activator on loopback, with real sockets, between a client and an app whose state the test decides.
import { once } from 'node:events';
import { pino } from 'pino';
import {
  appIndexers,
  type Directory,
  createDirectory,
  podIndexers,
  type AppView,
  type PodView,
} from '../../../activator/directory.ts';
import { createSessions, type Sessions } from '../../../activator/access.ts';
import { createActivity, type Activity } from '../../../activator/activity.ts';
import { createGate, type Gate } from '../../../activator/gate.ts';
import { createProxy } from '../../../activator/proxy.ts';
import { createStore } from '../../../lib/kubernetes/index.ts';
import { createBlockList } from '../../../lib/subnets.ts';
import { listen } from '../free-port.ts';

export interface ActivatorWorld {
  readonly port: number;
  readonly activity: Activity;
  readonly gate: Gate;
  readonly directory: Directory;
  readonly sessions: Sessions;
  /** Rests that were asked to end. */
  readonly asked: number[];
  /** Wakes in milliseconds. */
  readonly measured: { readonly depth: string; readonly ms: number }[];
  /** How the app, or another one, stands from now on. */
  show(view: Partial<AppView['view']>, name?: string): void;
  remove(name: string): void;
  /** Its pods from now on, by the ports that they listen on. */
  run(...pods: RunningPod[]): void;
  /** Called when a rest is to end. */
  onAsk: (number: number) => void;
  stop(): Promise<void>;
}

interface RunningPod {
  readonly port: number;
  readonly isReady?: boolean;
  readonly components?: PodView['view']['components'];
}

export const host = 'hello.apps.test';

/** By which it knows looks of the platform. */
export const probeToken = 'p'.repeat(32);

const awake: AppView['view'] = {
  title: 'Hello',
  isStopped: false,
  idle: { state: 'Awake', number: 0, wakeMs: undefined },
  restNumber: 0,
  healthPath: undefined,
  startupMs: 10_000,
  failure: undefined,
  access: undefined,
  domains: undefined,
  previewOf: undefined,
  names: undefined,
};

export async function startActivator(
  limits: { perApp?: number; total?: number; perClient?: number } = {},
  woken: (depth: string, ms: number) => void = () => undefined,
  now: () => number = Date.now,
): Promise<ActivatorWorld> {
  const apps = createStore<AppView>({ indexers: appIndexers });
  const pods = createStore<PodView>({ indexers: podIndexers });
  let version = 0;
  const metadata = (name: string, uid: string): AppView['metadata'] => ({
    name,
    namespace: 'moorage-apps',
    uid,
    resourceVersion: String((version += 1)),
    creationTimestamp: '2026-01-01T00:00:00Z',
  });
  const directory = createDirectory({ apps, pods, namespace: 'moorage-apps', domain: 'apps.test' });
  const activity = createActivity();
  const asked: number[] = [];
  const measured: { depth: string; ms: number }[] = [];
  const gate = createGate({
    directory,
    activity,
    limits: { perApp: 2_000, total: 8_000, perClient: 100, ...limits },
    ask: (_name, number) => {
      asked.push(number);
      world.onAsk(number);
      return Promise.resolve();
    },
    onMeasured(_name, depth, ms) {
      measured.push({ depth, ms });
      woken(depth, ms);
    },
  });
  directory.subscribe((name) => {
    gate.checkNow(name);
  });
  const sessions = createSessions('s'.repeat(32), now);
  const server = createProxy({
    directory,
    activity,
    gate,
    baseUrl: 'https://moorage.test',
    trustedProxies: createBlockList(['10.0.0.0/8']),
    probeToken,
    sessions,
    log: pino({ level: 'silent' }),
  });
  let generation = 0;
  const world: ActivatorWorld = {
    port: await listen(server),
    activity,
    gate,
    directory,
    sessions,
    asked,
    measured,
    show(view, name = 'hello') {
      const whole = { ...awake, ...view };
      const restNumber = whole.idle?.number ?? 0;
      apps.set({
        apiVersion: 'moorage.dev/v1alpha1',
        kind: 'HostedApp',
        metadata: metadata(name, name === 'hello' ? 'app-1' : name),
        view: { ...whole, restNumber },
      });
    },
    remove(name) {
      const app = directory.get(name);
      if (app !== undefined) apps.remove(app);
    },
    run(...all) {
      generation += 1;
      pods.replace(
        all.map(({ port, isReady = true, components }, index) => ({
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: metadata(`hello-${generation}-${index}`, `pod-${generation}-${index}`),
          view: { app: 'hello', address: '127.0.0.1', port, isReady, components },
        })),
      );
    },
    onAsk: () => undefined,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  world.show({});
  return world;
}
