// The pages of the catalog: apps, benchmarks, guides and the ranking. What an installation does not have has no page.
import { z } from 'zod';
import type { Endpoint, RequestContext } from '../http/index.ts';
import { createPageEndpoint, type PageInput, type Calls } from './page.ts';
import { appPage } from './app-page.ts';
import { benchIndexPage, benchPage } from './bench-pages.ts';
import { guideIndexPage, guidePage } from './guide-pages.ts';
import { rankPage, parseWeights } from './rank-page.ts';
import { readField, type PageSite } from './visit.ts';
import * as data from './data.ts';

const readSlug = ({ params }: PageInput): string => params['slug'] ?? '';

export function createCatalogPages(site: PageSite, data: CatalogData): Endpoint[] {
  return [
    ...createAppPages(site, data),
    ...createBenchPages(site, data),
    ...createGuidePages(site, data),
    ...createRankPages(site, data),
  ];
}

function createAppPages(site: PageSite, { project }: CatalogData): Endpoint[] {
  if (project === undefined) return [];
  return [
    createPageEndpoint(site, {
      path: '/apps/{slug}',
      operation: 'showApp',
      summary: 'An app',
      render: async (input, visit, context) => appPage(await project(readSlug(input), context), visit),
    }),
  ];
}

function createBenchPages(site: PageSite, { benches, bench }: CatalogData): Endpoint[] {
  if (benches === undefined || bench === undefined) return [];
  return [
    createPageEndpoint(site, {
      path: '/bench',
      operation: 'showBenchmarks',
      summary: 'The benchmarks',
      render: async (_input, visit, context) => benchIndexPage(await benches(undefined, context), visit),
    }),
    createPageEndpoint(site, {
      path: '/bench/{slug}',
      operation: 'showBenchmark',
      summary: 'A benchmark',
      render: async (input, visit, context) => benchPage(await bench(readSlug(input), context), visit),
    }),
  ];
}

function createGuidePages(site: PageSite, { guides, guide }: CatalogData): Endpoint[] {
  if (guides === undefined || guide === undefined) return [];
  return [
    createPageEndpoint(site, {
      path: '/guides',
      operation: 'showGuides',
      summary: 'The guides',
      render: async (_input, visit, context) => guideIndexPage(await guides(undefined, context), visit),
    }),
    createPageEndpoint(site, {
      path: '/guides/{slug}',
      operation: 'showGuide',
      summary: 'A guide',
      render: async (input, visit, context) => guidePage(await guide(readSlug(input), context), visit),
    }),
  ];
}

function createRankPages(site: PageSite, { rank }: CatalogData): Endpoint[] {
  if (rank === undefined) return [];
  return [
    createPageEndpoint(site, {
      path: '/rank',
      operation: 'showRanking',
      summary: 'The ranking',
      async render({ query }, visit, context) {
        const weights = parseWeights((name) => readField(query, name));
        const found = await rank({ weights, cursor: readField(query, 'cursor') ?? '' }, context);
        return rankPage(found, { weights, next: readCursor(found.next) }, visit);
      },
    }),
  ];
}

type Source<Input, Output> = ((input: Input, context: RequestContext) => Promise<Output>) | undefined;

export interface CatalogData {
  readonly projects: Source<data.ProjectQuery, data.ProjectPage>;
  readonly project: Source<string, data.ProjectDetail>;
  readonly benches: Source<undefined, readonly data.BenchEntry[]>;
  readonly bench: Source<string, data.Bench>;
  readonly guides: Source<undefined, readonly data.GuideEntry[]>;
  readonly guide: Source<string, data.Guide>;
  readonly rank: Source<data.RankQuery, data.Rank>;
}

const projects = z.object({ projects: z.array(data.project), total: z.int(), next: z.string().nullish() });
const benches = z.array(data.benchEntry);
const guides = z.array(data.guideEntry);

export function createCatalogData(calls: Calls): CatalogData {
  const when = <Input, Output>(
    path: string,
    read: (input: Input, context: RequestContext) => Promise<Output>,
  ): Source<Input, Output> => (calls.has('GET', path) ? read : undefined);
  return {
    projects: when('/api/projects', async ({ search, category, cursor, size }, context) => {
      const given = { q: search, category, cursor };
      const query = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''));
      const list = await calls.json('GET', '/api/projects', projects, context, {
        query: { ...query, limit: String(size), sort: 'stars' },
      });
      return { ...list, next: readCursor(list.next) };
    }),
    project: when('/api/projects/{slug}', (slug, context) =>
      calls.json('GET', '/api/projects/{slug}', data.projectDetail, context, { params: { slug } }),
    ),
    benches: when('/api/bench', (_none, context) => calls.json('GET', '/api/bench', benches, context)),
    bench: when('/api/bench/{slug}', (slug, context) =>
      calls.json('GET', '/api/bench/{slug}', data.bench, context, { params: { slug } }),
    ),
    guides: when('/api/agent-guides', (_none, context) => calls.json('GET', '/api/agent-guides', guides, context)),
    guide: when('/api/agent-guides/{slug}', (slug, context) =>
      calls.json('GET', '/api/agent-guides/{slug}', data.guide, context, { params: { slug } }),
    ),
    rank: when('/api/rank', ({ weights, cursor }, context) => {
      const given = Object.entries(weights).map(([name, weight]) => `${name}:${weight}`);
      const isWeighted = Object.values(weights).some((weight) => weight > 0);
      return calls.json('GET', '/api/rank', data.rank, context, {
        query: { ...(isWeighted ? { weights: given.join(',') } : {}), ...(cursor === '' ? {} : { cursor }) },
      });
    }),
  };
}

/** Reads the cursor from the URL of the next page. */
export function readCursor(next: string | null | undefined): string | undefined {
  return typeof next === 'string' && URL.canParse(next)
    ? (new URL(next).searchParams.get('cursor') ?? undefined)
    : undefined;
}
