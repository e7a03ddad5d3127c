// What the rest of the catalog uses of this sub-room: the apps of this installation.
export { projectEndpoints } from './endpoints.ts';
export { readCatalogApps } from './manifests.ts';
export { Projects, type ProjectQuery, type ProjectsOptions } from './projects.ts';
export type { ProjectRecord } from './records.ts';
export { forgeRepository } from './stars/forges.ts';
export { startStars } from './stars/refresh.ts';
export { telemetryReader } from './telemetry.ts';
export { answeredWell, answeredWrong } from './traffic.ts';
export {
  type ProjectDetail,
  type ProjectEntry,
  type ProjectList,
  type Telemetry,
  type TelemetryWindow,
} from './views.ts';
