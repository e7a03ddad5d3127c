// What the rest of the API uses of this room: the catalog of apps, their benchmarks, ranking and guides.
export { type Catalog, type CatalogOptions, startCatalog } from './catalog.ts';
export type { ProjectDetail, ProjectEntry } from './projects/views.ts';
export type { ProjectQuery, Projects } from './projects/projects.ts';
export type { RankedApp } from './rank/criteria.ts';
export type { Ranking, RankQuery } from './rank/ranking.ts';
export type { CheckedClaim } from './guides/answer.ts';
export type { EvidenceEntry, GuideEntry, GuideRecord } from './guides/endpoints.ts';
export type { GuideDetail, GuideLink, Guides } from './guides/guides.ts';
export type { SourceGuide, Step } from './guides/source.ts';
