// A batch answers each caller with its own answer, shares statements when busy, and isolates a bad item.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { DatabaseUnavailable } from '../../../../../api/billing/database/database.ts';
import { Batch } from '../../../../../api/billing/ledger/ledger.ts';

test('each caller gets the answer to its own item, whatever the size and the number of concurrency', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat(), { maxLength: 60 }),
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 1, max: 4 }),
      async (items, size, concurrency) => {
        let flying = 0;
        const sent: number[] = [];
        const batch = new Batch(
          async (group: readonly number[]) => {
            flying += 1;
            assert.ok(flying <= concurrency && group.length <= size);
            sent.push(...group);
            await new Promise(setImmediate);
            flying -= 1;
            return group.map((item) => `answer to ${item}`);
          },
          { size, concurrency },
        );
        const answers = await Promise.all(items.map((item) => batch.run(item)));
        assert.deepEqual(
          answers,
          items.map((item) => `answer to ${item}`),
        );
        assert.deepEqual(sent, items);
      },
    ),
    { numRuns: 50 },
  );
});

const all = (batch: Batch<string, string>, items: readonly string[]): Promise<PromiseSettledResult<string>[]> =>
  Promise.allSettled(items.map((item) => batch.run(item)));

test('a lone call is sent at once, those that come meanwhile share the next statement', async () => {
  const groups: number[] = [];
  const batch = new Batch(
    async (group: readonly number[]) => {
      groups.push(group.length);
      await new Promise(setImmediate);
      return group;
    },
    { size: 64, concurrency: 1 },
  );
  await Promise.all([1, 2, 3, 4, 5].map((item) => batch.run(item)));
  assert.deepEqual(groups, [1, 4]);
});

test('only the bad item fails; when the database is gone all fail without being sent one by one', async () => {
  let sends = 0;
  const spoilt = () =>
    new Batch(
      (group: readonly string[]) => {
        sends += 1;
        if (group.includes('gone')) return Promise.reject(new DatabaseUnavailable('refused'));
        return group.includes('bad') ? Promise.reject(new Error('bad item')) : Promise.resolve(group);
      },
      { size: 64, concurrency: 1 },
    );
  const outcomes = await all(spoilt(), ['first', 'a', 'bad', 'b']);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected', 'fulfilled'],
  );
  sends = 0;
  const lost = await all(spoilt(), ['first', 'a', 'gone', 'b']);
  assert.deepEqual(
    lost.map(({ status }) => status),
    ['fulfilled', 'rejected', 'rejected', 'rejected'],
  );
  assert.equal(sends, 2);
});

test('a missing answer is an error, not silence', async () => {
  const batch = new Batch(() => Promise.resolve<number[]>([]), { size: 1, concurrency: 1 });
  await assert.rejects(batch.run(1), /no answer/);
});
