// What the rest of the API uses of this room: the catalog of apps, their benchmarks, ranking and guides.
export { type Catalog, type CatalogOptions, startCatalog } from './catalog.ts';
export {
  type BenchmarkDetail,
  benchmarkDetail,
  type BenchmarkEntry,
  benchmarkList,
  type ModelView,
  type PairView,
  type Rate,
} from './bench/views.ts';
export {
  type ProjectDetail,
  projectDetail,
  type ProjectEntry,
  projectList,
  type TelemetryWindow,
  windows,
} from './projects/views.ts';
export type { ProjectQuery, Projects } from './projects/projects.ts';
export {
  criteria,
  type Criterion,
  type RankedApp,
  type RankList,
  rankList,
  type Score,
  type Weights,
} from './rank/criteria.ts';
export type { Ranking, RankQuery } from './rank/ranking.ts';
export type { CheckedClaim } from './guides/answer.ts';
export { type EvidenceEntry, type GuideEntry, guideList, type GuideRecord, guideRecord } from './guides/endpoints.ts';
export type { GuideDetail, GuideLink, Guides } from './guides/guides.ts';
export type { SourceGuide, Step } from './guides/source.ts';
