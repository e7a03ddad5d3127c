// The receiver over a real schema: what it takes, what it refuses by name, and what is missing.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { BlockList } from 'node:net';
import { gzipSync } from 'node:zlib';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { type Attributes, createReceiver } from '../../../../../api/accounting/metering/log-receiver.ts';
import { createMeteringMetrics } from '../../../../../api/accounting/metering/metering-metrics.ts';
import { createVisitorResolver } from '../../../../../api/accounting/metering/request-class.ts';
import { readResponse, writeRequest } from '../../../../../api/accounting/metering/shipper/sender.ts';
import { createIntake, declareLosses } from '../../../../../api/accounting/metering/usage-store.ts';
import { type Database, openDatabase } from '../../../../../api/billing/database/database.ts';
import { silent } from '../../../../support/api/sample.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';

const token = 'a token of the tests that is long enough';
let database: Database;
let close: () => void;
let url = '';
let broken = false;

beforeAll(async () => {
  database = await openDatabase(migratedDatabase);
  const metrics = createMeteringMetrics(new Registry(), () => Promise.resolve(undefined));
  const take = createIntake({
    ledger: {
      get: () => {
        if (broken) throw new Error('the database is away');
        return { database };
      },
    },
    resolveHost: () => ({ kind: 'unknown' }),
    resolveVisitor: createVisitorResolver({ salt: 'salt', trustedProxies: new BlockList() }),
    metrics,
    keepDays: 400,
  });
  const limits = { bodyBytes: 100_000, unpackedBytes: 200_000 };
  const server = createServer(createReceiver({ token, storeLogs: take, metrics, log: silent, limits }));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  assert.ok(typeof address === 'object' && address !== null);
  url = `http://127.0.0.1:${address.port}`;
  close = () => server.close();
});
afterAll(async () => {
  close();
  await database.close();
});

/** A request of so many seconds ago. */
const record = (counter: number, secondsAgo = 10): Attributes => ({
  RequestCount: counter,
  StartUTC: new Date(Date.now() - secondsAgo * 1000 + counter).toISOString(),
  Duration: 1_000_000,
  DownstreamStatus: 200,
});
const logs = (gateway: string, ...records: Attributes[]): Uint8Array =>
  writeRequest({ resource: { 'service.instance.id': gateway }, records });

function post(body: Uint8Array | string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/x-protobuf', ...headers },
    body: typeof body === 'string' ? body : Buffer.from(body),
  });
}

const accounts = {
  name: 'test-accounts',
  text: 'select counted::int, events::int, refused::int, missing::int, lost::int, difference::int from metering.reconciliation where gateway = $1 order by instance',
  row: z.unknown(),
};
const account = (counted: number, events: number, rest: Record<string, number> = {}): Record<string, number> => ({
  counted,
  events,
  refused: 0,
  missing: 0,
  lost: 0,
  difference: 0,
  ...rest,
});

test('a batch is taken as protobuf and as JSON, plain and packed, and counted once', async () => {
  const [first, second] = [record(1), record(2)];
  const body = logs('twice', first, second);
  for (const response of [await post(body), await post(gzipSync(body), { 'content-encoding': 'gzip' })]) {
    assert.equal(response.status, 200);
    assert.deepEqual(readResponse(new Uint8Array(await response.arrayBuffer())), { rejected: 0, message: '' });
  }
  const attributes = Object.entries(second).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }));
  const resource = { attributes: [{ key: 'service.instance.id', value: { stringValue: 'twice' } }] };
  const json = JSON.stringify({ resourceLogs: [{ resource, scopeLogs: [{ logRecords: [{ attributes }] }] }] });
  const response = await post(json, { 'content-type': 'application/json; charset=utf-8' });
  assert.deepEqual([response.status, await response.json()], [200, {}]);
  assert.deepEqual(await database.query(accounts, ['twice']), [account(2, 2)]);
});

test('what is too old, ahead of the clock or unreadable is refused by name, and the rest is kept', async () => {
  const body = logs('late', record(1, 36 * 86_400), record(2), record(3, -600), { RequestCount: 4 }, record(5, 0));
  const { rejected, message } = readResponse(new Uint8Array(await (await post(body)).arrayBuffer()));
  assert.equal(rejected, 3);
  assert.match(message, /1 older than 35 days.*RequestCount 1 of 20/);
  assert.match(message, /1 more than 5 minutes ahead.*RequestCount 3 of 20/);
  assert.match(message, /1 unreadable \(missing or wrong: StartUTC and Duration and DownstreamStatus\)/);
  assert.deepEqual(await database.query(accounts, ['late']), [account(5, 2, { refused: 2, missing: 1 })]);
});

test('a number that does not come is missing, then lost, and withdrawn when it comes', async () => {
  const records = [1, 2, 3, 4, 5, 6].map((counter) => record(counter));
  const only = (...counters: number[]): Uint8Array =>
    logs('gap', ...records.filter((_, index) => counters.includes(index + 1)));
  await post(only(1, 6));
  assert.deepEqual(await database.query(accounts, ['gap']), [account(6, 2, { missing: 4 })]);
  await post(only(3));
  await database.query(declareLosses, [-1]);
  assert.deepEqual(await database.query(accounts, ['gap']), [account(6, 3, { lost: 3 })]);
  const losses = {
    name: 'test-losses',
    text: "select first::int, last::int, requests::int from metering.loss where gateway = 'gap' and after_at <= before_at order by first",
    row: z.unknown(),
  };
  assert.deepEqual(await database.query(losses, []), [
    { first: 2, last: 2, requests: 1 },
    { first: 4, last: 5, requests: 2 },
  ]);
  await post(only(4));
  await post(only(2, 5));
  assert.deepEqual(await database.query(accounts, ['gap']), [account(6, 6)]);
  assert.deepEqual(await database.query(losses, []), []);
});

test('the first loss marker of a run begins it, although its newest one is above the highest number of the run before', async () => {
  const marker = (counter: number, secondsAgo: number): Attributes => ({
    ...record(counter, secondsAgo),
    'moorage.lost': 'true',
  });
  const body = logs(
    'markers',
    marker(1, 30),
    marker(3, 30),
    marker(1, 20),
    marker(10, 20),
    ...[12, 11].map((counter) => record(counter, 20)),
  );
  for (const _ of ['sent', 'sent again']) {
    assert.equal((await post(body)).status, 200);
    assert.deepEqual(await database.query(accounts, ['markers']), [
      account(3, 0, { missing: 3 }),
      account(12, 2, { missing: 10 }),
    ]);
  }
  await database.query(declareLosses, [-1]);
  const losses = {
    name: 'test-marked-losses',
    text: "select first::int, last::int from metering.loss where gateway = 'markers' order by instance, first",
    row: z.unknown(),
  };
  assert.deepEqual(await database.query(losses, []), [
    { first: 1, last: 3 },
    { first: 1, last: 10 },
  ]);
});

test('refuses what is not from a gateway, or not a batch', async () => {
  const body = logs('bad', record(1));
  const status = async (given: Uint8Array, headers: Record<string, string>): Promise<number> =>
    (await post(given, headers)).status;
  assert.equal(await status(body, { authorization: 'Bearer wrong' }), 401);
  assert.equal(await status(body, { 'content-type': 'text/plain' }), 415);
  assert.equal(await status(body, { 'content-encoding': 'br' }), 415);
  assert.equal(await status(body, { 'content-encoding': 'gzip' }), 400);
  assert.equal(await status(Buffer.from([0xff, 0xff]), {}), 400);
  assert.equal(await status(Buffer.from('[]'), { 'content-type': 'application/json' }), 400);
  assert.equal(await status(Buffer.alloc(100_001), {}), 413);
  assert.equal(await status(gzipSync(Buffer.alloc(200_001)), { 'content-encoding': 'gzip' }), 413);
  assert.equal((await fetch(url, { headers: { authorization: `Bearer ${token}` } })).status, 405);
  assert.deepEqual(await database.query(accounts, ['bad']), []);
});

test('asks to come again where a batch cannot be kept', async () => {
  broken = true;
  const response = await post(logs('away', record(1)));
  broken = false;
  assert.deepEqual([response.status, response.headers.get('retry-after')], [503, '1']);
  assert.equal((await post(logs('away', record(1)))).status, 200);
});
