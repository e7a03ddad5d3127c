// A private tool that is shared: by a password in a browser, and by keys for programs, awake and asleep.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { openSocket, sleeperFiles, waitForState } from '../support/sleeper.ts';
import {
  appUrl,
  baseUrl,
  deleteApps,
  get,
  readApp,
  removeFiles,
  submit,
  waitFor,
  writeFiles,
} from '../support/cluster.ts';

const name = 'e2e-access';
const [first, second] = ['the first password', 'the second password'];
let folder: string;
let authorKey = '';
let visitorKey = '';

beforeAll(() => {
  folder = writeFiles(name, sleeperFiles('10s'));
});
afterAll(async () => {
  removeFiles(folder);
  await deleteApps(name);
});

const answer = z.looseObject({
  key: z.string().optional(),
  line: z.string().optional(),
  enforced: z.boolean().optional(),
});

/** A request of the author. */
async function ask(
  method: 'GET' | 'PUT' | 'POST' | 'DELETE',
  path: string,
  json?: unknown,
): Promise<z.output<typeof answer>> {
  const { status, body } = await get(new URL(`/api/apps/${name}${path}`, baseUrl), {
    method,
    headers: { authorization: `Bearer ${authorKey}`, 'content-type': 'application/json' },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  });
  assert.ok(status < 300, `${method} ${path}: ${status} ${body}`);
  return answer.parse(JSON.parse(body));
}

async function visit(headers: Readonly<Record<string, string>> = {}): Promise<number> {
  return (await get(appUrl(name), { headers })).status;
}

async function signIn(secret: string): Promise<string> {
  const { status, headers } = await get(new URL('/.moorage/sign-in', appUrl(name)), {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ secret, to: '/' }).toString(),
  });
  assert.equal(status, 303);
  return String([headers['set-cookie']].flat()[0]).split(';')[0] ?? '';
}

test('an author protects a live app with a password, and a visitor who knows it gets in', async () => {
  assert.equal((await submit(folder)).exitCode, 0);
  const issued = await get(new URL(`/api/apps/${name}/keys`, baseUrl), { method: 'POST' });
  const { key = '', line = '' } = answer.parse(JSON.parse(issued.body));
  authorKey = key;
  writeFileSync(join(folder, '.moorage-owner'), `${line}\n`);
  assert.equal((await submit(folder)).exitCode, 0);
  assert.equal(await visit(), 200);
  await ask('PUT', '/access', { access: 'password', password: first });
  await waitFor(
    'it to be enforced',
    async () => ((await ask('GET', '/access')).enforced === true ? true : undefined),
    60,
  );
  await waitFor('the app to be protected', async () => ((await visit()) === 401 ? true : undefined), 30);
  const page = await get(appUrl(name), { headers: { accept: 'text/html', 'accept-language': 'en' } });
  assert.match(page.body, /is protected/);
  assert.equal(await visit({ cookie: await signIn(first) }), 200);
});

test('a key opens it for programs, also a WebSocket, and the platform does not call it', async () => {
  visitorKey = (await ask('POST', '/access/keys', { name: 'ci' })).key ?? '';
  const headers = { authorization: `Bearer ${visitorKey}` };
  await waitFor('the key to count', async () => ((await visit(headers)) === 200 ? true : undefined), 30);
  (await openSocket(appUrl(name), headers)).destroy();
  const call = await get(new URL(`/api/projects/${name}/call/`, baseUrl));
  assert.deepEqual([call.status, /app-protected/.test(call.body)], [403, true]);
});

test('it stays live, sleeps while strangers knock, and wakes for those who are admitted', async () => {
  await waitForState(name, 'Asleep');
  for (let round = 0; round < 5; round += 1) assert.equal(await visit(), 401);
  const { status } = await readApp(name);
  assert.deepEqual([status?.idle?.state, status?.phase], ['Asleep', 'Live']);
  assert.equal(await visit({ authorization: `Bearer ${visitorKey}` }), 200);
});

test('a new password ends the sessions of the one before, and a revoked key opens nothing', async () => {
  const cookie = await signIn(first);
  await ask('PUT', '/access', { access: 'password', password: second });
  await waitFor('the session to end', async () => ((await visit({ cookie })) === 401 ? true : undefined), 30);
  const next = await signIn(second);
  await ask('DELETE', '/access/keys/ci');
  const headers = { authorization: `Bearer ${visitorKey}` };
  await waitFor('the key to end', async () => ((await visit(headers)) === 403 ? true : undefined), 30);
  assert.equal(await visit({ cookie: next }), 200);
});

test('an app that is opened again needs nothing', async () => {
  await ask('PUT', '/access', { access: 'public' });
  await waitFor('the app to be public', async () => ((await visit()) === 200 ? true : undefined), 60);
});
