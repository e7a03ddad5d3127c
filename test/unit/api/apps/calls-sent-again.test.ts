// Calls of hosted apps with an Idempotency-Key: what is sent again does not reach the app again.
import assert from 'node:assert/strict';
import { text as bodyOf } from 'node:stream/consumers';
import { afterAll, beforeAll, test } from 'vitest';
import { toCallerAccount } from '../../../../api/billing/ledger/accounts.ts';
import { formatMoney } from '../../../../api/billing/ledger/money.ts';
import { computeKeyedHash } from '../../../../api/http/request.ts';
import { sampleAppsServer, type AppsSample } from '../../../support/apps/sample.ts';

let sample: AppsSample;
beforeAll(async () => {
  sample = await sampleAppsServer({ environment: {} });
});
afterAll(() => sample.stop());

test('sends a call with an Idempotency-Key to the app once, charges it once and repeats the response', async () => {
  let count = 0;
  await sample.host('counter', (request, response) => {
    count += 1;
    response.statusCode = request.url === '/fails' ? 503 : 201;
    response.setHeader('content-type', 'application/json');
    void bodyOf(request).then((body) => response.end(JSON.stringify({ count, body })));
  });
  const account = toCallerAccount(computeKeyedHash('address:198.51.77.0/24', 'salt'));
  const spent = async (): Promise<string> => formatMoney(await sample.models.ledger.get().ledger.balance(account));
  const post = async (
    path: string,
    body: unknown,
    key: string,
  ): Promise<{ status: number; text: string; replayed: string | null; cost: string | null }> => {
    const answer = await sample.request(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': '198.51.77.1', 'idempotency-key': key },
      body: JSON.stringify(body),
    });
    const { status, headers } = answer;
    return {
      status,
      text: await answer.text(),
      replayed: headers.get('idempotent-replayed'),
      cost: headers.get('x-cost-usd'),
    };
  };
  const json = '/api/projects/counter/call';
  for (const [path, body] of [
    [json, { method: 'POST', path: '/a', body: { n: 1 } }],
    [`${json}/a?b=1`, { n: 1 }],
  ] as const) {
    const [before, key] = [count, crypto.randomUUID()];
    const first = await post(path, body, key);
    const cost = await spent();
    const again = await post(path, body, key);
    assert.deepEqual({ ...again, replayed: null }, first, path);
    assert.deepEqual([again.replayed, count, await spent()], ['true', before + 1, cost]);
    const other = await post(path, { ...body, more: 1 }, key);
    assert.equal(other.status, path === json ? 400 : 422, other.text);
    assert.equal((await post(path, body, 'order-5')).status, 400, 'a key that a neighbour could guess');
  }
  // A server error was free, and another try may succeed.
  const [before, key] = [count, crypto.randomUUID()];
  for (let nth = 0; nth < 2; nth += 1) assert.equal((await post(`${json}/fails`, {}, key)).status, 503);
  assert.equal(count, before + 2);
});
