// The client of backing services: what it makes of one that hangs, and of one that answers in drops.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { callService, type ServiceRequest } from '../../../../../api/tools/services/backing-services.ts';
import { Problem } from '../../../../../lib/problem.ts';
import { startWeb, type Web } from '../../../../support/tools/fetch/web.ts';

let web: Web;
beforeAll(async () => {
  web = await startWeb({
    '/hangs': () => undefined,
    '/drops': (_, response) => {
      response.writeHead(200).write('{');
    },
  });
});
afterAll(() => web.close());

const ask = async (path: string, more: Partial<ServiceRequest> = {}): Promise<unknown> =>
  callService({ searxng: web.url }, 'searxng', {
    path,
    maxBytes: 100,
    timeoutMs: 100,
    signal: new AbortController().signal,
    ...more,
  });

for (const path of ['/hangs', '/drops'])
  test(`responds with a 504 that names a service that ${path.slice(1)}`, async () => {
    await assert.rejects(ask(path), (error) => {
      assert.ok(error instanceof Problem, String(error));
      assert.deepEqual([error.type.status, error.type.slug], [504, 'service-timeout']);
      assert.match(error.message, /did not answer within 0\.1 seconds: SearXNG/);
      return true;
    });
  });

test('does not blame the service if the caller disconnects', async () => {
  await assert.rejects(ask('/hangs', { signal: AbortSignal.timeout(20), timeoutMs: 5_000 }), { name: 'TimeoutError' });
});
