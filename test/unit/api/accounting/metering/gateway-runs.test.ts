// Which run of a gateway a record is of, and which numbers are missing.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import {
  assignRuns,
  findGaps,
  formatCounters,
  formatMultirange,
  toRanges,
} from '../../../../../api/accounting/metering/gateway-runs.ts';

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
