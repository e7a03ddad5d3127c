// The shipper follows the log through rotations, half lines, refusals and its own end, and loses nothing.
import assert from 'node:assert/strict';
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Registry } from 'prom-client';
import { afterAll, test } from 'vitest';
import {
  assignRuns,
  type GatewayRecord,
  findGaps,
  formatMultirange,
  readRecord,
} from '../../../../../../api/accounting/metering/gateway-record.ts';
import type { SentLogs } from '../../../../../../api/accounting/metering/log-receiver.ts';
import { createShipperMetrics, ship } from '../../../../../../api/accounting/metering/shipper/ship.ts';
import {
  createSender,
  type Delivery,
  type SendOptions,
} from '../../../../../../api/accounting/metering/shipper/sender.ts';
import { silent } from '../../../../../support/api/sample.ts';
import { listen } from '../../../../../support/free-port.ts';

const folder = mkdtempSync(join(tmpdir(), 'moorage-shipper-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** `at`: when the run of its gateway began. */
const line = (counter: number, padding = 0, at = 0): string =>
  `${JSON.stringify({ RequestCount: counter, StartUTC: new Date(at + counter).toISOString(), Duration: 1, DownstreamStatus: 200, RequestPath: `/${'x'.repeat(padding)}` })}\n`;

interface Shipping {
  readonly numbers: number[];
  readonly gateways: Set<unknown>;
  readonly all: SentLogs[];
  /** Values of metrics, by their name without the prefix. */
  measure(): Promise<Record<string, number | undefined>>;
  until(count: number): Promise<void>;
  end(): Promise<void>;
  /** Ends it immediately, whatever is not sent. */
  stop(): Promise<void>;
}

function start(
  log: string,
  send: (logs: SentLogs, options: SendOptions) => Delivery | undefined | Promise<Delivery | undefined> = () =>
    undefined,
  limitBytes = 1e9,
): Shipping {
  const [ending, draining] = [new AbortController(), new AbortController()];
  const numbers: number[] = [];
  const gateways = new Set<unknown>();
  const all: SentLogs[] = [];
  const registry = new Registry();
  const shipping = ship({
    log,
    limitBytes,
    send: async (logs, options) => {
      const answer = (await send(logs, options)) ?? 'acknowledged';
      if (answer === 'acknowledged') {
        numbers.push(...logs.records.map(({ RequestCount }) => Number(RequestCount)));
        gateways.add(logs.resource['service.instance.id']);
        all.push(logs);
      }
      return answer;
    },
    metrics: createShipperMetrics(registry),
    logger: silent,
    signal: ending.signal,
    draining: draining.signal,
    pollMs: 5,
  });
  return {
    numbers,
    gateways,
    all,
    async measure() {
      const metrics = await registry.getMetricsAsJSON();
      return Object.fromEntries(
        metrics.map(({ name, values }) => [name.replace('moorage_shipper_', ''), values[0]?.value]),
      );
    },
    async until(count) {
      while (numbers.length < count) await sleep(5);
    },
    async end() {
      draining.abort();
      await shipping;
    },
    async stop() {
      ending.abort();
      await assert.rejects(shipping, { name: 'AbortError' });
    },
  };
}

test('waits for the log, for whole lines, and goes on where it ended', async () => {
  const log = join(folder, 'goes-on.log');
  const first = start(log);
  await sleep(20);
  writeFileSync(log, line(1) + line(2).slice(0, 20));
  await first.until(1);
  appendFileSync(log, `${line(2).slice(20)}no record\n${line(3)}`);
  await first.until(3);
  await first.end();
  appendFileSync(log, line(4));
  const second = start(log);
  await second.until(1);
  await second.end();
  assert.deepEqual([first.numbers, second.numbers], [[1, 2, 3], [4]]);
  assert.deepEqual(first.gateways, second.gateways);
});

test('a rotated log is sent to its end and removed, then the new one, also where the shipper was away', async () => {
  const log = join(folder, 'rotated.log');
  writeFileSync(log, line(1));
  const first = start(log);
  await first.until(1);
  renameSync(log, `${log}.1`);
  // The gateway writes into it until it has opened the new one.
  appendFileSync(`${log}.1`, line(2));
  writeFileSync(log, line(3));
  await first.until(3);
  assert.deepEqual(first.numbers, [1, 2, 3]);
  assert.equal(existsSync(`${log}.1`), false);
  await first.end();
  appendFileSync(log, line(4));
  renameSync(log, `${log}.2`);
  writeFileSync(log, line(5));
  const second = start(log);
  await second.until(2);
  await second.end();
  assert.deepEqual(second.numbers, [4, 5]);
});

test('a batch that is too large is halved until it is taken', async () => {
  const log = join(folder, 'large.log');
  writeFileSync(log, Array.from({ length: 50 }, (_, index) => line(index + 1)).join(''));
  const shipping = start(log, ({ records }) => (records.length > 20 ? 'too large' : undefined));
  await shipping.until(50);
  await shipping.end();
  assert.deepEqual(
    shipping.numbers,
    Array.from({ length: 50 }, (_, index) => index + 1),
  );
});

test('too many waiting records are dropped from the oldest on, and the newest of them is reported', async () => {
  const log = join(folder, 'bounded.log');
  writeFileSync(log, Array.from({ length: 5_000 }, (_, index) => line(index + 1, 200)).join(''));
  const shipping = start(log, undefined, 500_000);
  while (!shipping.numbers.includes(5_000)) await sleep(5);
  await shipping.end();
  const [first, mark, next] = shipping.all[0]?.records ?? [];
  assert.deepEqual([first?.['moorage.lost'], Number(first?.['RequestCount'])], ['true', 1]);
  assert.equal(mark?.['moorage.lost'], 'true');
  assert.equal(Number(mark['RequestCount']) + 1, Number(next?.['RequestCount']));
  assert.ok(Number(mark['RequestCount']) > 1_000);
});

/** What a receiver makes of the records: of each run, the highest number and the numbers that are missing. */
function accountFor({ records }: SentLogs): { newest: number; missing: string }[] {
  const read = records.map(readRecord).filter((record): record is GatewayRecord => !('wrong' in record));
  assert.equal(read.length, records.length);
  return assignRuns([], read).map((batch) => ({
    newest: Number(batch.after.newest),
    missing: formatMultirange(findGaps(batch).map(({ counters }) => counters)),
  }));
}

const run = (count: number, at: number): string =>
  Array.from({ length: count }, (_, index) => line(index + 1, 200, at)).join('');

test('reports the losses of each run, also if a later run lost more records than an earlier one had', async () => {
  const log = join(folder, 'runs.log');
  // It drops 8,000 of these: two runs and the first 4,500 records of the third.
  writeFileSync(log, run(1_000, 0) + run(2_500, 1e6) + run(5_500, 2e6));
  const shipping = start(log, undefined, 500_000);
  while (!shipping.numbers.includes(5_500)) await sleep(5);
  await shipping.end();
  assert.equal(shipping.all.length, 1);
  assert.deepEqual(shipping.all.map(accountFor), [
    [
      { newest: 1_000, missing: '{[1,1001)}' },
      { newest: 2_500, missing: '{[1,2501)}' },
      { newest: 5_500, missing: '{[1,4501)}' },
    ],
  ]);
});

test('drops the oldest records while a batch cannot be sent, and remembers them across restarts', async () => {
  const log = join(folder, 'away.log');
  writeFileSync(log, run(1_000, 0));
  let [isAway, tries] = [true, 0];
  const send = async (_: SentLogs, { isWanted, signal }: SendOptions): Promise<Delivery | undefined> => {
    while (isAway) {
      tries += 1;
      await sleep(5, undefined, { signal });
      if (!(await isWanted())) return 'abandoned';
    }
    return undefined;
  };
  const untilLimited = async (shipping: Shipping): Promise<void> => {
    for (;;) {
      const { dropped_total: dropped = 0, waiting_bytes: waiting = 0 } = await shipping.measure();
      if (dropped > 0 && waiting > 0 && waiting <= 500_000) return;
      await sleep(5);
    }
  };
  const first = start(log, send, 500_000);
  while (tries === 0) await sleep(5);
  // It drops 2,000 of these, and 6,000 of those that come next.
  appendFileSync(log, run(2_500, 1e6));
  await untilLimited(first);
  await first.stop();
  appendFileSync(log, run(6_000, 2e6));
  const second = start(log, send, 500_000);
  await untilLimited(second);
  assert.deepEqual([first.numbers, second.numbers], [[], []]);
  isAway = false;
  while (!second.numbers.includes(6_000)) await sleep(5);
  await second.end();
  assert.deepEqual(second.all.map(accountFor), [
    [
      { newest: 1_000, missing: '{[1,1001)}' },
      { newest: 2_500, missing: '{[1,2501)}' },
      { newest: 6_000, missing: '{[1,4501)}' },
    ],
  ]);
});

test('reports dropped records even if no line follows them', async () => {
  const log = join(folder, 'all-dropped.log');
  writeFileSync(log, run(1_000, 0));
  const shipping = start(log, undefined, 1_000);
  await shipping.until(2);
  await shipping.end();
  assert.deepEqual(shipping.all.map(accountFor), [[{ newest: 1_000, missing: '{[1,1001)}' }]]);
});

test('reads a log from its start after it was truncated', async () => {
  const log = join(folder, 'truncated.log');
  writeFileSync(log, line(1) + line(2) + line(3));
  const shipping = start(log);
  await shipping.until(3);
  truncateSync(log);
  appendFileSync(log, line(4));
  await shipping.until(4);
  await shipping.end();
  assert.deepEqual(shipping.numbers, [1, 2, 3, 4]);
});

test('the disk of what was sent is given back, and the log keeps its length', async () => {
  const log = join(folder, 'freed.log');
  const records = Array.from({ length: 60_000 }, (_, index) => line(index + 1, 200)).join('');
  writeFileSync(log, records);
  const before = statSync(log).blocks;
  const shipping = start(log);
  await shipping.until(60_000);
  await shipping.end();
  assert.equal(statSync(log).size, records.length);
  assert.ok(statSync(log).blocks < before / 2, `${statSync(log).blocks} of ${before} blocks`);
  assert.equal(readFileSync(log).subarray(-line(60_000, 200).length).toString(), line(60_000, 200));
});

test('a batch is retried until it is acknowledged or not wanted any more', async () => {
  const statuses = [503, 503, 200, 503];
  const answered: (number | undefined)[] = [];
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      const status = statuses.shift();
      answered.push(status);
      response.writeHead(status ?? 500).end();
    });
  });
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, 'token');
  const send = createSender({ url: `http://127.0.0.1:${await listen(server)}/`, tokenFile, log: silent });
  const logs = { resource: {}, records: [{ RequestCount: 1 }] };
  const { signal } = new AbortController();
  assert.equal(await send(logs, { signal, isWanted: () => Promise.resolve(true) }), 'acknowledged');
  assert.equal(await send(logs, { signal, isWanted: () => Promise.resolve(false) }), 'abandoned');
  assert.deepEqual(answered, [503, 503, 200, 503]);
  server.closeAllConnections();
  server.close();
});
