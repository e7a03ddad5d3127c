// The directory of live apps: the address of each inside the cluster, and its author. No address comes from a caller.
import { Problem, createUnknownNameProblem } from '../../lib/problem.ts';
import { type AppsSite, activator } from '../../crds/names.ts';
import { readSettings, resolveSpec } from '../../crds/effective-settings.ts';
import { toPublicStatus } from '../../crds/public-status.ts';
import { readAuthorship, readRepository, type App, type AppIndex } from './hosted-apps.ts';
import { describeStatus, resolveUrl } from './status-view.ts';
import { appNotLive, unknownApp } from './problems.ts';

/** The paths of an app's descriptions, as its author set them. */
export interface AgentPaths {
  readonly openapi: string;
  readonly mcp: string;
}

/** What is needed to call a live app. */
export interface Target {
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
  /** Git host and owner of its repository. All apps of one author take turns as one caller. */
  readonly author: string;
  /** Undefined if the app's operations are not offered as tools. */
  readonly agentPaths: AgentPaths | undefined;
}

export interface Directory {
  /** @throws Problem (unknown-app, app-not-live) */
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
      const app = apps.get(slug);
      if (app === undefined)
        throw createUnknownApp(
          slug,
          apps.listAll().map(({ metadata }) => metadata.name),
        );
      const target = getTarget(app);
      if (target === undefined) throw createAppNotLive(app, baseUrl, site);
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
  return ({ metadata: { name, namespace }, status }) =>
    status?.idle === undefined && status?.activated !== true
      ? `http://${name}.${namespace}.svc`
      : `http://${activator.name}.${systemNamespace}.svc`;
}

function readTarget(app: App, originOf: (app: App) => string): Target | undefined {
  const status = toPublicStatus(app);
  if (status.status !== 'live') return undefined;
  const { agents, listing } = resolveSpec(app, readSettings(app.status?.built?.settings));
  return {
    slug: app.metadata.name,
    title: listing.title ?? app.metadata.name,
    uid: app.metadata.uid,
    commit: status.commit,
    origin: originOf(app),
    isActivated: app.status?.idle !== undefined,
    publicOrigin: new URL(status.url).origin,
    author: readAuthorship(app).author,
    agentPaths: agents.enabled ? { openapi: agents.openapi, mcp: agents.mcp } : undefined,
  };
}

function createUnknownApp(slug: string, slugs: readonly string[]): Problem {
  return createUnknownNameProblem(unknownApp, {
    says: 'Unknown app',
    name: slug,
    names: slugs,
    all: '/agent-capabilities.json lists the live apps.',
  });
}

function createAppNotLive(app: App, baseUrl: string, site: AppsSite): Problem {
  const status = toPublicStatus(app);
  const { owner, name } = readRepository(app);
  const statusUrl = `${baseUrl}/api/submit-status/${owner}/${name}`;
  const awaited = status.status === 'in_pipeline';
  const standing = awaited ? 'is not live yet' : 'is not live';
  const why = describeStatus(status, resolveUrl(app, site), app.status?.source?.commit).slice(0, 400);
  return new Problem(appNotLive, `${app.metadata.name} ${standing}. ${why}`, {
    members: { status: status.status, status_url: statusUrl },
    ...(awaited ? { headers: { 'retry-after': '10' } } : {}),
  });
}
