// Push events of git forges: whose signature counts, which events request a poll, and how often.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, test, vi } from 'vitest';
import { z } from 'zod';
import type { App } from '../../../../../api/apps/hosted-apps.ts';
import { findReasonToIgnore, isSigned, PushPolls, readPush } from '../../../../../api/apps/author/push-hook.ts';
import { derivePushHookSecret } from '../../../../../api/apps/author/push-hook-secrets.ts';
import { createAuthorKey, hashAuthorKey } from '../../../../../lib/ownership-file.ts';
import { silent } from '../../../../support/api/sample.ts';
import { sampleAppsServer, type AppsSample } from '../../../../support/apps/sample.ts';

const installationSecret = 'app-token-secret-of-tests-0123456789';
const key = createAuthorKey();
const hash = hashAuthorKey(key, 'git.test/octo/mine');
let sample: AppsSample;
let app: App;
let polls: string[] = [];

beforeAll(async () => {
  sample = await sampleAppsServer({
    environment: { MOORAGE_APP_TOKEN_SECRET: installationSecret },
    author: {
      createSecret: () => Promise.resolve(),
      maximumReplicas: 3,
      lookUpKeys: () =>
        Promise.resolve({
          ok: true,
          commit: 'c'.repeat(40),
          reference: 'refs/heads/main',
          authorKeys: [hash],
        } as const),
      writeControl: (of, change, request) => {
        assert.deepEqual(change({}), {});
        // A poll that an earlier test left waiting may come in this one.
        if (of.metadata.uid === app.metadata.uid) polls.push(request?.(of)['moorage.dev/poll'] ?? '');
        return Promise.resolve(of);
      },
    },
  });
});
afterAll(() => sample.stop());
let number = 0;
beforeEach(async () => {
  polls = [];
  number += 1;
  app = await sample.host(
    'mine',
    (_request, response) => response.end('ok'),
    (one): App => ({
      ...one,
      // Polls are limited by UID.
      metadata: { ...one.metadata, uid: `uid-${number}` },
      status: { ...one.status, authorKeys: [hash] },
    }),
  );
});

const answer = z.looseObject({ polled: z.boolean().optional(), reason: z.string().optional() });

interface SendOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly address?: string;
}

async function push({ headers = {}, body = '', address = '140.82.112.1' }: SendOptions): Promise<{
  status: number;
  body: z.output<typeof answer>;
}> {
  const response = await sample.request('/api/apps/mine/push-hook', {
    method: 'POST',
    headers: { 'x-forwarded-for': address, ...headers },
    body,
  });
  return { status: response.status, body: answer.parse(await response.json()) };
}

function sign(body: string, of: App = app): string {
  const secret = derivePushHookSecret(of.metadata.uid, installationSecret);
  return createHmac('sha256', secret).update(body).digest('hex');
}

const githubPush = JSON.stringify({
  ref: 'refs/heads/main',
  after: 'd'.repeat(40),
  repository: { full_name: 'octo/mine', default_branch: 'main', clone_url: 'https://git.test/octo/mine.git' },
});

test("verifies the example of GitHub's documentation, and nothing that differs in a character", () => {
  const secret = "It's a Secret to Everybody";
  const body = Buffer.from('Hello, World!');
  const signature = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17';
  const verify = (name: string, value: string, of: Uint8Array = body): boolean =>
    isSigned(new Headers({ [name]: value }), of, secret);
  assert.ok(verify('x-hub-signature-256', signature));
  assert.ok(verify('x-gitea-signature', signature.slice('sha256='.length)));
  assert.ok(verify('x-forgejo-signature', signature.slice('sha256='.length)));
  assert.ok(verify('x-moorage-signature', signature));
  assert.ok(verify('x-gitlab-token', secret));
  assert.ok(!verify('authorization', 'Bearer abc'));
  assert.ok(isSigned(new Headers({ authorization: 'Bearer abc' }), body, 'abc'));
  for (const [name, value, of] of [
    ['x-hub-signature-256', signature.replace('7571', '7572')],
    ['x-hub-signature-256', ''],
    ['x-hub-signature-256', 'sha256='],
    ['x-hub-signature', signature],
    ['x-hub-signature-256', signature, Buffer.from('Hello, World! ')],
    ['x-gitlab-token', `${secret}s`],
    ['x-gitlab-token', signature],
    ['authorization', secret],
  ] as const)
    assert.equal(verify(name, value, of), false, `${name}: ${value}`);
  assert.equal(isSigned(new Headers(), body, secret), false);
});

test('each app has another secret, and so has each app that takes its name later', () => {
  const secrets = ['uid-1', 'uid-2'].map((uid) => derivePushHookSecret(uid, installationSecret));
  assert.equal(new Set([...secrets, derivePushHookSecret('uid-1', `${installationSecret}x`)]).size, 3);
  for (const secret of secrets) assert.match(secret, /^[0-9a-f]{64}$/);
});

test('gives the author the address and the secret, and nobody else', async () => {
  const ask = async (authorization: string): Promise<Response> =>
    sample.request('/api/apps/mine/push-hook-secret', {
      method: 'POST',
      headers: { 'x-forwarded-for': '203.0.113.1', authorization },
    });
  const given = await ask(`Bearer ${key}`);
  assert.equal(given.status, 200);
  const { url, secret } = z.looseObject({ url: z.string(), secret: z.string() }).parse(await given.json());
  assert.match(url, /\/api\/apps\/mine\/push-hook$/);
  assert.equal(secret, derivePushHookSecret(app.metadata.uid, installationSecret));
  assert.equal((await ask(`Bearer ${createAuthorKey()}`)).status, 403);
});

test('a new secret is accepted immediately, and the old one for a day or until it is ended', async () => {
  const call = async (path: string, method = 'POST', body?: object): Promise<Record<string, unknown>> => {
    const response = await sample.request(`/api/apps/mine/push-hook-secret${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    assert.equal(response.status, 200, path);
    return z.looseObject({}).parse(await response.json());
  };
  const event = async (secret: unknown, address: string): Promise<number> =>
    (await push({ headers: { authorization: `Bearer ${String(secret)}` }, address })).status;
  const secrets = [(await call('')).secret];
  const first = await call('/replace', 'POST', {});
  secrets.push(first.secret);
  const hours = (Date.parse(String(first.previous_valid_until)) - Date.now()) / 3_600_000;
  assert.ok(hours > 23 && hours <= 24.1, String(hours));
  assert.equal((await call('')).secret, first.secret, 'the new one is shown from now on');
  assert.deepEqual([await event(secrets[0], '192.0.2.1'), await event(secrets[1], '192.0.2.1')], [202, 202]);
  assert.equal((await call('/previous', 'DELETE')).message, 'The previous secret is not valid any more.');
  assert.deepEqual([await event(secrets[0], '192.0.2.2'), await event(secrets[1], '192.0.2.2')], [403, 202]);
  // Only one is valid besides the newest.
  secrets.push((await call('/replace', 'POST', {})).secret, (await call('/replace', 'POST', {})).secret);
  assert.deepEqual(
    [await event(secrets[1], '192.0.2.3'), await event(secrets[2], '192.0.2.3'), await event(secrets[3], '192.0.2.3')],
    [403, 202, 202],
  );
  secrets.push((await call('/replace', 'POST', { end_previous: true })).secret);
  assert.deepEqual([await event(secrets[3], '192.0.2.4'), await event(secrets[4], '192.0.2.4')], [403, 202]);
  assert.equal(new Set(secrets).size, 5);
  const audit = await sample.request('/api/apps/mine/audit', { headers: { authorization: `Bearer ${key}` } });
  const text = await audit.text();
  assert.match(text, /replace-push-hook-secret/);
  for (const secret of secrets) assert.ok(!text.includes(String(secret)));
});

test('a signed push of the tracked branch requests a poll, from each forge and from a script', async () => {
  const secret = derivePushHookSecret(app.metadata.uid, installationSecret);
  const gitlab = JSON.stringify({
    object_kind: 'push',
    ref: 'refs/heads/main',
    project: { path_with_namespace: 'octo/mine', default_branch: 'main' },
  });
  const form = new URLSearchParams({ payload: githubPush }).toString();
  const senders: SendOptions[] = [
    { headers: { 'x-github-event': 'push', 'x-hub-signature-256': `sha256=${sign(githubPush)}` }, body: githubPush },
    {
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        'x-github-event': 'push',
        'x-hub-signature-256': `sha256=${sign(form)}`,
      },
      body: form,
    },
    { headers: { 'x-gitlab-event': 'Push Hook', 'x-gitlab-token': secret }, body: gitlab },
    { headers: { 'x-gitea-event': 'push', 'x-gitea-signature': sign(githubPush) }, body: githubPush },
    { headers: { 'x-forgejo-event': 'push', 'x-forgejo-signature': sign(githubPush) }, body: githubPush },
    { headers: { authorization: `Bearer ${secret}` } },
    { headers: { 'x-moorage-signature': `sha256=${sign('{"ref":"main"}')}` }, body: '{"ref":"main"}' },
  ];
  for (const sent of senders) assert.deepEqual(await push(sent), { status: 202, body: { polled: true } });
  assert.match(polls[0] ?? '', /^20\d\d-.*Z$/);
});

test('pings, other events, other branches and other repositories have no effect, and the answer says why', async () => {
  const cases: [event: string, fields: object, reason: RegExp][] = [
    ['ping', { zen: 'Design for failure.' }, /^The event ping is no push/],
    ['issues', { repository: { full_name: 'octo/mine' } }, /^The event issues is no push/],
    ['push', { ref: 'refs/heads/topic', repository: { full_name: 'octo/mine', default_branch: 'main' } }, /topic/],
    ['push', { ref: 'refs/tags/v1', repository: { full_name: 'octo/mine', default_branch: 'main' } }, /v1/],
    ['push', { ref: 'refs/heads/main', repository: { full_name: 'octo/other' } }, /^The push is to octo\/other/],
  ];
  for (const [event, fields, reason] of cases) {
    const body = JSON.stringify(fields);
    const received = await push({
      headers: { 'x-github-event': event, 'x-hub-signature-256': `sha256=${sign(body)}` },
      body,
    });
    assert.deepEqual([received.status, received.body.polled], [202, false]);
    assert.match(received.body.reason ?? '', reason);
  }
  assert.deepEqual(polls, []);
});

test('looks at the repository for pull requests and branches with previews, and for no other', () => {
  const judge = (event: string, fields: object, previews: object): string | undefined =>
    findReasonToIgnore(
      {
        ...app,
        status: { ...app.status, settings: { commit: 'c'.repeat(40), values: JSON.stringify({ previews }) } },
      },
      readPush(new Headers({ 'x-github-event': event }), Buffer.from(JSON.stringify(fields))),
    );
  const mine = { repository: { full_name: 'octo/mine', default_branch: 'main' } };
  const on = { pullRequests: true, branches: ['feature/*'] };
  for (const event of ['pull_request', 'pull_request_sync', 'Merge Request Hook'])
    assert.equal(judge(event, { action: 'closed', ...mine }, on), undefined);
  assert.match(judge('pull_request', mine, { branches: ['*'] }) ?? '', /no previews of pull requests/);
  assert.match(judge('pull_request', { repository: { full_name: 'octo/other' } }, on) ?? '', /octo\/other/);
  assert.equal(judge('push', { ref: 'refs/heads/feature/a', ...mine }, on), undefined);
  assert.match(judge('push', { ref: 'refs/heads/topic', ...mine }, on) ?? '', /topic/);
});

test('compares the branch with the revision of the app, and leaves a suspended app alone', () => {
  const judge = (spec: object, ref: string): string | undefined =>
    findReasonToIgnore(
      { ...app, spec: { ...app.spec, ...spec } },
      readPush(new Headers({ 'x-github-event': 'push' }), Buffer.from(JSON.stringify({ ref }))),
    );
  const source = app.spec.source;
  assert.equal(judge({ source: { ...source, revision: 'stable' } }, 'refs/heads/stable'), undefined);
  assert.equal(judge({ source: { ...source, revision: 'v1' } }, 'refs/tags/v1'), undefined);
  assert.match(judge({ source: { ...source, revision: 'stable' } }, 'refs/heads/main') ?? '', /built from/);
  assert.match(judge({ source: { ...source, revision: 'a'.repeat(40) } }, 'refs/heads/main') ?? '', /fixed commit/);
  assert.match(judge({ control: { suspended: true } }, 'refs/heads/main') ?? '', /suspended/);
  assert.equal(judge({ control: { release: 'a'.repeat(40) } }, 'refs/heads/main'), undefined);
});

test('attack: a wrong signature has no effect, and ten of them are the last from a network for this app alone', async () => {
  const sender = { address: '198.51.100.7', headers: { 'x-github-event': 'push', 'x-hub-signature-256': 'sha256=00' } };
  for (let tries = 0; tries < 10; tries += 1) assert.equal((await push({ ...sender, body: githubPush })).status, 403);
  const right = { 'x-github-event': 'push', 'x-hub-signature-256': `sha256=${sign(githubPush)}` };
  assert.equal((await push({ address: sender.address, headers: right, body: githubPush })).status, 429);
  assert.deepEqual(polls, []);
  assert.equal((await push({ address: '192.0.2.1', headers: right, body: githubPush })).status, 202);
  number += 1;
  app = { ...app, metadata: { ...app.metadata, uid: `uid-${number}` } };
  sample.store.set(app);
  const other = { 'x-hub-signature-256': `sha256=${sign(githubPush)}` };
  assert.equal((await push({ address: sender.address, headers: other, body: githubPush })).status, 202, 'another app');
});

test('attack: refuses a body of more than a megabyte', async () => {
  const body = 'x'.repeat(1_048_577);
  assert.equal((await push({ headers: { 'x-moorage-signature': sign(body) }, body })).status, 413);
});

test('of many pushes within a second, the first and the last are followed by a poll', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  try {
    const written: number[] = [];
    const scheduler = new PushPolls({
      writeControl: (of) => {
        written.push(Date.now());
        return Promise.resolve(of);
      },
      log: silent,
      everyMs: 100,
    });
    await scheduler.request(app);
    assert.equal(written.length, 1);
    for (let pushes = 0; pushes < 5; pushes += 1) await scheduler.request(app);
    assert.equal(written.length, 1);
    vi.setSystemTime(Date.now() + 100);
    await vi.waitFor(() => {
      assert.equal(written.length, 2);
    });
    await scheduler.request(app);
    assert.equal(written.length, 2, 'within a second of the last poll');
    await scheduler.stop();
    assert.equal(written.length, 3, 'nothing is lost at the end of the process');
  } finally {
    vi.useRealTimers();
  }
});

test('repeats a delayed poll that failed, and reports the failure of an immediate one', async () => {
  const results = ['fail', 'ok', 'fail', 'ok'];
  let writes = 0;
  const scheduler = new PushPolls({
    writeControl: (of) => {
      writes += 1;
      return results[writes - 1] === 'fail' ? Promise.reject(new Error('gone')) : Promise.resolve(of);
    },
    log: silent,
    everyMs: 200,
  });
  await assert.rejects(scheduler.request(app), /gone/);
  await scheduler.request(app);
  await vi.waitFor(() => {
    assert.equal(writes, 2);
  });
  await scheduler.request(app);
  await vi.waitFor(() => {
    assert.equal(writes, 4);
  });
  await scheduler.stop();
});
