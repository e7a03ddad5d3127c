// What this installation offers, as documents, pages and protocols show it: tools, live apps with their operations, guides,
// models and endpoints.
import { readSlug } from '../../crds/slugs.ts';
import { callAppPath, type Endpoint } from '../http/index.ts';
import type { HostedAppSummary, Tool } from '../tools/index.ts';
import { isProtected } from '../../crds/access.ts';
import { readSettings, resolveSpec } from '../../crds/effective-settings.ts';
import { toPublicStatus } from '../../crds/public-status.ts';
import { readRepository, type App } from './hosted-apps.ts';

/** Everything that is offered besides plain endpoints. */
export interface Offer {
  /** Like https://moorage.localhost. */
  readonly baseUrl: string;
  readonly tools: readonly Tool[];
  /** Why a tool cannot be called here; undefined if it can. */
  readonly explainOff: (tool: Tool) => string | undefined;
  /** Lists the apps that are live now. Called for each document. */
  readonly listApps: () => readonly HostedAppSummary[];
  /** The operations that an app offers as tools on /mcp; undefined if it offers none. */
  readonly findOperations: (slug: string) => OfferedOperations | undefined;
  /** Paths of other protocols, such as /mcp. */
  readonly protocols: readonly { readonly path: string }[];
  /** Guides for agents, each of which answers one question. */
  readonly guides: readonly OfferedGuide[];
  /** Models that can be called here; default none. */
  readonly models?: readonly OfferedModel[];
  /** What a caller without a key may spend a day, in USD. */
  readonly freeQuotaUsd?: string;
}

/** A model with its list prices in USD. */
export interface OfferedModel {
  readonly id: string;
  readonly label: string;
  readonly tier: 'free' | 'premium';
  readonly in_per_m: string;
  readonly out_per_m: string;
}

export interface OfferedGuide {
  readonly slug: string;
  readonly question: string;
  readonly page: string;
  readonly machine_readable: string;
}

/** The names of an app's operations on /mcp, or why there are none. */
export interface OfferedOperations {
  readonly names: readonly string[];
  readonly fault: string | undefined;
}

/** Formats the URL at which an app is called; undefined if apps cannot be called here. */
export function formatCallUrl(
  site: Pick<Site, 'baseUrl' | 'endpoints' | 'protocols'>,
  slug: string,
): string | undefined {
  return isOffered(site, callAppPath) ? `${site.baseUrl}${callAppPath.replace('{slug}', slug)}` : undefined;
}

export interface Site extends Offer {
  /** All endpoints, including those of discovery. */
  readonly endpoints: readonly Endpoint[];
}

/** Whether this installation has an endpoint or protocol at this path. */
export function isOffered({ endpoints, protocols }: Pick<Site, 'endpoints' | 'protocols'>, path: string): boolean {
  return [...endpoints, ...protocols].some((one) => one.path === path);
}

/** Summarises the live ones among these apps, without those that only some visitors may open. */
export function listLiveApps(apps: readonly App[]): HostedAppSummary[] {
  return apps.flatMap((app) => {
    const status = toPublicStatus(app);
    if (status.status !== 'live' || isProtected(app.spec)) return [];
    const { title, description, category } = resolveSpec(app, readSettings(app.status?.built?.settings)).listing;
    return [
      {
        slug: readSlug(app),
        title: title ?? readSlug(app),
        description: description ?? app.spec.submission?.note ?? '',
        category,
        url: status.url,
        repo: readRepository(app).url,
      },
    ];
  });
}
