// Notices events in the cache of apps, and delivers them: at least once, with the same id in every attempt. The process that
// claims a delivery makes it; another one takes over if that process dies.
import { readSlug } from '../../../crds/slugs.ts';
import { Problem } from '../../../lib/problem.ts';
import type { Logger } from '../../../lib/telemetry.ts';
import { type Fetcher, urlRefused } from '../../tools/index.ts';
import type { App, AppIndex } from '../hosted-apps.ts';
import { findMailContact, listStatusEvents, type NoticedEvent } from './events.ts';
import { MailFailure, type SendMail } from './mail.ts';
import { formatWebhookBody, type NotificationKeys } from './messages.ts';
import type { RecipientStore } from './recipients.ts';
import type { ClaimedDelivery, NotificationStore, RecordedEvent } from './store.ts';

export interface NotifierOptions {
  readonly apps: Pick<AppIndex, 'get' | 'listAll'>;
  readonly store: NotificationStore;
  readonly recipients: Pick<RecipientStore, 'findStop'>;
  readonly keys: NotificationKeys;
  /** undefined: this installation sends no mail. */
  readonly sendMail: SendMail | undefined;
  readonly fetcher: Pick<Fetcher, 'fetch'>;
  readonly baseUrl: string;
  readonly log: Logger;
  /** Aborts when the process is about to exit. */
  readonly ending: AbortSignal;
  readonly times?: Partial<DeliveryTimes> | undefined;
  readonly now?: () => number;
}

export interface DeliveryTimes {
  /** Time after which another process retries a delivery that this one has claimed; longer than one attempt. */
  readonly leaseMs: number;
  /** Delay before the second attempt; each further one is twice as long. */
  readonly firstMs: number;
}

const usualTimes: DeliveryTimes = { leaseMs: 120_000, firstMs: 30_000 };
const maxDelayMs = 4 * 3_600_000;
const webhookMs = 10_000;
/** Parallel deliveries per process. */
const atOnce = 10;
/** What happened earlier is no news, such as when notifications are first switched on. */
const newsMs = 24 * 3_600_000;
/** A statement or a payout is still news for so long. */
const authorNewsMs = 7 * newsMs;

export class Notifier {
  readonly #options: NotifierOptions;
  /** The apps whose events are all recorded, by UID, and those events. What has not changed costs no query. */
  readonly #settled = new Map<string, { readonly app: App; readonly events: string }>();

  constructor(options: NotifierOptions) {
    this.#options = options;
  }

  /**
   * Records the events of all apps as they are now. Call this repeatedly: it compares the state with what was recorded, so
   * nothing is lost while the API or the database is away.
   */
  async notice(): Promise<void> {
    const apps = this.#options.apps.listAll();
    const uids = new Set(apps.map(({ metadata }) => metadata.uid));
    for (const uid of this.#settled.keys()) if (!uids.has(uid)) this.#settled.delete(uid);
    for (const app of apps) {
      if (this.#options.ending.aborted) return;
      // The cache has a new object for each change.
      if (this.#settled.get(app.metadata.uid)?.app !== app) await this.#noticeApp(app);
    }
  }

  /** @throws Problem while there is no database */
  async #noticeApp(app: App): Promise<void> {
    const { uid, name } = app.metadata;
    let events: string;
    try {
      const found = listStatusEvents(app);
      events = JSON.stringify(found.map(({ kind, subject }) => [kind, subject]));
      if (this.#settled.get(uid)?.events !== events) {
        this.#settled.delete(uid);
        for (const event of found) if ((await this.notify(app, event)).outcome === 'postponed') return;
      }
    } catch (error) {
      if (error instanceof Problem) throw error;
      // One app must not keep the others from being noticed. It is tried again when it changes.
      events = 'failed';
      this.#options.log.error({ err: error, app: name }, 'cannot notice what happened to an app');
    }
    this.#settled.set(uid, { app, events });
  }

  /** Records one event of an app, to be sent to its targets. An event that was recorded before has no effect. */
  async notify(app: App, event: NoticedEvent): Promise<RecordedEvent> {
    const { store, keys, sendMail, now = Date.now } = this.#options;
    const { uid } = app.metadata;
    const slug = readSlug(app);
    const address = sendMail === undefined ? undefined : findMailContact(app);
    const contact = address === undefined ? undefined : keys.hashContact(address);
    const isNews = now() - event.at.getTime() < (event.isOfAuthor === true ? authorNewsMs : newsMs);
    return store.record({ uid, slug }, event, { sendsMail: sendMail !== undefined, contact, isNews });
  }

  /** Makes the deliveries that are due. Call this repeatedly. @returns the number of attempts */
  async deliver(): Promise<number> {
    const { store, ending } = this.#options;
    if (ending.aborted) return 0;
    const due = await store.claim(this.#times.leaseMs, atOnce);
    await Promise.all(due.map((delivery) => this.#try(delivery)));
    return due.length;
  }

  get #times(): DeliveryTimes {
    return { ...usualTimes, ...this.#options.times };
  }

  async #try(delivery: ClaimedDelivery): Promise<void> {
    const { store, ending, log } = this.#options;
    try {
      const skipped = delivery.channel === 'mail' ? await this.#mail(delivery) : await this.#post(delivery);
      if (skipped === undefined) await store.succeed(delivery);
      else await store.skip(delivery, skipped);
    } catch (error) {
      // The next process retries immediately.
      if (ending.aborted) {
        await store.retry(delivery, 0, null);
        return;
      }
      const failure = describeFailure(error);
      const { id, app, attempts, channel } = delivery;
      log.warn({ err: error, event: id, app, channel, attempt: attempts }, 'a notification was not delivered');
      if (failure.isOfTarget) await store.markFailing(delivery, failure.isGone);
      if (failure.isFinal) await store.abandon(delivery, failure.why);
      else await store.retry(delivery, computeRetryDelayMs(attempts, this.#times.firstMs), failure.why);
    }
  }

  /** @returns why there was nothing to send. @throws MailFailure */
  async #mail(delivery: ClaimedDelivery): Promise<string | undefined> {
    const { apps, keys, sendMail, recipients, baseUrl } = this.#options;
    const { app: uid, recipient: contact, version } = delivery;
    const app = apps.get(delivery.slug);
    if (app?.metadata.uid !== uid) return 'The app was deleted.';
    if (sendMail === undefined) return 'This installation sends no mail any more.';
    if (delivery.off_at !== null) return 'Mails were switched off after seven days of failures.';
    const to = this.#findAddress(app, delivery);
    if (to === undefined || keys.hashContact(to) !== contact) return 'The contact of the app has changed.';
    if ((await recipients.findStop(uid, contact)) !== undefined) return 'The mails were stopped.';
    const stopUrl = `${baseUrl}/notifications/stop/${keys.createStopToken({ app: uid, contact })}`;
    if (delivery.kind !== 'confirm') await sendMail({ event: delivery, to, stopUrl });
    else if (version === null || version !== delivery.subject) return 'The contact was removed, or asked again.';
    else {
      const token = keys.createConfirmToken({ app: uid, contact, version });
      await sendMail({ event: delivery, to, stopUrl, confirmUrl: `${baseUrl}/notifications/confirm/${token}` });
    }
    return undefined;
  }

  /** The address of a mail: the contact in the repository, or one that was added and confirmed. */
  #findAddress(app: App, { recipient, address, confirmed_at: confirmedAt, kind }: ClaimedDelivery): string | undefined {
    const { keys } = this.#options;
    const contact = findMailContact(app);
    if (contact !== undefined && keys.hashContact(contact) === recipient) return contact;
    if (address === null || (confirmedAt === null && kind !== 'confirm')) return undefined;
    return keys.openAddress(app.metadata.uid, address);
  }

  /** @returns why there was nothing to send. @throws Problem (url-refused, fetch-failed, …), WebhookRefusal */
  async #post(delivery: ClaimedDelivery): Promise<string | undefined> {
    const { keys, fetcher, baseUrl, ending, now = Date.now } = this.#options;
    const { id, app, url, version } = delivery;
    if (url === null || version === null) return 'The webhook was removed.';
    if (delivery.off_at !== null) return 'The webhook was switched off.';
    const body = formatWebhookBody(delivery, baseUrl);
    const signature = keys.signWebhook({ app, version }, { id, body, sentAt: new Date(now()) });
    const { status } = await fetcher.fetch({
      url,
      method: 'POST',
      headers: { 'content-type': 'application/json', ...signature },
      body,
      httpsOnly: true,
      // The author did not name the target of a redirect.
      stayHere: true,
      maxBytes: 65_536,
      timeoutMs: webhookMs,
      signal: ending,
    });
    if (status < 200 || status > 299) throw new WebhookRefusal(status);
    return undefined;
  }
}

/** Computes the delay after a failed attempt. With jitter, so that a receiver that was away does not get everything at the same moment. */
export function computeRetryDelayMs(attempts: number, firstMs = usualTimes.firstMs): number {
  return Math.min(firstMs * 2 ** (attempts - 1), maxDelayMs) * (0.8 + Math.random() * 0.4);
}

class WebhookRefusal extends Error {
  override readonly name = 'WebhookRefusal';
  readonly status: number;

  constructor(status: number) {
    const isRedirect = status >= 300 && status < 400;
    super(`The webhook answered with status ${status}${isRedirect ? ', and redirects are not followed' : ''}.`);
    this.status = status;
  }
}

interface Failure {
  /** In words for the author. */
  readonly why: string;
  /** The target failed, not this installation. */
  readonly isOfTarget: boolean;
  /** Another attempt would have the same result. */
  readonly isFinal: boolean;
  /** The receiver asked for no more (410, as Standard Webhooks has it). */
  readonly isGone: boolean;
}

function describeFailure(error: unknown): Failure {
  if (error instanceof MailFailure)
    return { why: error.message, isOfTarget: error.isRefused, isFinal: error.isFinal, isGone: false };
  if (error instanceof WebhookRefusal) {
    const isGone = error.status === 410;
    return { why: error.message, isOfTarget: true, isFinal: isGone, isGone };
  }
  if (error instanceof Problem && /^(?:url|fetch)-/.test(error.type.slug))
    return { why: error.message.slice(0, 300), isOfTarget: true, isFinal: error.type === urlRefused, isGone: false };
  return { why: 'The delivery failed on our side.', isOfTarget: false, isFinal: false, isGone: false };
}
