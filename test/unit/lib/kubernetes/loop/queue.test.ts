// The queue: one worker a key, no key lost, backoff and bucket as specified, and an orderly end.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { createQueue, type WorkQueue } from '../../../../../lib/kubernetes/index.ts';
import { FakeClock } from '../../../../support/kubernetes/fake-clock.ts';

const keys = fc.constantFrom('a', 'b', 'c', 'd');

/** What the queue must do, said as plainly as possible. */
class Model {
  /** Keys that need work, in the order in which they came to need it. */
  owed: string[] = [];
  inWork = new Set<string>();
  failures = new Map<string, number>();
  due = new Map<string, number>();
  now = 0;

  owe(key: string): void {
    if (!this.owed.includes(key)) this.owed.push(key);
  }

  later(key: string, ms: number): void {
    if (ms <= 0) this.owe(key);
    else this.due.set(key, Math.min(this.due.get(key) ?? Infinity, this.now + ms));
  }

  advance(ms: number): void {
    this.now += ms;
    const ripe = [...this.due].filter(([, at]) => at <= this.now);
    for (const [key] of ripe) {
      this.due.delete(key);
      this.owe(key);
    }
  }

  takeable(): string[] {
    return this.owed.filter((key) => !this.inWork.has(key));
  }

  begin(key: string): void {
    this.owed = this.owed.filter((other) => other !== key);
    this.inWork.add(key);
  }
}

interface Real {
  queue: WorkQueue;
  clock: FakeClock;
}

type Command = fc.AsyncCommand<Model, Real>;

function command(
  name: string,
  check: (model: Model) => boolean,
  run: (model: Model, real: Real) => void | Promise<void>,
): Command {
  return {
    check,
    toString: () => name,
    async run(model, real) {
      await run(model, real);
      assert.equal(real.queue.depth, model.takeable().length, 'depth');
      assert.equal(real.queue.active, model.inWork.size, 'active');
    },
  };
}

const always = (): boolean => true;
const BASE = 5;
const MOST = 60;

const add = (key: string): Command =>
  command(`add ${key}`, always, (model, { queue }) => {
    queue.add(key);
    model.owe(key);
  });

const addInBackground = (key: string): Command =>
  command(`addInBackground ${key}`, always, (model, { queue }) => {
    queue.addInBackground(key);
    model.owe(key);
  });

const addAfter = (key: string, ms: number): Command =>
  command(`addAfter ${key} ${ms}`, always, (model, { queue }) => {
    queue.addAfter(key, ms);
    model.later(key, ms);
  });

const fail = (key: string): Command =>
  command(`fail ${key}`, always, (model, { queue }) => {
    const failures = model.failures.get(key) ?? 0;
    queue.addRateLimited(key);
    model.later(key, Math.min(BASE * 2 ** failures, MOST));
    model.failures.set(key, failures + 1);
    assert.equal(queue.countFailures(key), failures + 1);
  });

const forget = (key: string): Command =>
  command(`forget ${key}`, always, (model, { queue }) => {
    queue.forget(key);
    model.failures.delete(key);
    assert.equal(queue.countFailures(key), 0);
  });

const take = (): Command =>
  command(
    'take',
    (model) => model.takeable().length > 0,
    async (model, { queue }) => {
      const key = await queue.get();
      assert.ok(key !== undefined && model.takeable().includes(key), `got ${String(key)}`);
      model.begin(key);
    },
  );

const finish = (key: string): Command =>
  command(
    `finish ${key}`,
    (model) => model.inWork.has(key),
    (model, { queue }) => {
      queue.finish(key);
      model.inWork.delete(key);
    },
  );

const advance = (ms: number): Command =>
  command(`advance ${ms}`, always, (model, { clock }) => {
    clock.advance(ms);
    model.advance(ms);
  });

test('the queue behaves like its model for any sequence of calls', async () => {
  const commands = fc.commands(
    [
      keys.map(add),
      keys.map(addInBackground),
      fc.tuple(keys, fc.integer({ min: -1, max: 50 })).map(([key, ms]) => addAfter(key, ms)),
      keys.map(fail),
      keys.map(forget),
      fc.constant(take()),
      keys.map(finish),
      fc.integer({ min: 1, max: 40 }).map(advance),
    ],
    { maxCommands: 100, size: '+1' },
  );
  const property = fc.asyncProperty(commands, async (list) => {
    const clock = new FakeClock();
    const queue = createQueue({ clock, baseDelayMs: BASE, maxDelayMs: MOST, bucket: { perSecond: 1e9, burst: 1e9 } });
    const model = new Model();
    await fc.asyncModelRun(() => ({ model, real: { queue, clock } }), list);
    // Whatever was asked for and not yet done must still come, once everything in work ends and all waits are over.
    for (const key of model.inWork) queue.finish(key);
    clock.advance(1000);
    const expected = new Set([...model.owed, ...model.due.keys()]);
    queue.shutDown();
    const rest: string[] = [];
    for (let key = await queue.get(); key !== undefined; key = await queue.get()) rest.push(key);
    assert.deepEqual(rest.toSorted(), [...expected].toSorted());
  });
  await fc.assert(property, { numRuns: 2000 });
});

test('keys of changed objects come before keys that were added in the background', async () => {
  const queue = createQueue({ clock: new FakeClock() });
  for (const key of ['a', 'b', 'c']) queue.addInBackground(key);
  queue.add('changed');
  queue.add('b');
  queue.addInBackground('changed');
  queue.shutDown();
  const order: (string | undefined)[] = [];
  for (let key = await queue.get(); key !== undefined; key = await queue.get()) order.push(key);
  assert.deepEqual(order, ['changed', 'b', 'a', 'c']);
});

test('keys of changed objects come before keys whose time has come', async () => {
  const clock = new FakeClock();
  const queue = createQueue({ clock });
  queue.addAfter('due', 10);
  queue.addRateLimited('failed');
  clock.advance(10);
  queue.add('changed');
  queue.shutDown();
  const order: (string | undefined)[] = [];
  for (let key = await queue.get(); key !== undefined; key = await queue.get()) order.push(key);
  assert.deepEqual(order, ['changed', 'failed', 'due']);
});

test('no two workers have the same key, and each add is followed by work that began after it', async () => {
  const property = fc.asyncProperty(
    fc.scheduler(),
    fc.array(keys, { minLength: 1, maxLength: 30 }),
    fc.integer({ min: 1, max: 5 }),
    async (scheduler, adds, workers) => {
      const queue = createQueue({ clock: new FakeClock() });
      const inWork = new Set<string>();
      const owed = new Set<string>();
      let maximum = 0;
      const work = async (): Promise<void> => {
        for (let key = await queue.get(); key !== undefined; key = await queue.get()) {
          assert.ok(!inWork.has(key), `${key} is in work twice`);
          inWork.add(key);
          owed.delete(key);
          maximum = Math.max(maximum, inWork.size);
          await scheduler.schedule(Promise.resolve(), `work ${key}`);
          inWork.delete(key);
          queue.finish(key);
        }
      };
      const working = Array.from({ length: workers }, work);
      const adding = scheduler.scheduleSequence(
        adds.map((key) => () => {
          owed.add(key);
          queue.add(key);
          return Promise.resolve();
        }),
      );
      await scheduler.waitFor(adding.task);
      queue.shutDown();
      await scheduler.waitFor(Promise.all(working));
      assert.deepEqual([...owed], []);
      assert.ok(maximum <= workers);
    },
  );
  await fc.assert(property, { numRuns: 300 });
});

test('a key waits 5 ms after its first failure, twice as long after each further one, and 1000 s at most', async () => {
  const clock = new FakeClock();
  const queue = createQueue({ clock, bucket: { perSecond: 1e9, burst: 1e9 } });
  for (let failures = 0; failures < 80; failures += 1) {
    const began = clock.now();
    const expected = Math.min(5 * 2 ** failures, 1_000_000);
    queue.addRateLimited('a');
    clock.advance(expected - 1);
    assert.equal(queue.depth, 0, `early after failure ${failures}`);
    clock.advance(1);
    assert.equal(await queue.get(), 'a');
    assert.equal(clock.now() - began, expected);
    queue.finish('a');
  }
  queue.forget('a');
  queue.addRateLimited('a');
  clock.advance(5);
  assert.equal(queue.depth, 1);
});

test('over all keys, a burst passes at once and the rest at the rate of the bucket', () => {
  const property = fc.property(
    fc.integer({ min: 1, max: 50 }),
    fc.integer({ min: 1, max: 100 }),
    fc.integer({ min: 1, max: 120 }),
    (burst, perSecond, count) => {
      const clock = new FakeClock();
      const queue = createQueue({ clock, baseDelayMs: 0.001, bucket: { perSecond, burst } });
      for (let index = 0; index < count; index += 1) queue.addRateLimited(`key-${index}`);
      clock.advance(0.5);
      for (let second = 0; second <= 3; second += 1) {
        const least = Math.min(count, burst + Math.floor(second * perSecond));
        assert.ok(
          queue.depth >= least && queue.depth <= least + 1,
          `${queue.depth} after ${second} s, expected ${least}`,
        );
        clock.advance(1000);
      }
    },
  );
  fc.assert(property);
});

test('a wait that the server asked for is kept even if the backoff is shorter', () => {
  const clock = new FakeClock();
  const queue = createQueue({ clock });
  queue.addRateLimited('a', 3000);
  clock.advance(2999);
  assert.equal(queue.depth, 0);
  clock.advance(1);
  assert.equal(queue.depth, 1);
});

test('after shutDown accepts no keys, returns ready ones, and leaves no timer', async () => {
  const clock = new FakeClock();
  const queue = createQueue({ clock });
  queue.add('ready');
  queue.addAfter('later', 10);
  queue.shutDown();
  queue.add('new');
  queue.addAfter('new', 1);
  queue.addRateLimited('new');
  assert.equal(clock.pending, 0);
  assert.equal(await queue.get(), 'ready');
  assert.equal(await queue.get(), undefined);
});

test('drain drops what is ready, wakes waiting workers, and ends when the work in hand does', async () => {
  const queue = createQueue({ clock: new FakeClock() });
  queue.add('a');
  assert.equal(await queue.get(), 'a');
  const waiting = queue.get();
  queue.add('a');
  let drained = false;
  const draining = queue.drain().then(() => {
    drained = true;
  });
  assert.equal(await waiting, undefined);
  assert.equal(drained, false);
  queue.finish('a');
  await draining;
  assert.equal(await queue.get(), undefined);
  await queue.drain();
});
