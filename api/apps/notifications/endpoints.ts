// The endpoints with which an author chooses how they are notified, and the link with which a recipient stops the mails.
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { ledgerUnavailable, ledgerUnconfigured } from '../../billing/index.ts';
import { defineEndpoint, type Endpoint } from '../../http/index.ts';
import { type Fetcher, fetchFailed, urlRefused } from '../../tools/index.ts';
import type { AuthorAccess } from '../author/access.ts';
import { changeProblems, slugParams } from '../author/endpoints.ts';
import type { App, AppIndex } from '../hosted-apps.ts';
import { noNotifications, readingProblems, tooManyTests, unknownStopLink } from '../problems.ts';
import type { Notifier } from './deliveries.ts';
import { chosenKind, chosenKinds, createTestEvent, findMailContact, testGapMs } from './events.ts';
import type { NotificationKeys, StopTarget } from './messages.ts';
import { channel, type DeliveryRow, type NotificationStore, type TargetRow } from './store.ts';

export interface NotificationServices {
  readonly apps: Pick<AppIndex, 'listAll'>;
  readonly access: AuthorAccess;
  readonly store: NotificationStore;
  readonly keys: NotificationKeys;
  readonly notifier: Notifier;
  readonly fetcher: Pick<Fetcher, 'check'>;
  readonly sendsMail: boolean;
  readonly now?: () => Date;
}

const path = '/api/apps/{slug}/notifications';
const listedDeliveries = 50;
const databaseProblems = [ledgerUnconfigured, ledgerUnavailable];

export function createNotificationEndpoints(services: NotificationServices): Endpoint[] {
  return [
    createListEndpoint(services),
    createWebhookEndpoint(services),
    createWebhookRemoval(services),
    createMailEndpoint(services),
    createTestEndpoint(services),
    ...createStopEndpoints(services),
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
      ...targetState,
    })
    .describe('Mails to the contact of the app.'),
  webhook: z.object({ url: z.string(), events: z.array(z.string()), added_at: z.string(), ...targetState }).optional(),
  deliveries: z
    .array(
      z.object({
        event: z.string().describe('Id of the event: webhook-id of a webhook, and part of the Message-ID of a mail.'),
        type: z.string(),
        subject: z.string().describe('Commit, time or day that the event is about.'),
        channel,
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

function createListEndpoint({ access, store, keys, sendsMail }: NotificationServices): Endpoint {
  return defineEndpoint({
    method: 'GET',
    path,
    operation: 'listNotifications',
    tag: 'apps',
    summary: 'List how an author is notified',
    description: 'Where notifications of the app go, and how the last ones went.',
    params: slugParams,
    output: notificationsView,
    outputDescription: 'Targets and deliveries.',
    returnsCallerData: true,
    problems: [...readingProblems, ...databaseProblems],
    head: 'as GET',
    handler: async ({ params }, context) => {
      const { app } = await access.identify(params.slug, context, 'listNotifications');
      const { uid } = app.metadata;
      const [targets, deliveries] = await Promise.all([
        store.listTargets(uid),
        store.listDeliveries(uid, listedDeliveries),
      ]);
      const address = findMailContact(app);
      const stopped = address === undefined ? undefined : await store.findStop(uid, keys.hashContact(address));
      const mail = targets.find((target) => target.channel === 'mail');
      const reason = explainNoMail({ slug: params.slug, address, sendsMail, stopped, target: mail });
      const webhook = targets.find((target) => target.channel === 'webhook');
      return {
        events: [...chosenKinds],
        mail: {
          sent: reason === undefined,
          to: address === undefined ? undefined : maskAddress(address),
          reason,
          ...toTargetState(mail),
        },
        webhook:
          webhook?.url == null
            ? undefined
            : {
                url: webhook.url,
                events: webhook.events,
                added_at: webhook.created_at.toISOString(),
                ...toTargetState(webhook),
              },
        deliveries: deliveries.map(toDeliveryView),
      };
    },
  });
}

interface MailState {
  readonly slug: string;
  readonly address: string | undefined;
  readonly sendsMail: boolean;
  readonly stopped?: Date | undefined;
  readonly target?: TargetRow | undefined;
}

/** Why no mail is sent; undefined: mails are sent. */
function explainNoMail({ slug, address, sendsMail, stopped, target }: MailState): string | undefined {
  const start = `PUT /api/apps/${slug}/notifications/mail starts them again.`;
  if (!sendsMail) return 'This installation sends no mail. Its operator can set mail.urlSecret of the chart.';
  if (address === undefined)
    return 'The app has no e-mail address that its author confirmed. Set author.contact in moorage.yaml, or commit the ownership token to .moorage-owner.';
  if (stopped !== undefined) return `The mails were stopped at ${stopped.toISOString()}. ${start}`;
  if (target?.off_at != null) return `The mails were switched off after seven days of failures. ${start}`;
  return undefined;
}

function toTargetState(target: TargetRow | undefined): {
  failing_since?: string | undefined;
  off_since?: string | undefined;
} {
  return { failing_since: target?.failing_since?.toISOString(), off_since: target?.off_at?.toISOString() };
}

function maskAddress(address: string): string {
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

function createWebhookEndpoint({ access, store, keys, fetcher }: NotificationServices): Endpoint {
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
      events: z
        .array(chosenKind)
        .min(1)
        .max(chosenKinds.length)
        .default([...chosenKinds])
        .describe('Events to send. Default: all.'),
    }),
    output: z.object({
      url: z.string(),
      events: z.array(z.string()),
      secret: z.string().describe('Signing secret. It is shown only in this response, and not stored.'),
      message: z.string(),
    }),
    outputDescription: 'The webhook and its signing secret.',
    returnsCallerData: true,
    problems: [...changeProblems, urlRefused, fetchFailed],
    handler: async ({ params, body }, context) => {
      const events = [...new Set(body.events)];
      // Paths of webhooks often are secrets.
      const detail = { origin: URL.canParse(body.url) ? new URL(body.url).origin : '', events };
      return access.act(
        params.slug,
        context,
        { operation: 'setNotificationWebhook', action: 'set-webhook', detail },
        async ({ app }) => {
          await fetcher.check({ url: body.url, httpsOnly: true, signal: context.signal });
          const { uid } = app.metadata;
          const version = await store.setWebhook(uid, body.url, events);
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

const messageView = z.object({ slug: z.string(), message: z.string() });

function createWebhookRemoval({ access, store }: NotificationServices): Endpoint {
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
          const isRemoved = await store.removeWebhook(app.metadata.uid);
          return { slug: params.slug, message: isRemoved ? 'The webhook is removed.' : 'There was no webhook.' };
        },
      ),
  });
}

function createMailEndpoint({ access, store, keys, sendsMail }: NotificationServices): Endpoint {
  return defineEndpoint({
    method: 'PUT',
    path: `${path}/mail`,
    operation: 'startNotificationMail',
    tag: 'apps',
    summary: 'Start the mails about an app again',
    description: 'Undoes the link that stopped them, or the end after seven days of failures.',
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
          await store.startMail(app.metadata.uid, keys.hashContact(address));
          return { slug: params.slug, message: `Mails about ${params.slug} go to ${maskAddress(address)}.` };
        },
      ),
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

const stopParams = z.strictObject({ token: z.string().min(1).max(300).describe('As the link in a mail has it.') });
export const stopView = z.object({
  slug: z.string().describe('The app; empty if it no longer exists.'),
  stopped: z.boolean(),
});

/** What the link of a mail leads to. The token is the permission: everyone who has the mail may stop the mails. */
function createStopEndpoints({ apps, keys, store }: NotificationServices): Endpoint[] {
  const shared = {
    path: '/api/notifications/stop/{token}',
    tag: 'apps',
    params: stopParams,
    output: stopView,
    problems: [unknownStopLink, ...databaseProblems],
  } as const;
  const readToken = (token: string): StopTarget => {
    const target = keys.parseStopToken(token);
    if (target !== undefined) return target;
    throw new Problem(unknownStopLink, 'This link is not one of this installation, or a part of it is missing.');
  };
  const findSlug = (uid: string): string =>
    apps.listAll().find((app: App) => app.metadata.uid === uid)?.metadata.name ?? '';
  return [
    defineEndpoint({
      ...shared,
      method: 'GET',
      operation: 'showStoppedMail',
      summary: 'See whether the mails about an app are stopped',
      description: 'Changes nothing, since mail scanners open links.',
      outputDescription: 'Whether they are stopped.',
      head: 'as GET',
      handler: async ({ params }) => {
        const { app, contact } = readToken(params.token);
        return { slug: findSlug(app), stopped: (await store.findStop(app, contact)) !== undefined };
      },
    }),
    defineEndpoint({
      ...shared,
      method: 'POST',
      operation: 'stopMail',
      summary: 'Stop the mails about an app',
      description: 'Stops them for the contact that got the mail. Needs no key: the link is the permission.',
      outputDescription: 'They are stopped.',
      handler: async ({ params }) => {
        const { app, contact } = readToken(params.token);
        await store.stopMail(app, contact);
        return { slug: findSlug(app), stopped: true };
      },
    }),
  ];
}
