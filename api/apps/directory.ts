// The directory of live apps: the address of each inside the cluster, and its author. No address comes from a caller.
import { Problem } from '../../lib/problem.ts';
import { isProtected } from '../../crds/access.ts';
import { type AppsSite, activator } from '../../crds/names.ts';
import { listComponents } from '../../crds/components.ts';
import { readSettings, resolveSpec } from '../../crds/effective-settings.ts';
import { toPublicStatus } from '../../crds/public-status.ts';
import { readSlug } from '../../crds/slugs.ts';
import { listCallerVariables } from '../../crds/status.ts';
import {
  assignServicePorts,
  chooseComponent,
  formatPortName,
  stripRoutePath,
  type RoutedComponent,
} from '../../crds/routes.ts';
import { getApp, readAuthorship, readRepository, type App, type AppIndex } from './hosted-apps.ts';
import { describeStatus, resolveUrl, toVisibleStatus } from './status-view.ts';
import { appNotLive, appProtected } from './problems.ts';

/** The paths of an app's descriptions, as its author set them. */
export interface AgentPaths {
  readonly openapi: string;
  readonly mcp: string;
}

/** What is needed to call a live app. */
export interface Target {
  /** Name of its HostedApp, under which uses and revenue are recorded. */
  readonly id: string;
  readonly slug: string;
  readonly title: string;
  readonly uid: string;
  readonly commit: string;
  /** Origin inside the cluster. */
  readonly origin: string;
  /** Public origin. The app receives its host. */
  readonly publicOrigin: string;
  /** The app may rest, so it is reached through the activator. */
  readonly isActivated?: boolean;
  /** It is asleep, or was when its resource was written. */
  readonly isResting?: boolean;
  /** The components of an app that is reached at its Service, which has a port for each; absent if the app is one process. */
  readonly components?: readonly RoutedComponent[];
  /** The ports of that Service by name. */
  readonly servicePorts?: ReadonlyMap<string, number>;
  /** Git host and owner of its repository. All apps of one author take turns as one caller. */
  readonly author: string;
  /** Undefined if the app's operations are not offered as tools. */
  readonly agentPaths: AgentPaths | undefined;
  /** It was planned as an MCP server. */
  readonly isMcpServer?: boolean;
  /** Variables that a caller can set for its own session with the app's MCP server. */
  readonly callerVariables?: ReturnType<typeof listCallerVariables>;
}

export interface Directory {
  /** @throws Problem (unknown-app, app-not-live, app-protected) */
  get(slug: string): Target;
  /** The app of this slug; undefined if none is live. */
  find(slug: string): Target | undefined;
  listLive(): readonly Target[];
}

export interface DirectoryOptions {
  readonly apps: Pick<AppIndex, 'get' | 'listAll'>;
  readonly baseUrl: string;
  readonly site: AppsSite;
  /** Git host that status links leave out. */
  readonly defaultHost?: string | undefined;
  /** Namespace of the installation; default moorage-system. */
  readonly systemNamespace?: string | undefined;
  /** Default: the app's Service, or the activator. */
  readonly resolveOrigin?: (app: App) => string;
}

export function createDirectory({
  apps,
  baseUrl,
  site,
  systemNamespace = 'moorage-system',
  resolveOrigin: originOf = createServiceOrigin(systemNamespace),
}: DirectoryOptions): Directory {
  /** Keyed by object: the cache never changes an object, it replaces it. */
  const known = new WeakMap<App, { readonly target: Target | undefined }>();
  const getTarget = (app: App): Target | undefined => {
    const entry = known.get(app) ?? { target: readTarget(app, originOf) };
    known.set(app, entry);
    return entry.target;
  };
  return {
    get(slug) {
      const app = getApp(apps, slug);
      const target = getTarget(app);
      if (target === undefined)
        throw isProtected(app.spec) ? createAppProtected(app) : createAppNotLive(app, baseUrl, site);
      return target;
    },
    find(slug) {
      const app = apps.get(slug);
      return app === undefined ? undefined : getTarget(app);
    },
    listLive: () => apps.listAll().flatMap((app) => getTarget(app) ?? []),
  };
}

/** Each app has a Service of its name. Requests for apps that may rest go to the activator, which can hold them. */
function createServiceOrigin(systemNamespace: string): (app: App) => string {
  return (app) => {
    const { name, namespace } = app.metadata;
    return isReachedDirectly(app)
      ? `http://${name}.${namespace}.svc`
      : `http://${activator.name}.${systemNamespace}.svc`;
  };
}

function isReachedDirectly({ status }: App): boolean {
  return status?.idle === undefined && status?.activated !== true;
}

/** The components that get requests, and their ports; those of an app behind the activator are chosen there. */
function readRoutedComponents(
  app: App,
  spec: ReturnType<typeof resolveSpec>,
): Pick<Target, 'components' | 'servicePorts'> {
  const { built } = app.status ?? {};
  if (spec.components.length === 0 || !isReachedDirectly(app)) return {};
  const components = listComponents(spec).flatMap(({ name, route, port: own }) => {
    const { image, port = own } = built?.components?.find((each) => each.name === name) ?? {};
    return route === undefined || image === undefined ? [] : [{ name, image, route, port: port ?? defaultPort }];
  });
  return { components, servicePorts: assignServicePorts(components) };
}

/** Of what listens at a port that nothing names. The Service's own port does not depend on it. */
const defaultPort = 8080;

/** Where a request for a path of the app goes: an origin inside the cluster, and the path that the component sees. */
export function resolveDestination(
  { origin, components, servicePorts }: Target,
  path: string,
): { origin: string; path: string } {
  const component = components === undefined ? undefined : chooseComponent(components, undefined, path);
  if (component === undefined) return { origin, path };
  const port = servicePorts?.get(formatPortName(component)) ?? 80;
  return { origin: `${origin}:${port}`, path: stripRoutePath(path, component.route) };
}

function readTarget(app: App, originOf: (app: App) => string): Target | undefined {
  const status = toPublicStatus(app);
  // The platform has no key of a protected app, and a call at its Service would pass the activator by.
  if (status.status !== 'live' || isProtected(app.spec)) return undefined;
  const { built, idle, plan } = app.status ?? {};
  const spec = resolveSpec(app, readSettings(built?.settings));
  const { agents, listing } = spec;
  return {
    id: app.metadata.name,
    slug: readSlug(app),
    title: listing.title ?? readSlug(app),
    uid: app.metadata.uid,
    commit: status.commit,
    origin: originOf(app),
    isActivated: idle !== undefined,
    isResting: (idle?.state ?? 'Awake') !== 'Awake',
    ...readRoutedComponents(app, spec),
    publicOrigin: new URL(status.url).origin,
    author: readAuthorship(app).author,
    agentPaths: agents.enabled ? { openapi: agents.openapi, mcp: agents.mcp } : undefined,
    isMcpServer: plan?.mcp !== undefined,
    callerVariables: listCallerVariables(plan?.mcp),
  };
}

function createAppProtected(app: App): Problem {
  return new Problem(
    appProtected,
    `The author of ${readSlug(app)} decides who may visit it, so it is not called through the platform. Call it at its own address, with an access key of the author as Authorization: Bearer mvk-….`,
  );
}

function createAppNotLive(app: App, baseUrl: string, site: AppsSite): Problem {
  const status = toVisibleStatus(app);
  const { owner, name } = readRepository(app);
  const statusUrl = `${baseUrl}/api/submit-status/${owner}/${name}`;
  const awaited = status.status === 'in_pipeline';
  const standing = awaited ? 'is not live yet' : 'is not live';
  const why = describeStatus(status, resolveUrl(app, site), app.status?.source?.commit).slice(0, 400);
  return new Problem(appNotLive, `${readSlug(app)} ${standing}. ${why}`, {
    members: { status: status.status, status_url: statusUrl },
    ...(awaited ? { headers: { 'retry-after': '10' } } : {}),
  });
}
