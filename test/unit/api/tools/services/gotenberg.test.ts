// What the client of Gotenberg makes of its failures: a request that only waited in the queue is tried again, one that was
// worked on too long is at fault.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { callGotenberg } from '../../../../../api/tools/services/gotenberg.ts';
import { Problem } from '../../../../../lib/problem.ts';
import { startWeb, type Web } from '../../../../support/tools/fetch/web.ts';

let web: Web;
let waiting = 0;
let status = 503;
beforeAll(async () => {
  const busy = (_: unknown, response: { writeHead(code: number): { end(text: string): void } }): void => {
    response.writeHead(status).end('Service Unavailable');
  };
  web = await startWeb({
    '/forms/chromium/convert/html': busy,
    '/forms/libreoffice/convert': busy,
    '/prometheus/metrics': (_, response) => {
      response
        .writeHead(200)
        .end(
          `# TYPE chromium_requests_queue_size gauge\nchromium_requests_queue_size ${waiting}\nlibreoffice_requests_queue_size 1\n`,
        );
    },
  });
});
afterAll(() => web.close());

const ask = (form: string): Promise<Uint8Array> =>
  callGotenberg({ gotenberg: web.url }, { form, fields: {}, maxBytes: 1_000, signal: new AbortController().signal });
const isProblem =
  (slug: string, code: number, retryAfter: string | undefined) =>
  (error: unknown): boolean =>
    error instanceof Problem &&
    error.type.slug === slug &&
    error.type.status === code &&
    error.headers['retry-after'] === retryAfter;

test('reports a request that timed out in the queue as overload: 503, to be retried', async () => {
  waiting = 9;
  await assert.rejects(ask('/chromium/convert/html'), isProblem('tool-busy', 503, '10'));
});

test('reports a request that timed out while it was processed as 422', async () => {
  waiting = 1;
  await assert.rejects(ask('/chromium/convert/html'), isProblem('tool-limit', 422, undefined));
  await assert.rejects(ask('/libreoffice/convert'), isProblem('tool-limit', 422, undefined));
});

test('reports a full queue as 503', async () => {
  status = 429;
  await assert.rejects(ask('/chromium/convert/html'), isProblem('tool-busy', 503, '5'));
});
