// What the rest of the API uses of this room: the catalog of apps, their benchmarks, ranking and guides.
export { type Catalog, type CatalogOptions, startCatalog } from './catalog.ts';
export type { ProjectDetail, ProjectEntry, ProjectQuery, Projects } from './projects/index.ts';
export type { RankedApp, Ranking, RankQuery } from './rank/index.ts';
export type {
  CheckedClaim,
  EvidenceEntry,
  GuideDetail,
  GuideEntry,
  GuideLink,
  GuideRecord,
  Guides,
  SourceGuide,
  Step,
} from './guides/index.ts';
