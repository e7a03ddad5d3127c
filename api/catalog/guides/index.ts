// What the rest of the catalog uses of this room: the guides for agents.
export type { CheckedClaim } from './answer.ts';
export type { Benchmark, BenchmarkOf } from './benchmark.ts';
export { type GuideDetail, type GuideLink, type Guides, type GuidesOptions, startGuides } from './guides.ts';
export type { EvidenceEntry, GuideEntry, GuideRecord } from './record.ts';
export type { SourceGuide } from './source.ts';
export type { Step } from './steps.ts';
