// The endpoints with which an author chooses how they are notified, and the page that stops mails without a key.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import type { App } from '../../../../../api/apps/hosted-apps.ts';
import { readMailSettings } from '../../../../../api/apps/notifications/mail.ts';
import { chosenKinds } from '../../../../../api/apps/notifications/events.ts';
import { NotificationKeys } from '../../../../../api/apps/notifications/messages.ts';
import { createAuthorKey, hashAuthorKey } from '../../../../../lib/ownership-file.ts';
import { sampleAppsServer, type AppsSample } from '../../../../support/apps/sample.ts';
import { type MailServer, startMailServer } from '../../../../support/apps/notifications.ts';

const key = createAuthorKey();
const contact = 'author@example.org';
/** Those of the sample server. */
const keys = new NotificationKeys('salt');
let sample: AppsSample;
let mailServer: MailServer;

beforeAll(async () => {
  mailServer = await startMailServer();
  const hashOf = (slug: string): string => hashAuthorKey(key, `git.test/octo/${slug}`);
  sample = await sampleAppsServer({
    author: {
      lookUpKeys: () =>
        Promise.resolve({
          ok: true,
          commit: 'c'.repeat(40),
          reference: 'refs/heads/main',
          authorKeys: [hashOf('mine'), hashOf('anonymous')],
        }),
      createSecret: () => Promise.resolve(),
      maximumReplicas: 3,
      writeControl: (app) => Promise.resolve(app),
      mail: readMailSettings({
        MOORAGE_SMTP_URL: `smtp://127.0.0.1:${mailServer.port}?tls=off`,
        MOORAGE_MAIL_FROM: 'notify@moorage.test',
      }),
    },
    notificationTimes: { noticeMs: 20, deliverMs: 20 },
  });
  for (const slug of ['mine', 'anonymous'])
    await sample.host(
      slug,
      (_request, response) => response.end('ok'),
      (app): App => ({
        ...app,
        spec: { ...app.spec, ...(slug === 'mine' ? { author: { ...app.spec.author, contact } } : {}) },
        status: { ...app.status, authorKeys: [hashOf(slug)] },
      }),
    );
});
afterAll(async () => {
  await sample.stop();
  await mailServer.stop();
});

const answer = z.looseObject({ type: z.string().optional(), detail: z.string().optional() });

interface SentRequest {
  readonly method?: string;
  readonly body?: unknown;
  readonly authorization?: string;
}

async function ask(
  path: string,
  { method = 'GET', body, authorization = `Bearer ${key}` }: SentRequest = {},
): Promise<{ status: number; kind: string | undefined; body: z.output<typeof answer> }> {
  const response = await sample.request(path, {
    method,
    headers: {
      'x-forwarded-for': '203.0.113.1',
      ...(authorization === '' ? {} : { authorization }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const parsed = answer.parse(await response.json());
  return { status: response.status, kind: parsed.type?.split('/').at(-1), body: parsed };
}

const notifications = '/api/apps/mine/notifications';
const stopPage = `/notifications/stop/${keys.createStopToken({ app: 'uid-mine', contact: keys.hashContact(contact) })}`;

test('only the author sees and changes how an app notifies', async () => {
  for (const [path, method] of [
    [notifications, 'GET'],
    [`${notifications}/webhook`, 'DELETE'],
    [`${notifications}/mail`, 'PUT'],
    [`${notifications}/test`, 'POST'],
  ] as const)
    assert.equal((await ask(path, { method, authorization: '' })).status, 401, path);
  const { body } = await ask(notifications);
  assert.deepEqual(body['mail'], { sent: true, to: 'a…@example.org', events: [...chosenKinds] });
  assert.deepEqual(body['deliveries'], []);
});

test.each([
  'http://example.com/hook',
  'https://127.0.0.1/hook',
  'https://169.254.169.254/latest/meta-data',
  'https://[::1]/',
  'https://moorage-api.moorage-system.svc/',
  'https://user:password@example.com/',
  'https://10.0.0.1:8443/',
])('attack: a webhook at %s is refused', async (url) => {
  const { status, kind } = await ask(`${notifications}/webhook`, { method: 'PUT', body: { url } });
  assert.deepEqual([status, kind], [422, 'url-refused']);
  assert.equal((await ask(notifications)).body['webhook'], undefined);
});

test('a webhook is set with a secret that is shown once, listed and removed; its path stays out of the audit log', async () => {
  const url = 'https://93.184.216.34/hooks/T0KEN';
  const set = await ask(`${notifications}/webhook`, {
    method: 'PUT',
    body: { url, events: ['live', 'live', 'crashed'] },
  });
  assert.equal(set.status, 200, JSON.stringify(set.body));
  assert.match(String(set.body['secret']), /^whsec_[A-Za-z0-9+/]{43}=$/);
  const again = await ask(`${notifications}/webhook`, { method: 'PUT', body: { url, events: ['live'] } });
  assert.notEqual(again.body['secret'], set.body['secret'], 'a new secret');
  const listed = z
    .looseObject({ url: z.string(), events: z.array(z.string()) })
    .parse((await ask(notifications)).body['webhook']);
  assert.deepEqual([listed.url, listed.events], [url, ['live']]);
  assert.equal('secret' in listed, false);
  assert.doesNotMatch(JSON.stringify((await ask('/api/apps/mine/audit')).body), /T0KEN|whsec/);
  assert.equal(
    (await ask(`${notifications}/webhook`, { method: 'PUT', body: { url, events: ['birthday'] } })).status,
    400,
  );
  for (let time = 0; time < 2; time += 1)
    assert.equal((await ask(`${notifications}/webhook`, { method: 'DELETE' })).status, 200);
  assert.equal((await ask(notifications)).body['webhook'], undefined);
});

test('a test is sent and shown, once in 30 seconds', async () => {
  const sent = await ask(`${notifications}/test`, { method: 'POST' });
  assert.deepEqual([sent.status, sent.body['channels']], [200, ['mail']]);
  const deadline = Date.now() + 10_000;
  while (mailServer.mails.length === 0 && Date.now() < deadline)
    await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(
    mailServer.mails.map(({ headers }) => headers.get('subject')),
    ['mine: Test notification'],
  );
  const limited = await ask(`${notifications}/test`, { method: 'POST' });
  assert.deepEqual([limited.status, limited.kind], [429, 'too-many-tests']);
  const other = await ask('/api/apps/anonymous/notifications/test', { method: 'POST' });
  assert.deepEqual([other.status, other.kind], [409, 'no-notifications']);
});

test('opening the link of a mail changes nothing; its form and the POST of a mail program stop the mails', async () => {
  const page = await sample.request(stopPage, { headers: { accept: 'text/html' } });
  assert.equal(page.status, 200);
  const html = await page.text();
  assert.match(html, /<form method="post" action="\/notifications\/stop\/uid-mine\.[^"]+">/);
  assert.deepEqual((await ask(notifications)).body['mail'], {
    sent: true,
    to: 'a…@example.org',
    events: [...chosenKinds],
  });
  // As RFC 8058 has it: from anywhere, in either form.
  const boundary = 'multipart/form-data; boundary=x';
  for (const type of ['application/x-www-form-urlencoded', boundary]) {
    const stopped = await sample.request(stopPage, {
      method: 'POST',
      headers: { 'content-type': type },
      body:
        type === boundary
          ? '--x\r\ncontent-disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--x--\r\n'
          : 'List-Unsubscribe=One-Click',
    });
    assert.equal(stopped.status, 200, type);
    assert.match(await stopped.text(), /The mails are stopped/);
  }
  assert.match(JSON.stringify((await ask(notifications)).body['mail']), /"sent":false.*were stopped/);
  const refused = await ask(`${notifications}/test`, { method: 'POST' });
  assert.notEqual(refused.status, 200);
});

test('attack: a forged link stops nothing', async () => {
  const forged = stopPage.replace('uid-mine', 'uid-anonymous');
  for (const method of ['GET', 'POST']) {
    const response = await sample.request(forged, { method, headers: { accept: 'text/html' } });
    assert.equal(response.status, 404, method);
  }
});

test('the author starts the mails again; an app without a verified contact has none', async () => {
  assert.equal((await ask(`${notifications}/mail`, { method: 'PUT' })).status, 200);
  assert.deepEqual((await ask(notifications)).body['mail'], {
    sent: true,
    to: 'a…@example.org',
    events: [...chosenKinds],
  });
  const other = await ask('/api/apps/anonymous/notifications/mail', { method: 'PUT' });
  assert.deepEqual([other.status, other.kind], [409, 'no-notifications']);
});

/** The link of the newest mail to an address that asks for a confirmation. */
async function waitForLink(address: string, count = 1): Promise<string> {
  const find = (): string[] =>
    mailServer.mails
      .filter(({ to, raw }) => to[0] === address && raw.includes('/notifications/confirm/'))
      .map(({ raw }) => /(\/notifications\/confirm\/\S+)/.exec(raw.replaceAll('=\r\n', ''))?.[1] ?? '');
  const deadline = Date.now() + 10_000;
  while (find().length < count && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20));
  return find()[count - 1] ?? assert.fail(`no mail to ${address}`);
}

async function listContacts(): Promise<{ id: string; to: string; confirmed: boolean; sent: boolean }[]> {
  const contacts = (await ask(notifications)).body['contacts'];
  return z
    .array(z.looseObject({ id: z.string(), to: z.string(), confirmed: z.boolean(), sent: z.boolean() }))
    .parse(contacts);
}

test('a contact gets one mail that asks, and notifications once it has confirmed', async () => {
  const address = 'ops@example.net';
  const added = await ask(`${notifications}/contacts`, { method: 'POST', body: { address } });
  assert.deepEqual([added.status, added.body['confirmed']], [202, false]);
  const link = await waitForLink(address);
  assert.deepEqual(
    (await listContacts()).map(({ to, confirmed, sent }) => [to, confirmed, sent]),
    [['o…@example.net', false, false]],
  );
  // Opening the link changes nothing.
  const page = await sample.request(link, { headers: { accept: 'text/html' } });
  assert.match(await page.text(), /<form method="post" action="\/notifications\/confirm\//);
  assert.equal((await listContacts())[0]?.confirmed, false);
  assert.equal((await sample.request(link, { method: 'POST', headers: { accept: 'text/html' } })).status, 200);
  assert.deepEqual(
    (await listContacts()).map(({ confirmed, sent }) => [confirmed, sent]),
    [[true, true]],
  );
  const again = await ask(`${notifications}/contacts`, { method: 'POST', body: { address: address.toUpperCase() } });
  assert.deepEqual([again.status, again.body['confirmed']], [202, true]);
  assert.doesNotMatch(JSON.stringify((await ask('/api/apps/mine/audit')).body), /ops@example/);
});

test('attack: an address that nobody confirmed gets no notification, and a bounded number of mails', async () => {
  const address = 'victim@example.net';
  const add = async (): Promise<number> =>
    (await ask(`${notifications}/contacts`, { method: 'POST', body: { address } })).status;
  const links: string[] = [];
  for (const count of [1, 2, 3]) {
    assert.equal(await add(), 202);
    links.push(await waitForLink(address, count));
  }
  assert.equal(await add(), 429);
  const [first = '', , last = ''] = links;
  assert.equal(mailServer.mails.filter(({ to }) => to[0] === address).length, 3);
  // A new request replaces the link of the one before.
  assert.equal((await sample.request(first, { method: 'POST' })).status, 404);
  const forged = last.replace(/uid-mine/, 'uid-anonymous');
  assert.equal((await sample.request(forged, { method: 'POST' })).status, 404);
  const stop = keys.createStopToken({ app: 'uid-mine', contact: keys.hashContact(address) });
  assert.equal((await sample.request(`/notifications/stop/${stop}`, { method: 'POST' })).status, 200);
  const refused = await ask(`${notifications}/contacts`, { method: 'POST', body: { address } });
  assert.deepEqual([refused.status, refused.kind], [409, 'no-notifications'], 'who refuses is asked no more');
});

test('an author chooses the events of a channel, and removes a contact', async () => {
  const chosen = await ask(`${notifications}/mail/events`, { method: 'PUT', body: { events: ['crashed'] } });
  assert.equal(chosen.status, 200);
  assert.deepEqual(z.looseObject({ events: z.unknown() }).parse((await ask(notifications)).body['mail']).events, [
    'crashed',
  ]);
  for (const events of [[], ['birthday'], ['test']])
    assert.equal((await ask(`${notifications}/mail/events`, { method: 'PUT', body: { events } })).status, 400);
  assert.equal((await ask(`${notifications}/fax/events`, { method: 'PUT', body: { events: ['live'] } })).status, 400);
  const all = { method: 'PUT', body: { events: chosenKinds } };
  assert.equal((await ask(`${notifications}/mail/events`, all)).status, 200);
  for (const { id } of await listContacts())
    assert.equal((await ask(`${notifications}/contacts/${id}`, { method: 'DELETE' })).status, 200);
  assert.deepEqual(await listContacts(), []);
  assert.equal((await ask(`${notifications}/contacts/x`, { method: 'DELETE' })).status, 400);
});
