// Forge tokens through the API: who may set one, what is answered, and where the token may not appear.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { forgeTokenView } from '../../../../../api/apps/commit-statuses/endpoints.ts';
import type { App } from '../../../../../api/apps/hosted-apps.ts';
import { createAuthorKey, hashAuthorKey } from '../../../../../lib/ownership-file.ts';
import { knownGitea, MemoryForgeTokens } from '../../../../support/apps/fake-forge.ts';
import { sampleAppsServer, type AppsSample } from '../../../../support/apps/sample.ts';

const key = createAuthorKey();
const secret = 'ghp_0123456789abcdef';
const tokens = new MemoryForgeTokens();
let sample: AppsSample;

beforeAll(async () => {
  const authorKeys = ['mine', 'elsewhere'].map((slug) => hashAuthorKey(key, `git.test/octo/${slug}`));
  authorKeys.push(hashAuthorKey(key, 'unknown.test/octo/elsewhere'));
  sample = await sampleAppsServer({
    author: {
      lookUpKeys: () => Promise.resolve({ ok: true, commit: 'c'.repeat(40), reference: 'refs/heads/main', authorKeys }),
      createSecret: () => Promise.resolve(),
      maximumReplicas: 3,
      writeControl: (app) => Promise.resolve(app),
      forgeTokens: tokens,
    },
    signInProviders: [knownGitea],
    notificationTimes: { noticeMs: 3_600_000, deliverMs: 3_600_000 },
  });
  const listener = (_request: unknown, response: { end(text: string): void }): void => {
    response.end('ok');
  };
  for (const slug of ['mine', 'elsewhere'])
    await sample.host(slug, listener, (app): App => ({
      ...app,
      spec: {
        ...app.spec,
        source: { ...app.spec.source, repo: `https://${slug === 'mine' ? 'git' : 'unknown'}.test/octo/${slug}` },
      },
      status: { ...app.status, authorKeys },
    }));
});
afterAll(() => sample.stop());

const problem = z.looseObject({
  type: z.string().optional(),
  detail: z.string().optional(),
  token: z.string().optional(),
});

async function ask(
  path: string,
  { method = 'GET', by = key, body }: { method?: string; by?: string; body?: object } = {},
): Promise<{ status: number; kind: string | undefined; text: string }> {
  const response = await sample.request(`/api/apps/${path}`, {
    method,
    headers: { authorization: `Bearer ${by}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, kind: problem.parse(JSON.parse(text)).type?.split('/').at(-1), text };
}

async function readState(): Promise<z.output<typeof forgeTokenView>> {
  return forgeTokenView.parse(JSON.parse((await ask('mine/forge-token')).text));
}

test('an author sets, replaces and deletes a token, which is never shown', async () => {
  const before = await readState();
  assert.deepEqual(before, { repository: 'git.test/octo/mine', forge: 'gitea', set: false, statuses: [] });
  const answers = [await ask('mine/forge-token', { method: 'PUT', body: { token: secret } })];
  assert.equal(answers[0]?.status, 200);
  const [version] = [...(await tokens.read()).values()];
  assert.equal(version?.token, secret);
  assert.equal((await readState()).set, true);
  answers.push(await ask('mine/forge-token', { method: 'PUT', body: { token: `${secret}2` } }));
  const [replaced] = [...(await tokens.read()).values()];
  assert.equal(replaced?.token, `${secret}2`);
  assert.notEqual(replaced.version, version.version);
  answers.push(await ask('mine/forge-token'), await ask('mine/audit'), await ask('mine/export'), await ask('mine'));
  answers.push(await ask('mine/forge-token', { method: 'DELETE' }));
  assert.equal((await tokens.read()).size, 0);
  assert.equal((await readState()).set, false);
  assert.equal((await ask('mine/forge-token', { method: 'DELETE' })).kind, 'no-forge-token');
  for (const { text } of answers) assert.ok(!text.includes(secret), text);
  assert.match(answers[3]?.text ?? '', /set-forge-token/);
  const inCluster = JSON.stringify(sample.store.list('apps'));
  assert.ok(!inCluster.includes(secret));
});

test('the author sees that the forge rejects the token, until it changes', async () => {
  await ask('mine/forge-token', { method: 'PUT', body: { token: secret } });
  const database = sample.models.ledger.get().database;
  const text = "update author.forge_token set refused_at = now(), refused_status = 403 where app = 'uid-mine'";
  await database.query({ name: 'test-refuse', text, row: z.unknown() }, []);
  const { refused } = await readState();
  assert.equal(refused?.status, 403);
  assert.match(refused.message, /may not set commit statuses/);
  await ask('mine/forge-token', { method: 'PUT', body: { token: secret } });
  assert.equal((await readState()).refused, undefined);
  await ask('mine/forge-token', { method: 'DELETE' });
});

test('a forge that is not known is refused by name, and nothing is stored', async () => {
  const { status, kind, text } = await ask('elsewhere/forge-token', { method: 'PUT', body: { token: secret } });
  assert.deepEqual([status, kind], [409, 'forge-unsupported']);
  assert.match(text, /unknown\.test/);
  assert.equal((await tokens.read()).size, 0);
  assert.match((await ask('elsewhere/forge-token')).text, /"reason":"[^"]*unknown\.test/);
});

test('attack: a token with spaces, line breaks, nothing or too much in it is refused and not repeated', async () => {
  for (const token of ['', `${secret} x`, `${secret}\r\nhost: evil.test`, `${secret}é`, secret.repeat(30)]) {
    const { status, text } = await ask('mine/forge-token', { method: 'PUT', body: { token } });
    assert.equal(status, 400);
    assert.ok(!text.includes(secret), text);
  }
  const more = await ask('mine/forge-token', { method: 'PUT', body: { token: secret, forge: 'evil.test' } });
  assert.equal(more.status, 400);
  assert.equal((await tokens.read()).size, 0);
});

test('attack: no token of the app, and no other key, sets or deletes a forge token', async () => {
  const scopes = ['read', 'logs', 'deploy', 'control', 'secrets', 'settings'];
  const made = await ask('mine/tokens', { method: 'POST', body: { name: 'CI', expires_in_days: 1, scopes } });
  const { token = '' } = problem.parse(JSON.parse(made.text));
  for (const method of ['PUT', 'DELETE']) {
    const body = method === 'PUT' ? { token: secret } : undefined;
    const sent = { method, ...(body === undefined ? {} : { body }) };
    assert.equal((await ask('mine/forge-token', { ...sent, by: token })).kind, 'missing-scope');
    assert.equal((await ask('mine/forge-token', { ...sent, by: createAuthorKey() })).kind, 'not-author');
  }
  assert.equal((await ask('mine/forge-token', { by: token })).status, 200);
  assert.equal((await ask('mine/forge-token', { by: createAuthorKey() })).status, 404);
  assert.equal((await tokens.read()).size, 0);
});
