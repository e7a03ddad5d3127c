// Bills of routers as their records have them; what cannot be read is not known, with the reason.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { formatMoney } from '../../../../../api/billing/ledger/money.ts';
import type { BillRequest, RouterBill } from '../../../../../api/billing/ledger/reconciler.ts';
import { liteLlm } from '../../../../../api/models/router/litellm.ts';
import { type Get, openRouter, parseExact, type RouterShape } from '../../../../../api/models/router/openrouter.ts';

const day: BillRequest = {
  from: new Date('2026-03-02T00:00:00Z'),
  to: new Date('2026-03-03T00:00:00Z'),
  keyHash: 'hash-of-the-platform-key',
};

/** A bill from bodies as text, and the addresses that were asked. */
async function fetchBill(
  shape: RouterShape,
  bodies: readonly string[],
  request = day,
): Promise<{ bill: RouterBill; asked: URL[] }> {
  const asked: URL[] = [];
  const get: Get = (address) => {
    asked.push(new URL(address));
    return Promise.resolve({ status: 200, body: parseExact(bodies[asked.length - 1] ?? '{"data": []}') });
  };
  return { bill: await shape.fetchBill(request, get, 'http://router/v1'), asked };
}

/** A row of LiteLLM's spend logs, as the source of version 1.106.0 writes it. */
const row = (id: number, more: Readonly<Record<string, unknown>> = {}, spend = '1.35e-05'): string =>
  JSON.stringify({
    request_id: `chatcmpl-${id}`,
    call_type: 'acompletion',
    api_key: 'litellm_proxy_master_key',
    spend: 0,
    startTime: '2026-03-02T10:00:00.123000+00:00',
    metadata: { status: 'success', user_api_key: 'hash' },
    litellm_call_id: `hold-${id}`,
    ...more,
  }).replace('"spend":0', `"spend":${spend}`);
const page = (rows: readonly string[]): string => `{"data":[${rows.join(',')}],"total":${rows.length},"page":1}`;

test('LiteLLM: rows by the id that was sent along, exact to the last digit, of the platform or of others', async () => {
  const { bill, asked } = await fetchBill(liteLlm, [
    page([
      row(1),
      row(2, { api_key: 'hash-of-the-platform-key' }, '0.0003300000000000001'),
      row(3, { api_key: 'hash-of-somebody', startTime: '2026-03-02T23:59:59.999' }, '2'),
      // The end is included by the router, and is of the next day.
      row(4, { startTime: '2026-03-03T00:00:00Z' }),
      row(5, { litellm_call_id: null, metadata: { requester_metadata: { moorage_hold: 'hold-of-an-older-version' } } }),
      row(6, { litellm_call_id: undefined, metadata: null }, '0'),
    ]),
  ]);
  assert.ok(bill.outcome === 'calls');
  assert.deepEqual(
    bill.calls.map(({ hold, reference, amount, isPlatform }) => [hold, reference, formatMoney(amount), isPlatform]),
    [
      ['hold-1', 'chatcmpl-1', '0.0000135', true],
      ['hold-2', 'chatcmpl-2', '0.00033', true],
      ['hold-3', 'chatcmpl-3', '2', false],
      ['hold-of-an-older-version', 'chatcmpl-5', '0.0000135', true],
      [undefined, 'chatcmpl-6', '0', true],
    ],
  );
  assert.equal(bill.calls[2]?.at.toISOString(), '2026-03-02T23:59:59.999Z');
  const [url] = asked;
  assert.deepEqual(
    [url?.pathname, url?.searchParams.get('start_date'), url?.searchParams.get('end_date')],
    ['/spend/logs/v2', '2026-03-02 00:00:00', '2026-03-03 00:00:00'],
  );
});

test('LiteLLM: all pages are read, and pages that overlap are no bill', async () => {
  const full = Array.from({ length: 1_000 }, (_none, index) => row(index));
  const whole = await fetchBill(liteLlm, [page(full), page([row(1_000)])]);
  assert.ok(whole.bill.outcome === 'calls');
  assert.equal(whole.bill.calls.length, 1_001);
  assert.deepEqual(
    whole.asked.map(({ searchParams }) => searchParams.get('page')),
    ['1', '2'],
  );
  const overlapping = await fetchBill(liteLlm, [page(full), page([row(999)])]);
  assert.match(whyOf(overlapping.bill), /overlap/);
});

test('LiteLLM: a row without an amount or a time, and another form, are not known', async () => {
  for (const [body, why] of [
    [page([row(1, { startTime: 'yesterday' })]), /chatcmpl-1 has no amount or no time/],
    [page([row(1, {}, '-1')]), /chatcmpl-1 has no amount or no time/],
    ['{"logs":[]}', /unexpected form/],
  ] as const)
    assert.match(whyOf((await fetchBill(liteLlm, [body])).bill), why);
});

test('OpenRouter: the sum of a whole day, of the platform key alone', async () => {
  const body = '{"data":[{"model":"a","usage":0.015,"requests":5},{"model":"b","usage":1e-7,"requests":2}]}';
  const { bill, asked } = await fetchBill(openRouter, [body]);
  assert.ok(bill.outcome === 'totals');
  assert.deepEqual([bill.calls, formatMoney(bill.amount)], [7, '0.0150001']);
  assert.equal(asked[0]?.href, 'http://router/v1/activity?date=2026-03-02&api_key_hash=hash-of-the-platform-key');
  const untilNow = await fetchBill(openRouter, [], { ...day, to: new Date('2026-03-02T10:00:00Z') });
  assert.match(whyOf(untilNow.bill), /once it is over/);
  assert.equal(untilNow.asked.length, 0);
  assert.match(whyOf((await fetchBill(openRouter, [], { ...day, keyHash: undefined })).bill), /no key/);
  assert.match(
    whyOf((await fetchBill(openRouter, ['{"data":[{"usage":"free","requests":1}]}'])).bill),
    /unexpected form/,
  );
});

test('a router that refuses says why, and is not known', async () => {
  for (const shape of [liteLlm, openRouter]) {
    const get: Get = () => Promise.resolve({ status: 403, body: undefined });
    const why = whyOf(await shape.fetchBill(day, get, 'http://router'));
    assert.match(why, /status 403\. /);
  }
});

function whyOf(bill: RouterBill): string {
  return bill.outcome === 'not known' ? bill.why : assert.fail(bill.outcome);
}
