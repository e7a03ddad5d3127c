// Records as Traefik writes them into its file and exports them, and the ids of the events that they become.
import assert from 'node:assert/strict';
import { BlockList } from 'node:net';
import { test } from 'vitest';
import fc from 'fast-check';
import {
  attributeNames,
  createEventId,
  formatTimestamp,
  identifyGateway,
  parseNanoseconds,
  readRecord,
  assignRuns,
  findGaps,
  formatCounters,
  formatMultirange,
  toRanges,
} from '../../../../../api/accounting/metering/gateway-record.ts';
import { createVisitorResolver } from '../../../../../api/accounting/metering/request-class.ts';

const line = {
  RequestCount: 7,
  StartUTC: '2026-11-23T06:05:44.82933188Z',
  Duration: 18_678_430,
  DownstreamStatus: 200,
  RequestHost: 'App-9.apps.test',
  RequestPath: '/page?key=secret#x',
  RequestMethod: 'get',
  ClientHost: '203.0.113.9',
};

test('a line of the file and what the exporter sends of it are the same event', () => {
  const [file, exported] = [line, { ...line, StartUTC: 1_795_413_944_829_331_880n }].map(readRecord);
  assert.deepEqual(file, exported);
  assert.ok(file !== undefined && !('wrong' in file));
  assert.equal(createEventId('g', file).length < 60, true);
  assert.notEqual(createEventId('g', file), createEventId('other', file));
  assert.deepEqual(
    [file.host, file.path, file.method, file.endNs - file.startNs],
    ['app-9.apps.test', '/page', 'GET', 18_678_430n],
  );
  assert.equal(formatTimestamp(file.startNs), '2026-11-23T06:05:44.829331Z');
});

test('what is missing or wrong is named', () => {
  assert.deepEqual(readRecord({ ...line, RequestCount: 0, StartUTC: 'yesterday' }), {
    wrong: ['RequestCount', 'StartUTC'],
  });
  assert.deepEqual(readRecord({}), { wrong: ['RequestCount', 'StartUTC', 'Duration', 'DownstreamStatus'] });
});

test('each attribute is as it should be, or the record is none', () => {
  const wrong: readonly (readonly [name: string, ...values: (string | number | bigint)[]])[] = [
    ['RequestCount', 0, -1, 1.5, '1', 2 ** 53, -1n, 0n],
    ['StartUTC', -1, 1.5, '', '2026-11-23', '2026-11-23T06:05:44', -1n],
    ['Duration', -1, 0.5, '1', -1n],
    ['DownstreamStatus', -1, 1_000, 200.5, '200', 200n],
    ['RequestHost', 1, 1n],
    ['RequestPath', 1],
    ['RequestMethod', 1],
    ['ClientHost', 1],
    ['request_User-Agent', 1],
    ['request_Sec-Fetch-Dest', 1],
    ['downstream_Moorage-Activator', 1],
    ['RequestContentSize', -1, 0.5, '1', 2 ** 53, 1n],
    ['DownstreamContentSize', -1, 0.5, '1', 2 ** 53, 1n],
    ['moorage.lost', 'false', 1],
  ];
  assert.deepEqual(wrong.map(([name]) => name).toSorted(), attributeNames.toSorted());
  for (const [name, ...values] of wrong)
    for (const value of values)
      assert.deepEqual(readRecord({ ...line, [name]: value }), { wrong: [name] }, `${name}: ${value}`);
  for (const changes of [
    { RequestCount: 2n ** 62n, StartUTC: 0, Duration: 0n, DownstreamStatus: 0 },
    { 'moorage.lost': 'true', RequestContentSize: 0, RequestHost: '' },
  ])
    assert.ok(!('wrong' in readRecord({ ...line, ...changes })));
});

test('long texts are cut off', () => {
  const read = readRecord({ ...line, RequestPath: `/${'x'.repeat(3_000)}`, 'request_User-Agent': 'y'.repeat(400) });
  assert.ok(!('wrong' in read));
  assert.deepEqual([read.path.length, read.userAgent.length], [2_000, 300]);
});

test('times are read to the nanosecond, in any zone', () => {
  assert.equal(parseNanoseconds('1970-01-01T00:00:01.5Z'), 1_500_000_000n);
  assert.equal(parseNanoseconds('1970-01-01T01:00:00.000000001+01:00'), 1n);
  assert.equal(parseNanoseconds('1970-13-01T00:00:00Z'), undefined);
});

test('a gateway is named by the surest of the attributes that name one', () => {
  assert.equal(identifyGateway({ 'host.name': 'h', 'k8s.pod.uid': 'p' }), 'p');
  assert.equal(identifyGateway({ 'service.instance.id': '', 'service.name': 'traefik' }), 'traefik');
  assert.equal(identifyGateway({}), 'unknown');
});

test('a visitor is the same one for a day, within his network, and another one on the next', () => {
  const trustedProxies = new BlockList();
  trustedProxies.addSubnet('192.0.2.0', 24, 'ipv4');
  const visitorOf = createVisitorResolver({ salt: 'salt', trustedProxies });
  const { hash } = visitorOf('203.0.113.9', '2026-11-23');
  assert.equal(visitorOf('203.0.113.77', '2026-11-23').hash, hash);
  assert.equal(visitorOf('198.51.100.1, 203.0.113.9, 192.0.2.4', '2026-11-23').hash, hash);
  assert.notEqual(visitorOf('203.0.113.9', '2026-11-24').hash, hash);
  assert.notEqual(visitorOf('203.0.114.9', '2026-11-23').hash, hash);
  assert.deepEqual(
    ['10.1.2.3', '203.0.113.9', 'fd00::1', '::ffff:127.0.0.1', '2001:db8::1'].map(
      (client) => visitorOf(client, '2026-11-23').isInside,
    ),
    [true, false, true, true, false],
  );
});

// Which run of a gateway a record is of, and which numbers are missing.

const record = (counter: number, start: number, end: number, isLost = false) => ({
  counter: BigInt(counter),
  startNs: BigInt(start),
  endNs: BigInt(end),
  isLost,
});
type Sample = ReturnType<typeof record>;
const assigned = (...records: Sample[]): string[] =>
  assignRuns([], records).map((batch) => formatCounters(batch.records));

test('numbers become the fewest ranges', () => {
  assert.equal(formatMultirange(toRanges([5n, 1n, 2n, 3n, 2n])), '{[1,4),[5,6)}');
  assert.equal(formatMultirange(toRanges([])), '{}');
});

test('a record that began before the last end is late; one that began after it with a lower number is of a new process', () => {
  // A WebSocket of the first minute ends after a thousand requests.
  assert.deepEqual(assigned(record(2, 10, 20), record(1000, 900, 950), record(1, 5, 960)), ['{[1,3),[1000,1001)}']);
  assert.deepEqual(assigned(record(2, 10, 20), record(1, 30, 31), record(2, 32, 33)), ['{[2,3)}', '{[1,3)}']);
  // Requests that began together are logged as they end, and one may be given its number after another one's began.
  assert.deepEqual(assigned(record(6, 99, 120), record(5, 100, 130), record(4, 90, 140)), ['{[4,7)}']);
});

test('what is sent again after a restart goes to the run that it was of', () => {
  const first = [record(1, 10, 20), record(2, 30, 40)];
  const second = [record(1, 50, 60), record(2, 61, 70)];
  const known = assignRuns([], [...first, ...second]).map(({ after }) => after);
  const again = assignRuns(known, [...first, ...second]);
  assert.deepEqual(
    again.map(({ before, after }) => [before, after]),
    known.map((run) => [run, run]),
  );
});

test('gaps are the numbers below the highest that did not come; a lost one is in its gap', () => {
  const [batch] = assignRuns([], [record(3, 10, 11), record(6, 20, 21), record(9, 30, 31, true)]);
  assert.ok(batch !== undefined);
  assert.deepEqual(findGaps(batch), [
    { counters: [1n, 2n], afterNs: undefined, beforeNs: 10n },
    { counters: [4n, 5n], afterNs: 10n, beforeNs: 20n },
    { counters: [7n, 9n], afterNs: 20n, beforeNs: 30n },
  ]);
  assert.equal(formatCounters(batch.records), '{[3,4),[6,7)}');
});

test('numbers that one loss marker after another covers are one gap', () => {
  const [batch] = assignRuns([], [record(1, 10, 11, true), record(9, 30, 31, true), record(11, 40, 41)]);
  assert.ok(batch !== undefined);
  assert.deepEqual(findGaps(batch), [
    { counters: [1n, 9n], afterNs: undefined, beforeNs: 30n },
    { counters: [10n, 10n], afterNs: 30n, beforeNs: 40n },
  ]);
});

test('runs of a process are distinguished for any traffic, in the order in which it is logged', () => {
  const runs = fc.array(fc.array(fc.tuple(fc.nat(50), fc.nat(500)), { minLength: 2, maxLength: 30 }), {
    minLength: 1,
    maxLength: 4,
  });
  fc.assert(
    fc.property(runs, (processes) => {
      let now = 1_000;
      const logged = processes.map((requests) => {
        const records = requests.map(([pause, duration], index) => {
          now += pause;
          return record(index + 1, now, now + duration);
        });
        const inOrder = records.toSorted((a, b) => Number(a.endNs - b.endNs));
        now = Number(inOrder.at(-1)?.endNs ?? 0n) + 1;
        return inOrder;
      });
      const batches = assignRuns([], logged.flat());
      // A process is seen as a new one at the latest when a number comes a second time.
      const isSplit = logged.every(
        (records, index) => index === 0 || Number(records[0]?.counter) <= (logged[index - 1]?.length ?? 0),
      );
      if (isSplit)
        assert.deepEqual(
          batches.map(({ records }) => records),
          logged,
        );
      for (const { records } of batches) assert.ok(records.length > 0);
    }),
  );
});
