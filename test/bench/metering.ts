// Events a second that the receiver keeps in a PostgreSQL of its own, with the time of each part; and the latency of a
// real gateway without and with its access log metered, in turns.
//   npm run bench:metering -- --events 200000 --batch 2000 --senders 2 --requests 5000
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync, gzipSync } from 'node:zlib';
import { Pool } from 'undici';
import { z } from 'zod';
import { openLedgerDatabase } from '../../api/billing/database/database.ts';
import { type Attributes, readRequest } from '../../api/accounting/metering/log-receiver.ts';
import { writeRequest } from '../../api/accounting/metering/shipper/sender.ts';
import { readRecord } from '../../api/accounting/metering/gateway-record.ts';
import { readCommandLine, parseWholeNumber } from '../../lib/command-line.ts';
import { findFreePort } from '../support/free-port.ts';
import { startPostgres } from '../support/ledger/postgres.ts';
import { accessLogArguments, makeGateway, type Seen } from '../support/metering/gateway.ts';
import { waitUntilHealthy, receiverProgram, shipperProgram, token } from '../support/metering/processes.ts';

const usage = `usage: npm run bench:metering -- [--events N] [--batch N] [--senders N] [--requests N]

  --events N     records to send to the receiver (200000)
  --batch N      records in a request (2000)
  --senders N    gateways that send at once (2)
  --requests N   requests through the gateway of each kind (5000)`;

const { events, batch, senders, requests } = readCommandLine(
  {
    usage,
    options: {
      events: { type: 'string', default: '200000' },
      batch: { type: 'string', default: '2000' },
      senders: { type: 'string', default: '2' },
      requests: { type: 'string', default: '5000' },
    },
  },
  ({ values }) => ({
    events: parseWholeNumber('--events', values.events),
    batch: parseWholeNumber('--batch', values.batch),
    senders: parseWholeNumber('--senders', values.senders),
    requests: parseWholeNumber('--requests', values.requests),
  }),
);

const print = (text: string): void => void process.stdout.write(`${text}\n`);
const began = Date.now() - 600_000;

function recordOf(counter: number): Attributes {
  return {
    RequestCount: counter,
    StartUTC: new Date(began + counter).toISOString(),
    Duration: 3_141_592 + counter,
    DownstreamStatus: 200,
    RequestHost: `app-${counter % 10}.apps.test`,
    RequestPath: `/page/${counter % 100}`,
    RequestMethod: 'GET',
    RequestContentSize: 0,
    DownstreamContentSize: 1_234,
    ClientHost: `203.0.${counter % 200}.7`,
    'request_User-Agent':
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Safari/537.36',
    'request_Sec-Fetch-Dest': 'document',
  };
}

function bodyOf(sender: number, from: number): Buffer {
  const records = Array.from({ length: batch }, (_, index) => recordOf(from + index + 1));
  return gzipSync(writeRequest({ resource: { 'service.instance.id': `gateway-${sender}` }, records }), { level: 1 });
}

const folder = mkdtempSync(join(tmpdir(), 'moorage-bench-'));
writeFileSync(join(folder, 'token'), token);
const postgres = await startPostgres();
const port = await findFreePort();
const url = await postgres.createDatabase('metering');
const receiver = receiverProgram(url, port);
receiver.start();
await waitUntilHealthy(port);
const database = await openLedgerDatabase(url);

async function post(body: Buffer): Promise<void> {
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}/v1/logs`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/x-protobuf',
        'content-encoding': 'gzip',
      },
      body: new Uint8Array(body),
    });
    await response.arrayBuffer();
    if (response.status === 200) return;
    await sleep(50);
  }
}

const each = Math.ceil(events / senders / batch);
const bodies = Array.from({ length: senders }, (_, sender) =>
  Array.from({ length: each }, (__, index) => bodyOf(sender, index * batch)),
);
const sample = bodies[0]?.[0] ?? Buffer.alloc(0);
const time = (what: string, work: () => unknown): void => {
  work();
  const since = performance.now();
  for (let round = 0; round < 5; round += 1) work();
  print(
    `  ${what.padEnd(24)} ${(((performance.now() - since) * 1000) / 5 / batch).toFixed(2).padStart(7)} µs a record`,
  );
};
print(
  `${senders} gateways, ${batch} records a request, ${sample.length} bytes packed; load ${loadavg()[0]?.toFixed(1)}`,
);
time('unpack', () => gunzipSync(sample));
const unpacked = gunzipSync(sample);
time('unpack and decode', () => readRequest(gunzipSync(sample), 'protobuf'));
const [logs] = readRequest(unpacked, 'protobuf');
time('read records', () => logs?.records.map(readRecord));

const since = performance.now();
await Promise.all(
  bodies.map(async (own) => {
    for (const body of own) await post(body);
  }),
);
const seconds = (performance.now() - since) / 1000;
const counted = {
  name: 'bench-count',
  text: "select count(*)::int as count from ledger.usage where kind = 'visit'",
  row: z.object({ count: z.number() }),
};
const [kept] = await database.query(counted, []);
const total = each * batch * senders;
if (kept?.count !== total) throw new Error(`${kept?.count} of ${total} events were kept`);
print(`${total} events in ${seconds.toFixed(1)} s: ${Math.round(total / seconds)} events/s, one receiver, fsync on`);

/** One after the other, so that what is measured is the gateway and no queue. */
async function latencies(gatewayUrl: string, count: number): Promise<number[]> {
  const pool = new Pool(gatewayUrl, { connections: 1 });
  const measured: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const start = performance.now();
    const { body } = await pool.request({ path: '/', method: 'GET', headers: { host: 'app-1.apps.test' } });
    await body.dump();
    measured.push(performance.now() - start);
  }
  await pool.close();
  return measured;
}

const log = join(folder, 'access.log');
const plain = await makeGateway({ folder, args: [] });
const metered = await makeGateway({ folder, args: accessLogArguments(log) });
const shipper = shipperProgram({
  log,
  receiver: `http://127.0.0.1:${port}/v1/logs`,
  tokenFile: join(folder, 'token'),
  port: await findFreePort(),
});
const seen: Seen = { sent: 0, answered: [], broken: 0 };
for (const gateway of [plain, metered]) await gateway.start(seen);
shipper.start();
await sleep(1_000);
const taken: { readonly [kind in 'without' | 'with']: number[] } = { without: [], with: [] };
const rounds = 10;
for (let round = 0; round < rounds; round += 1) {
  taken.without.push(...(await latencies(plain.url, requests / rounds)));
  taken.with.push(...(await latencies(metered.url, requests / rounds)));
}
const quantile = (of: readonly number[], q: number): number =>
  of.toSorted((a, b) => a - b)[Math.floor(of.length * q)] ?? Number.NaN;
print(`\n${requests} requests of each kind, one after the other, in ${rounds} turns`);
print(`${'metering'.padEnd(10)} ${'p50 ms'.padStart(8)} ${'p95 ms'.padStart(8)}`);
for (const kind of ['without', 'with'] as const)
  print(`${kind.padEnd(10)} ${[0.5, 0.95].map((q) => quantile(taken[kind], q).toFixed(3).padStart(8)).join(' ')}`);
print(
  `more       ${[0.5, 0.95].map((q) => (quantile(taken.with, q) - quantile(taken.without, q)).toFixed(3).padStart(8)).join(' ')}`,
);
await shipper.kill();
await receiver.kill();
await plain.close();
await metered.close();
await database.close();
await postgres.stop();
rmSync(folder, { recursive: true });
