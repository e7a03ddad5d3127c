// What apps print in the database: each line once, at most so much of it, and followed without a gap.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'vitest';
import { type LogPosition, LogStore, StalePosition } from '../../../../../api/apps/logs/log-store.ts';
import { type Database, openDatabase, prefixStatements } from '../../../../../api/billing/index.ts';
import { z } from 'zod';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';

let database: Database;
let store: LogStore;
beforeEach(async () => {
  database = await openDatabase(migratedDatabase);
  store = new LogStore(() => database, { appBytes: 4_000, chunkBytes: 400, crashes: 3 });
});
afterEach(() => database.close());

function toTime(second: number): string {
  return `2026-01-01T00:${String(Math.floor(second / 60)).padStart(2, '0')}:${String(second % 60).padStart(2, '0')}.000000000Z`;
}

function createPosition(at: string): LogPosition {
  return { at, count: 1, maxAt: at };
}

function createStream(
  container = 'app',
  podUid = 'pod',
): { podUid: string; pod: string; container: string; component: string } {
  return { podUid, pod: `${podUid}-name`, container, component: container };
}

/** Appends one line a second of one stream, in one batch. */
async function append({
  from,
  to,
  version,
  app = 'uid',
  container = 'app',
}: {
  from: number;
  to: number;
  version: number;
  app?: string;
  container?: string;
}): Promise<void> {
  const lines = Array.from({ length: to - from }, (_, index) => ({
    stream: 0,
    at: toTime(from + index),
    text: `line ${from + index}`,
  }));
  const position = createPosition(toTime(to - 1));
  await store.append(app, [{ ...createStream(container, `${app}-pod`), position, version }], lines);
}

async function readTexts(app = 'uid', tail?: number): Promise<string[]> {
  return (await store.read(app, { tail })).lines.map(({ line }) => line);
}

function listNumbers(from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, index) => `line ${from + index}`);
}

test('stores lines with the position that was read to, and the newest last', async () => {
  assert.equal(await store.findPosition('uid-pod', 'app'), undefined);
  await append({ from: 0, to: 3, version: 1 });
  await append({ from: 3, to: 5, version: 2 });
  assert.deepEqual(await store.findPosition('uid-pod', 'app'), { ...createPosition(toTime(4)), version: 2 });
  const { lines, end } = await store.read('uid', {});
  assert.deepEqual(lines[4], { id: '1/5', at: toTime(4), component: 'app', pod: 'uid-pod-name', line: 'line 4' });
  assert.equal(end, '1/5');
  assert.deepEqual(await readTexts('uid', 2), ['line 3', 'line 4']);
  assert.deepEqual(await readTexts('other'), []);
});

test('stores nothing for a collector that read from an old position', async () => {
  await append({ from: 0, to: 3, version: 1 });
  await assert.rejects(append({ from: 0, to: 3, version: 1 }), StalePosition);
  await assert.rejects(append({ from: 5, to: 6, version: 3 }), StalePosition);
  assert.deepEqual(await readTexts(), listNumbers(0, 3));
});

test('keeps the newest bytes of each app', async () => {
  await append({ from: 0, to: 10, version: 1, app: 'other' });
  for (let batch = 0; batch < 60; batch += 1) await append({ from: batch * 5, to: batch * 5 + 5, version: batch + 1 });
  const lines = await readTexts();
  assert.deepEqual(lines, listNumbers(300 - lines.length, 300));
  const bytes = lines.length * `${toTime(0)} 1 line 299\n`.length;
  assert.ok(bytes <= 4_000 && bytes > 3_400, `${bytes} bytes`);
  assert.deepEqual(await readTexts('other'), listNumbers(0, 10));
});

test('selects by time and by a filter', async () => {
  await append({ from: 0, to: 50, version: 1 });
  await append({ from: 50, to: 60, version: 1, container: 'worker' });
  const since = await store.read('uid', { since: toTime(45) });
  assert.deepEqual(
    since.lines.map(({ line }) => line),
    listNumbers(45, 60),
  );
  const ones = await store.read('uid', {
    tail: 3,
    isWanted: ({ component, line }) => component === 'app' && line.endsWith('1'),
  });
  assert.deepEqual(
    ones.lines.map(({ line }) => line),
    ['line 21', 'line 31', 'line 41'],
  );
  assert.deepEqual((await store.read('uid', { since: toTime(70) })).lines, []);
});

test('is followed line by line, from whatever position', async () => {
  await append({ from: 0, to: 4, version: 1 });
  const { end } = await store.read('uid', { tail: 1 });
  assert.deepEqual(await store.readAfter('uid', end), { lines: [], end, missed: false });
  for (let batch = 0; batch < 8; batch += 1)
    await append({ from: 4 + batch * 4, to: 8 + batch * 4, version: batch + 2 });
  const seen: string[] = [];
  for (let after = end; ;) {
    const read = await store.readAfter('uid', after);
    assert.equal(read.missed, false);
    seen.push(...read.lines.map(({ line }) => line));
    if (read.end === after) break;
    after = read.end;
  }
  assert.deepEqual(seen, listNumbers(4, 36));
  const [, , third] = (await store.read('uid', {})).lines;
  const resumed = await store.readAfter('uid', third?.id ?? '');
  assert.equal(resumed.lines[0]?.line, 'line 3');
  assert.equal((await store.readAfter('none', '0/0')).end, '0/0');
});

test('says that lines were removed before they were followed', async () => {
  await append({ from: 0, to: 4, version: 1 });
  const { end } = await store.read('uid', {});
  for (let batch = 1; batch < 60; batch += 1) await append({ from: batch * 4, to: batch * 4 + 4, version: batch + 1 });
  assert.equal((await store.readAfter('uid', end)).missed, true);
});

test('keeps the newest crashes, each once', async () => {
  const crash = {
    pod: 'pod',
    component: 'app',
    restarts: 0,
    exitCode: 137,
    signal: 9,
    reason: 'OOMKilled',
    lines: [{ at: toTime(1), line: 'last words' }],
  };
  for (const number of [1, 2, 3, 4, 4])
    await store.addCrash('uid', { ...crash, instance: `run ${number}`, at: `2026-01-01T00:00:0${number}.000Z` });
  await store.addCrash('uid', {
    ...crash,
    component: 'worker',
    signal: undefined,
    instance: 'other',
    at: '2026-01-01T00:00:03.500Z',
  });
  assert.deepEqual(
    (await store.listCrashes('uid', undefined, 20)).map(({ instance }) => instance),
    ['run 4', 'other', 'run 3'],
  );
  const [newest] = await store.listCrashes('uid', 'app', 1);
  assert.deepEqual(newest, { ...crash, instance: 'run 4', at: '2026-01-01T00:00:04.000Z' });
  assert.deepEqual([await store.hasCrash('uid', 'other'), await store.hasCrash('uid', 'run 1')], [true, false]);
});

test('has one collector at a time', async () => {
  assert.equal(await store.claim('one', 10_000), true);
  assert.equal(await store.claim('two', 10_000), false);
  assert.equal(await store.claim('one', 0), true);
  assert.equal(await store.claim('two', 10_000), true, 'the claim of the first has expired');
  assert.equal(await store.claim('one', 10_000), false);
  await store.release('two');
  assert.equal(await store.claim('one', 10_000), true);
});

test('removes what is kept of apps that are gone, once it is old', async () => {
  const defineStatement = prefixStatements('log-store-test');
  const age = async (): Promise<void> => {
    for (const table of ['log_stream', 'log_chunk'])
      await database.query(
        defineStatement(
          `age-${table}`,
          `update author.${table} set created_at = now() - interval '2 hours'`,
          z.unknown(),
        ),
        [],
      );
    await database.query(
      defineStatement(
        'age-position',
        `update author.log_stream set updated_at = now() - interval '3 hours'`,
        z.unknown(),
      ),
      [],
    );
  };
  await append({ from: 0, to: 3, version: 1 });
  await append({ from: 0, to: 3, version: 1, app: 'other' });
  await store.clean(['uid'], []);
  assert.equal((await readTexts('other')).length, 3, 'the app may be newer than the list');
  await age();
  await store.clean(['uid'], ['uid-pod']);
  assert.deepEqual([await readTexts('other'), (await readTexts()).length], [[], 3]);
  assert.notEqual(await store.findPosition('uid-pod', 'app'), undefined);
  await store.clean(['uid'], []);
  assert.equal(await store.findPosition('uid-pod', 'app'), undefined, 'no line of it is left, and its pod is gone');
});
