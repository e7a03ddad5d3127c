// Which answers pages of other sites may read: public endpoints and documents, never a page, and what is known of a visitor only with a key.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { sampleAppsServer, type AppsSample } from '../../support/apps/sample.ts';

let server: AppsSample;
beforeAll(async () => {
  server = await sampleAppsServer();
});
afterAll(() => server.stop());

const origin = { origin: 'https://elsewhere.example' };

async function answer(
  path: string,
  init: { method?: string; headers?: Record<string, string> } = {},
): Promise<Headers> {
  const { headers, body } = await server.request(path, { ...init, headers: { ...origin, ...init.headers } });
  await body?.cancel();
  return headers;
}

for (const path of [
  '/api/models',
  '/api/projects',
  '/api/nothing',
  '/t',
  '/t/nothing',
  '/v1/models',
  '/openapi.json',
  '/llms.txt',
  '/agent-capabilities.json',
  '/.well-known/agent-card.json',
])
  test(`${path} may be read from anywhere, without the credentials of a browser`, async () => {
    const headers = await answer(path);
    assert.equal(headers.get('access-control-allow-origin'), '*');
    assert.equal(headers.get('access-control-allow-credentials'), null);
    for (const name of ['x-cost-usd', 'x-charged-usd', 'x-request-id', 'ratelimit', 'retry-after'])
      assert.ok(headers.get('access-control-expose-headers')?.split(', ').includes(name), name);
  });

for (const path of ['/', '/compare', '/submit', '/rank', '/mcp', '/nothing', '/assets/x'])
  test(`${path} may not`, async () => {
    assert.equal((await answer(path)).get('access-control-allow-origin'), null);
  });

test('what is known of a visitor by his address may be read by no page of another site, and with a key by that of its owner', async () => {
  for (const path of ['/api/usage', '/api/usage/12345678']) {
    assert.equal((await answer(path)).get('access-control-allow-origin'), null, path);
    const keyed = await answer(path, { headers: { authorization: 'Bearer sk-anything-12345678' } });
    assert.equal(keyed.get('access-control-allow-origin'), '*', path);
  }
});

test('a browser that asks first is answered with the methods, and with the headers that it names', async () => {
  for (const [path, methods] of [
    ['/api/ask', 'POST, OPTIONS'],
    ['/v1/chat/completions', 'POST, OPTIONS'],
    ['/api/usage', 'GET, HEAD, OPTIONS'],
  ] as const) {
    const response = await server.request(path, {
      method: 'OPTIONS',
      headers: {
        ...origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type,x-stainless-lang',
      },
    });
    assert.equal(response.status, 204);
    assert.deepEqual(
      ['origin', 'methods', 'headers', 'credentials'].map((name) =>
        response.headers.get(`access-control-allow-${name}`),
      ),
      ['*', methods, 'authorization,content-type,x-stainless-lang', null],
    );
  }
});

test('what is no list of header names is not given back', async () => {
  for (const asked of ['a, *', 'a'.repeat(100), 'x y'])
    assert.equal(
      (await answer('/api/ask', { method: 'OPTIONS', headers: { 'access-control-request-headers': asked } })).get(
        'access-control-allow-headers',
      ),
      'authorization, content-type, idempotency-key',
    );
});
