// What the page of a status says of an app whose newest commit serves, of builds apart from releases, and where the log
// of a crash opens.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { buildStatusPage } from '../../../../api/pages/submit-pages.ts';
import { createVisit } from '../../../../api/pages/visit.ts';
import type { StatusView } from '../../../../api/apps/index.ts';
import { send } from '../../../support/api/send.ts';
import { openManagedPage } from '../../../support/pages/managed.ts';

const baseUrl = 'https://moorage.test';
const visit = createVisit(
  { baseUrl, isServed: () => true },
  { path: '/status/octo/chat', query: {}, headers: new Headers() },
);
const commit = 'a'.repeat(40);
const live: StatusView = {
  status: 'live',
  message: 'The app is live.',
  repo: 'https://github.com/octo/chat',
  slug: 'chat',
  url: 'https://chat.moorage.test',
  status_url: `${baseUrl}/api/submit-status/octo/chat`,
  log_url: `${baseUrl}/api/submit-status/octo/chat/log`,
  commit,
  newest_commit: commit,
};
const read = (view: Partial<StatusView>): string =>
  String(buildStatusPage({ owner: 'octo', name: 'chat', view: { ...live, ...view } }, visit).main);

test('does not call the serving commit a newer one', () => {
  const update = { stage: 'deploying', commit } as const;
  assert.match(read({ update }), /The commit that serves is being rolled out again/);
  assert.match(
    read({ update: { ...update, commit: 'b'.repeat(40) }, newest_commit: 'b'.repeat(40) }),
    /A newer commit/,
  );
  const problem = { rule: 'run/crashed', message: 'The app crashed.', fix: 'Fix it.' };
  assert.match(read({ problem }), /The commit that serves has a problem/);
});

test('shows a build whose app crashed as built but not released', () => {
  const build = { number: 2, commit, reason: 'new commit', result: 'Succeeded' };
  const failed = read({
    history: [{ ...build, release: 'Failed', release_message: 'The app crashed with exit code 1.' }],
  });
  assert.match(failed, /Built, not released.*The app crashed with exit code 1\./s);
  assert.doesNotMatch(failed, /Succeeded/);
  assert.match(read({ history: [{ ...build, release: 'Released' }] }), /Built, released/);
});

test('links to the pages that add a licence, and shows a text only if the git server offers none', () => {
  const rejection = { rule: 'license/missing', message: 'No licence was found.', fix: 'Add a LICENSE file.' };
  const url = 'https://github.com/octo/chat/community/license/new?branch=main&template=mit';
  const links = [{ title: 'MIT', url }];
  const page = read({ status: 'rejected', rejection, license: { links } });
  assert.match(
    page,
    /Add a licence<\/dt>.*<a href="https:\/\/github\.com\/octo\/chat\/community\/license\/new\?branch=main&amp;template=mit"[^>]*>MIT<\/a>/s,
  );
  assert.doesNotMatch(page, /Text for the file LICENSE/);
  const own = read({ status: 'rejected', rejection, license: { links: [], text: 'MIT License <1>' } });
  assert.match(own, /Text for the file LICENSE.*MIT License &lt;1&gt;/s);
  assert.doesNotMatch(own, /Add a licence<\/dt>/);
  assert.doesNotMatch(read({ status: 'rejected', rejection }), /Add a licence<\/dt>|Text for the file/);
});

test('opens the log of a rejection at its end, below the position in the code', () => {
  const rejection = {
    rule: 'run/crashed',
    file: 'app.py',
    line: 7,
    message: 'It crashed.',
    fix: 'Fix it.',
    log: 'last words',
  };
  const page = read({ status: 'rejected', rejection });
  assert.match(
    page,
    /<a class="button quiet" href="\/apps\/[^/"]+\/manage"/,
    'the author gets to where a secret is set',
  );
  assert.match(page, /class="code at-end"[^>]*><code>last words/);
  assert.match(page, /<code>app\.py<\/code> line 7/);
});

test('shows each component with its state, as text and not as markup', () => {
  const page = read({
    components: [
      { name: 'web', kind: 'web', ready: true, restarts: 0 },
      { name: 'worker', kind: 'worker', ready: false, restarts: 4, message: 'Its log says "<b>no queue</b>".' },
    ],
  });
  assert.match(page, /Components<\/dt>.*<code>web<\/code> \(web\): ready.*<code>worker<\/code> \(worker\): not ready/s);
  assert.match(page, /restarts: 4.*&lt;b&gt;no queue/s);
  assert.doesNotMatch(read({}), /Components<\/dt>/);
});

test('shows no log and no link of a private repository to others, and says who reads it', () => {
  const rejection = { rule: 'build/failed', message: 'Only its author sees why.', fix: 'Sign in.' };
  const closed = read({ status: 'rejected', private: true, rejection });
  assert.match(closed, /The repository is private, so its build log/);
  assert.doesNotMatch(closed, /data-url=|curl|href="https:\/\/github\.com/);
  const own = read({ status: 'rejected', private: true, readable: true, rejection });
  assert.match(own, /data-url="\/status\/octo\/chat\/log"/, 'the log of the session, not of the API');
});

test('the author of a private repository reads status and log in a browser, with the session alone', async () => {
  const { listener, cookie, stop } = await openManagedPage();
  try {
    const path = '/status/octo/mine';
    const headers = { accept: 'text/html' };
    const get = async (address: string, more: Record<string, string> = {}): Promise<Response> =>
      send(listener, address, { headers: { ...headers, ...more } });
    const others = await (await get(path)).text();
    assert.match(others, /The repository is private, so its build log/);
    const own = await get(path, { cookie });
    assert.equal(own.headers.get('cache-control'), 'no-store');
    assert.match(await own.text(), /data-url="\/status\/octo\/mine\/log"/);
    const log = { accept: 'text/event-stream' };
    assert.equal((await get(`${path}/log`, log)).status, 401);
    const events = await get(`${path}/log`, { ...log, cookie });
    assert.equal(events.headers.get('content-type'), 'text/event-stream');
    assert.match(await events.text(), /event: end/);
    assert.equal(
      (await get('/api/submit-status/octo/mine/log', { ...log, cookie })).status,
      401,
      'the API reads no cookie',
    );
    const manage = await (await get('/apps/mine/manage', { cookie })).text();
    assert.match(manage, /id="deploy-key".*ssh-ed25519 AAAA.*settings\/keys/s);
  } finally {
    await stop();
  }
});
