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
  isPrivate,
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
  deployKeyView,
  submissionView,
} from './submit/endpoints.ts';
export { createLogOpener } from './submit/follow-log.ts';
export { createSubmitter } from './submit/submit-app.ts';
export { forgeTokenView } from './commit-statuses/endpoints.ts';
export { type KnownForge, knownForges } from './commit-statuses/forges.ts';
export { createForgeTokens, type ForgeTokens } from './commit-statuses/store.ts';
export { createControlWriter, createSecretCreator } from './author/control.ts';
export { auditView, ownAppView } from './author/endpoints.ts';
export { domainsView } from './author/domains.ts';
export { figureRanges, type FiguresView, figuresView } from './author/figures.ts';
export { previewsView } from './author/previews.ts';
export { hookSecretView } from './author/push-hook-secrets.ts';
export { SlugClaims } from './author/rename.ts';
export { secretsView } from './author/secrets.ts';
export { settingsView } from './author/settings.ts';
export { readSignInProviders, type SignInProvider } from './sign-in/config.ts';
export { type SignIn, type SignInAttempt, signInAttempt } from './sign-in/flow.ts';
export { scopes, viewerScopes } from './author/scopes.ts';
export { createdTokenView, tokensView } from './author/tokens.ts';
export { accessView, createdKeyView } from './author/visitors.ts';
export { type AuthorCluster, type AuthorSide, startAuthorSide } from './author/start.ts';
export { confirmView, stopView } from './notifications/contacts.ts';
export { notificationsView, webhookView } from './notifications/endpoints.ts';
export type { AuthorNews } from './notifications/events.ts';
export { type RunView, runsView, tasksView } from './tasks/endpoints.ts';
export { type MailSettings, readMailSettings } from './notifications/mail.ts';
export type { NotificationTimes } from './notifications/start.ts';
export { signInProblems } from './problems.ts';
export { createLogMetrics } from './logs/collector.ts';
export { appCrashesView, appLogView } from './logs/endpoints.ts';
