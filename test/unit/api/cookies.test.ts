// No endpoint for programs sets a cookie, so nothing that an app sets for its domain can stand in for one.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { sampleAppsServer, type AppsSample } from '../../support/apps/sample.ts';

let server: AppsSample;
beforeAll(async () => {
  server = await sampleAppsServer();
  await server.host('jar', (_request, response) => {
    response.setHeader('set-cookie', ['__Host-a=1; Path=/; Secure', 'b=2; Domain=moorage.test']).end('set');
  });
});
afterAll(() => server.stop());

test('no endpoint answers with a cookie, whether it is called rightly or wrongly', async () => {
  const document = z
    .looseObject({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) })
    .parse(await (await server.request('/openapi.json')).json());
  const calls = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({
      path: path.replaceAll(/\{[^}]+\}/g, 'jar'),
      method: method.toUpperCase(),
    })),
  );
  assert.ok(calls.length > 10, `${calls.length} calls`);
  const extra = ['/', '/nothing-here', '/mcp', '/api/projects/jar/call/any/path'].map((path) => ({
    path,
    method: 'GET',
  }));
  for (const { path, method } of [...calls, ...extra]) {
    const answer = await server.request(path, {
      method,
      headers: { cookie: 'b=2', ...(method === 'POST' ? { 'content-type': 'application/json' } : {}) },
      ...(method === 'POST' ? { body: '{}' } : {}),
    });
    await answer.body?.cancel();
    assert.deepEqual(answer.headers.getSetCookie(), [], `${method} ${path}`);
  }
});
