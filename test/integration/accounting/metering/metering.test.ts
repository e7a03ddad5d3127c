// Every request through a real gateway is one event, while the receiver, the database and the gateway are killed.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, test } from 'vitest';
import { request } from 'undici';
import { z } from 'zod';
import { type Database, openLedgerDatabase, type Statement } from '../../../../api/billing/database/database.ts';
import { classify } from '../../../../api/accounting/metering/request-class.ts';
import { readRecord } from '../../../../api/accounting/metering/gateway-record.ts';
import { readLines } from '../../../../api/accounting/metering/shipper/log-file.ts';
import { findFreePort } from '../../../support/free-port.ts';
import { startPostgres, type Postgres } from '../../../support/ledger/postgres.ts';
import { accessLogArguments, load, makeGateway, type Gateway, type Seen } from '../../../support/metering/gateway.ts';
import {
  killPrograms,
  receiverProgram,
  shipperProgram,
  token,
  waitUntilHealthy,
} from '../../../support/metering/processes.ts';
import { chooseRepetitions, isDeep } from '../../../support/repetitions.ts';

/** Requests while a process is killed. */
const part = chooseRepetitions({ usual: 600, deep: 8_000 });
let postgres: Postgres;
let folder: string;
const gateways: Gateway[] = [];

beforeAll(async () => {
  postgres = await startPostgres();
  folder = mkdtempSync(join(tmpdir(), 'moorage-metering-'));
  writeFileSync(join(folder, 'token'), `${token}\n`);
});
afterAll(async () => {
  // A test that fails leaves them behind.
  await killPrograms();
  for (const gateway of gateways) await gateway.close();
  await postgres.stop();
  rmSync(folder, { recursive: true });
});

const reconciled = {
  name: 'test-reconciled',
  text: 'select counted::int, events::int, refused::int, missing::int, lost::int, difference::int from metering.reconciliation order by instance',
  row: z.object({
    counted: z.number(),
    events: z.number(),
    refused: z.number(),
    missing: z.number(),
    lost: z.number(),
    difference: z.number(),
  }),
};
const answeredVisits = "kind = 'visit' and class in ('use', 'asset') and status = 200";
const byApp = {
  name: 'test-by-app',
  text: `select app, count(*)::int as count, count(distinct caller)::int as callers, count(*) filter (where class = 'asset')::int as assets
    from ledger.usage where ${answeredVisits} group by app order by app`,
  row: z.object({ app: z.string(), count: z.number(), callers: z.number(), assets: z.number() }),
};
/** Both in one statement, since more records may be on their way. */
const totals = {
  name: 'test-totals',
  text: `select (select count(*) from ledger.usage where ${answeredVisits})::int as logged, coalesce(sum(missing), 0)::int as missing,
    count(*)::int as runs, array_agg(difference::int) as differences from metering.reconciliation`,
  row: z.object({
    logged: z.number(),
    missing: z.number(),
    runs: z.number(),
    differences: z.array(z.number()),
  }),
};
const secrets = {
  name: 'test-secrets',
  text: "select u::text as row from ledger.usage u where u::text ~ '127\\.0\\.0\\.1|secret|/page' limit 1",
  row: z.object({ row: z.string() }),
};

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

/** Waits until the rows are as expected. @throws Error with the rows, after five minutes */
async function until<Row>(
  database: Database,
  statement: Statement<Row>,
  isExpected: (rows: readonly Row[]) => boolean,
): Promise<Row[]> {
  const end = Date.now() + 300_000;
  for (;;) {
    const rows = await database.replay(statement, []);
    if (isExpected(rows)) return rows;
    if (Date.now() > end) throw new Error(`${statement.name} still returns ${JSON.stringify(rows)}`);
    await sleep(50);
  }
}

/** Waits until so many requests that an app answered are events. A gateway that starts may have refused others before. */
async function untilAnswered(database: Database, answered: number): Promise<void> {
  await until(database, byApp, (rows) => sum(rows.map(({ count }) => count)) >= answered);
}

test('events match the sent requests exactly while every process is killed; after kill -9 of the gateway, each missing one is reported', async () => {
  const url = await postgres.createDatabase('metering');
  const [port, shipperPort] = [await findFreePort(), await findFreePort()];
  const log = join(folder, 'access.log');
  const receiver = receiverProgram(url, port);
  const shipper = shipperProgram({
    log,
    receiver: `http://127.0.0.1:${port}/v1/logs`,
    tokenFile: join(folder, 'token'),
    port: shipperPort,
  });
  const gateway = await makeGateway({ folder, args: accessLogArguments(log) });
  gateways.push(gateway);
  receiver.start();
  shipper.start();
  await waitUntilHealthy(port);
  const seen: Seen = { sent: 0, answered: [], broken: 0 };
  await gateway.start(seen);
  const phase = (during: () => Promise<void>): Promise<unknown> => {
    const half = seen.sent + part / 2;
    const untilHalf = async (): Promise<void> => {
      while (seen.sent < half) await sleep(5);
    };
    return Promise.all([load(gateway.url, part, 16, seen), untilHalf().then(during)]);
  };
  const restart = async (): Promise<void> => {
    await receiver.kill();
    await sleep(100);
    receiver.start();
  };
  const restartShipper = async (): Promise<void> => {
    await shipper.kill();
    shipper.start();
  };
  const crash = (): Promise<void> => postgres.crash();
  const phases = isDeep ? [restart, restartShipper, restart, crash, restart] : [restart, restartShipper, crash];
  for (const during of phases) await phase(during);
  // In its own time: what it accepted it answers, and logs.
  await gateway.end('SIGTERM');
  await gateway.start(seen);
  await load(gateway.url, part, 16, seen);
  const requests = part * (phases.length + 1);
  // Each start of the gateway took one request more.
  const sent = requests + 2;
  assert.deepEqual({ sent: seen.sent, broken: seen.broken }, { sent, broken: 0 });

  const database = await openLedgerDatabase(url);
  await untilAnswered(database, sent);
  const gently = await until(database, reconciled, (rows) => rows.every(({ missing }) => missing === 0));
  assert.equal(gently.length, 2);
  for (const { counted, events, difference } of gently) assert.deepEqual([events, difference], [counted, 0]);
  assert.deepEqual(
    (await database.query(byApp, [])).map(({ app, count, callers }) => ({ app, count, callers })),
    seen.answered.map((count, index) => ({ app: `app-${index}`, count, callers: 1 })),
  );
  assert.equal(sum((await database.query(byApp, [])).map(({ assets }) => assets)), requests / 5);
  assert.deepEqual(await database.query(secrets, []), []);

  await phase(async () => {
    await gateway.end('SIGKILL');
    await gateway.start(seen);
  });
  const answered = sum(seen.answered);
  assert.equal(answered + seen.broken, seen.sent);
  await untilAnswered(database, answered);
  // What was answered is an event. What broke is one too, or is missing below the highest number of its run, or was in
  // progress when nothing after it was logged any more: the client saw that break.
  const [total] = await until(database, totals, ([row]) => row?.runs === 3);
  assert.ok(total !== undefined);
  const { logged, missing, differences } = total;
  assert.ok(logged + missing >= answered && logged + missing <= seen.sent, `${logged} + ${missing} of ${seen.sent}`);
  assert.deepEqual(differences, [0, 0, 0]);
  await shipper.kill('SIGTERM');
  await receiver.kill();
  await database.close();
});

for (const [name, more, hasPaths] of [
  ['the gateway of a local cluster', [], true],
  ['a Traefik as it is released, without paths', ['--accesslog.fields.names.RequestPath=drop'], false],
] as const)
  test(`no query is in the access log of ${name}, nor in what it sends, and uses are still distinguished from files`, async () => {
    const planted = `planted-${crypto.randomUUID()}`;
    const own = mkdtempSync(join(folder, 'queries-'));
    const log = join(own, 'access.log');
    const sent: string[] = [];
    const receiver = createServer((incoming, response) => {
      void buffer(incoming).then((body) => {
        sent.push(gunzipSync(body).toString('latin1'));
        response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
      });
    }).listen(0, '127.0.0.1');
    await once(receiver, 'listening');
    const { port } = z.object({ port: z.int() }).parse(receiver.address());
    const shipper = shipperProgram({
      log,
      receiver: `http://127.0.0.1:${port}/v1/logs`,
      tokenFile: join(folder, 'token'),
      port: await findFreePort(),
    });
    const gateway = await makeGateway({ folder: own, args: [...accessLogArguments(log), ...more] });
    gateways.push(gateway);
    await gateway.start({ sent: 0, answered: [], broken: 0 });
    shipper.start();
    for (const [path, destination] of [
      ['/chat', 'document'],
      ['/app.css', 'style'],
    ] as const) {
      const headers = { host: 'app-0.apps.test', 'sec-fetch-dest': destination };
      const { statusCode, body } = await request(`${gateway.url}${path}?api_key=${planted}&prompt=${planted}`, {
        headers,
      });
      await body.dump();
      assert.equal(statusCode, 200);
    }
    while (!sent.join('').includes('style')) await sleep(20);
    const written = readdirSync(own).map((file) => readFileSync(join(own, file), 'utf8'));
    assert.ok(written.join('').includes('"request_Sec-Fetch-Dest":"style"'));
    for (const text of [...written, ...sent]) assert.ok(!text.includes(planted), text.slice(0, 2_000));
    assert.equal(written.join('').includes('"RequestPath":"/chat"'), hasPaths);
    const host = {
      kind: 'app',
      app: { slug: 'a', healthPaths: ['/healthz'], submitter: undefined, isFree: () => false },
    } as const;
    const visitor = { submitter: 'b', isInside: false };
    const seen = written
      .join('')
      .split('\n')
      .flatMap((line) => (line.includes('Sec-Fetch-Dest') ? readLines(Buffer.from(`${line}\n`), 1).records : []))
      .map((record) => readRecord(record))
      .map((record) => ('wrong' in record ? record.wrong.join() : classify(record, host, visitor)));
    assert.deepEqual(seen, ['use', 'asset']);
    await shipper.kill();
    receiver.close();
    receiver.closeAllConnections();
    await gateway.end('SIGKILL');
  });

test('limits a log that cannot be sent, and reports dropped entries to the last request', async () => {
  const url = await postgres.createDatabase('bounded');
  const [port, shipperPort] = [await findFreePort(), await findFreePort()];
  const log = join(folder, 'bounded.log');
  const receiver = receiverProgram(url, port, 1);
  const shipper = shipperProgram({
    log,
    receiver: `http://127.0.0.1:${port}/v1/logs`,
    tokenFile: join(folder, 'token'),
    port: shipperPort,
    limitMiB: 1,
  });
  const gateway = await makeGateway({ folder, args: accessLogArguments(log) });
  gateways.push(gateway);
  const seen: Seen = { sent: 0, answered: [], broken: 0 };
  await gateway.start(seen);
  // Lines of almost 2 KiB, of which the shipper reads and drops 2 MiB at a time. Of the second run more is dropped than the
  // first one had: its highest dropped number must not count to the first.
  const userAgent = 'x'.repeat(1_200);
  await load(gateway.url, 300, 16, seen, userAgent);
  await gateway.end('SIGTERM');
  await gateway.start(seen);
  await load(gateway.url, 1_000, 16, seen, userAgent);
  shipper.start();
  receiver.start();
  const database = await openLedgerDatabase(url);
  const rows = await until(
    database,
    reconciled,
    (all) => sum(all.map(({ counted }) => counted)) >= 1_302 && all.every(({ missing }) => missing === 0),
  );
  assert.equal(rows.length, 2);
  assert.ok((rows[1]?.lost ?? 0) > (rows[0]?.counted ?? 0));
  for (const { counted, events, lost, difference } of rows) assert.deepEqual([events + lost, difference], [counted, 0]);
  assert.equal(rows[0]?.events, 0);
  assert.ok((rows[1]?.events ?? 0) > 0 && (rows[1]?.lost ?? 0) > 0);
  // The disk of what was read is given back, though the file keeps its length.
  assert.ok(statSync(log).size > 2 * 1_048_576);
  await shipper.kill();
  await receiver.kill();
  await database.close();
});

test("parses the output of Traefik's own OTLP exporter", async () => {
  const url = await postgres.createDatabase('otlp');
  const port = await findFreePort();
  const receiver = receiverProgram(url, port);
  receiver.start();
  await waitUntilHealthy(port);
  const gateway = await makeGateway({
    folder,
    args: [
      '--experimental.otlplogs=true',
      '--accesslog=true',
      `--accesslog.otlp.http.endpoint=http://127.0.0.1:${port}/v1/logs`,
      `--accesslog.otlp.http.headers.authorization=Bearer ${token}`,
      '--accesslog.fields.headers.names.User-Agent=keep',
    ],
  });
  gateways.push(gateway);
  const seen: Seen = { sent: 0, answered: [], broken: 0 };
  await gateway.start(seen);
  await load(gateway.url, 300, 8, seen);
  const database = await openLedgerDatabase(url);
  await untilAnswered(database, 301);
  const [row] = await until(database, reconciled, (all) => all.every(({ missing }) => missing === 0));
  assert.deepEqual([row?.events, row?.difference], [row?.counted, 0]);
  await receiver.kill();
  await database.close();
});
