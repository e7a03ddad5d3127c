// The endpoints with which an author sees and chooses how they are notified: the webhook, the events, the mails, and a test.
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { ledgerUnavailable, ledgerUnconfigured } from '../../billing/index.ts';
import { defineEndpoint, type Endpoint } from '../../http/index.ts';
import { type Fetcher, fetchFailed, urlRefused } from '../../tools/index.ts';
import type { AuthorAccess } from '../author/access.ts';
import { changeProblems, slugParams } from '../author/endpoints.ts';
import type { AppIndex } from '../hosted-apps.ts';
import { noNotifications, readingProblems, tooManyTests } from '../problems.ts';
import type { Notifier } from './deliveries.ts';
import { chosenKind, chosenKinds, createTestEvent, findMailContact, testGapMs } from './events.ts';
import type { NotificationKeys } from './messages.ts';
import type { RecipientRow, RecipientStore } from './recipients.ts';
import { channel, type DeliveryRow, type NotificationStore } from './store.ts';

export interface NotificationServices {
  readonly apps: Pick<AppIndex, 'listAll'>;
  readonly access: AuthorAccess;
  readonly store: NotificationStore;
  readonly recipients: RecipientStore;
  readonly keys: NotificationKeys;
  readonly notifier: Notifier;
  readonly fetcher: Pick<Fetcher, 'check'>;
  readonly sendsMail: boolean;
  readonly now?: () => Date;
}

export const path = '/api/apps/{slug}/notifications';
const listedDeliveries = 50;
export const databaseProblems = [ledgerUnconfigured, ledgerUnavailable];

export function createNotificationEndpoints(services: NotificationServices): Endpoint[] {
  return [
    createListEndpoint(services),
    createWebhookEndpoint(services),
    createWebhookRemoval(services),
    createMailEndpoint(services),
    createChoiceEndpoint(services),
    createTestEndpoint(services),
  ];
}

const targetState = {
  failing_since: z.string().optional().describe('Since when every attempt has failed.'),
  off_since: z.string().optional().describe('When it was switched off: it had failed for seven days, or answered 410.'),
};

export const notificationsView = z.object({
  events: z.array(chosenKind).describe('Events that can be sent.'),
  mail: z
    .object({
      sent: z.boolean().describe('Whether mails are sent.'),
      to: z.string().optional().describe('The contact, shortened.'),
      reason: z.string().optional().describe('Why none are sent.'),
      events: z.array(z.string()).describe('Events that are sent by mail, to every contact.'),
      ...targetState,
    })
    .describe('Mails to the contact in the repository of the app.'),
  contacts: z
    .array(
      z.object({
        id: z.string(),
        to: z.string().describe('The address, shortened.'),
        confirmed: z.boolean(),
        sent: z.boolean().describe('Whether mails are sent.'),
        reason: z.string().optional().describe('Why none are sent.'),
        added_at: z.string(),
        ...targetState,
      }),
    )
    .describe('Contacts that were added here.'),
  webhook: z.object({ url: z.string(), events: z.array(z.string()), added_at: z.string(), ...targetState }).optional(),
  deliveries: z
    .array(
      z.object({
        event: z.string().describe('Id of the event: webhook-id of a webhook, and part of the Message-ID of a mail.'),
        type: z.string(),
        subject: z.string().describe('Commit, time or day that the event is about.'),
        channel,
        to: z.string().optional().describe('The recipient, shortened.'),
        at: z.string(),
        state: z
          .enum(['waiting', 'delivered', 'abandoned', 'skipped'])
          .describe(
            'abandoned: given up after 24 hours, or refused for good. skipped: there was no reason to send it any more.',
          ),
        attempts: z.int(),
        next_attempt_at: z.string().optional(),
        ended_at: z.string().optional(),
        error: z.string().optional().describe('What went wrong in the last attempt, or why it was skipped.'),
      }),
    )
    .describe('The newest 50.'),
});

function createListEndpoint(services: NotificationServices): Endpoint {
  const { access, store, recipients, keys, sendsMail } = services;
  return defineEndpoint({
    method: 'GET',
    path,
    operation: 'listNotifications',
    tag: 'apps',
    summary: 'List how an author is notified',
    description: 'Where notifications of the app go, and how the last ones went.',
    params: slugParams,
    output: notificationsView,
    outputDescription: 'Recipients and deliveries.',
    returnsCallerData: true,
    problems: [...readingProblems, ...databaseProblems],
    head: 'as GET',
    handler: async ({ params }, context) => {
      const { app } = await access.identify(params.slug, context, 'listNotifications');
      const { uid } = app.metadata;
      const [rows, choices, deliveries] = await Promise.all([
        recipients.list(uid),
        recipients.listChoices(uid),
        store.listDeliveries(uid, listedDeliveries),
      ]);
      const address = findMailContact(app);
      const hash = address === undefined ? undefined : keys.hashContact(address);
      const stopped = hash === undefined ? undefined : await recipients.findStop(uid, hash);
      const mail = rows.find((row) => row.channel === 'mail' && row.recipient === hash);
      const reason = explainNoMail({ slug: params.slug, address, sendsMail, stopped, target: mail });
      const webhook = rows.find((row) => row.channel === 'webhook');
      const contacts = rows
        .filter((row) => row.channel === 'mail' && row.address !== null)
        .map((row) => toContactView(row, keys.openAddress(uid, row.address ?? ''), services));
      const names = new Map(contacts.map(({ id, to }) => [id, to]));
      if (hash !== undefined && address !== undefined) names.set(hash, maskAddress(address));
      return {
        events: [...chosenKinds],
        mail: {
          sent: reason === undefined,
          to: address === undefined ? undefined : maskAddress(address),
          reason,
          events: [...(choices.get('mail') ?? chosenKinds)],
          ...toTargetState(mail),
        },
        contacts,
        webhook:
          webhook?.url == null
            ? undefined
            : {
                url: webhook.url,
                events: [...(choices.get('webhook') ?? chosenKinds)],
                added_at: webhook.created_at.toISOString(),
                ...toTargetState(webhook),
              },
        deliveries: deliveries.map((row) => ({ ...toDeliveryView(row), to: names.get(row.recipient) })),
      };
    },
  });
}

function toContactView(
  row: RecipientRow,
  address: string | undefined,
  { sendsMail }: Pick<NotificationServices, 'sendsMail'>,
): z.input<typeof notificationsView>['contacts'][number] {
  const reason = explainNoContact(row, address, sendsMail);
  return {
    id: row.recipient,
    to: address === undefined ? '…' : maskAddress(address),
    confirmed: row.confirmed_at !== null,
    sent: reason === undefined,
    reason,
    added_at: row.created_at.toISOString(),
    ...toTargetState(row),
  };
}

/** Why a contact that was added gets no mail; undefined: they do. */
function explainNoContact(row: RecipientRow, address: string | undefined, sendsMail: boolean): string | undefined {
  if (!sendsMail) return noMailServer;
  if (address === undefined) return 'The address cannot be read any more. Remove the contact and add them again.';
  if (row.stopped_at !== null) return `The contact stopped the mails at ${row.stopped_at.toISOString()}.`;
  if (row.off_at !== null) return 'Mails to this address failed for seven days. Remove the contact and add them again.';
  if (row.confirmed_at !== null) return undefined;
  return row.is_confirmable
    ? 'The address is not confirmed yet: a mail with a link was sent to it.'
    : 'The link to confirm the address has expired. Add the contact again.';
}

interface MailState {
  readonly slug: string;
  readonly address: string | undefined;
  readonly sendsMail: boolean;
  readonly stopped?: Date | undefined;
  readonly target?: Pick<RecipientRow, 'off_at'> | undefined;
}

export const noMailServer = 'This installation sends no mail. Its operator can set mail.urlSecret of the chart.';

/** Why no mail is sent; undefined: mails are sent. */
function explainNoMail({ slug, address, sendsMail, stopped, target }: MailState): string | undefined {
  const start = `PUT /api/apps/${slug}/notifications/mail starts them again.`;
  if (!sendsMail) return noMailServer;
  if (address === undefined)
    return 'The app has no e-mail address that its author confirmed. Set author.contact in moorage.yaml, or commit the ownership token to .moorage-owner.';
  if (stopped !== undefined) return `The mails were stopped at ${stopped.toISOString()}. ${start}`;
  if (target?.off_at != null) return `The mails were switched off after seven days of failures. ${start}`;
  return undefined;
}

function toTargetState(target: Pick<RecipientRow, 'failing_since' | 'off_at'> | undefined): {
  failing_since?: string | undefined;
  off_since?: string | undefined;
} {
  return { failing_since: target?.failing_since?.toISOString(), off_since: target?.off_at?.toISOString() };
}

/** The first letter and the domain, so that an author recognizes an address and others cannot use it. */
export function maskAddress(address: string): string {
  const at = address.lastIndexOf('@');
  return `${address.slice(0, 1)}…${address.slice(at)}`;
}

function toDeliveryView(row: DeliveryRow): z.input<typeof notificationsView>['deliveries'][number] {
  const { id, kind, subject, at, state, attempts } = row;
  return {
    event: id,
    type: kind,
    subject,
    channel: row.channel,
    at: at.toISOString(),
    state,
    attempts,
    next_attempt_at: state === 'waiting' ? row.due_at.toISOString() : undefined,
    ended_at: row.ended_at?.toISOString(),
    error: row.last_error ?? undefined,
  };
}

/** Kinds of events, without repetitions. */
const chosenEvents = z
  .array(chosenKind)
  .min(1)
  .max(chosenKinds.length)
  .transform((kinds) => [...new Set(kinds)]);

export const webhookView = z.object({
  url: z.string(),
  events: z.array(z.string()),
  secret: z.string().describe('Signing secret. It is shown only in this response, and not stored.'),
  message: z.string(),
});

function createWebhookEndpoint({ access, recipients, keys, fetcher }: NotificationServices): Endpoint {
  return defineEndpoint({
    method: 'PUT',
    path: `${path}/webhook`,
    operation: 'setNotificationWebhook',
    tag: 'apps',
    summary: 'Set the webhook of an app',
    description:
      'Events are posted to the URL as JSON, signed as Standard Webhooks describes (webhook-id, webhook-timestamp, webhook-signature). Each is sent at least once, with the same webhook-id in every attempt: for 24 hours, with growing pauses, until the answer is 2xx. Redirects are not followed. Setting the webhook again replaces the URL and the signing secret.',
    params: slugParams,
    body: z.strictObject({
      url: z.string().min(1).max(2_000).describe('Public https URL.'),
      events: chosenEvents.default([...chosenKinds]).describe('Events to send. Default: all, also those added later.'),
    }),
    output: webhookView,
    outputDescription: 'The webhook and its signing secret.',
    returnsCallerData: true,
    problems: [...changeProblems, urlRefused, fetchFailed],
    handler: async ({ params, body }, context) => {
      const { events } = body;
      // Paths of webhooks often are secrets.
      const detail = { origin: URL.canParse(body.url) ? new URL(body.url).origin : '', events };
      return access.act(
        params.slug,
        context,
        { operation: 'setNotificationWebhook', action: 'set-webhook', detail },
        async ({ app }) => {
          await fetcher.check({ url: body.url, httpsOnly: true, signal: context.signal });
          const { uid } = app.metadata;
          const version = await recipients.setWebhook(uid, body.url, events);
          return {
            url: body.url,
            events,
            secret: keys.createWebhookSecret(uid, version),
            message: `Keep the secret: verify each request with it. POST /api/apps/${params.slug}/notifications/test sends a test.`,
          };
        },
      );
    },
  });
}

export const messageView = z.object({ slug: z.string(), message: z.string() });

function createWebhookRemoval({ access, recipients }: NotificationServices): Endpoint {
  return defineEndpoint({
    method: 'DELETE',
    path: `${path}/webhook`,
    operation: 'removeNotificationWebhook',
    tag: 'apps',
    summary: 'Remove the webhook of an app',
    description: 'Nothing more is sent to it, not even what is waiting. Removing none succeeds.',
    params: slugParams,
    output: messageView,
    outputDescription: 'There is no webhook any more.',
    problems: changeProblems,
    handler: async ({ params }, context) =>
      access.act(
        params.slug,
        context,
        { operation: 'removeNotificationWebhook', action: 'remove-webhook' },
        async ({ app }) => {
          const isRemoved = await recipients.removeWebhook(app.metadata.uid);
          return { slug: params.slug, message: isRemoved ? 'The webhook is removed.' : 'There was no webhook.' };
        },
      ),
  });
}

function createMailEndpoint({ access, recipients, keys, sendsMail }: NotificationServices): Endpoint {
  return defineEndpoint({
    method: 'PUT',
    path: `${path}/mail`,
    operation: 'startNotificationMail',
    tag: 'apps',
    summary: 'Start the mails about an app again',
    description:
      'Undoes the link that stopped the mails to the contact in the repository, and the end after seven days of failures.',
    params: slugParams,
    output: messageView,
    outputDescription: 'Mails are sent.',
    problems: [...changeProblems, noNotifications],
    handler: async ({ params }, context) =>
      access.act(
        params.slug,
        context,
        { operation: 'startNotificationMail', action: 'start-mail' },
        async ({ app }) => {
          const address = findMailContact(app);
          const reason = explainNoMail({ slug: params.slug, address, sendsMail });
          if (address === undefined || reason !== undefined) throw new Problem(noNotifications, reason ?? '');
          await recipients.startMail(app.metadata.uid, keys.hashContact(address));
          return { slug: params.slug, message: `Mails about ${params.slug} go to ${maskAddress(address)}.` };
        },
      ),
  });
}

function createChoiceEndpoint({ access, recipients }: NotificationServices): Endpoint {
  return defineEndpoint({
    method: 'PUT',
    path: `${path}/{channel}/events`,
    operation: 'chooseNotificationEvents',
    tag: 'apps',
    summary: 'Choose the events that a channel sends',
    description: 'With all of them, those that are added later are sent, too.',
    params: slugParams.extend({ channel }),
    body: z.strictObject({ events: chosenEvents.describe('Events to send.') }),
    output: messageView,
    outputDescription: 'The events are chosen.',
    problems: changeProblems,
    handler: async ({ params, body }, context) => {
      const detail = { channel: params.channel, events: body.events };
      return access.act(
        params.slug,
        context,
        { operation: 'chooseNotificationEvents', action: 'choose-events', detail },
        async ({ app }) => {
          await recipients.choose(app.metadata.uid, params.channel, body.events);
          const count = `${body.events.length} of ${chosenKinds.length}`;
          return { slug: params.slug, message: `The ${params.channel} sends ${count} kinds of events.` };
        },
      );
    },
  });
}

function createTestEndpoint({ access, notifier, now = () => new Date() }: NotificationServices): Endpoint {
  return defineEndpoint({
    method: 'POST',
    path: `${path}/test`,
    operation: 'testNotifications',
    tag: 'apps',
    summary: 'Send a test notification',
    description: 'Sends an event of the type test to every target, whichever events it has chosen.',
    params: slugParams,
    output: messageView.extend({ event: z.string(), channels: z.array(channel) }),
    outputDescription: 'The test is being sent.',
    problems: [...changeProblems, noNotifications, tooManyTests],
    handler: async ({ params }, context) =>
      access.act(
        params.slug,
        context,
        { operation: 'testNotifications', action: 'test-notifications' },
        async ({ app }) => {
          const { id, channels } = await notifier.notify(app, createTestEvent(app, randomUUID(), now()));
          if (id === undefined)
            throw new Problem(tooManyTests, 'A test was sent within the last 30 seconds.', {
              headers: { 'retry-after': String(testGapMs / 1000) },
            });
          if (channels.length === 0)
            throw new Problem(
              noNotifications,
              `Nothing was sent. GET /api/apps/${params.slug}/notifications says why no mails are sent; PUT /api/apps/${params.slug}/notifications/webhook adds a webhook.`,
            );
          return {
            slug: params.slug,
            event: id,
            channels: [...channels],
            message: `The test goes out in a few seconds. GET /api/apps/${params.slug}/notifications shows how it went.`,
          };
        },
      ),
  });
}
