// The receiver of what apps use: only the operator, only reports, and again where they could not be counted.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, test } from 'vitest';
import { createComputeReceiver } from '../../../../../api/accounting/metering/compute-receiver.ts';
import { createComputeMetrics } from '../../../../../api/accounting/metering/metering-metrics.ts';
import { silent } from '../../../../support/api/sample.ts';

const token = 'a token of the tests that is long enough';
const registry = new Registry();
let isAway = false;
let taken = 0;
const server = createServer(
  createComputeReceiver({
    token,
    baseUrl: 'https://moorage.test',
    count: (samples) => {
      if (isAway) return Promise.reject(new Error('the database is away'));
      taken += samples.length;
      return Promise.resolve({ counted: 1, ignored: 2, refused: 3, cpu_seconds: 4.5, memory_byte_seconds: 6 });
    },
    metrics: createComputeMetrics(registry),
    log: silent,
  }),
);
let url = '';

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  assert.ok(typeof address === 'object' && address !== null);
  url = `http://127.0.0.1:${address.port}/compute`;
});
afterAll(() => {
  server.close();
});

const sample = {
  container: 'uid/app/0',
  app: 'web',
  started_at: '2026-01-01T00:00:00Z',
  at: '2026-01-01T00:00:30.5Z',
  cpu_us: 1,
  memory_bytes: 2,
};
const post = (body: string, given = token): Promise<Response> =>
  fetch(url, { method: 'POST', headers: { authorization: `Bearer ${given}` }, body });
const refusal = async (response: Response): Promise<unknown> => {
  const { type, detail } = (await response.json()) as { type: string; detail: string };
  return [response.status, type.split('/').at(-1), detail];
};

test('a report is counted', async () => {
  assert.equal((await post(JSON.stringify({ samples: [sample] }))).status, 204);
  assert.equal(taken, 1);
  const text = await registry.metrics();
  assert.match(text, /moorage_compute_samples_total\{result="refused"\} 3\n/);
  assert.match(text, /moorage_compute_cpu_seconds_total 4.5\n/);
});

test('anything else is refused by name', async () => {
  assert.equal((await post('{}', 'wrong')).status, 401);
  assert.equal((await fetch(url, { headers: { authorization: `Bearer ${token}` } })).status, 405);
  assert.match(String(await refusal(await post('{'))), /^400,invalid-request,The body is not JSON/);
  const wrong = await post(JSON.stringify({ samples: [{ ...sample, cpu_us: -1 }] }));
  assert.match(String(await refusal(wrong)), /^400,invalid-request,.*samples.0.cpu_us/);
  assert.equal((await post(' '.repeat(4 * 1_048_576 + 1))).status, 413);
  assert.equal(taken, 1);
});

test('asks to come again where samples could not be counted', async () => {
  isAway = true;
  const response = await post(JSON.stringify({ samples: [sample] }));
  assert.equal(response.headers.get('retry-after'), '1');
  assert.match(String(await refusal(response)), /^503,ledger-unavailable,The samples could not be counted/);
});
