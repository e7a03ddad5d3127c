// Starts notifications: the tasks that notice and deliver events, and the endpoints over them.
import type { Logger } from '../../../lib/telemetry.ts';
import { formatMoney, type LedgerHandle, type OpenLedger, parseMoney } from '../../billing/index.ts';
import type { Endpoint } from '../../http/index.ts';
import { toModelApp } from '../../models/index.ts';
import type { Fetcher } from '../../tools/index.ts';
import type { AuthorAccess } from '../author/access.ts';
import { type App, type AppIndex, readAuthorship } from '../hosted-apps.ts';
import { createContactEndpoints } from './contacts.ts';
import { type DeliveryTimes, Notifier } from './deliveries.ts';
import { createNotificationEndpoints, type NotificationServices } from './endpoints.ts';
import { type AuthorNews, createAuthorEvent, findBudgetEvent } from './events.ts';
import { createMailer, type MailSettings } from './mail.ts';
import { NotificationKeys } from './messages.ts';
import { RecipientStore } from './recipients.ts';
import { NotificationStore } from './store.ts';

export interface NotificationsOptions {
  readonly apps: Pick<AppIndex, 'get' | 'listAll'>;
  readonly access: AuthorAccess;
  readonly ledger: LedgerHandle;
  /** undefined: no mail is sent. */
  readonly mail: MailSettings | undefined;
  readonly fetcher: Fetcher;
  /** Secret of the installation, from which the keys of links and signatures are derived. */
  readonly secret: string;
  /** Like https://moorage.localhost, without a slash at the end. */
  readonly baseUrl: string;
  /** Statements and payouts of the last week. */
  readonly listAuthorNews: () => Promise<readonly AuthorNews[]>;
  readonly log: Logger;
  readonly ending: AbortSignal;
  /** For tests. */
  readonly times?: Partial<NotificationTimes> | undefined;
}

export interface NotificationTimes extends DeliveryTimes {
  readonly noticeMs: number;
  readonly deliverMs: number;
  /** Between two looks at budgets, statements and payouts. */
  readonly accountsMs: number;
}

export interface Notifications {
  readonly endpoints: readonly Endpoint[];
  /** Begins to notice and deliver. Call it once the cache has every app. */
  start(): void;
}

export function startNotifications(options: NotificationsOptions): Notifications {
  const { apps, access, ledger, mail, fetcher, secret, baseUrl, listAuthorNews, log, ending, times = {} } = options;
  const store = new NotificationStore(() => ledger.get().database);
  const recipients = new RecipientStore(() => ledger.get().database);
  const keys = new NotificationKeys(secret);
  const sendMail = mail === undefined ? undefined : createMailer(mail, baseUrl);
  const notifier = new Notifier({ apps, store, recipients, keys, sendMail, fetcher, baseUrl, log, ending, times });
  const services: NotificationServices = {
    ...{ apps, access, store, recipients, keys, notifier, fetcher },
    sendsMail: sendMail !== undefined,
  };
  return {
    endpoints: [...createNotificationEndpoints(services), ...createContactEndpoints(services)],
    start() {
      void ledger.opened.then((opened) => {
        if (opened === undefined) return;
        opened.repeat('notice events of apps', times.noticeMs ?? 5_000, async () => {
          await notifier.notice();
          return 0;
        });
        opened.repeat('deliver notifications', times.deliverMs ?? 2_000, () => notifier.deliver());
        opened.repeat('notice budgets, statements and payouts', times.accountsMs ?? 60_000, async () => {
          await recordBudgets(opened, apps.listAll(), notifier);
          await recordAuthorNews(await listAuthorNews(), apps.listAll(), notifier);
          return 0;
        });
        opened.repeat('purge old notifications', 3_600_000, async () => {
          await recipients.forget(apps.listAll().map(({ metadata }) => metadata.uid));
          return store.purge();
        });
      });
    },
  };
}

/**
 * Notices apps that have used most of their daily budget for models. The day before counts too: what was spent shortly before
 * midnight, or while no process ran, is noticed after it.
 */
export async function recordBudgets(
  { ledger }: { readonly ledger: Pick<OpenLedger['ledger'], 'listAppBudgets'> },
  apps: readonly App[],
  notifier: Pick<Notifier, 'notify'>,
): Promise<void> {
  const byName = new Map(apps.map((app) => [app.metadata.name, app]));
  for (const { app: name, day, used } of await ledger.listAppBudgets()) {
    const app = byName.get(name);
    const found = app === undefined ? undefined : toModelApp(app);
    if (app === undefined || found?.enabled !== true) continue;
    const limit = parseMoney(found.dailyBudgetUsd);
    const event = findBudgetEvent(app, { used, limit, limitUsd: formatMoney(limit), day }, new Date());
    if (event !== undefined) await notifier.notify(app, event);
  }
}

/** Notices statements and payouts, for each app of their author. */
export async function recordAuthorNews(
  news: readonly AuthorNews[],
  apps: readonly App[],
  notifier: Pick<Notifier, 'notify'>,
): Promise<void> {
  if (news.length === 0) return;
  const byAuthor = Map.groupBy(apps, (app) => readAuthorship(app).author);
  for (const each of news)
    for (const app of byAuthor.get(each.author) ?? []) await notifier.notify(app, createAuthorEvent(app, each));
}
