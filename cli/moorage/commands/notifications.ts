// Commands for who is notified of what: contacts, the webhook, the events, and a test.
import { z } from 'zod';
import { UsageError } from '../../../lib/command-line.ts';
import { toHarmlessText } from '../../../lib/harmless-text.ts';
import { anyAnswer } from '../client.ts';
import { formatFields, formatTime, toRows } from '../output.ts';
import { defineCommand } from '../program.ts';
import { appArgument, appOption, chooseApp, otherAppOption } from './apps.ts';

const group = 'Notifications' as const;
const feature = 'notifications';

const notifications = z.looseObject({
  events: z.array(z.string()),
  mail: z.looseObject({
    sent: z.boolean(),
    to: z.string().optional(),
    reason: z.string().optional(),
    events: z.array(z.string()).default([]),
  }),
  contacts: z
    .array(z.looseObject({ id: z.string(), to: z.string(), sent: z.boolean(), reason: z.string().optional() }))
    .default([]),
  webhook: z.looseObject({ url: z.string(), events: z.array(z.string()), off_since: z.string().optional() }).optional(),
  deliveries: z.array(
    z.looseObject({
      at: z.string(),
      type: z.string(),
      channel: z.string(),
      to: z.string().optional(),
      state: z.string(),
      attempts: z.number(),
      error: z.string().optional(),
    }),
  ),
});
type Notifications = z.output<typeof notifications>;

export const notificationsList = defineCommand({
  name: 'notifications list',
  group,
  summary: 'Show who is notified of what, and how the last deliveries went',
  arguments: [appArgument],
  options: { app: appOption },
  examples: ['notifications list', 'moorage notifications list octo/hello --json | jq .deliveries[0]'],
  run: async ({ values, positionals: [name] }, session) => {
    const { api, slug } = await chooseApp(session, name, values.app);
    const list = await api.call({ path: `/api/apps/${slug}/notifications`, schema: notifications, feature });
    const { terminal } = session;
    const deliveries = list.deliveries.map(({ at, type, channel, to, state, attempts, error }) => ({
      ...{ time: formatTime(at), event: type, channel, to, state, attempts, error },
    }));
    terminal.printResult(list, () => [
      ...formatRecipients(list),
      '',
      ...terminal.formatTable(toRows(deliveries), 'Nothing was sent yet.'),
    ]);
    return undefined;
  },
});

function formatRecipients({ mail, contacts, webhook, events }: Notifications): string[] {
  const describeEvents = (chosen: readonly string[]): string =>
    chosen.length === events.length ? 'all' : chosen.join(', ');
  return formatFields([
    ['mail', mail.to === undefined ? mail.reason : `${mail.to}${mail.sent ? '' : `: ${mail.reason ?? 'not sent'}`}`],
    ['events of mails', describeEvents(mail.events)],
    ...contacts.map(({ id, to, sent, reason }): [string, string] => [
      `contact ${id.slice(0, 8)}`,
      `${to}${sent ? '' : `: ${reason ?? 'not sent'}`}`,
    ]),
    ['webhook', webhook === undefined ? undefined : `${webhook.url}${webhook.off_since === undefined ? '' : ' (off)'}`],
    ['events of the webhook', webhook === undefined ? undefined : describeEvents(webhook.events)],
  ]);
}

export const notificationsAdd = defineCommand({
  name: 'notifications add',
  group,
  summary: 'Add a contact that is notified by mail',
  details: ['The owner of the address gets a mail with a link, and notifications only after they have confirmed it.'],
  arguments: [{ name: 'ADDRESS', about: 'e-mail address' }],
  options: { app: otherAppOption },
  examples: ['notifications add ops@example.org', 'notifications add ops@example.org --app octo/hello'],
  run: async ({ values, positionals: [address = ''] }, session) => {
    const { api, slug } = await chooseApp(session, undefined, values.app);
    const request = { method: 'POST', path: `/api/apps/${slug}/notifications/contacts`, body: { address } } as const;
    const answer = await api.call({ ...request, schema: anyAnswer, feature });
    session.terminal.printResult(answer, () => toHarmlessText(answer.message ?? `Asked ${address} to confirm.`));
    return undefined;
  },
});

export const notificationsRemove = defineCommand({
  name: 'notifications remove',
  group,
  summary: 'Remove a contact, or the webhook',
  arguments: [{ name: 'RECIPIENT', about: 'the beginning of the id of a contact, as the list shows it, or "webhook"' }],
  options: { app: otherAppOption },
  examples: ['notifications remove 3f9c0a12', 'notifications remove webhook --app octo/hello'],
  run: async ({ values, positionals: [recipient = ''] }, session) => {
    const { api, slug } = await chooseApp(session, undefined, values.app);
    const path = `/api/apps/${slug}/notifications`;
    let target = 'webhook';
    if (recipient !== 'webhook') {
      const { contacts } = await api.call({ path, schema: notifications, feature });
      const [found, another] = contacts.filter(({ id }) => id.startsWith(recipient));
      if (found === undefined || another !== undefined)
        throw new UsageError(`${another === undefined ? 'no' : 'more than one'} contact begins with this id`);
      target = `contacts/${found.id}`;
    }
    const answer = await api.call({ method: 'DELETE', path: `${path}/${target}`, schema: anyAnswer, feature });
    session.terminal.printResult(answer, () => toHarmlessText(answer.message ?? 'Removed.'));
    return undefined;
  },
});

const eventOption = {
  type: 'string',
  multiple: true,
  value: 'KIND',
  about: 'send only this kind of event; default: all',
} as const;

const webhook = z.looseObject({ url: z.string(), secret: z.string(), message: z.string().optional() });

export const notificationsWebhook = defineCommand({
  name: 'notifications webhook',
  group,
  summary: 'Set the webhook, and get a new secret that verifies its signatures',
  details: ['The secret is shown once. Requests are signed as Standard Webhooks describes.'],
  arguments: [{ name: 'URL', about: 'public https address' }],
  options: { event: eventOption, app: otherAppOption },
  examples: [
    'notifications webhook https://hooks.example.org/moorage',
    'notifications webhook https://hooks.example.org/moorage --event crashed --event rolled_back',
  ],
  run: async ({ values, positionals: [url = ''] }, session) => {
    const { api, slug } = await chooseApp(session, undefined, values.app);
    const { event: events = [] } = values;
    const body = { url, ...(events.length === 0 ? {} : { events }) };
    const request = { method: 'PUT', path: `/api/apps/${slug}/notifications/webhook`, body } as const;
    const answer = await api.call({ ...request, schema: webhook, feature });
    session.terminal.printResult(answer, () => [
      ...formatFields([
        ['url', answer.url],
        ['secret', answer.secret],
      ]),
      ...(answer.message === undefined ? [] : ['', toHarmlessText(answer.message)]),
    ]);
    return undefined;
  },
});

export const notificationsEvents = defineCommand({
  name: 'notifications events',
  group,
  summary: 'Choose the events that a channel sends',
  details: ['The list shows the kinds of events. "all" also sends those that are added later.'],
  arguments: [
    { name: 'CHANNEL', about: 'mail or webhook' },
    { name: 'KIND', rest: true, about: 'kinds of events, or all' },
  ],
  options: { app: otherAppOption },
  examples: ['notifications events mail crashed rolled_back', 'notifications events webhook all --app octo/hello'],
  run: async ({ values, positionals: [channel = '', ...kinds] }, session) => {
    const { api, slug } = await chooseApp(session, undefined, values.app);
    const path = `/api/apps/${slug}/notifications`;
    const events =
      kinds.length === 1 && kinds[0] === 'all'
        ? (await api.call({ path, schema: notifications, feature })).events
        : kinds;
    const request = { method: 'PUT', path: `${path}/${encodeURIComponent(channel)}/events`, body: { events } } as const;
    const answer = await api.call({ ...request, schema: anyAnswer, feature });
    session.terminal.printResult(answer, () => toHarmlessText(answer.message ?? 'Saved.'));
    return undefined;
  },
});

export const notificationsTest = defineCommand({
  name: 'notifications test',
  group,
  summary: 'Send a test to every recipient',
  arguments: [appArgument],
  options: { app: appOption },
  examples: ['notifications test', 'notifications test octo/hello'],
  run: async ({ values, positionals: [name] }, session) => {
    const { api, slug } = await chooseApp(session, name, values.app);
    const request = { method: 'POST', path: `/api/apps/${slug}/notifications/test` } as const;
    const answer = await api.call({ ...request, schema: anyAnswer, feature });
    session.terminal.printResult(answer, () => toHarmlessText(answer.message ?? 'Sent.'));
    return undefined;
  },
});
