// An app with a page, an API below /api that the page waits for, and a worker, as its pipeline has built it.
import type { HostedApp, HostedAppStatus } from '../../../crds/hosted-app.ts';
import type { ContainerStatus, Deployment, Pod } from '../../../controller/objects/kinds.ts';
import { app, appPod, createLiveStatus, digest, formatTime, type Deep } from './scenario.ts';

type Component = Deep<HostedApp['spec']['components'][number]>;

export const components: [Component, Component, Component] = [
  { name: 'web', kind: 'web', dependsOn: ['api'], port: 3000 },
  { name: 'api', kind: 'web', route: { path: '/api', stripPath: true }, healthPath: '/ready', port: 8000 },
  { name: 'worker', kind: 'worker', image: 'api', command: ['python', 'worker.py'] },
];

/** Images of components: one for each name and its letter. */
export function listImages(
  letters: Readonly<Record<string, string>>,
  ports: Readonly<Record<string, number>> = {},
): NonNullable<NonNullable<HostedAppStatus['built']>['components']> {
  return Object.entries(letters).map(([name, letter]) => {
    const port = ports[name];
    return { name, image: digest(letter), ...(port === undefined ? {} : { port }) };
  });
}

const usualImages = listImages({ web: 'a', api: 'c', worker: 'c' }, { web: 3000, api: 8000 });

/** An app of several components of which `commit` answers. */
export function createComposite(
  commit: string,
  {
    spec = {},
    list = components,
    images = usualImages,
  }: {
    readonly spec?: Deep<HostedApp['spec']>;
    readonly list?: readonly object[];
    readonly images?: ReturnType<typeof listImages>;
  } = {},
): HostedApp {
  const bare = app({ ...spec, components: list as never });
  const status = createLiveStatus(commit, {}, bare);
  const { built } = status;
  if (built === undefined) throw new Error('nothing is built');
  return app(
    { ...spec, components: list as never },
    { ...status, built: { ...built, port: images[0]?.port ?? 8080, components: images } },
  );
}

/** A pod of that app with the states of its containers; those that are not named are ready. */
export function compositePod(
  deployment: Deployment,
  states: Readonly<Record<string, Partial<ContainerStatus>>> = {},
): Pod {
  const isReady = Object.keys(states).length === 0;
  const pod = appPod(deployment, { ready: isReady });
  const statuses = (list: readonly { readonly name: string }[] = []): ContainerStatus[] =>
    list.map(({ name }) => ({
      ...{ name, ready: true, started: true, restartCount: 0, state: { running: { startedAt: formatTime(-40) } } },
      ...states[name],
    }));
  const spec = deployment.spec?.template.spec;
  return {
    ...pod,
    status: {
      ...pod.status,
      phase: 'Running',
      initContainerStatuses: statuses(spec?.initContainers),
      containerStatuses: statuses(spec?.containers),
    },
  };
}

/** A container that exits again and again. */
export function createCrashing(exitCode: number, message: string, more: object = {}): Partial<ContainerStatus> {
  return {
    ready: false,
    started: false,
    restartCount: 4,
    state: { waiting: { reason: 'CrashLoopBackOff' } },
    lastState: {
      terminated: {
        exitCode,
        reason: 'Error',
        message,
        startedAt: formatTime(-30),
        finishedAt: formatTime(-20),
        ...more,
      },
    },
  };
}
