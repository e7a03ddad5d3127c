// What the rest of the API uses of this room: the catalog of apps, their benchmarks, ranking and guides.
export { type Catalog, type CatalogOptions, startCatalog } from './catalog.ts';
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
