// The signed record and charges as a caller gets them: signed, proven once their day is sealed, and only one's own.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { type Checkpoint, type LedgerDay, ledgerDay } from '../../../../../api/accounting/receipts/format/documents.ts';
import { keySet } from '../../../../../api/accounting/receipts/format/signature.ts';
import { verifyDocument } from '../../../../../api/accounting/receipts/format/verify-document.ts';
import { baseUrl } from '../../../../support/api/sample.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';
import { advanceTo, keys, privateKey, receiptKey } from '../../../../support/receipts/record.ts';
import { Signer } from '../../../../../api/accounting/receipts/ledger-log.ts';
import { sampleToolApp, type ToolSample } from '../../../../support/tools/sample.ts';

const signer = new Signer(baseUrl, privateKey, keys);
const today = new Date().toISOString().slice(0, 10);
const inDays = (count: number) => new Date(Date.parse(today) + count * 86_400_000 + 3_600_000).toISOString();
let api: ToolSample;
beforeAll(async () => {
  api = await sampleToolApp({ environment: { DATABASE_URL: migratedDatabase, MOORAGE_RECEIPT_KEY: receiptKey } });
});
afterAll(() => api.stop());

const charges = z.looseObject({
  lines: z.array(z.looseObject({ cost_usd: z.string().nullable(), leaf: z.unknown(), proof: z.unknown() })),
  next: z.string().nullable(),
});
const from = (address: string) => ({ headers: { 'x-forwarded-for': address } });
const get = async (path: string, init?: RequestInit): Promise<unknown> => (await api.request(path, init)).json();
const draw = (address: string, id: string) =>
  api.request('/t/draw?bytes=3', { headers: { 'x-forwarded-for': address, 'x-request-id': id } });
const advance = (now: string) => advanceTo(api.models.ledger.get().database, now, { signer });

test('before the first transaction there is no day and no checkpoint', async () => {
  assert.deepEqual(await get('/api/ledger/days'), { type: 'ledger-days', issuer: baseUrl, days: [], next: null });
  const missing = await api.request(`/api/ledger/days/${today}`);
  assert.equal(missing.status, 404);
  assert.match(JSON.stringify(await missing.json()), /"first":null.*No day is sealed yet/);
  assert.equal((await api.request('/api/ledger/checkpoint')).status, 404);
  assert.deepEqual(await get('/.well-known/jwks.json'), keys);
});

test('charges without an API key are those of one request, page by page, and proven once their day is sealed', async () => {
  const [mine, theirs] = [crypto.randomUUID(), crypto.randomUUID()];
  for (let n = 0; n < 5; n += 1) assert.equal((await draw('203.0.113.7', mine)).status, 200);
  assert.equal((await draw('203.0.113.7', 'request-1')).status, 200);
  assert.equal((await draw('198.51.100.7', theirs)).status, 200);
  const fresh = await get(`/api/charges?day=${today}&request=${mine}`, from('203.0.113.7'));
  assert.equal(charges.parse(fresh).lines.length, 5);
  await advance(inDays(1));
  const days = new Map([[today, ledgerDay.parse(await get(`/api/ledger/days/${today}`))]]);
  const evidence = { keys: keySet.parse(await get('/.well-known/jwks.json')), days };
  let path: string | null = `/api/charges?day=${today}&limit=2&request=${mine}`;
  const pages: unknown[] = [];
  for (; path !== null; path = charges.parse(pages.at(-1)).next?.slice(baseUrl.length) ?? null)
    pages.push(await get(path, from('203.0.113.7')));
  assert.deepEqual(
    pages.map((page) => charges.parse(page).lines.length),
    [2, 2, 1],
  );
  for (const page of pages) {
    const { lines } = charges.parse(page);
    assert.ok(lines.every(({ cost_usd: cost }) => cost === '0.0001'));
    assert.deepEqual(await verifyDocument(page, evidence), {
      findings: [],
      lines: lines.length,
      proven: lines.length,
      unbound: 0,
    });
  }
  const found = async (id: string, address: string): Promise<number> =>
    charges.parse(await get(`/api/charges?day=${today}&request=${id}`, from(address))).lines.length;
  assert.deepEqual([await found(theirs, '198.51.100.7'), await found(theirs, '192.0.2.1')], [1, 0]);
  for (const [query, says] of [
    ['', /is missing: without an API key, charges are not listed/],
    ['&request=request-1', /is too easy to guess/],
  ] as const) {
    const refused = await api.request(`/api/charges?day=${today}${query}`, from('203.0.113.77'));
    assert.equal(refused.status, 400);
    assert.match(await refused.text(), says);
  }
});

test('days come newest first and page by page, and all can be checked', async () => {
  await advance(inDays(5));
  const list = z.object({ days: z.array(ledgerDay), next: z.string().nullable() });
  const first = await get('/api/ledger/days?limit=3');
  assert.deepEqual((await verifyDocument(first, { keys, days: new Map() })).findings, []);
  const { days, next } = list.parse(first);
  assert.equal(days.length, 3);
  const rest = list.parse(await get(next?.slice(baseUrl.length) ?? ''));
  assert.deepEqual([rest.days.length, rest.next, rest.days.at(-1)?.day], [2, null, today]);
  const checkpoint = (await get('/api/ledger/checkpoint')) as Checkpoint;
  const newest = days[0] as LedgerDay;
  const evidence = { keys, days: new Map([[newest.day, newest]]) };
  assert.deepEqual((await verifyDocument(checkpoint, evidence)).findings, []);
  const other = new Map([[newest.day, { ...newest, count: 7 }]]);
  assert.match((await verifyDocument(checkpoint, { keys, days: other })).findings.join(), /made after another/);
});

test('what is asked wrongly is named', async () => {
  const wrong = async (path: string) => JSON.stringify(await get(path));
  const some = crypto.randomUUID();
  assert.match(await wrong('/api/charges'), /\\"day\\" is missing|day/);
  assert.match(await wrong('/api/charges?day=2026-02-30'), /"field":"day"/);
  assert.match(await wrong(`/api/charges?day=${today}&request=${some}&after=x`), /"field":"after".*Take it from/);
  const cursor = (text: string) => Buffer.from(text).toString('base64url');
  for (const after of ['1 x', `2026-01-01T00:00:00Z ${'\0'.repeat(36)}`, '0000-13-01T00:00:00Z a'])
    assert.match(await wrong(`/api/charges?day=${today}&request=${some}&after=${cursor(after)}`), /"field":"after"/);
  assert.match(await wrong('/api/ledger/days/0000-01-01'), /"field":"day"/);
  assert.match(await wrong('/api/ledger/days?before=0000-01-01'), /"field":"before"/);
  assert.match(await wrong('/api/ledger/days/2020-01-01'), /2020-01-01 is not sealed. Days from/);
});

test('without a key the endpoints say what the operator has to set, and calls go on', async () => {
  const without = await sampleToolApp({ environment: { DATABASE_URL: migratedDatabase } });
  try {
    for (const path of [
      '/api/ledger/days',
      `/api/ledger/days/${today}`,
      '/api/ledger/checkpoint',
      '/.well-known/jwks.json',
      `/api/charges?day=${today}`,
    ]) {
      const response = await without.request(path);
      assert.equal(response.status, 503, path);
      assert.match(JSON.stringify(await response.json()), /MOORAGE_RECEIPT_KEY/);
    }
    assert.equal((await without.request('/t/draw?bytes=3')).status, 200);
    assert.doesNotMatch(await without.registry.metrics(), /^moorage_receipts_days_behind \d/m);
  } finally {
    await without.stop();
  }
});
