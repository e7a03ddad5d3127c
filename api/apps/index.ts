// What the rest of the API uses of this room: hosted apps, how they are submitted and called, and their operations.
export { type AppSettings, readAppSettings } from './config.ts';
export { authorshipOf, type Authorship } from './authors.ts';
export { directory, type DirectoryOptions } from './directory.ts';
export {
  type App,
  appIndex,
  type AppIndex,
  appIndexers,
  hostedApps,
  oldestFirst,
  repositoryOf,
} from './hosted-apps.ts';
export { idleView, type IdleView, viewIdle } from './idle-view.ts';
export { liveApps } from './live-apps.ts';
export { answersAt, callUrl, type Offer, type Site } from './offer.ts';
export { type Apps, type AppsOptions, startApps } from './start.ts';
export { type LinkBase, sentence, statusView, type StatusView, viewStatus } from './status-view.ts';
export {
  createRepositoryCheck,
  createSubmitter,
  podLogs,
  submitEndpoints,
  submitMetrics,
  submitWithoutCluster,
} from './submit/index.ts';
