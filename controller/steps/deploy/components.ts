// What the components of an app run as: the image, port and route of each in one release, and what a pod of all of them needs.
import {
  computePodStartMs,
  findMainComponent,
  listComponents,
  listRunningComponents,
  listVolumes as listComponentVolumes,
  type Component,
  isMain,
} from '../../../crds/components.ts';
import type { HostedApp } from '../../../crds/hosted-app.ts';
import { annotations } from '../../../crds/names.ts';
import { parsePodComponents, type PodComponent } from '../../../crds/routes.ts';
import type { ComponentImage } from '../../../crds/status.ts';
import {
  listScheduledComponents,
  resolveRequest,
  type RunRequest,
  type ScheduledComponent,
} from '../../../crds/tasks.ts';
import { computeHash, type KubeObject } from '../../../lib/kubernetes/index.ts';
import { omitUndefined } from '../../../lib/values.ts';
import { sumQuantities } from '../../objects/kinds.ts';

/** An image, with the commit and settings that it was built from. */
export interface Release {
  /** Of the component that answers at / of the app. */
  readonly image: string;
  readonly commit: string;
  /** Of the same component. */
  readonly port: number;
  /** Images of all components; undefined if the app lists none. */
  readonly components?: ComponentImage[] | undefined;
  /** The settings in moorage.yaml of the commit, as JSON. */
  readonly settings?: string | undefined;
  /** The rebuild that made it: another one restarts the pods, even if the image is the same. */
  readonly attempt?: string | undefined;
}

/** A component of a release that runs in the app's pod. */
export interface RunningComponent extends Component {
  readonly image: string;
}

const defaultPort = 8080;

/** Hash of the images of all components; undefined if the app lists none. */
export function hashImages({ components }: Pick<Release, 'components'>): string | undefined {
  return components === undefined ? undefined : computeHash(components.map(({ name, image }) => [name, image]));
}

/**
 * The app with the components that the release has images of: of one that was added to the spec since, nothing is built yet.
 * If the release lacks the component that answers at /, the app runs as one process.
 */
export function limitToRelease(app: HostedApp, { components: images }: Pick<Release, 'components'>): HostedApp {
  const { components } = app.spec;
  if (components.length === 0) return app;
  const has = (name: string): boolean => images?.some((each) => each.name === name) === true;
  const built = components
    .filter(({ name }) => has(name))
    .map((each) => ({ ...each, dependsOn: (each.dependsOn ?? []).filter(has) }));
  if (built.length === components.length) return app;
  const hasMain = built.some(isMain);
  return { ...app, spec: { ...app.spec, components: hasMain ? built : [] } };
}

/** All components of an app, each after those that it depends on. */
export function listAppComponents({ spec }: Pick<HostedApp, 'spec'>): readonly Component[] {
  return listComponents(spec);
}

/** The components of a release that run in the app's pod, with their images and ports. */
export function listReleaseComponents(app: HostedApp, release: Release): readonly RunningComponent[] {
  const all = listAppComponents(app);
  const main = findMainComponent(all);
  return listRunningComponents(all).map((component) => {
    const built = release.components?.find(({ name }) => name === component.name);
    const isMain = component.name === main.name;
    const port = isMain ? release.port : (built?.port ?? component.port);
    return {
      ...component,
      image: built?.image ?? release.image,
      port: component.kind === 'web' ? (port ?? defaultPort) : port,
    };
  });
}

/** The components of a release that run in pods that end: its tasks, or those that are scheduled. */
export function listEndingComponents(
  app: Pick<HostedApp, 'spec'>,
  release: Pick<Release, 'image' | 'components'>,
  kind: 'task' | 'cron',
): readonly RunningComponent[] {
  return listAppComponents(app)
    .filter((component) => component.kind === kind)
    .map((component) => {
      const built = release.components?.find(({ name }) => name === component.name);
      return { ...component, image: built?.image ?? release.image, port: undefined };
    });
}

/** A task or cron component of a release, which runs to its end. */
export type ScheduledRun = ScheduledComponent & { readonly image: string };

/** The tasks and cron components of a release. A task runs the image of the component at /. */
export function listScheduled(app: Pick<HostedApp, 'spec'>, release: Release): readonly ScheduledRun[] {
  return listScheduledComponents(app.spec).map((component) => addImage(component, release));
}

/** What a request of the author runs in a release; undefined if there is no such task. */
export function resolveRun(
  app: Pick<HostedApp, 'spec'>,
  release: Release,
  request: RunRequest,
): ScheduledRun | undefined {
  const component = resolveRequest(app.spec, request);
  return component && addImage(component, release);
}

function addImage(component: ScheduledComponent, release: Release): ScheduledRun {
  const built = release.components?.find(({ name }) => name === component.name);
  return { ...component, image: built?.image ?? release.image, port: undefined };
}

/** The port of the component that answers at /. */
export function chooseMainPort(app: HostedApp, built: Pick<ComponentImage, 'port'>): number {
  const { components, run } = app.spec;
  if (components.length === 0) return run.port ?? built.port ?? defaultPort;
  return built.port ?? findMainComponent(listAppComponents(app)).port ?? defaultPort;
}

/** The components of a release as its pods list them; undefined if the app lists none. */
export function toPodComponents(app: HostedApp, release: Release): readonly PodComponent[] | undefined {
  if (app.spec.components.length === 0) return undefined;
  return listReleaseComponents(app, release).map(({ name, image, port, healthPath, route }) =>
    omitUndefined({ name, image, port, healthPath, route: route === undefined ? undefined : omitUndefined(route) }),
  );
}

/** The components that a pod, or the template of a Deployment, lists. */
export function readPodComponents({ metadata }: Pick<KubeObject, 'metadata'>): readonly PodComponent[] | undefined {
  return parsePodComponents(metadata.annotations?.[annotations.components]);
}

/** The volumes of all components, each once. */
export function listVolumes(app: Pick<HostedApp, 'spec'>): ReturnType<typeof listComponentVolumes> {
  return listComponentVolumes(listAppComponents(app));
}

/** True when the old replica must end before the new one starts: a volume can be mounted once. */
export function isRecreated(app: Pick<HostedApp, 'spec'>): boolean {
  return listVolumes(app).length > 0;
}

/** Milliseconds that a pod of the app may take to start. */
export function computeStartupMs(app: Pick<HostedApp, 'spec'>): number {
  return computePodStartMs(listRunningComponents(listAppComponents(app)));
}

/** The temporary disk of a whole pod, as a quantity. */
export function sumDisk(app: Pick<HostedApp, 'spec'>): string {
  return sumQuantities(listRunningComponents(listAppComponents(app)).map(({ resources }) => resources.disk));
}

/** The variables of all components: with their values, and by reference to Secrets. Those of several are listed for each. */
export function collectVariables(app: Pick<HostedApp, 'spec'>): Pick<Component, 'env' | 'secrets'> {
  const all = listAppComponents(app);
  return { env: all.flatMap(({ env }) => env), secrets: all.flatMap(({ secrets }) => secrets) };
}
