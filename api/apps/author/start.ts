// Starts what authors run their apps with: their access, the audit log, and all endpoints of an app's private side.
import type { AppsSite } from '../../../crds/names.ts';
import type { Logger } from '../../../lib/telemetry.ts';
import type { LedgerHandle, OpenLedger } from '../../billing/index.ts';
import { Problem } from '../../../lib/problem.ts';
import type { CallContext, Endpoint } from '../../http/index.ts';
import type { Fetcher } from '../../tools/index.ts';
import type { App, AppIndex } from '../hosted-apps.ts';
import { createForgeTokenEndpoints } from '../commit-statuses/endpoints.ts';
import { startReporter, StatusReporter } from '../commit-statuses/reporter.ts';
import { CommitStatusStore, type ForgeTokens } from '../commit-statuses/store.ts';
import { rememberSecret } from '../logs/fingerprints.ts';
import { type LogSettings, startLogs } from '../logs/start.ts';
import type { MailSettings } from '../notifications/mail.ts';
import { type NotificationsOptions, type NotificationTimes, startNotifications } from '../notifications/start.ts';
import { Accounts } from '../sign-in/accounts.ts';
import type { SignInProvider } from '../sign-in/config.ts';
import { createSignInEndpoints, SignIn } from '../sign-in/flow.ts';
import { AuthorAccess, type AuthorAccessOptions } from './access.ts';
import { AuditLog } from './audit.ts';
import type { WriteControl } from './control.ts';
import { createDeletionEndpoints } from './deletion.ts';
import { createDomainEndpoints } from './domains.ts';
import { type AuthorServices, createAuthorAppEndpoints } from './endpoints.ts';
import { appPrivate } from '../problems.ts';
import { createFigureEndpoints } from './figures.ts';
import { createPreviewEndpoint } from './previews.ts';
import { createPushHookEndpoints, PushPolls } from './push-hook.ts';
import { HookVersions } from './push-hook-secrets.ts';
import { createReleaseEndpoints } from './releases.ts';
import { createRenameEndpoint, type RenameOptions, SlugClaims } from './rename.ts';
import { applyPermissions } from './scopes.ts';
import { createSecretEndpoints } from './secrets.ts';
import { createTaskEndpoints, getRun } from '../tasks/endpoints.ts';
import { TaskRunStore } from '../tasks/run-store.ts';
import { createSettingEndpoints } from './settings.ts';
import { createTokenEndpoints, TokenStore } from './tokens.ts';
import { createVisitorEndpoints } from './visitors.ts';

/** What the cluster does for authors. */
export interface AuthorCluster {
  readonly lookUpKeys: AuthorAccessOptions['lookUpKeys'];
  readonly writeControl: WriteControl;
  readonly createSecret: AuthorServices['createSecret'];
  /** Reads a HostedApp past the cache; without it, no app is renamed. */
  readonly readApp?: RenameOptions['readApp'] | undefined;
  /** Replicas that an author may set. */
  readonly maximumReplicas: number;
  /** Default: stores a fingerprint, with which the log is masked. */
  readonly rememberSecret?: AuthorServices['rememberSecret'];
  /** Whether apps can have own domains. */
  readonly offersDomains?: boolean | undefined;
  /** How what apps print is collected; without it, it is not. */
  readonly logs?: LogSettings | undefined;
  /** Without them, no mail is sent. */
  readonly mail?: MailSettings | undefined;
  /** Where forge tokens are kept; without it, no commit statuses are reported. */
  readonly forgeTokens?: ForgeTokens | undefined;
}

export interface AuthorSideOptions {
  readonly apps: Pick<AppIndex, 'get' | 'findNameHolder' | 'listAll' | 'listPreviews'>;
  readonly site: AppsSite;
  readonly baseUrl: string;
  /** The secrets of push hooks are derived from it; without it, there are none. */
  readonly secret: string | undefined;
  /** Milliseconds from the deletion of an app by its author until it is removed. */
  readonly deleteGraceMs: number;
  /** The keys of links and signatures of notifications are derived from it. */
  readonly callerSalt: string;
  readonly ledger: LedgerHandle;
  readonly fetcher: Fetcher;
  /** Statements and payouts of the last week. */
  readonly listAuthorNews: NotificationsOptions['listAuthorNews'];
  /** Forges with whose accounts authors sign in. */
  readonly signInProviders: readonly SignInProvider[];
  /** For tests. */
  readonly notificationTimes?: Partial<NotificationTimes> | undefined;
  readonly log: Logger;
  readonly ending: AbortSignal;
}

export interface AuthorSide {
  readonly endpoints: readonly Endpoint[];
  /** @throws Problem as AuthorAccess.identify */
  readonly identifyAuthor: (slug: string, context: CallContext, what: 'status' | 'log') => Promise<unknown>;
  /** undefined without providers. */
  readonly signIn: SignIn | undefined;
  /** Begins to notice and deliver events. Call it once the cache has every app. */
  start(): void;
  stop(): Promise<void>;
}

/** Between two copies of the runs of tasks into the database. */
const recordMs = 5_000;

/** @param cluster undefined without one: then there are no endpoints */
export function startAuthorSide(cluster: AuthorCluster | undefined, site: AuthorSideOptions): AuthorSide {
  if (cluster === undefined) {
    const identifyAuthor = (): Promise<never> =>
      Promise.reject(new Problem(appPrivate, 'This installation has no authors, so nobody may read this.'));
    const nothing = { start: () => undefined, stop: () => Promise.resolve() };
    return { endpoints: [], identifyAuthor, signIn: undefined, ...nothing };
  }
  const options = { ...site, ...cluster };
  const { lookUpKeys, writeControl, readApp, apps, baseUrl, secret, deleteGraceMs, ledger, log } = options;
  const database = (): OpenLedger['database'] => ledger.get().database;
  const audit = new AuditLog(database);
  const tokens = new TokenStore(database);
  const { signInProviders: providers } = options;
  const accounts = new Accounts(providers, options.callerSalt);
  const signIn = new SignIn({ providers, accounts, baseUrl, database, log });
  const access = new AuthorAccess({ apps, lookUpKeys, tokens, accounts, audit });
  const polls = new PushPolls({ writeControl, log });
  const versions = new HookVersions(database);
  const runs = new TaskRunStore(database);
  const logs =
    options.logs &&
    startLogs({
      ...options.logs,
      ...{ apps, access, ledger, log, getRun: async (app, id) => getRun({ store: runs }, app, id) },
    });
  const logKey = options.logs?.key;
  const storeFingerprint =
    logKey === undefined
      ? undefined
      : (app: App, name: string, value: string): Promise<void> =>
          rememberSecret(ledger.get().database, app.metadata.uid, name, value, logKey);
  const services: AuthorServices = {
    ...options,
    domains: { offered: options.offersDomains === true, platform: [new URL(baseUrl).hostname, options.site.domain] },
    ...{ access, audit, tokens, rememberSecret: options.rememberSecret ?? storeFingerprint },
  };
  const notifications = startNotifications({
    ...options,
    ...{ access, mail: options.mail, secret: options.callerSalt, times: options.notificationTimes },
  });
  const { forgeTokens } = options;
  const statuses = new CommitStatusStore(database);
  const reporter =
    forgeTokens === undefined
      ? undefined
      : new StatusReporter({
          ...options,
          store: statuses,
          tokens: forgeTokens,
          providers,
          times: options.notificationTimes,
        });
  return {
    identifyAuthor: (slug, context, what) =>
      access.identify(slug, context, what === 'log' ? 'readAppLog' : 'getOwnApp'),
    signIn: providers.length === 0 ? undefined : signIn,
    endpoints: applyPermissions([
      ...createAuthorAppEndpoints(services),
      ...createFigureEndpoints(services, database),
      ...createReleaseEndpoints(services),
      createPreviewEndpoint({ access, ...{ apps, site: options.site } }),
      ...createSecretEndpoints(services),
      ...createSettingEndpoints(services),
      ...createVisitorEndpoints(services),
      ...createDomainEndpoints(services),
      ...createTaskEndpoints({ ...services, store: runs }),
      ...(readApp === undefined
        ? []
        : [createRenameEndpoint(services, { apps, readApp, claims: new SlugClaims(database) })]),
      ...createDeletionEndpoints(services, { graceMs: deleteGraceMs }),
      ...createPushHookEndpoints(services, { baseUrl, secret, polls, versions }),
      ...(forgeTokens === undefined
        ? []
        : createForgeTokenEndpoints({ access, store: statuses, tokens: forgeTokens, providers })),
      ...notifications.endpoints,
      ...createTokenEndpoints(services),
      ...createSignInEndpoints(providers, baseUrl),
      ...(logs?.endpoints ?? []),
    ]),
    start() {
      notifications.start();
      if (reporter !== undefined) startReporter(reporter, ledger, options.notificationTimes);
      void ledger.opened.then((opened) => {
        opened?.repeat('record runs of tasks', recordMs, async () => {
          await runs.recordAll(apps.listAll(), new Date());
          return 0;
        });
        opened?.repeat('purge old runs of tasks', 3_600_000, () => runs.purge());
      });
      logs?.start();
    },
    async stop() {
      await Promise.all([polls.stop(), logs?.stop()]);
    },
  };
}
