// Notifications from the status of an app to the mail and the webhook: each event once, again after a crash, and to nobody who
// must not get it.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'vitest';
import { Webhook } from 'standardwebhooks';
import { z } from 'zod';
import { type App, createAppIndex } from '../../../../../api/apps/hosted-apps.ts';
import { Notifier, type NotifierOptions } from '../../../../../api/apps/notifications/deliveries.ts';
import { chosenKinds, createTestEvent, type NoticedEvent } from '../../../../../api/apps/notifications/events.ts';
import { createMailer, readMailSettings } from '../../../../../api/apps/notifications/mail.ts';
import { NotificationKeys } from '../../../../../api/apps/notifications/messages.ts';
import { recordBudgets } from '../../../../../api/apps/notifications/start.ts';
import { RecipientStore } from '../../../../../api/apps/notifications/recipients.ts';
import { NotificationStore } from '../../../../../api/apps/notifications/store.ts';
import { type Database, Ledger, ledgerUnavailable, openDatabase } from '../../../../../api/billing/index.ts';
import { Problem } from '../../../../../lib/problem.ts';
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
const commit = 'a'.repeat(40);

let database: Database;
let mailServer: MailServer;
let receiver: Receiver;
let cache: WritableStore<App>;
let resourceVersion = 1;

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
function createReplica(options: Partial<NotifierOptions> = {}): {
  notifier: Notifier;
  store: NotificationStore;
  recipients: RecipientStore;
} {
  const recipients = new RecipientStore(() => database);
  const store = options.store ?? new NotificationStore(() => database);
  const mail = readMailSettings({
    MOORAGE_SMTP_URL: `smtp://127.0.0.1:${mailServer.port}?tls=off`,
    MOORAGE_MAIL_FROM: 'Moorage <notify@moorage.test>',
  });
  assert.ok(mail !== undefined);
  const notifier = new Notifier({
    apps: createAppIndex(cache, namespace),
    keys,
    sendMail: createMailer(mail, baseUrl),
    fetcher: new GuardedFetcher({ allow: [receiver.host] }),
    baseUrl,
    log: silent,
    ending: new AbortController().signal,
    recipients,
    ...options,
    store,
  });
  return { notifier, store, recipients };
}

function createStatus(change: Partial<HostedAppStatus> = {}): HostedAppStatus {
  const since = new Date(Date.now() - 60_000).toISOString();
  return {
    phase: 'Live',
    since,
    url: 'https://notes.apps.test/',
    source: { commit },
    served: { image: 'registry.test/app@sha256:0', commit, since },
    ...change,
  };
}

function createCrash(since: string): HostedAppStatus {
  const rejection = { rule: 'run/crashed', message: 'It crashed.', fix: 'Read its log.', log: 'password=hunter2' };
  return { phase: 'Rejected', since, source: { commit }, rejection };
}

/** Puts an app into the cache. */
function putApp(status: HostedAppStatus, spec: object = { author: { contact } }): App {
  const app = sampleApp('notes', undefined, status);
  resourceVersion += 1;
  const metadata = { ...app.metadata, resourceVersion: String(resourceVersion) };
  const made = { ...app, metadata, spec: { ...app.spec, ...spec } };
  cache.set(made);
  return made;
}

async function runSql(text: string): Promise<unknown[]> {
  return database.query({ name: `test-${text}`.slice(0, 60), text, row: z.looseObject({}) }, []);
}

/** As if so much time had passed. */
async function letPass(hours: number): Promise<void> {
  for (const [table, column] of [
    ['event', 'at'],
    ['delivery', 'due_at'],
    ['delivery', 'created_at'],
    ['notification_target', 'failing_since'],
  ] as const)
    await runSql(`update author.${table} set ${column} = ${column} - interval '${hours} hours'`);
}

async function listStates(): Promise<string[]> {
  const rows = await runSql('select channel, state, last_error from author.delivery order by created_at, channel');
  const row = z.object({ channel: z.string(), state: z.string(), last_error: z.string().nullable() });
  return z
    .array(row)
    .parse(rows)
    .map(({ channel, state, last_error: error }) => [channel, state, ...(error === null ? [] : [error])].join(': '));
}

test('two replicas on one database notice and deliver an event once', async () => {
  putApp(createStatus());
  const replicas = [createReplica(), createReplica()];
  await replicas[0]?.recipients.setWebhook('uid-notes', receiver.url, ['live']);
  await Promise.all(replicas.map(({ notifier }) => notifier.notice()));
  await Promise.all([...replicas, ...replicas].map(({ notifier }) => notifier.deliver()));
  await Promise.all(replicas.map(({ notifier }) => notifier.notice()));
  // After a restart nothing is in memory.
  const restarted = createReplica();
  await restarted.notifier.notice();
  await restarted.notifier.deliver();
  assert.equal(mailServer.mails.length, 1);
  assert.equal(receiver.hooks.length, 1);
  assert.deepEqual(await listStates(), ['mail: delivered', 'webhook: delivered']);
});

test('a mail says what happened, can be stopped in one click, and has the id of its event', async () => {
  putApp(createStatus());
  const { notifier, store } = createReplica();
  await notifier.notice();
  await notifier.deliver();
  const [mail] = mailServer.mails;
  assert.ok(mail !== undefined);
  assert.deepEqual([mail.from, mail.to], ['notify@moorage.test', [contact]]);
  assert.equal(mail.headers.get('subject'), 'notes: commit aaaaaaaaaaaa is live');
  assert.equal(mail.headers.get('from'), 'Moorage <notify@moorage.test>');
  assert.equal(mail.headers.get('list-unsubscribe-post'), 'List-Unsubscribe=One-Click');
  const token = /^<https:\/\/moorage\.test\/notifications\/stop\/(.*)>$/.exec(
    mail.headers.get('list-unsubscribe') ?? '',
  )?.[1];
  assert.deepEqual(keys.parseStopToken(token ?? ''), { app: 'uid-notes', contact: keys.hashContact(contact) });
  const [row] = await store.listDeliveries('uid-notes', 1);
  assert.equal(mail.headers.get('message-id'), `<${row?.id}@moorage.test>`);
});

test('a webhook is signed, and can be verified with the library of Standard Webhooks', async () => {
  putApp(
    createStatus({
      rejection: { rule: 'license/missing', message: 'None.', fix: 'Add one.', log: 'password=x' },
      phase: 'Rejected',
    }),
  );
  const { notifier, recipients } = createReplica();
  const version = await recipients.setWebhook('uid-notes', receiver.url, [...chosenKinds]);
  await notifier.notice();
  await notifier.deliver();
  const [hook] = receiver.hooks;
  assert.ok(hook !== undefined);
  const webhook = new Webhook(keys.createWebhookSecret('uid-notes', version));
  const body = webhook.verify(hook.body, hook.headers as Record<string, string>);
  assert.deepEqual(z.looseObject({ type: z.string(), data: z.looseObject({}) }).parse(body).data, {
    app: 'notes',
    title: 'notes',
    repository: 'git.test/octo/notes',
    summary: 'notes: commit aaaaaaaaaaaa was rejected (license/missing)',
    commit,
    url: 'https://notes.apps.test/',
    rule: 'license/missing',
    message: 'None.',
    fix: 'Add one.',
    status_url: 'https://moorage.test/status/octo/notes?host=git.test',
    manage_url: 'https://moorage.test/apps/notes/manage',
  });
  assert.throws(() => webhook.verify(`${hook.body} `, hook.headers as Record<string, string>));
  const earlier = new Webhook(keys.createWebhookSecret('uid-notes', '00000000-0000-4000-8000-000000000000'));
  assert.throws(() => earlier.verify(hook.body, hook.headers as Record<string, string>));
});

test('a process that is killed between sending and recording leads to a second delivery with the same id', async () => {
  putApp(createStatus());
  class KilledStore extends NotificationStore {
    override succeed = (): Promise<void> => new Promise(() => undefined);
  }
  const killed = createReplica({ store: new KilledStore(() => database) });
  await killed.recipients.setWebhook('uid-notes', receiver.url, ['live']);
  await killed.notifier.notice();
  void killed.notifier.deliver();
  while (mailServer.mails.length + receiver.hooks.length < 2) await new Promise((resolve) => setTimeout(resolve, 10));
  const next = createReplica();
  assert.equal(await next.notifier.deliver(), 0, 'the lease holds');
  await letPass(0.1);
  assert.equal(await next.notifier.deliver(), 2);
  const ids = mailServer.mails.map(({ headers }) => headers.get('message-id'));
  assert.deepEqual([ids.length, new Set(ids).size], [2, 1]);
  assert.deepEqual(
    [receiver.hooks.length, new Set(receiver.hooks.map(({ headers }) => headers['webhook-id'])).size],
    [2, 1],
  );
  assert.deepEqual(await listStates(), ['mail: delivered', 'webhook: delivered']);
});

test('nothing is lost while there is no database, and what is old when it is noticed is sent to nobody', async () => {
  const app = putApp(createStatus());
  let isAway = true;
  const store = new NotificationStore(() => {
    if (isAway) throw new Problem(ledgerUnavailable, 'The database is away.');
    return database;
  });
  const { notifier: later } = createReplica({ store });
  await assert.rejects(later.notice(), Problem);
  isAway = false;
  await later.notice();
  await later.deliver();
  assert.equal(mailServer.mails.length, 1);
  const since = '2026-01-01T00:00:00Z';
  cache.set({
    ...app,
    metadata: { ...app.metadata, name: 'old', uid: 'uid-old' },
    status: createStatus({ served: { image: 'i', commit, since } }),
  });
  await later.notice();
  assert.equal(await later.deliver(), 0);
  assert.equal((await store.listDeliveries('uid-old', 10)).length, 0);
  assert.equal((await runSql("select 1 from author.event where app = 'uid-old'")).length, 1);
});

test('an app that flaps is reported once an hour', async () => {
  const { notifier } = createReplica();
  const start = Date.now() - 600_000;
  for (let minute = 0; minute < 5; minute += 1) {
    putApp(createCrash(new Date(start + minute * 60_000).toISOString()));
    await notifier.notice();
  }
  await letPass(0.5);
  await notifier.notice();
  await notifier.deliver();
  assert.equal(mailServer.mails.length, 1);
  assert.doesNotMatch(mailServer.mails[0]?.raw ?? '', /hunter2/, 'the log is not sent');
  await letPass(0.6);
  await notifier.notice();
  await letPass(0.1);
  await notifier.deliver();
  assert.equal(mailServer.mails.length, 2, 'it still crashes an hour later');
});

test('a rollback is reported instead of the crash before it', async () => {
  const { notifier } = createReplica();
  const crash = createCrash(new Date().toISOString());
  putApp(crash);
  await notifier.notice();
  assert.equal(await notifier.deliver(), 0, 'the crash waits for a minute');
  const condition = { type: 'Deployed', status: 'False', lastTransitionTime: crash.since ?? '', message: '' } as const;
  putApp(createStatus({ ...crash, conditions: [{ ...condition, reason: 'RolloutTakenBack' }] }));
  await notifier.notice();
  await letPass(0.1);
  await notifier.deliver();
  assert.deepEqual(
    mailServer.mails.map(({ headers }) => headers.get('subject')),
    ['notes: commit aaaaaaaaaaaa was rolled back'],
  );
});

test('an app gets at most 20 mails in 24 hours, and a contact 40 about all of its apps', async () => {
  const { notifier } = createReplica();
  const { gapMs: _, ...event } = createTestEvent(putApp(createStatus()), '', new Date());
  for (const slug of ['one', 'two', 'three']) {
    const app = sampleApp(slug);
    cache.set({ ...app, spec: { ...app.spec, author: { ...app.spec.author, contact } } });
    const [stored] = cache.list(namespace).filter(({ metadata }) => metadata.name === slug);
    assert.ok(stored !== undefined);
    for (let number = 0; number < 22; number += 1)
      await notifier.notify(stored, { ...event, subject: String(number) } satisfies NoticedEvent);
  }
  while ((await notifier.deliver()) > 0);
  assert.equal(mailServer.mails.length, 40);
  const states = await listStates();
  assert.equal(states.filter((state) => state === 'mail: skipped: The daily limit of mails was reached.').length, 26);
});

test('attack: an unverified contact gets nothing', async () => {
  putApp(createStatus(), { submission: { contact } });
  const { notifier } = createReplica();
  await notifier.notice();
  assert.equal(await notifier.deliver(), 0);
  assert.deepEqual(await listStates(), []);
});

test('attack: a title cannot add a header or a recipient', async () => {
  const title = 'Café\r\nBcc: victim@example.org\r\n\r\nInjected <victim@example.org>,';
  putApp(createStatus(), { author: { contact }, listing: { title } });
  const { notifier } = createReplica();
  await notifier.notice();
  await notifier.deliver();
  const [mail] = mailServer.mails;
  assert.ok(mail !== undefined);
  assert.deepEqual(mail.to, [contact]);
  assert.equal(mail.headers.has('bcc'), false);
  assert.match(mail.headers.get('subject') ?? '', /^=\?UTF-8\?/);
  assert.equal([...mail.headers.keys()].filter((name) => name === 'subject').length, 1);
});

test('a contact that stops the mails gets no more, not even those that wait', async () => {
  putApp(createStatus());
  const { notifier, recipients } = createReplica();
  await notifier.notice();
  await recipients.stopMail('uid-notes', keys.hashContact(contact));
  assert.equal(await notifier.deliver(), 0);
  assert.deepEqual(await listStates(), ['mail: skipped: The mails were stopped.']);
  putApp(createCrash(new Date().toISOString()));
  await notifier.notice();
  assert.equal((await listStates()).length, 1);
  await recipients.startMail('uid-notes', keys.hashContact(contact));
  await notifier.notify(putApp(createStatus()), createTestEvent(putApp(createStatus()), 'test', new Date()));
  await notifier.deliver();
  assert.equal(mailServer.mails.length, 1);
});

test('a contact that changed in between gets nothing of the app before', async () => {
  putApp(createStatus());
  const { notifier } = createReplica();
  await notifier.notice();
  putApp(createStatus(), { author: { contact: 'other@example.org' } });
  await notifier.deliver();
  assert.deepEqual(await listStates(), ['mail: skipped: The contact of the app has changed.']);
  assert.equal(mailServer.mails.length, 0);
});

test('a webhook that fails is tried again with growing pauses for 24 hours, and switched off after seven days', async () => {
  receiver.answer = { status: 500 };
  const app = putApp(createStatus(), {});
  const { notifier, recipients } = createReplica();
  await recipients.setWebhook('uid-notes', receiver.url, ['live']);
  await notifier.notice();
  const pauses: number[] = [];
  const row = z.object({ pause: z.coerce.number(), state: z.string() });
  for (let state = 'waiting'; state === 'waiting' && pauses.length < 40;) {
    await notifier.deliver();
    const [next] = z
      .array(row)
      .parse(
        await runSql('select extract(epoch from due_at - clock_timestamp()) as pause, state from author.delivery'),
      );
    assert.ok(next !== undefined);
    ({ state } = next);
    pauses.push(next.pause);
    if (state === 'waiting') await letPass(next.pause / 3_600 + 0.001);
  }
  assert.ok(pauses.length > 8 && pauses.length < 30, `${pauses.length} attempts`);
  assert.ok((pauses[3] ?? 0) > 3 * (pauses[0] ?? 0), 'the pauses grow');
  assert.deepEqual(await listStates(), ['webhook: abandoned: The webhook answered with status 500.']);
  assert.equal(new Set(receiver.hooks.map(({ headers }) => headers['webhook-id'])).size, 1);
  assert.equal((await recipients.list('uid-notes'))[0]?.off_at, null);
  await letPass(7 * 24);
  await notifier.notify(app, createTestEvent(app, 'later', new Date()));
  await notifier.deliver();
  assert.notEqual((await recipients.list('uid-notes'))[0]?.off_at, null);
  await letPass(1);
  await notifier.notify(app, createTestEvent(app, 'even later', new Date()));
  const before = receiver.hooks.length;
  await notifier.deliver();
  assert.equal(receiver.hooks.length, before, 'nothing more is sent');
  assert.equal((await listStates()).length, 2, 'and nothing more is recorded for it');
  await recipients.setWebhook('uid-notes', receiver.url, ['live']);
  receiver.answer = { status: 200 };
  await letPass(1);
  assert.deepEqual((await notifier.notify(app, createTestEvent(app, 'again', new Date()))).channels, ['webhook']);
});

test('attack: redirects are not followed', async () => {
  const inside = await startReceiver();
  receiver.answer = { status: 307, headers: { location: inside.url } };
  putApp(createStatus(), {});
  const { notifier, recipients } = createReplica({
    fetcher: new GuardedFetcher({ allow: [receiver.host, inside.host] }),
  });
  await recipients.setWebhook('uid-notes', receiver.url, ['live']);
  await notifier.notice();
  await notifier.deliver();
  assert.deepEqual([receiver.hooks.length, inside.hooks.length], [1, 0]);
  assert.deepEqual(await listStates(), [
    'webhook: waiting: The webhook answered with status 307, and redirects are not followed.',
  ]);
  await inside.stop();
});

test('attack: a name that leads inside by the time of the delivery gets nothing', async () => {
  putApp(createStatus(), {});
  const { notifier, recipients } = createReplica({
    fetcher: new GuardedFetcher({ resolve: async () => Promise.resolve(['169.254.169.254']) }),
  });
  await recipients.setWebhook('uid-notes', 'https://hooks.example.com/x', ['live']);
  await notifier.notice();
  await notifier.deliver();
  assert.match((await listStates())[0] ?? '', /^webhook: abandoned: .*not public/);
});

test('a receiver that answers 410 is switched off', async () => {
  receiver.answer = { status: 410 };
  putApp(createStatus(), {});
  const { notifier, recipients } = createReplica();
  await recipients.setWebhook('uid-notes', receiver.url, ['live']);
  await notifier.notice();
  await notifier.deliver();
  assert.notEqual((await recipients.list('uid-notes'))[0]?.off_at, null);
  assert.deepEqual(await listStates(), ['webhook: abandoned: The webhook answered with status 410.']);
});

test('a recipient that the server refuses is given up; a server that is away is not the fault of the target', async () => {
  putApp(createStatus());
  const { notifier, recipients } = createReplica();
  mailServer.refuse = 550;
  await notifier.notice();
  await notifier.deliver();
  assert.match((await listStates())[0] ?? '', /^mail: abandoned: The mail server answered: 550 /);
  assert.notEqual((await recipients.list('uid-notes'))[0]?.failing_since, null);
  await runSql('update author.notification_target set failing_since = null');
  await mailServer.stop();
  const app = putApp(createStatus());
  await notifier.notify(app, createTestEvent(app, 'away', new Date()));
  await notifier.deliver();
  assert.equal(
    (await listStates())[1],
    'mail: waiting: The mail server of this installation cannot be used at the moment.',
  );
  assert.equal((await recipients.list('uid-notes'))[0]?.failing_since, null);
  mailServer = await startMailServer();
});

test('a server whose certificate no authority signed gets no mail, and no password', async () => {
  const logins: unknown[] = [];
  const own = await startMailServer({
    secure: true,
    disabledCommands: [],
    onAuth(auth, _session, callback) {
      logins.push(auth);
      callback(null, { user: 'me' });
    },
  });
  const mail = readMailSettings({
    MOORAGE_SMTP_URL: `smtps://me:hunter2@127.0.0.1:${own.port}`,
    MOORAGE_MAIL_FROM: 'notify@moorage.test',
  });
  assert.ok(mail !== undefined);
  putApp(createStatus());
  const { notifier } = createReplica({ sendMail: createMailer(mail, baseUrl) });
  await notifier.notice();
  await notifier.deliver();
  assert.deepEqual([own.mails.length, logins.length], [0, 0]);
  await own.stop();
});

test('a budget that is nearly used up is reported once a day, also after the day has ended', async () => {
  const app = putApp(createStatus(), { author: { contact }, models: { enabled: true, dailyBudgetUsd: '1' } });
  const { notifier } = createReplica();
  await recordBudgets({ ledger: new Ledger(database) }, [app], notifier);
  assert.deepEqual(await listStates(), []);
  const [today, yesterday] = [0, 1].map((days) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10));
  for (const [day, amount] of [
    [today, '0.85'],
    [yesterday, '-1.2'],
  ])
    await runSql(`with account as (insert into ledger.account (kind, owner, day) values ('app', 'notes', '${day}') returning id)
      insert into ledger.budget (account_id, balance, held) select id, ${amount}, 0 from account`);
  for (let look = 0; look < 3; look += 1) await recordBudgets({ ledger: new Ledger(database) }, [app], notifier);
  await notifier.deliver();
  assert.deepEqual(
    mailServer.mails.map(({ headers }) => headers.get('subject')).toSorted(),
    [
      `notes: 85 % of the model budget of ${today} is used`,
      `notes: the model budget of ${yesterday} is used up`,
    ].toSorted(),
  );
});
