// What the rest of the catalog uses of this sub-room: the ranking of apps.
export { rankEndpoints } from './endpoints.ts';
export { type Benchmarks, Ranking, type RankQuery } from './ranking.ts';
export { startRetention } from './retention.ts';
export { startStability } from './stability.ts';
export type { RankedApp, RankList, Score } from './views.ts';
