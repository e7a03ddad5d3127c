// What this installation offers: its tools, its live apps with their operations, and the endpoints themselves.
import { callAppPath, type Endpoint } from '../http/index.ts';
import type { HostedAppSummary, Tool } from '../tools/index.ts';

/** What is offered beside plain endpoints. */
export interface Offer {
  /** Like https://moorage.localhost. */
  readonly baseUrl: string;
  readonly tools: readonly Tool[];
  /** Why a tool cannot be called here; undefined when it can. */
  readonly off: (tool: Tool) => string | undefined;
  /** Apps that are live now: read again for each document. */
  readonly apps: () => readonly HostedAppSummary[];
  /** What an app offers as tools on /mcp; undefined for one that offers none. */
  readonly operations: (slug: string) => OfferedOperations | undefined;
  /** What answers by another protocol than plain requests, such as /mcp. */
  readonly protocols: readonly { readonly path: string }[];
  /** Guides for agents, which answer a question each. */
  readonly guides: readonly OfferedGuide[];
  /** Models that can be asked here; none when left out. */
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

/** Names of tools on /mcp that are operations of an app, and why there are none. */
export interface OfferedOperations {
  readonly names: readonly string[];
  readonly fault: string | undefined;
}

/** Where an app is called; undefined where apps cannot be called. */
export function callUrl(site: Pick<Site, 'baseUrl' | 'endpoints' | 'protocols'>, slug: string): string | undefined {
  return answersAt(site, callAppPath) ? `${site.baseUrl}${callAppPath.replace('{slug}', slug)}` : undefined;
}

export interface Site extends Offer {
  /** All of them, those of discovery included. */
  readonly endpoints: readonly Endpoint[];
}

/** Whether something answers at this path here. */
export function answersAt({ endpoints, protocols }: Pick<Site, 'endpoints' | 'protocols'>, path: string): boolean {
  return [...endpoints, ...protocols].some((one) => one.path === path);
}
