// Which events the status of an app shows, how they are put into words, and what the settings and tokens accept.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { App } from '../../../../../api/apps/hosted-apps.ts';
import {
  findBudgetEvent,
  findMailContact,
  listStatusEvents,
  type NoticedEvent,
} from '../../../../../api/apps/notifications/events.ts';
import { readMailSettings } from '../../../../../api/apps/notifications/mail.ts';
import { describeEvent, formatMailText, NotificationKeys } from '../../../../../api/apps/notifications/messages.ts';
import { findMissingVariables } from '../../../../../controller/steps/deploy/crash-fixes.ts';
import type { HostedAppStatus } from '../../../../../crds/hosted-app.ts';
import { sampleApp } from '../../../../support/api/sample.ts';

const [older, newer] = ['a'.repeat(40), 'b'.repeat(40)];
const since = '2026-01-02T03:04:05Z';
const live: HostedAppStatus = {
  phase: 'Live',
  since,
  url: 'https://notes.apps.test/',
  source: { commit: older },
  served: { image: 'registry.test/app@sha256:0', commit: older, since },
};
const rejection = { rule: 'license/missing', message: 'There is no licence.', fix: 'Add a LICENSE file.' };

function createApp(status: HostedAppStatus, spec: Partial<App['spec']> = {}): App {
  const app = sampleApp('notes', undefined, status);
  return { ...app, spec: { ...app.spec, ...spec } };
}

function listKinds(status: HostedAppStatus, spec?: Partial<App['spec']>): string[] {
  return listStatusEvents(createApp(status, spec)).map(({ kind }) => kind);
}

test('a release that its URL has confirmed is live, once per commit', () => {
  const [event] = listStatusEvents(createApp(live));
  assert.deepEqual([event?.kind, event?.subject, event?.at.toISOString()], ['live', older, '2026-01-02T03:04:05.000Z']);
  assert.deepEqual(listKinds({ ...live, phase: 'Deploying' }), [], 'an update in progress');
  assert.deepEqual(listKinds({ ...live, phase: 'Failing' }), [], 'errors at its URL');
  assert.deepEqual(listKinds({ phase: 'Building', since }), []);
});

test('the rule of a rejection decides its kind', () => {
  const rejected = { phase: 'Rejected', since, source: { commit: newer } } as const;
  const listFor = (change: Partial<typeof rejection>, more: Partial<HostedAppStatus> = {}): string[] =>
    listKinds({ ...rejected, ...more, rejection: { ...rejection, ...change } });
  assert.deepEqual(listFor({}), ['rejected']);
  assert.deepEqual(listFor({ rule: 'run/never-listened' }), ['rejected']);
  for (const rule of ['run/crashed', 'run/out-of-memory', 'run/out-of-disk'])
    assert.deepEqual(listFor({ rule }), ['crashed'], rule);
  const condition = { status: 'False', lastTransitionTime: since, message: '', reason: 'RolloutTakenBack' } as const;
  const back = { ...live, ...rejected, conditions: [{ type: 'Deployed', ...condition }] };
  assert.deepEqual(listFor({ rule: 'run/crashed' }, back), ['rolled_back']);
  assert.deepEqual(listFor({ rule: 'run/misconfigured' }), ['secret_missing']);
  assert.deepEqual(listFor({ rule: 'run/image-pull' }), [], 'not the fault of the author');
});

test.each([
  "KeyError: 'OPENAI_API_KEY'",
  'Error: environment variable STRIPE_KEY is missing',
  'pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings\napi_key\n  Field required [type=missing]',
])('a crash for want of a variable is reported as such: %s', (log) => {
  const crash = { ...rejection, rule: 'run/crashed', variables: findMissingVariables(log) };
  assert.deepEqual(listKinds({ phase: 'Rejected', since, rejection: crash }), ['secret_missing']);
});

test('a crash for another reason is not reported as a missing variable', () => {
  for (const log of ['ModuleNotFoundError: No module named "flask"', 'Segmentation fault', ''])
    assert.deepEqual(
      listKinds({
        phase: 'Rejected',
        since,
        rejection: { ...rejection, rule: 'run/crashed', variables: findMissingVariables(log) },
      }),
      ['crashed'],
      log,
    );
});

test('an app that was suspended or deleted, or whose retry was requested, has no events', () => {
  const rejected: HostedAppStatus = { ...live, phase: 'Rejected', rejection };
  assert.deepEqual(listKinds(rejected, { suspend: true }), []);
  assert.deepEqual(listKinds(live, { control: { suspended: true } }), []);
  assert.deepEqual(listKinds(live, { control: { deleteAfter: '2026-02-01T00:00:00Z' } }), []);
  const { metadata } = sampleApp('notes');
  const retried = { ...metadata, annotations: { 'moorage.dev/rebuild': 'again' } };
  assert.deepEqual(listStatusEvents({ ...createApp({ phase: 'Rejected', rejection }), metadata: retried }), []);
  assert.deepEqual(listStatusEvents({ ...createApp(live), metadata: { ...metadata, deletionTimestamp: since } }), []);
});

test('the same crash again, after a calm, is another event', () => {
  const crash = { ...rejection, rule: 'run/crashed' };
  const subjects = [since, '2026-01-02T05:00:00Z'].map(
    (time) => listStatusEvents(createApp({ phase: 'Rejected', since: time, rejection: crash }))[0]?.subject,
  );
  assert.notEqual(subjects[0], subjects[1]);
});

test('a budget is reported at 80 and at 100 percent', () => {
  const find = (used: bigint, limit = 200n): NoticedEvent | undefined =>
    findBudgetEvent(
      createApp(live),
      { used, limit, limitUsd: '0.20', day: '2026-01-02' },
      new Date('2026-01-02T23:00:00Z'),
    );
  assert.deepEqual(
    [159n, 160n, 199n, 200n, 230n].map((used) => find(used)?.kind),
    [undefined, 'budget_low', 'budget_low', 'budget_spent', 'budget_spent'],
  );
  assert.equal(find(200n)?.subject, '2026-01-02');
  assert.equal(find(0n, 0n), undefined);
});

test('a message has the fact, the reason, the fix and the links, and never the log', () => {
  const [event] = listStatusEvents(
    createApp({ phase: 'Rejected', since, source: { commit: newer }, rejection: { ...rejection, log: 'SECRET=1' } }),
  );
  assert.ok(event !== undefined);
  const message = describeEvent({ slug: 'notes', ...event }, 'https://moorage.test');
  assert.equal(message.subject, 'notes: commit bbbbbbbbbbbb was rejected (license/missing)');
  assert.equal(
    formatMailText(message, 'https://moorage.test/stop'),
    `Commit bbbbbbbbbbbb of notes was rejected.

license/missing: There is no licence.

Fix: Add a LICENSE file.

Status: https://moorage.test/status/octo/notes?host=git.test
Manage: https://moorage.test/apps/notes/manage

-- \nYou get this mail because your address is the contact of this app.
Stop these mails: https://moorage.test/stop

`,
  );
  assert.doesNotMatch(JSON.stringify(event), /SECRET/);
});

test('attack: a title keeps one line of text', () => {
  const title = 'Notes\r\nBcc: victim@example.org\u2028\u202ex';
  const [event] = listStatusEvents(createApp(live, { listing: { title } }));
  assert.equal(event?.detail.title, 'Notes Bcc: victim@example.org x');
});

test('only an e-mail address that the author or the operator gave gets mail', () => {
  const find = (spec: Partial<App['spec']>, status: HostedAppStatus = {}): string | undefined =>
    findMailContact(createApp(status, spec));
  assert.equal(find({ author: { contact: 'me@example.org' } }), 'me@example.org');
  assert.equal(find({}, { ownership: { since, contact: 'me@example.org' } }), 'me@example.org');
  assert.equal(find({ submission: { contact: 'me@example.org' } }), undefined, 'the claim of a submitter');
  assert.equal(find({ author: { contact: 'https://example.org' } }), undefined);
  for (const contact of ['a@example.org,b@example.org', 'a@b@example.org', '"a"@example.org', '<a@example.org>'])
    assert.equal(find({ author: { contact } }), undefined, contact);
});

test('a stop link names its app and contact, and cannot be forged', () => {
  const keys = new NotificationKeys('secret');
  const target = { app: 'uid-1', contact: keys.hashContact('Me@example.org') };
  const token = keys.createStopToken(target);
  assert.deepEqual(keys.parseStopToken(token), target);
  assert.equal(target.contact, keys.hashContact('me@example.org'));
  assert.doesNotMatch(token, /example/);
  for (const forged of [
    token.replace('uid-1', 'uid-2'),
    `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`,
    token.slice(0, -1),
    `uid-1.${target.contact}.`,
    new NotificationKeys('other').createStopToken(target),
  ])
    assert.equal(keys.parseStopToken(forged), undefined, forged);
});

test('settings name the server and the sender, and hide the password in errors', () => {
  const read = (url: string, from = 'Moorage <notify@example.org>'): ReturnType<typeof readMailSettings> =>
    readMailSettings({ MOORAGE_SMTP_URL: url, MOORAGE_MAIL_FROM: from });
  assert.equal(readMailSettings({}), undefined);
  assert.deepEqual(read('smtps://me:p%40ss@mail.example.org'), {
    server: { host: 'mail.example.org', port: 465, tls: 'implicit', auth: { user: 'me', pass: 'p@ss' } },
    from: { name: 'Moorage', address: 'notify@example.org' },
  });
  assert.equal(read('smtp://mail.example.org')?.server.tls, 'starttls');
  assert.equal(read('smtp://mail.mail:25?tls=off', 'notify@example.org')?.server.tls, 'off');
  for (const url of ['https://u:hunter2@mail.example.org', 'smtp://u:hunter2@', 'smtp://u:hunter2@mail?tls=maybe'])
    assert.throws(
      () => read(url),
      (error: Error) => /MOORAGE_SMTP_URL/.test(error.message) && !/hunter2/.test(error.message),
      url,
    );
  assert.throws(() => readMailSettings({ MOORAGE_SMTP_URL: 'smtps://mail.example.org' }), /MOORAGE_MAIL_FROM/);
  assert.throws(() => read('smtps://mail.example.org', 'a@example.org\r\nBcc: b@example.org'), /MOORAGE_MAIL_FROM/);
});
