// Who gets an event: contacts that confirmed their address, what a channel has chosen, and events of an author, once for all of
// their apps.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'vitest';
import { z } from 'zod';
import { type App, createAppIndex } from '../../../../../api/apps/hosted-apps.ts';
import { Notifier } from '../../../../../api/apps/notifications/deliveries.ts';
import {
  type AuthorNews,
  chosenKinds,
  createTestEvent,
  describeApp,
} from '../../../../../api/apps/notifications/events.ts';
import { createMailer } from '../../../../../api/apps/notifications/mail.ts';
import { NotificationKeys } from '../../../../../api/apps/notifications/messages.ts';
import { RecipientStore } from '../../../../../api/apps/notifications/recipients.ts';
import { recordAuthorNews } from '../../../../../api/apps/notifications/start.ts';
import { NotificationStore } from '../../../../../api/apps/notifications/store.ts';
import { type Database, openDatabase } from '../../../../../api/billing/index.ts';
import { GuardedFetcher } from '../../../../../api/tools/index.ts';
import type { HostedAppStatus } from '../../../../../crds/hosted-app.ts';
import type { WritableStore } from '../../../../../lib/kubernetes/index.ts';
import { baseUrl, namespace, sampleApp, sampleApps, silent } from '../../../../support/api/sample.ts';
import {
  type MailServer,
  type Receiver,
  startMailServer,
  startReceiver,
} from '../../../../support/apps/notifications.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';

const contact = 'author@example.org';
const keys = new NotificationKeys('secret of this installation');
let database: Database;
let mailServer: MailServer;
let receiver: Receiver;
let cache: WritableStore<App>;

beforeEach(async () => {
  [database, mailServer, receiver] = await Promise.all([
    openDatabase(migratedDatabase),
    startMailServer(),
    startReceiver(),
  ]);
  ({ store: cache } = sampleApps());
});
afterEach(async () => {
  await Promise.all([mailServer.stop(), receiver.stop()]);
  await database.close();
});

/** One replica of the API. */
function createReplica(): { notifier: Notifier; recipients: RecipientStore } {
  const recipients = new RecipientStore(() => database);
  const server = { host: '127.0.0.1', port: mailServer.port, tls: 'off' } as const;
  const notifier = new Notifier({
    apps: createAppIndex(cache, namespace),
    store: new NotificationStore(() => database),
    sendMail: createMailer({ server, from: { name: 'Moorage', address: 'notify@moorage.test' } }, baseUrl),
    fetcher: new GuardedFetcher({ allow: [receiver.host] }),
    ending: new AbortController().signal,
    ...{ recipients, keys, baseUrl, log: silent },
  });
  return { notifier, recipients };
}

function createStatus(): HostedAppStatus {
  const since = new Date(Date.now() - 60_000).toISOString();
  const commit = 'a'.repeat(40);
  return {
    ...{ phase: 'Live', since, url: 'https://notes.apps.test/', source: { commit } },
    served: { image: 'registry.test/app@sha256:0', commit, since },
  };
}

/** Puts an app into the cache. */
function putApp(status: HostedAppStatus, spec: object): App {
  const app = sampleApp('notes', undefined, status);
  const made = { ...app, spec: { ...app.spec, ...spec } };
  cache.set(made);
  return made;
}

async function runSql(text: string): Promise<unknown[]> {
  return database.query({ name: `test-${text}`.slice(0, 60), text, row: z.looseObject({}) }, []);
}

test('a confirmed contact gets what the channel has chosen, and an event of the author once for all of their apps', async () => {
  const app = putApp(createStatus(), {});
  const other = sampleApp('other');
  cache.set(other);
  const { notifier, recipients } = createReplica();
  const added = { contact: keys.hashContact('ops@example.net'), address: '' };
  for (const { metadata } of [app, other]) {
    const address = keys.sealAddress(metadata.uid, 'ops@example.net');
    const target = { uid: metadata.uid, slug: metadata.name };
    assert.equal(await recipients.addContact(target, { ...added, address }, describeApp(app)), 'requested');
  }
  await notifier.notice();
  while ((await notifier.deliver()) > 0);
  assert.equal(mailServer.mails.length, 2, 'the two requests, and no notification');
  for (const { raw } of mailServer.mails.splice(0)) {
    const token = /notifications\/confirm\/(\S+)/.exec(raw.replaceAll('=\r\n', ''))?.[1] ?? '';
    assert.equal(await recipients.confirm(keys.parseConfirmToken(token) ?? assert.fail(token)), true);
  }
  await recipients.choose(app.metadata.uid, 'mail', ['crashed']);
  const { gapMs: _, ...plain } = createTestEvent(app, 'x', new Date());
  const event = { ...plain, kind: 'rejected' as const };
  assert.deepEqual((await notifier.notify(app, event)).channels, []);
  assert.deepEqual((await notifier.notify(other, event)).channels, ['mail']);
  await recipients.choose(app.metadata.uid, 'mail', chosenKinds);
  await recipients.setWebhook(app.metadata.uid, receiver.url, [...chosenKinds]);
  await recipients.setWebhook(other.metadata.uid, receiver.url, [...chosenKinds]);
  const shared = { ...event, subject: 'author/2026-10', isOfAuthor: true };
  const notices = [await notifier.notify(app, shared), await notifier.notify(other, shared)];
  assert.deepEqual(
    notices.map(({ channels }) => channels),
    [['webhook', 'mail'], []],
  );
  while ((await notifier.deliver()) > 0);
  assert.equal(mailServer.mails.length, 2);
  assert.equal(receiver.hooks.length, 1);
});

test('a link that confirms an address expires after 48 hours, and recipients of apps that are gone are forgotten', async () => {
  const app = putApp(createStatus(), {});
  const { recipients } = createReplica();
  const { uid } = app.metadata;
  const contact = keys.hashContact('ops@example.net');
  await recipients.addContact(
    { uid, slug: 'notes' },
    { contact, address: keys.sealAddress(uid, 'ops@example.net') },
    describeApp(app),
  );
  const [{ version } = { version: '' }] = z
    .array(z.object({ version: z.uuid() }))
    .parse(await runSql('select version from author.notification_target'));
  assert.equal(await recipients.findConfirmation({ app: uid, contact, version }), false);
  await runSql("update author.notification_target set created_at = created_at - interval '49 hours'");
  assert.equal(await recipients.confirm({ app: uid, contact, version }), false);
  assert.equal(await recipients.forget([]), 0);
  assert.equal(await recipients.forget([uid]), 0);
  assert.equal(await recipients.forget(['another']), 1);
});

test('a statement and a payout are sent once to each recipient, for whichever app of the author', async () => {
  const app = putApp(createStatus(), { author: { contact } });
  const other = sampleApp('other');
  cache.set({ ...other, spec: { ...other.spec, author: { ...other.spec.author, contact } } });
  const strange = sampleApp('strange', 'https://git.test/somebody/strange');
  cache.set({ ...strange, spec: { ...strange.spec, author: { ...strange.spec.author, contact: 'else@example.org' } } });
  const apps = cache.list(namespace);
  const news: AuthorNews[] = [
    {
      ...{ author: 'git.test/octo', kind: 'statement', subject: '2026-10', month: '2026-10', amountUsd: '1.50' },
      ...{ at: new Date(Date.now() - 3 * 86_400_000), disputesUntil: new Date('2026-11-15T00:00:00Z') },
    },
    { author: 'git.test/octo', kind: 'payout', subject: '7', at: new Date(), amountUsd: '1.50' },
  ];
  const [first, second] = [createReplica(), createReplica()];
  for (let look = 0; look < 2; look += 1)
    await Promise.all([first, second].map(({ notifier }) => recordAuthorNews(news, apps, notifier)));
  while ((await first.notifier.deliver()) > 0);
  assert.deepEqual(mailServer.mails.map(({ to, headers }) => [to[0], headers.get('subject')]).toSorted(), [
    [contact, 'git.test/octo: 1.50 USD were paid out'],
    [contact, 'git.test/octo: the statement for 2026-10 is ready'],
  ]);
  assert.match(mailServer.mails.map(({ raw }) => raw.replaceAll('=\r\n', '')).join(''), /dispute it until 2026-11-15/);
  const old = { author: 'git.test/octo', kind: 'payout', subject: '6', amountUsd: '2' } as const;
  await recordAuthorNews([{ ...old, at: new Date('2026-01-01T00:00:00Z') }], [app], first.notifier);
  assert.equal(await first.notifier.deliver(), 0, 'an old payout is no news');
});
