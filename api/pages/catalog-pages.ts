// Pages of the catalog: apps, benchmarks, guides and the ranking, as far as this installation has them.
import type { Endpoint } from '../http/index.ts';
import { type CatalogData, cursorOf } from './catalog-data.ts';
import { pageEndpoint, type PageInput } from './page.ts';
import { appPage } from './views/app.ts';
import { benchIndexPage, benchPage } from './views/bench.ts';
import { guideIndexPage, guidePage } from './views/guides.ts';
import { rankPage, weightsOf } from './views/rank.ts';
import { field, type PageSite } from './visit.ts';

const slugOf = ({ params }: PageInput): string => params['slug'] ?? '';

export function catalogPages(site: PageSite, data: CatalogData): Endpoint[] {
  return [...appPages(site, data), ...benchPages(site, data), ...guidePages(site, data), ...rankPages(site, data)];
}

function appPages(site: PageSite, { project }: CatalogData): Endpoint[] {
  if (project === undefined) return [];
  return [
    pageEndpoint(site, {
      path: '/apps/{slug}',
      operation: 'showApp',
      summary: 'An app',
      render: async (input, visit, context) => appPage(await project(slugOf(input), context), visit),
    }),
  ];
}

function benchPages(site: PageSite, { benches, bench }: CatalogData): Endpoint[] {
  if (benches === undefined || bench === undefined) return [];
  return [
    pageEndpoint(site, {
      path: '/bench',
      operation: 'showBenchmarks',
      summary: 'The benchmarks',
      render: async (_input, visit, context) => benchIndexPage(await benches(undefined, context), visit),
    }),
    pageEndpoint(site, {
      path: '/bench/{slug}',
      operation: 'showBenchmark',
      summary: 'A benchmark',
      render: async (input, visit, context) => benchPage(await bench(slugOf(input), context), visit),
    }),
  ];
}

function guidePages(site: PageSite, { guides, guide }: CatalogData): Endpoint[] {
  if (guides === undefined || guide === undefined) return [];
  return [
    pageEndpoint(site, {
      path: '/guides',
      operation: 'showGuides',
      summary: 'The guides',
      render: async (_input, visit, context) => guideIndexPage(await guides(undefined, context), visit),
    }),
    pageEndpoint(site, {
      path: '/guides/{slug}',
      operation: 'showGuide',
      summary: 'A guide',
      render: async (input, visit, context) => guidePage(await guide(slugOf(input), context), visit),
    }),
  ];
}

function rankPages(site: PageSite, { rank }: CatalogData): Endpoint[] {
  if (rank === undefined) return [];
  return [
    pageEndpoint(site, {
      path: '/rank',
      operation: 'showRanking',
      summary: 'The ranking',
      async render({ query }, visit, context) {
        const weights = weightsOf((name) => field(query, name));
        const found = await rank({ weights, cursor: field(query, 'cursor') ?? '' }, context);
        return rankPage(found, { weights, next: cursorOf(found.next) }, visit);
      },
    }),
  ];
}
