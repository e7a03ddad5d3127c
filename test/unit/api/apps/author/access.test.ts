// Who may see and change the private side of an app, and what the audit log says of it.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { z } from 'zod';
import type { App } from '../../../../../api/apps/hosted-apps.ts';
import type { LookupAnswer } from '../../../../../lib/git/lookup.ts';
import { createAuthorKey, hashAuthorKey } from '../../../../../lib/ownership-file.ts';
import { sampleAppsServer, type AppsSample } from '../../../../support/apps/sample.ts';

const [key, other] = [createAuthorKey(), createAuthorKey()];
let sample: AppsSample;
/** What the git server answers. */
let newest: LookupAnswer;
let lookups = 0;
let writes: unknown[] = [];

function toHash(authorKey: string, slug: string): string {
  return hashAuthorKey(authorKey, `git.test/octo/${slug}`);
}

beforeAll(async () => {
  sample = await sampleAppsServer({
    author: {
      lookUpKeys: () => {
        lookups += 1;
        return Promise.resolve(newest);
      },
      writeControl: (app, change) => {
        const control = change({});
        if (app.metadata.name === 'faulty') return Promise.reject(new Error('the cluster is gone'));
        writes.push(control);
        return Promise.resolve(app);
      },
      createSecret: () => Promise.reject(new Error('not called')),
      maximumReplicas: 3,
    },
  });
  for (const slug of ['mine', 'faulty'])
    await sample.host(
      slug,
      (_request, response) => response.end('ok'),
      (app): App => ({ ...app, status: { ...app.status, authorKeys: [toHash(key, slug)] } }),
    );
});
afterAll(() => sample.stop());
beforeEach(() => {
  newest = {
    ok: true,
    commit: 'c'.repeat(40),
    reference: 'refs/heads/main',
    authorKeys: [toHash(key, 'mine'), toHash(key, 'faulty')],
  };
  [lookups, writes] = [0, []];
});

interface SentRequest {
  readonly method?: string;
  readonly authorization?: string | undefined;
  readonly address?: string;
}

const answer = z.looseObject({ type: z.string().optional(), detail: z.string().optional() });

async function ask(
  path: string,
  { method = 'GET', authorization = `Bearer ${key}`, address = '203.0.113.1' }: SentRequest = {},
): Promise<{ status: number; kind: string | undefined; body: z.output<typeof answer> }> {
  const response = await sample.request(`/api/apps/${path}`, {
    method,
    headers: { 'x-forwarded-for': address, ...(authorization === '' ? {} : { authorization }) },
  });
  const body = answer.parse(await response.json());
  return { status: response.status, kind: body.type?.split('/').at(-1), body };
}

test('an author key opens the private side of its app alone', async () => {
  assert.equal((await ask('mine')).status, 200);
  const refusals = [
    await ask('mine', { authorization: '' }),
    await ask('mine', { authorization: `Bearer ${other}`, address: '203.0.113.2' }),
    await ask('mine', { authorization: 'Bearer sk-12345', address: '203.0.114.2' }),
    await ask('mine', { authorization: `Basic ${key}`, address: '203.0.115.2' }),
    await ask('none'),
  ];
  assert.deepEqual(
    refusals.map(({ status, kind }) => `${status} ${kind}`),
    ['401 app-key-required', '404 app-private', '404 app-private', '404 app-private', '404 unknown-app'],
  );
});

test('an action is recorded and carried out for a key in the newest commit', async () => {
  const { status } = await ask('mine/restart', { method: 'POST' });
  assert.equal(status, 200);
  assert.equal(writes.length, 1);
  assert.match(JSON.stringify(writes[0]), /^\{"restartedAt":"20\d\d-.*Z"\}$/);
  const { entries } = z
    .looseObject({ entries: z.array(z.looseObject({ action: z.string(), actor: z.string(), outcome: z.string() })) })
    .parse((await ask('mine/audit?limit=1')).body);
  assert.deepEqual(
    entries.map(({ action, actor, outcome }) => [action, actor, outcome]),
    [['restart', toHash(key, 'mine').slice(0, 12), 'accepted']],
  );
});

test('attack: a key whose line was removed changes nothing, although the reviewed commit still has it', async () => {
  newest = { ok: true, commit: 'd'.repeat(40), reference: 'refs/heads/main', authorKeys: [] };
  const { status, kind } = await ask('mine/suspend', { method: 'POST', address: '203.0.116.1' });
  assert.deepEqual([status, kind, writes], [403, 'not-author', []]);
});

test('attack: nothing is fetched for a key that no reviewed commit has', async () => {
  const authorization = `Bearer ${other}`;
  const { status, kind } = await ask('mine/suspend', { method: 'POST', authorization, address: '203.0.117.1' });
  assert.deepEqual([status, kind, lookups, writes], [403, 'not-author', 0, []]);
});

test('a repository that cannot be read changes nothing, and says so', async () => {
  newest = { ok: false, rule: 'source/repository-unreachable', message: 'No answer.', fix: '', final: false };
  const { status, kind } = await ask('mine/suspend', { method: 'POST' });
  assert.deepEqual([status, kind, writes], [503, 'repository-unreachable', []]);
});

test('an action that fails is recorded twice', async () => {
  const { status } = await ask('faulty/suspend', { method: 'POST' });
  assert.equal(status, 500);
  const { entries } = z
    .looseObject({ entries: z.array(z.looseObject({ outcome: z.string() })) })
    .parse((await ask('faulty/audit')).body);
  assert.deepEqual(
    entries.map(({ outcome }) => outcome),
    ['failed', 'accepted'],
  );
});

test('attack: ten wrong keys within a minute are the last from that network, and keep the author out of nothing', async () => {
  const address = '198.51.100.9';
  const wrong = (): Promise<{ status: number; kind: string | undefined }> =>
    ask('mine', { authorization: `Bearer ${createAuthorKey()}`, address });
  for (let tries = 0; tries < 10; tries += 1) assert.equal((await wrong()).status, 404);
  const { status, kind } = await wrong();
  assert.deepEqual([status, kind], [429, 'too-many-wrong-keys']);
  const authorization = `Bearer ${createAuthorKey()}`;
  assert.equal((await ask('mine/restart', { method: 'POST', authorization, address })).status, 429);
  assert.deepEqual([lookups, writes], [0, []]);
  assert.equal((await ask('mine', { address })).status, 200, 'the right key');
});
