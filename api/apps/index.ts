// What the rest of the API uses of this room: hosted apps, how they are submitted and called, and their operations.
export { type AppSettings, readAppSettings } from './start.ts';
export { createDirectory, type DirectoryOptions } from './directory.ts';
export {
  type App,
  type AppIndex,
  appIndexers,
  type Authorship,
  createAppIndex,
  hostedApps,
  readAuthorship,
  readRepository,
  sortByAge,
} from './hosted-apps.ts';
export { formatCallUrl, isOffered, listLiveApps, type Offer, type Site } from './offer.ts';
export { type Apps, type AppsOptions, startApps } from './start.ts';
export {
  appToolPath,
  appToolResult,
  appTools,
  type AppTools,
  appToolsPath,
  type ListedAppTool,
} from './operations/endpoints.ts';
export {
  componentView,
  describeStatus,
  idleView,
  type IdleView,
  type LinkBase,
  statusView,
  type StatusView,
  toIdleView,
  toStatusView,
} from './status-view.ts';
export { createRepositoryCheck } from './submit/submit-app.ts';
export {
  createSubmitEndpoints,
  createSubmitMetrics,
  createSubmitWithoutCluster,
  submissionView,
} from './submit/endpoints.ts';
export { createLogOpener } from './submit/follow-log.ts';
export { createSubmitter } from './submit/submit-app.ts';
export { AuthorAccess, type AuthorAccessOptions } from './author/access.ts';
export { AuditLog } from './author/audit.ts';
export { createControlWriter, type WriteControl } from './author/control.ts';
export { createAuthorAppEndpoints } from './author/endpoints.ts';
export { createLogMetrics } from './logs/collector.ts';
export { type Logs, type LogSettings, startLogs } from './logs/start.ts';
