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
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Registry } from 'prom-client';
import { afterAll, test } from 'vitest';
import type { SentLogs } from '../../../../../../api/accounting/metering/log-receiver.ts';
import { createShipperMetrics, ship } from '../../../../../../api/accounting/metering/shipper/ship.ts';
import type { Delivery } from '../../../../../../api/accounting/metering/shipper/sender.ts';
import { silent } from '../../../../../support/api/sample.ts';

const folder = mkdtempSync(join(tmpdir(), 'moorage-shipper-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const line = (counter: number, padding = 0): string =>
  `${JSON.stringify({ RequestCount: counter, StartUTC: new Date(counter).toISOString(), Duration: 1, DownstreamStatus: 200, RequestPath: `/${'x'.repeat(padding)}` })}\n`;

interface Shipping {
  readonly numbers: number[];
  readonly gateways: Set<unknown>;
  readonly all: SentLogs[];
  until(count: number): Promise<void>;
  end(): Promise<void>;
}

function start(
  log: string,
  send: (logs: SentLogs) => Delivery | undefined = () => undefined,
  limitBytes = 1e9,
): Shipping {
  const [ending, draining] = [new AbortController(), new AbortController()];
  const numbers: number[] = [];
  const gateways = new Set<unknown>();
  const all: SentLogs[] = [];
  const shipping = ship({
    log,
    limitBytes,
    send: (logs) => {
      const answer = send(logs) ?? 'acknowledged';
      if (answer === 'acknowledged') {
        numbers.push(...logs.records.map(({ RequestCount }) => Number(RequestCount)));
        gateways.add(logs.resource['service.instance.id']);
        all.push(logs);
      }
      return Promise.resolve(answer);
    },
    metrics: createShipperMetrics(new Registry()),
    logger: silent,
    signal: ending.signal,
    draining: draining.signal,
    pollMs: 5,
  });
  return {
    numbers,
    gateways,
    all,
    async until(count) {
      while (numbers.length < count) await sleep(5);
    },
    async end() {
      draining.abort();
      await shipping;
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
  const [mark, next] = shipping.all[0]?.records ?? [];
  assert.equal(mark?.['moorage.lost'], 'true');
  assert.equal(Number(mark['RequestCount']) + 1, Number(next?.['RequestCount']));
  assert.ok(Number(mark['RequestCount']) > 1_000);
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
