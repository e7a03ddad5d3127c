// The log of one container is read line by line, each once, whatever breaks in between.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import {
  type ContainerState,
  listHarmlessLines,
  LogCursor,
  parseLogLine,
  readContainer,
  truncateLine,
} from '../../../../../api/apps/logs/container-reader.ts';
import { LogQueue, type QueuedLine, SharedRoom } from '../../../../../api/apps/logs/log-queue.ts';
import type { LogPart, OpenedLog } from '../../../../../api/apps/submit/follow-log.ts';

test('reads the time of a line in any zone and precision', () => {
  assert.deepEqual(parseLogLine('2026-01-02T03:04:05.678Z hello world'), {
    at: '2026-01-02T03:04:05.678000000Z',
    text: 'hello world',
  });
  assert.deepEqual(parseLogLine('2026-01-02T03:04:05.123456789+08:00 '), {
    at: '2026-01-01T19:04:05.123456789Z',
    text: '',
  });
  assert.equal(parseLogLine('failed to try resolving symlinks'), undefined);
});

test('cuts lines at carriage returns and at 16 KiB, never within a character', () => {
  assert.deepEqual(listHarmlessLines('10%\r50%\r100%'), ['10%', '50%', '100%']);
  assert.deepEqual(listHarmlessLines(''), ['']);
  assert.deepEqual(listHarmlessLines('\u001b[31mred\u001b[0m'), ['red']);
  const long = truncateLine('€'.repeat(10_000));
  assert.match(long, /^€+ … \(truncated\)$/);
  assert.ok(Buffer.byteLength(long) < 16_384 + 20);
});

/** A log whose lines are out of order by a little, as those of standard output and standard error can be. */
const logs = fc
  .array(fc.record({ step: fc.nat(3), jitter: fc.nat(2) }), { minLength: 1, maxLength: 40 })
  .map((steps) => {
    let time = 100;
    return steps.map(({ step, jitter }, index) => {
      time += step;
      return { at: `2026-01-01T00:00:00.${String(time - jitter).padStart(9, '0')}Z`, text: `line ${index}` };
    });
  });

test('reads each line once, wherever the reading breaks and is begun again', () => {
  fc.assert(
    fc.property(logs, fc.array(fc.nat(40), { maxLength: 5 }), (log, breaks) => {
      const read: string[] = [];
      let cursor = new LogCursor(undefined);
      for (const length of [...breaks, log.length]) {
        cursor.begin();
        for (const { at, text } of log.slice(0, length)) if (cursor.advance(at)) read.push(text);
        // As another collector does, from what the first one has stored.
        cursor = new LogCursor(cursor.position);
      }
      const distinct = new Set(log.map(({ at }) => at)).size;
      // Lines of the same time are distinguished only where they follow each other.
      if (distinct === log.length)
        assert.deepEqual(
          read,
          log.map(({ text }) => text),
        );
    }),
    { numRuns: 2_000 },
  );
});

test('reads lines of the same time once each', () => {
  const at = '2026-01-01T00:00:00.000000001Z';
  const cursor = new LogCursor({ at, count: 2, maxAt: at });
  assert.deepEqual(
    [at, at, at, at].map((time) => cursor.advance(time)),
    [false, false, true, true],
  );
  assert.equal(cursor.position?.count, 4);
  assert.equal(cursor.since, '2025-12-31T23:59:58Z');
});

const encoder = new TextEncoder();

async function* serve(lines: readonly string[], isBroken = false): AsyncGenerator<Uint8Array> {
  await Promise.resolve();
  yield encoder.encode(lines.map((line) => `${line}\n`).join(''));
  if (isBroken) throw new Error('the connection broke');
}

test('reads what a run printed before its restart from the previous log, then the next run', async () => {
  const [first, second] = [
    ['2026-01-01T00:00:01.0Z one', '2026-01-01T00:00:02.0Z two', '2026-01-01T00:00:03.0Z three'],
    ['2026-01-01T00:00:05.0Z four'],
  ] as const;
  let state: ContainerState = { run: 'a', isRunning: true, isOver: false };
  const requests: LogPart[] = [];
  const openLog = (_pod: string, _container: string, _signal: AbortSignal, part: LogPart = {}): Promise<OpenedLog> => {
    requests.push(part);
    const opened: Record<number, OpenedLog> = {
      // The first run, whose connection breaks, and which has none before it.
      1: { state: 'open', bytes: serve(first.slice(0, 2), true) },
      2: { state: 'waiting' },
      // It was restarted in the meantime.
      3: { state: 'open', bytes: serve(second) },
      4: { state: 'open', bytes: serve(first) },
    };
    if (requests.length === 3) state = { run: 'b', isRunning: false, isOver: true };
    return Promise.resolve(opened[requests.length] ?? { state: 'open', bytes: serve(second) });
  };
  const read: string[] = [];
  await readContainer({
    ...{ pod: 'pod', container: 'app', cursor: new LogCursor(undefined), openLog, getState: () => state },
    waitForChange: () => new Promise(() => undefined),
    take: ({ text }) => {
      read.push(text);
      return undefined;
    },
    signal: new AbortController().signal,
    retryMs: [1, 5],
  });
  assert.deepEqual(read, ['one', 'two', 'three', 'four']);
  assert.deepEqual(requests[3], { isFinite: true, previous: true, timestamps: true, since: '2026-01-01T00:00:00Z' });
});

const notOver: ContainerState = { run: undefined, isRunning: false, isOver: false };
const over: ContainerState = { run: 'one', isRunning: false, isOver: true };

test.each([
  // The API server has bound the pod, and its node has not seen it yet: then the kubelet answers 404.
  { name: 'a pod that its node does not know yet', first: { state: 'gone' }, states: [notOver, over] },
  {
    name: 'an ended container whose log could not be opened at first',
    first: { state: 'waiting' },
    states: [over, over],
  },
] as const)('reads the log of $name', async ({ first, states }) => {
  let opened = 0;
  const read: string[] = [];
  await readContainer({
    ...{ pod: 'task', container: 'app', cursor: new LogCursor(undefined), retryMs: [1, 2] },
    signal: AbortSignal.timeout(10_000),
    getState: () => states[opened === 0 ? 0 : 1],
    waitForChange: () => new Promise(() => undefined),
    openLog: (_pod, _container, _signal, { previous = false }: LogPart = {}): Promise<OpenedLog> => {
      if (previous) return Promise.resolve({ state: 'waiting' });
      opened += 1;
      return Promise.resolve(opened === 1 ? first : { state: 'open', bytes: serve(['2026-01-01T00:00:00Z done']) });
    },
    take: ({ text }) => {
      read.push(text);
      return undefined;
    },
  });
  assert.deepEqual([opened, read], [2, ['done']]);
});

function createQueued(): {
  queue: LogQueue;
  stream: QueuedLine['stream'];
  push: (text: string, isLive: boolean) => Promise<void> | undefined;
} {
  const queue = new LogQueue(new SharedRoom(), { bytesPerSecond: 1_000, waitingBytes: 5_000 });
  const stream = {
    podUid: 'u',
    pod: 'p',
    container: 'app',
    component: 'app',
    version: 0,
    cursor: new LogCursor(undefined),
  };
  let number = 0;
  return {
    queue,
    stream,
    push: (text, isLive) => {
      number += 1;
      const at = `2026-01-01T00:00:00.${String(number).padStart(9, '0')}Z`;
      stream.cursor.advance(at);
      return queue.push(stream, { at, text }, isLive);
    },
  };
}

test('drops live lines beyond the rate, and says how many', async () => {
  const { queue, push } = createQueued();
  for (let line = 0; line < 30; line += 1) assert.equal(push('x'.repeat(36), true), undefined);
  let batch: { texts: string[]; dropped: number; position: string | undefined } | undefined;
  await queue.flush(({ lines, dropped, streams }) => {
    batch = { texts: lines.map(({ text }) => text), dropped, position: streams[0]?.position.at };
    return Promise.resolve();
  });
  assert.equal(batch?.dropped, 20);
  assert.equal(
    batch.texts.at(-1),
    '[moorage] 20 lines are missing here: the app printed more than 1000 bytes a second.',
  );
  assert.equal(batch.position, '2026-01-01T00:00:00.000000030Z', 'dropped lines are not read again');
  assert.equal(queue.isWaiting, false);
});

test('reads a backlog at the rate, without dropping any of it', async () => {
  const { queue, push } = createQueued();
  const since = performance.now();
  for (let line = 0; line < 15; line += 1) await push('x'.repeat(36), false);
  assert.ok(performance.now() - since > 350, 'half a second for half of the bytes of a second');
  let count = 0;
  await queue.flush(({ lines }) => {
    count = lines.length;
    return Promise.resolve();
  });
  assert.equal(count, 15);
});

test('stores the same batch again after a failure, and lets readers wait for it', async () => {
  const { queue, push } = createQueued();
  void push('a', false);
  await assert.rejects(queue.flush(() => Promise.reject(new Error('the database is away'))));
  void push('b', false);
  const waiting = push('x'.repeat(6_000), false);
  let isResolved = false;
  void waiting?.then(() => (isResolved = true));
  const texts: string[][] = [];
  const store = ({ lines }: { readonly lines: readonly QueuedLine[] }): Promise<void> => {
    texts.push(lines.map(({ text }) => text.slice(0, 1)));
    return Promise.resolve();
  };
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(isResolved, false);
  await queue.flush(store);
  await queue.flush(store);
  assert.deepEqual(texts, [['a'], ['b', 'x']]);
  await waiting;
});
