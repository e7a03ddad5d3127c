// Starts the room of pages: what a person sees, from the same endpoints that programs call.
import { a2aPath, type FrontPage } from '../protocols/index.ts';
import type { Offer } from '../apps/index.ts';
import type { Endpoint, RefusedRequest } from '../http/index.ts';
import type { Problem } from '../../lib/problem.ts';
import type { Catalog as ModelList } from '../models/index.ts';
import { assetEndpoint } from './assets.ts';
import { Calls } from './calls.ts';
import { authorPages } from './author-pages.ts';
import { catalogData } from './catalog-data.ts';
import { catalogPages } from './catalog-pages.ts';
import { comparePages } from './compare-pages.ts';
import { frontPageOf } from './front-page.ts';
import { problemPageOf } from './problem-page.ts';
import { reconciliationPages } from './reconciliation-pages.ts';
import { statusPages, submitPages } from './submit-pages.ts';
import type { PageSite } from './visit.ts';

export interface PagesOptions {
  readonly offer: Pick<Offer, 'baseUrl' | 'tools' | 'off' | 'protocols'>;
  /** Endpoints that pages call, and link to. */
  readonly endpoints: readonly Endpoint[];
  readonly models: ModelList;
}

export interface Pages {
  /** Pages and their files. They are for people: no document for programs describes them. */
  readonly endpoints: readonly Endpoint[];
  /** The page at `/`, whose endpoint also answers programs. */
  readonly front: FrontPage;
  /** The page of a problem, where a person would see it. */
  readonly problemPage: (problem: Problem, request: RefusedRequest) => Response | undefined;
}

/** Documents that discovery, which comes later, answers with. */
const discovered = ['/', '/openapi.json', '/llms.txt', '/agent-capabilities.json'];
const card = '/.well-known/agent-card.json';

export function startPages({ offer, endpoints, models }: PagesOptions): Pages {
  const calls = new Calls(endpoints);
  const data = catalogData(calls);
  const paths = new Set([...discovered, ...[...endpoints, ...offer.protocols].map(({ path }) => path)]);
  if (paths.has(a2aPath)) paths.add(card);
  const site: PageSite = { baseUrl: offer.baseUrl, answersAt: (path) => paths.has(path) };
  const pages = [
    ...catalogPages(site, data),
    ...submitPages(site, calls),
    ...statusPages(site, calls),
    ...comparePages(site, calls, models),
    ...authorPages(site, calls),
    ...reconciliationPages(site, calls),
  ];
  for (const { path } of pages) paths.add(path);
  return {
    endpoints: [assetEndpoint, ...pages],
    front: frontPageOf(site, data, offer),
    problemPage: problemPageOf(site),
  };
}
