// How an author decides who may visit an app: what is stored, what is refused, and that neither a key nor the password can be
// read again.
import assert from 'node:assert/strict';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { z } from 'zod';
import type { App } from '../../../../../api/apps/hosted-apps.ts';
import { hashAccessKey, isAccessKey, verifyAccessPassword } from '../../../../../crds/access.ts';
import type { Control } from '../../../../../crds/control.ts';
import { createAuthorKey, hashAuthorKey } from '../../../../../lib/ownership-file.ts';
import { omitUndefined } from '../../../../../lib/values.ts';
import { addAgentPaths, sampleAppsServer, type AppsSample } from '../../../../support/apps/sample.ts';

const key = createAuthorKey();
const hash = hashAuthorKey(key, 'git.test/octo/mine');
const password = 'correct horse 電池';
let sample: AppsSample;
let logged = '';
let calls = 0;

function getStored(): App {
  const app = sample.store.get('apps/mine');
  assert.ok(app !== undefined);
  return app;
}

function setControl(control: Control, status: object = {}): App {
  const { metadata, spec, status: before, ...rest } = getStored();
  const version = String(Number(metadata.resourceVersion) + 1);
  const app = {
    ...{ ...rest, metadata: { ...metadata, resourceVersion: version, generation: Number(version) } },
    ...{ spec: { ...spec, control }, status: { ...before, ...status } },
  };
  sample.store.set(app);
  return app;
}

beforeAll(async () => {
  sample = await sampleAppsServer({
    log: pino({ level: 'trace' }, { write: (line: string) => (logged += line) }),
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
      writeControl: (_app, change) => {
        const { control = {} } = getStored().spec;
        return Promise.resolve(setControl(omitUndefined({ ...control, ...change(control) })));
      },
    },
  });
});
afterAll(() => sample.stop());
beforeEach(async () => {
  [logged, calls] = ['', 0];
  await sample.host(
    'mine',
    (_request, response) => {
      calls += 1;
      response.end('ok');
    },
    (app) => addAgentPaths({ ...app, status: { ...app.status, authorKeys: [hash] } }),
  );
});

const answer = z.looseObject({ type: z.string().optional(), detail: z.string().optional() });

async function send(
  method: string,
  path: string,
  body?: unknown,
): Promise<{ outcome: string; body: z.output<typeof answer>; text: string }> {
  const response = await sample.request(`/api/apps/mine${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const parsed = answer.parse(JSON.parse(text));
  return { outcome: `${response.status} ${parsed.type?.split('/').at(-1) ?? ''}`.trim(), body: parsed, text };
}

test('a password is stored as a salted hash, and is in no answer, log, audit entry or export', async () => {
  const set = await send('PUT', '/access', { access: 'password', password });
  assert.deepEqual([set.outcome, set.body['access'], set.body['keys']], ['200', 'password', []]);
  const { accessPassword = '', access } = getStored().spec.control ?? {};
  assert.equal(access, 'password');
  assert.ok(await verifyAccessPassword(password, accessPassword));
  assert.ok(!(await verifyAccessPassword(`${password} `, accessPassword)));
  const again = await send('PUT', '/access', { access: 'password', password });
  assert.equal(again.outcome, '200');
  assert.notEqual(getStored().spec.control?.accessPassword, accessPassword, 'the same password has another salt');
  const answers = await Promise.all(['', '/access', '/audit', '/export', '/settings'].map((path) => send('GET', path)));
  for (const text of [set.text, logged, ...answers.map((each) => each.text)]) {
    assert.ok(!text.includes(password), text);
    assert.ok(!text.includes('scrypt'), text);
  }
  assert.match(answers[2]?.text ?? '', /set-access/);
});

test('a key is shown once, opens by its hash, and is revoked by its name', async () => {
  assert.equal((await send('POST', '/access/keys', { name: 'team' })).outcome, '422 setting-refused');
  const first = await send('PUT', '/access', { access: 'key' });
  assert.match(String(first.body['message']), /Nobody can visit mine yet/);
  const created = await send('POST', '/access/keys', { name: 'team' });
  const secret = String(created.body['key']);
  assert.ok(isAccessKey(secret));
  assert.deepEqual(
    getStored().spec.control?.accessKeys?.map(({ name, hash: stored }) => [name, stored]),
    [['team', hashAccessKey(secret)]],
  );
  assert.equal((await send('POST', '/access/keys', { name: 'team' })).outcome, '422 setting-refused');
  for (const path of ['', '/access', '/audit', '/export']) {
    const { text } = await send('GET', path);
    assert.ok(!text.includes(secret) && !text.includes(hashAccessKey(secret)), text);
  }
  assert.ok(!logged.includes(secret));
  assert.equal((await send('DELETE', '/access/keys/tema')).body['nearest']?.toString(), 'team');
  assert.equal((await send('DELETE', '/access/keys/team')).outcome, '200');
  assert.equal((await send('DELETE', '/access/keys/team')).outcome, '404 unknown-access-key');
  assert.deepEqual(getStored().spec.control, { access: 'key', accessKeys: [] });
});

test('opening the app deletes the password and the keys, so that nothing old opens it later', async () => {
  await send('PUT', '/access', { access: 'password', password });
  await send('POST', '/access/keys', { name: 'team' });
  await send('PUT', '/access', { access: 'public' });
  assert.deepEqual(getStored().spec.control, {});
  assert.equal((await send('PUT', '/access', { access: 'password' })).outcome, '422 setting-refused');
  assert.deepEqual(getStored().spec.control, {});
});

test('a new mode keeps the keys, and forgets the password with access: key', async () => {
  await send('PUT', '/access', { access: 'password', password });
  await send('POST', '/access/keys', { name: 'team' });
  assert.equal((await send('PUT', '/access', { access: 'password' })).outcome, '200');
  await send('PUT', '/access', { access: 'key' });
  const { access, accessPassword, accessKeys } = getStored().spec.control ?? {};
  assert.deepEqual([access, accessPassword, accessKeys?.length], ['key', undefined, 1]);
});

test('it says whether the change is enforced by the route of this generation', async () => {
  const condition = {
    type: 'Routed',
    status: 'True',
    reason: 'Routed',
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  };
  const { metadata } = setControl({ access: 'key' });
  setControl({ access: 'key' }, { conditions: [{ ...condition, observedGeneration: metadata.generation }] });
  assert.equal((await send('GET', '/access')).body['enforced'], false);
  const next = getStored();
  sample.store.set({
    ...next,
    metadata: { ...next.metadata, resourceVersion: String(Number(next.metadata.resourceVersion) + 1) },
    status: {
      ...next.status,
      conditions: [{ ...condition, status: 'True', observedGeneration: next.metadata.generation }],
    },
  });
  assert.equal((await send('GET', '/access')).body['enforced'], true);
});

test('an app that only some visitors may open is not called through the platform, nor offered to agents', async () => {
  const call = (): Promise<Response> => sample.request('/api/projects/mine/call/x');
  assert.equal((await call()).status, 200);
  assert.match(await (await sample.request('/llms.txt')).text(), /\bmine\b/);
  await send('PUT', '/access', { access: 'key' });
  const before = calls;
  const refused = await call();
  assert.equal(refused.status, 403);
  assert.match(await refused.text(), /app-protected/);
  assert.equal((await sample.request('/mcp/mine', { method: 'POST' })).status >= 400, true);
  assert.doesNotMatch(await (await sample.request('/llms.txt')).text(), /\bmine\b/);
  assert.equal(calls, before);
});

test('attack: every bad input names its field and its fix, and changes nothing', async () => {
  const cases: readonly (readonly [string, string, unknown, RegExp])[] = [
    ['PUT', '/access', { access: 'oidc' }, /access.*does not ask an OpenID provider.*send password/],
    ['PUT', '/access', { access: 'private' }, /"access"/],
    ['PUT', '/access', {}, /"access"/],
    ['PUT', '/access', { access: 'password', password: 'short' }, /at least 10 characters/],
    ['PUT', '/access', { access: 'password', password: 'aaaaaaaaaaaaaaaa' }, /of which 5 differ/],
    ['PUT', '/access', { access: 'password', password: 'x'.repeat(201) }, /"password"/],
    ['PUT', '/access', { access: 'password', password: 'abcdefgh\u0000ij' }, /control characters/],
    [
      'PUT',
      '/access',
      { access: 'password', password: `mvk-${'a1B2c'.repeat(9).slice(0, 43)}` },
      /form of an access key/,
    ],
    ['PUT', '/access', { access: 'key', password }, /only for access: password/],
    ['PUT', '/access', { access: 'public', extra: 1 }, /extra/],
    ['POST', '/access/keys', { name: 'Team' }, /lower-case letters/],
    ['POST', '/access/keys', { name: '' }, /"name"/],
    ['POST', '/access/keys', { name: 'a', hash: 'a'.repeat(64) }, /hash/],
    ['DELETE', '/access/keys/A%00', undefined, /lower-case letters/],
  ];
  for (const [method, path, body, expected] of cases) {
    const { outcome, text } = await send(method, path, body);
    assert.equal(outcome, '400 invalid-request', `${JSON.stringify(body)}: ${text}`);
    assert.match(text, expected);
    assert.ok(!text.includes(password), text);
  }
  assert.equal(getStored().spec.control, undefined);
});

test('attack: a stranger neither reads nor changes who may visit an app', async () => {
  const requests = [
    ['GET', ''],
    ['PUT', '', { access: 'public' }],
    ['POST', '/keys', { name: 'mine' }],
    ['DELETE', '/keys/team'],
  ] as const;
  for (const authorization of [undefined, `Bearer ${createAuthorKey()}`])
    for (const [method, path, body] of requests) {
      const { status } = await sample.request(`/api/apps/mine/access${path}`, {
        method,
        headers: {
          'content-type': 'application/json',
          'x-forwarded-for': '192.0.2.9',
          ...(authorization === undefined ? {} : { authorization }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      assert.equal(status, authorization === undefined ? 401 : method === 'GET' ? 404 : 403, `${method} ${path}`);
    }
  assert.equal(getStored().spec.control, undefined);
});
