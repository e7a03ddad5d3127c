// The form without JavaScript: sent, led on to the status, and refused at the field in the words of the problem.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { tooManySubmissions } from '../../../../api/apps/problems.ts';
import type { Submission } from '../../../../api/apps/submit/submit-app.ts';
import { Problem } from '../../../../lib/problem.ts';
import { sampleApp, sampleApps, sampleServices } from '../../../support/api/sample.ts';
import { send } from '../../../support/api/send.ts';
import { checkPage } from '../../../support/pages/check.ts';
import { browserHeaders, createForm, samplePages } from '../../../support/pages/sample.ts';
import { rejectedStatus } from '../../../support/pages/status.ts';
import { createLiveStatus } from '../../../support/discovery/sample.ts';

test('submits a form once and redirects to the status', async () => {
  const submissions: Submission[] = [];
  const { app } = samplePages({
    services: sampleServices({
      submit: (submission) => {
        submissions.push(submission);
        return Promise.resolve({ app: sampleApp('chat'), created: true, polled: true, retried: false });
      },
    }),
  });
  const answer = await send(app, '/submit?lang=zh', createForm({ repo: ' octo/chat ', contact: '', note: 'Chats.' }));
  assert.deepEqual([answer.status, answer.headers.get('location')], [303, '/status/octo/chat?lang=zh']);
  assert.deepEqual(
    submissions.map(({ repository, contact, note }) => [repository.url, contact, note]),
    [['https://git.test/octo/chat', undefined, 'Chats.']],
  );
});

test('keeps the host of a namesake on another host', async () => {
  const { app } = samplePages({
    services: sampleServices({
      submit: () =>
        Promise.resolve({
          app: sampleApp('chat', 'https://other.test/octo/chat'),
          created: true,
          polled: true,
          retried: false,
        }),
    }),
  });
  const answer = await send(app, '/submit', createForm({ repo: 'https://other.test/octo/chat' }));
  assert.equal(answer.headers.get('location'), '/status/octo/chat?host=other.test');
});

test('shows an error next to its field, and keeps what was typed', async () => {
  const { app } = samplePages();
  const answer = await send(
    app,
    '/submit',
    createForm({ repo: 'https://nowhere.test/octo/chat', contact: 'not an address', note: '' }),
  );
  const html = await answer.text();
  assert.equal(answer.status, 400);
  assert.deepEqual(checkPage(html).faults, []);
  assert.match(html, /id="contact-error"/);
  assert.match(html, /value="https:\/\/nowhere\.test\/octo\/chat"/);
  assert.match(html, /aria-invalid="true"/);
  const repository = await send(app, '/submit', createForm({ repo: 'https://nowhere.test/octo/chat' }));
  assert.match(await repository.text(), /the git host nowhere\.test is not allowed here/);
});

test('shows a limit as a page with its message and status', async () => {
  const { app } = samplePages({
    services: sampleServices({
      submit: () =>
        Promise.reject(new Problem(tooManySubmissions, 'You have submitted 20 new repositories within 24 hours.')),
    }),
  });
  const answer = await send(app, '/submit', createForm({ repo: 'octo/chat' }));
  assert.equal(answer.status, 429);
  assert.match(await answer.text(), /role="alert"[\s\S]*You have submitted 20 new repositories/);
});

test('submits nothing from a form of another site', async () => {
  const { app } = samplePages();
  const form = createForm({ repo: 'octo/chat' });
  for (const headers of [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': '', origin: 'https://evil.test' },
  ]) {
    const answer = await send(app, '/submit', {
      ...form,
      headers: { ...Object.fromEntries(new Headers(form.headers)), ...headers } as Record<string, string>,
    });
    assert.equal(answer.status, 403, JSON.stringify(headers));
    assert.match(await answer.text(), /sent from another site/);
  }
});

test('shows findings with their line and fix, and the end of the log [spec status.rejected]', async () => {
  const { apps } = sampleApps(sampleApp('chat', undefined, rejectedStatus));
  const { app } = samplePages({ services: sampleServices({ apps }) });
  const html = await (await send(app, '/status/octo/chat', { headers: browserHeaders })).text();
  for (const part of ['config/settings.py', 'line 12', 'Revoke the key', 'reviewing 214 files', 'license/custom'])
    assert.ok(html.includes(part), part);
  assert.doesNotMatch(html, /http-equiv="refresh"/);
});

test('reloads a build in progress without scripts, but not one that is over [spec status.in-pipeline status.live]', async () => {
  const { apps } = sampleApps(
    sampleApp('slow', undefined, { phase: 'Building' }),
    sampleApp('up', undefined, createLiveStatus('https://up.apps.test')),
  );
  const { app } = samplePages({ services: sampleServices({ apps }) });
  const moving = await (await send(app, '/status/octo/slow', { headers: browserHeaders })).text();
  assert.match(moving, /<noscript><meta http-equiv="refresh" content="5" \/><\/noscript>/);
  assert.match(moving, /<li\s+class="current"\s+aria-current="step"\s*>\s*<span>Build<\/span>/);
  const live = await (await send(app, '/status/octo/up', { headers: browserHeaders })).text();
  assert.doesNotMatch(live, /http-equiv/);
  assert.match(live, /href="https:\/\/up\.apps\.test"[^>]*>Open the app/);
});
