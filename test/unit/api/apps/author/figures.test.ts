// Figures of an app over time: equal to the facts that they come from, bounded by the creation of the app, and for its author alone.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { figuresView, type FiguresView, readFigures } from '../../../../../api/apps/author/figures.ts';
import type { UsageEvent } from '../../../../../api/accounting/metering/usage-store.ts';
import { bindAuthor } from '../../../../../api/accounting/revenue/statement.ts';
import { type Database, openLedgerDatabase } from '../../../../../api/billing/database/database.ts';
import { createAuthorKey, hashAuthorKey } from '../../../../../lib/ownership-file.ts';
import { addComputeHours, addShares, addVisits } from '../../../../support/apps/figures.ts';
import { sampleAppsServer, type AppsSample } from '../../../../support/apps/sample.ts';
import { addUses } from '../../../../support/catalog/uses.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';

const hourMs = 3_600_000;
/** Half past noon of this day, so that the last bucket is not over, whenever the test runs. */
const now = new Date(`${new Date().toISOString().slice(0, 10)}T12:30:00Z`);
const thisHour = now.getTime() - hourMs / 2;
const ago = (hours: number): Date => new Date(now.getTime() - hours * hourMs);
const toDay = (time: Date): string => time.toISOString().slice(0, 10);
const author = 'git.test/octo';

let database: Database;
const visit = (hours: number, status: number, more: Partial<UsageEvent> = {}): UsageEvent => ({
  ...{ id: `${hours}-${status}-${JSON.stringify(more)}`, kind: 'visit', app: 'mine', class: 'use', status },
  ...{ at: ago(hours), latencyMs: 100, ...more },
});

beforeAll(async () => {
  database = await openLedgerDatabase(migratedDatabase);
  await addVisits(
    database,
    [
      visit(1, 200),
      visit(1, 404, { latencyMs: 200 }),
      visit(1, 502, { class: 'failed', latencyMs: 300 }),
      visit(1, 0, { class: 'failed', latencyMs: 401 }),
      visit(1, 200, { class: 'asset', latencyMs: 0 }),
      visit(1, 200, { class: 'call' }),
      visit(1, 200, { class: 'wake', latencyMs: 9_000 }),
      visit(1, 200, { class: 'probe' }),
      visit(1, 200, { app: 'other' }),
      { id: 'call', kind: 'app', app: 'mine', at: ago(1), status: 200, latencyMs: 5 },
      visit(50, 200),
      visit(300, 500, { class: 'failed' }),
    ],
    ago(400),
  );
  await addComputeHours(
    database,
    [
      { app: 'mine', hour: thisHour - 2 * hourMs, cores: 0.25, memoryMib: 64 },
      { app: 'mine', hour: thisHour, cores: 0.5, memoryMib: 128 },
      { app: 'other', hour: thisHour - 10 * hourMs, cores: 1, memoryMib: 10 },
    ],
    now,
  );
  // These count from the clock of the database.
  const hours = (Date.now() - ago(5).getTime()) / hourMs;
  await addUses(database, [
    { kind: 'v1', app: 'mine', hours, cost: '0.000000000001' },
    { kind: 'v1', app: 'mine', hours, cost: '0.1' },
    { kind: 'v1', app: 'mine', hours, cost: null },
    { kind: 'v1', app: 'other', hours, cost: '7' },
    { kind: 'app', app: 'mine', caller: 'a', hours, latency: 1 },
  ]);
  const day = toDay(ago(24));
  await addShares(
    database,
    [
      { app: 'mine', author, day, amount: '0.000000000003' },
      { app: 'mine', author: 'git.test/earlier', day, amount: '5' },
      { app: 'other', author, day, amount: '6' },
    ],
    now,
  );
});
afterAll(() => database.close());

const read = async (range: FiguresView['range'], more: Partial<Parameters<typeof readFigures>[1]> = {}) =>
  figuresView.parse(await readFigures(database, { slug: 'mine', author, createdAt: new Date(0), range, now, ...more }));

test('each bucket has the requests, errors and mean latency of its hour, and no others', async () => {
  const { buckets, total, unmeasured } = await read('24h');
  assert.equal(buckets.length, 24);
  const { start, end, requests, errors_4xx, errors_5xx, latency_ms } = buckets.at(-2) ?? assert.fail();
  assert.deepEqual([start, end], [new Date(thisHour - hourMs).toISOString(), new Date(thisHour).toISOString()]);
  // The mean of 100, 200, 300, 401, 0 and 100.
  assert.deepEqual(
    { requests, errors_4xx, errors_5xx, latency_ms },
    { requests: 6, errors_4xx: 1, errors_5xx: 2, latency_ms: 183.5 },
  );
  assert.deepEqual([buckets[0]?.requests, buckets[0]?.latency_ms], [0, null]);
  assert.deepEqual([total.requests, total.errors_5xx, total.latency_ms], [6, 2, 183.5]);
  assert.deepEqual(unmeasured, {});
});

test('CPU and memory are means over the time of a bucket: a sleeping app uses 0, and before its first sample nothing is known', async () => {
  const { buckets } = await read('24h');
  assert.deepEqual(
    buckets.slice(-4).map(({ cpu_cores, memory_mib }) => [cpu_cores, memory_mib]),
    // A container begins with nothing, so the first five minutes of an hour count half of its memory.
    [
      [null, null],
      [0.25, round(64 * (57.5 / 60))],
      [0, 0],
      [0.5, round(128 * (27.5 / 30))],
    ],
  );
  const [today] = (await read('30d')).buckets.slice(-1);
  assert.ok(today !== undefined);
  const seconds = (now.getTime() - Date.parse(today.start)) / 1_000;
  const earlier = thisHour - 2 * hourMs >= Date.parse(today.start) ? 900 : 0;
  assert.ok(Math.abs((today.cpu_cores ?? 0) - (900 + earlier) / seconds) < 1e-5);
});

function round(value: number): number {
  return Number(value.toFixed(2));
}

test('model costs and earnings are exact decimals, and pending ones are not in the sum', async () => {
  const { total, earnings } = await read('24h');
  assert.deepEqual([total.model_cost_usd, total.model_costs_pending], ['0.100000000001', 1]);
  assert.deepEqual(earnings, [
    { day: toDay(ago(24)), earnings_usd: '0.000000000003' },
    { day: toDay(now), earnings_usd: null },
  ]);
  assert.equal(total.earnings_usd, '0.000000000003');
});

test('a week has hours, a month days, and before the gateway sent its log nothing is known', async () => {
  const [week, month] = [await read('7d'), await read('30d')];
  assert.deepEqual([week.bucket, week.buckets.length, week.total.requests], ['hour', 168, 7]);
  assert.deepEqual(
    [month.bucket, month.buckets.length, month.total.requests, month.total.errors_5xx],
    ['day', 30, 8, 3],
  );
  assert.equal(month.since, `${toDay(ago(29 * 24))}T00:00:00.000Z`);
  assert.deepEqual([month.buckets[0]?.requests, month.earnings.length], [null, 30]);
  const sum = week.buckets.reduce((count, { requests }) => count + (requests ?? 0), 0);
  assert.equal(sum, 7);
});

test('buckets follow each other up to now, at each hour of a day', async () => {
  for (let hour = -12; hour < 12; hour += 1)
    for (const range of ['24h', '30d'] as const) {
      const { buckets, until } = await read(range, { now: ago(hour) });
      assert.equal(buckets.length, { '24h': 24, '30d': 30 }[range]);
      assert.deepEqual(
        buckets.map(({ end }) => end),
        [...buckets.slice(1).map(({ start }) => start), until],
      );
    }
});

test('attack: nothing is shown from before the app was created, when another one may have had its name', async () => {
  const createdAt = new Date(thisHour - 60_000);
  const young = await read('7d', { createdAt });
  assert.deepEqual([young.since, young.buckets.length], [new Date(thisHour).toISOString(), 1]);
  assert.deepEqual([young.total.requests, young.total.model_cost_usd, young.total.cpu_cores], [0, '0', 0.5]);
  assert.deepEqual(
    young.earnings.filter(({ day }) => Date.parse(day) < createdAt.getTime()),
    [],
  );
  // In its first hour, there is no full hour yet.
  const { buckets, since, total, earnings } = await read('30d', { createdAt: new Date(now.getTime() - 60_000) });
  assert.deepEqual([buckets, since], [[], new Date(thisHour + hourMs).toISOString()]);
  assert.deepEqual(
    [total.requests, total.cpu_cores, total.model_cost_usd, total.earnings_usd],
    [null, null, null, null],
  );
  assert.deepEqual(earnings, []);
  const days = await read('30d', { createdAt: new Date(Math.floor(ago(49).getTime() / hourMs) * hourMs + 1) });
  assert.equal(days.total.requests, 6, 'the day on which it was created has the hours since then');
});

test('whose earnings are frozen sees none, and why', async () => {
  const frozen = 'git.test/frozen';
  await bindAuthor(database, { author: frozen, account: 'forge:1' });
  assert.equal(await bindAuthor(database, { author: frozen, account: 'forge:2' }), 'frozen');
  const { earnings, total, unmeasured } = await read('24h', { author: frozen });
  assert.deepEqual([earnings[0]?.earnings_usd, total.earnings_usd], [null, null]);
  assert.match(unmeasured.earnings ?? '', /frozen/);
});

test('without a gateway, an operator and a posting, there are nulls and the reasons', async () => {
  const empty = await openLedgerDatabase(migratedDatabase);
  const request = { slug: 'mine', author, createdAt: new Date(0), range: '24h', now } as const;
  const { total, earnings, unmeasured } = figuresView.parse(await readFigures(empty, request));
  assert.deepEqual([total.requests, total.latency_ms, total.cpu_cores, total.earnings_usd], [null, null, null, null]);
  assert.deepEqual([total.model_cost_usd, earnings[0]?.earnings_usd], ['0', null]);
  assert.deepEqual(Object.keys(unmeasured), ['requests', 'compute']);
  await empty.close();
});

test('costs of days whose uses were dropped are not known', async () => {
  const dropped = { name: 'test-kept', text: 'update metering.progress set kept_from = $1', row: z.unknown() };
  await database.query(dropped, [toDay(ago(48))]);
  const { buckets } = await read('30d');
  const isKnown = (hours: number): boolean =>
    typeof buckets.find(({ start }) => toDay(ago(hours)) === start.slice(0, 10))?.model_cost_usd === 'string';
  assert.deepEqual([isKnown(72), isKnown(48), isKnown(0)], [false, true, true]);
  await database.query(dropped, ['-infinity']);
});

let sample: AppsSample;
const key = createAuthorKey();
beforeAll(async () => {
  const keys = [hashAuthorKey(key, 'git.test/octo/mine')];
  sample = await sampleAppsServer({
    author: {
      lookUpKeys: () =>
        Promise.resolve({ ok: true, commit: 'c'.repeat(40), reference: 'refs/heads/main', authorKeys: keys }),
      writeControl: (app) => Promise.resolve(app),
      createSecret: () => Promise.resolve(),
      maximumReplicas: 3,
    },
  });
  for (const [slug, authorKeys] of [
    ['mine', keys],
    ['other', []],
  ] as const)
    await sample.host(
      slug,
      (_request, response) => response.end('ok'),
      (one) => ({ ...one, status: { ...one.status, authorKeys: [...authorKeys] } }),
    );
});
afterAll(() => sample.stop());

test('over HTTP, the author and a viewer read them; strangers and unknown fields are refused', async () => {
  const get = async (path: string, bearer?: string): Promise<[number, unknown]> => {
    const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
    const response = await sample.request(`/api/apps/${path}`, { headers });
    return [response.status, await response.json()];
  };
  const [status, body] = await get('mine/figures', key);
  assert.equal(status, 200);
  const { range, buckets } = figuresView.parse(body);
  assert.deepEqual([range, buckets.length], ['24h', 24]);
  const made = await sample.request('/api/apps/mine/tokens', {
    ...{ method: 'POST', headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' } },
    body: JSON.stringify({ name: 'viewer', expires_in_days: 1 }),
  });
  const { token } = z.looseObject({ token: z.string() }).parse(await made.json());
  const [seen, month] = await get('mine/figures?range=30d', token);
  assert.deepEqual([seen, figuresView.parse(month).buckets.length], [200, 30]);
  const refused = [
    await get('mine/figures?range=1y', key),
    await get('mine/figures?range=7d&slug=other', key),
    await get('mine/figures'),
    await get('other/figures', key),
    await get('other/figures', token),
    await get('nothing/figures', key),
  ];
  assert.deepEqual(
    refused.map(([code]) => code),
    [400, 400, 401, 404, 404, 404],
  );
  assert.match(JSON.stringify(refused[0]?.[1]), /range/);
});
