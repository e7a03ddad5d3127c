// What there is to find out: the endpoints, tools and live apps from which every discovery document is derived.
import type { Endpoint } from '../http/endpoint.ts';
import type { HostedAppSummary } from '../tools/engine/tool-dependencies.ts';
import type { Tool } from '../tools/tool.ts';

/** What is offered beside plain endpoints. */
export interface Offer {
  /** Like https://moorage.localhost. */
  readonly baseUrl: string;
  readonly tools: readonly Tool[];
  /** Why a tool cannot be called here; undefined when it can. */
  readonly off: (tool: Tool) => string | undefined;
  /** Apps that are live now: asked anew for each document. */
  readonly apps: () => readonly HostedAppSummary[];
  /** What an app offers as tools on /mcp; undefined for one that offers none. */
  readonly operations: (slug: string) => OfferedOperations | undefined;
  /** What answers by another protocol than plain requests, such as /mcp. */
  readonly protocols: readonly { readonly path: string }[];
}

/** Names of tools on /mcp that are operations of an app, and why there are none. */
export interface OfferedOperations {
  readonly names: readonly string[];
  readonly fault: string | undefined;
}

/** The endpoint by which apps are called. */
export const callPath = '/api/projects/{slug}/call';

/** Where an app is called; undefined where apps cannot be called. */
export function callUrl(site: Pick<Site, 'baseUrl' | 'endpoints' | 'protocols'>, slug: string): string | undefined {
  return answersAt(site, callPath) ? `${site.baseUrl}${callPath.replace('{slug}', slug)}` : undefined;
}

export interface Site extends Offer {
  /** All of them, those of discovery included. */
  readonly endpoints: readonly Endpoint[];
}

export const name = 'Moorage';
export const version = '1.1.0';
export const description =
  'Hosts open-source AI applications from their git repositories, each on its own subdomain over HTTPS; asks and compares models with metered cost; and offers tools that any HTTP client can call.';
export const authentication =
  'Optional. Without a key, calls draw on a free quota per day. `Authorization: Bearer sk-…`, a key of the model router, lifts the quota and opens models of the tier premium.';

/** Whether something answers at this path here. */
export function answersAt({ endpoints, protocols }: Pick<Site, 'endpoints' | 'protocols'>, path: string): boolean {
  return [...endpoints, ...protocols].some((one) => one.path === path);
}

/** The call that a tool's author gives as an example, as an address. */
export function exampleUrl(tool: Tool, baseUrl: string): string {
  const query = new URLSearchParams();
  for (const [field, value] of Object.entries(tool.example)) {
    for (const one of Array.isArray(value) ? value : [value])
      query.append(field, typeof one === 'object' ? JSON.stringify(one) : String(one));
  }
  const text = query.toString();
  return `${baseUrl}/t/${tool.name}${text === '' ? '' : `?${text}`}`;
}
