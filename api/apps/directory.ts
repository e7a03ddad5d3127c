// The directory of live apps: where each answers inside the cluster, and whose it is. Never an address from a caller.
import { Problem, unknownName } from '../../lib/problem.ts';
import { type AppsSite, activator } from '../../crds/names.ts';
import { readSettings, resolveSpec } from '../../crds/effective-settings.ts';
import { publicStatus } from '../../crds/public-status.ts';
import { authorshipOf } from './authors.ts';
import { repositoryOf, type App, type AppIndex } from './hosted-apps.ts';
import { sentence, urlOf } from './status-view.ts';
import { appNotLive, unknownApp } from './problems.ts';

/** Where an app describes its operations, as its author set it. */
export interface AgentPaths {
  readonly openapi: string;
  readonly mcp: string;
}

/** A live app, as far as calling it goes. */
export interface Target {
  readonly slug: string;
  readonly title: string;
  readonly uid: string;
  readonly commit: string;
  /** Origin inside the cluster. */
  readonly origin: string;
  /** Origin that people see; its host is sent to the app. */
  readonly publicOrigin: string;
  /** It may rest, and is reached through the activator. */
  readonly isActivated?: boolean;
  /** Git host and owner of its repository: whose calls take their turns as one caller. */
  readonly author: string;
  /** Undefined for an app whose operations are not offered as tools. */
  readonly agentPaths: AgentPaths | undefined;
}

export interface Directory {
  /** @throws Problem (unknown-app, app-not-live) */
  get(slug: string): Target;
  /** The live app of this slug, where there is one. */
  find(slug: string): Target | undefined;
  live(): readonly Target[];
}

export interface DirectoryOptions {
  readonly apps: Pick<AppIndex, 'get' | 'all'>;
  readonly baseUrl: string;
  readonly site: AppsSite;
  /** Git host that links to a status leave out. */
  readonly defaultHost?: string | undefined;
  /** Namespace of the installation; default moorage-system. */
  readonly systemNamespace?: string | undefined;
  /** Default: the app's Service, or the activator. */
  readonly originOf?: (app: App) => string;
}

export function directory({
  apps,
  baseUrl,
  site,
  systemNamespace = 'moorage-system',
  originOf = serviceOrigin(systemNamespace),
}: DirectoryOptions): Directory {
  /** An object of the cache is never changed, only replaced. */
  const known = new WeakMap<App, { readonly target: Target | undefined }>();
  const targetOf = (app: App): Target | undefined => {
    const found = known.get(app) ?? { target: readTarget(app, originOf) };
    known.set(app, found);
    return found.target;
  };
  return {
    get(slug) {
      const app = apps.get(slug);
      if (app === undefined)
        throw unknown(
          slug,
          apps.all().map(({ metadata }) => metadata.name),
        );
      const target = targetOf(app);
      if (target === undefined) throw notLive(app, baseUrl, site);
      return target;
    },
    find(slug) {
      const app = apps.get(slug);
      return app === undefined ? undefined : targetOf(app);
    },
    live: () => apps.all().flatMap((app) => targetOf(app) ?? []),
  };
}

/** The operator gives each app a Service of its own name; one for which requests may be held has the activator. */
function serviceOrigin(systemNamespace: string): (app: App) => string {
  return ({ metadata: { name, namespace }, status }) =>
    status?.idle === undefined && status?.activated !== true
      ? `http://${name}.${namespace}.svc`
      : `http://${activator.name}.${systemNamespace}.svc`;
}

function readTarget(app: App, originOf: (app: App) => string): Target | undefined {
  const status = publicStatus(app);
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
    author: authorshipOf(app).author,
    agentPaths: agents.enabled ? { openapi: agents.openapi, mcp: agents.mcp } : undefined,
  };
}

function unknown(slug: string, slugs: readonly string[]): Problem {
  return unknownName(unknownApp, {
    says: 'Unknown app',
    name: slug,
    names: slugs,
    all: '/agent-capabilities.json lists the live apps.',
  });
}

function notLive(app: App, baseUrl: string, site: AppsSite): Problem {
  const status = publicStatus(app);
  const { owner, name } = repositoryOf(app);
  const statusUrl = `${baseUrl}/api/submit-status/${owner}/${name}`;
  const awaited = status.status === 'in_pipeline';
  const standing = awaited ? 'is not live yet' : 'is not live';
  const why = sentence(status, urlOf(app, site), app.status?.source?.commit).slice(0, 400);
  return new Problem(appNotLive, `${app.metadata.name} ${standing}. ${why}`, {
    members: { status: status.status, status_url: statusUrl },
    ...(awaited ? { headers: { 'retry-after': '10' } } : {}),
  });
}
