// The ledger's promises on a real PostgreSQL: the suite, processes that race, processes and servers that die.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { toCallerAccount, toPlatformAccount } from '../../../api/billing/ledger/accounts.ts';
import { Ledger } from '../../../api/billing/ledger/ledger.ts';
import { negate, parseMoney, fromPicoDollars, sumMoney, type Money } from '../../../api/billing/ledger/money.ts';
import { openDatabase, openLedgerDatabase } from '../../../api/billing/database/database.ts';
import { reconcile, type LookupResult } from '../../../api/billing/ledger/reconciler.ts';
import { createHold } from '../../support/ledger/hold.ts';
import { ledgerSuite } from '../../support/ledger/suite.ts';
import { chooseRepetitions } from '../../support/repetitions.ts';
import { toMigratorUrl, startPostgres, type Postgres } from '../../support/ledger/postgres.ts';

let postgres: Postgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

let suiteUrl: string;
ledgerSuite(
  'PostgreSQL',
  async () => openLedgerDatabase((suiteUrl = await postgres.createDatabase('suite'))),
  {
    sequential: chooseRepetitions({ usual: 60, deep: 2_000 }),
    concurrent: chooseRepetitions({ usual: 40, deep: 1_000 }),
  },
  () => openDatabase(toMigratorUrl(suiteUrl)),
);

const otherBackends = {
  name: 'test-backends',
  text: "select pid from pg_stat_activity where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()",
  row: z.object({ pid: z.number() }),
};

const waitingBackends = {
  name: 'test-waiting',
  text: "select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
  row: z.object({ pid: z.number() }),
};

const settledBy = z.array(z.object({ answers: z.array(z.looseObject({ outcome: z.string() })) }));

interface Worker {
  readonly process: ChildProcess;
  readonly lines: AsyncIterator<string>;
}

function startWorker(...argv: string[]): Worker {
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../support/ledger/worker.ts'), ...argv], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  return { process: child, lines: createInterface({ input: child.stdout })[Symbol.asyncIterator]() };
}

async function line(worker: Worker): Promise<string> {
  const next = await worker.lines.next();
  assert.ok(next.done !== true, 'the worker ended early');
  return next.value;
}

test('two processes that start in parallel on an empty database create one schema, and hold exactly 7 between them', async () => {
  const url = await postgres.createEmptyDatabase('race');
  const caller = randomUUID();
  const workers = [startWorker('race', url, caller), startWorker('race', url, caller)];
  for (const worker of workers) assert.equal(await line(worker), 'up');
  for (const worker of workers) worker.process.stdin?.write('go\n');
  const held = await Promise.all(workers.map(async (worker) => Number((await line(worker)).replace('held ', ''))));
  assert.equal(
    held.reduce((total, count) => total + count, 0),
    7,
    held.join(' + '),
  );
  const database = await openLedgerDatabase(url);
  const ledger = new Ledger(database);
  assert.equal((await ledger.budget({ account: toCallerAccount(caller), limit: null })).held, parseMoney('0.07'));
  assert.deepEqual(await ledger.audit(), []);
  await database.close();
});

function readRouterLog(file: string): Map<string, Money> {
  const lines = readFileSync(file, 'utf8')
    .split('\n')
    .filter((text) => text !== '');
  return new Map(lines.map((text) => text.split(' ')).map(([id = '', cost = '']) => [id, parseMoney(cost)]));
}

test('after kill -9 in the middle nothing stays reserved, and the ledger matches the router to the last digit', async () => {
  const url = await postgres.createDatabase('killed');
  const folder = mkdtempSync(join(tmpdir(), 'moorage-ledger-'));
  const routerLog = join(folder, 'router.log');
  const caller = randomUUID();
  for (let round = 0; round < 3; round += 1) {
    const worker = startWorker('spend', url, caller, routerLog);
    assert.equal(await line(worker), 'up');
    worker.process.stdin?.write('go\n');
    for (let seen = 0; seen < 40; seen += 1) await line(worker);
    const ended = once(worker.process, 'exit');
    worker.process.kill('SIGKILL');
    await ended;
  }
  const database = await openLedgerDatabase(url);
  // A statement that the dead process had sent may still be running.
  while ((await database.query(otherBackends, [])).length > 0) await sleep(10);
  const later = new Ledger(database, { clock: () => new Date(Date.now() + 10_000) });
  const counts = await later.counts();
  assert.ok(counts.open > 0, 'the worker was killed with calls in progress');
  assert.equal(await later.expire(), counts.open);
  const billed = readRouterLog(routerLog);
  const lookUp = ({ hold }: { hold: string }): Promise<LookupResult> => {
    const cost = billed.get(hold);
    return Promise.resolve(
      cost === undefined ? { outcome: 'not made' } : { outcome: 'found', cost, source: 'router_record' },
    );
  };
  for (let left = counts.open; left > 0;) {
    const { settled, released } = await reconcile(later, { lookUp, waitMs: 1_000, attempts: 3, leaseMs: 60_000 });
    assert.ok(settled + released > 0);
    left -= settled + released;
  }
  const total = sumMoney(billed.values());
  assert.equal(await later.balance(toCallerAccount(caller)), total);
  assert.equal(await later.balance(toPlatformAccount('router')), negate(total));
  assert.equal((await later.budget({ account: toCallerAccount(caller), limit: null })).held, 0n);
  assert.deepEqual(await later.counts(), { open: 0, pending: 0, abandoned: 0 });
  assert.deepEqual(await later.audit(), []);
  await database.close();
  rmSync(folder, { recursive: true });
});

test("PGlite's data in a folder survives a restart", async () => {
  const folder = mkdtempSync(join(tmpdir(), 'moorage-ledger-'));
  const hold = createHold();
  for (const outcome of ['reserved', 'replayed']) {
    const database = await openLedgerDatabase(`pglite:${join(folder, 'data')}`);
    assert.equal((await new Ledger(database).reserve(hold)).outcome, outcome);
    await database.close();
  }
  rmSync(folder, { recursive: true });
});

test('a database crash in the middle loses nothing that was confirmed, and a retry records once', async () => {
  const database = await openLedgerDatabase(await postgres.createDatabase('crashed'));
  const ledger = new Ledger(database);
  const [caller, router] = [randomUUID(), randomUUID()];
  const calls = Array.from({ length: 400 }, (_, index) => ({
    hold: createHold({ caller, router, quota: parseMoney('100'), cap: null }),
    cost: fromPicoDollars(BigInt(index + 1)),
  }));
  const settled = new Set<string>();
  let left = [...calls];
  const work = async (): Promise<void> => {
    for (let call = left.pop(); call !== undefined; call = left.pop()) {
      await ledger.reserve(call.hold);
      const answer = await ledger.settle({ hold: call.hold.id, cost: call.cost, source: 'billed' });
      if (answer.outcome !== 'unknown') settled.add(call.hold.id);
      if (settled.size === 100) await postgres.crash();
    }
  };
  await Promise.allSettled(Array.from({ length: 16 }, work));
  assert.ok(settled.size >= 100);
  for (const { hold, cost } of calls.filter(({ hold }) => settled.has(hold.id))) {
    assert.deepEqual(
      await ledger.settle({ hold: hold.id, cost, source: 'billed' }).then((answer) => answer.outcome),
      'replayed',
    );
  }
  left = calls.filter(({ hold }) => !settled.has(hold.id));
  await work();
  assert.equal(await ledger.balance(toCallerAccount(caller)), sumMoney(calls.map(({ cost }) => cost)));
  assert.equal((await ledger.budget(calls[0]?.hold.debit ?? assert.fail())).held, 0n);
  assert.deepEqual(await ledger.audit(), []);
  await database.close();
});

test('settles a reservation once if it commits while two settlements wait for others', async () => {
  const url = await postgres.createDatabase('late');
  const database = await openLedgerDatabase(url);
  const ledger = new Ledger(database);
  const [blocker, ...settlers] = await Promise.all(
    [1, 2, 3].map(async () => {
      const client = new Client({ connectionString: url });
      await client.connect();
      return client;
    }),
  );
  assert.ok(blocker);
  for (let round = 0; round < 20; round += 1) {
    const late = createHold();
    const waited = [createHold(), createHold()];
    for (const hold of waited) await ledger.reserve(hold);
    await blocker.query('begin');
    await blocker.query(
      'select 1 from ledger.budget where account_id in (select debit from ledger.hold where id = any ($1)) for update',
      [waited.map(({ id }) => id)],
    );
    const settlements = settlers.map((settler, index) =>
      settler.query('select ledger.settle($1) as answers', [
        JSON.stringify([waited[index]?.id, late.id].map((hold) => ({ hold, cost: '0.001', source: 'billed' }))),
      ]),
    );
    const answered = Promise.all(settlements);
    while ((await database.query(waitingBackends, [])).length < 2) await sleep(2);
    await ledger.reserve(late);
    await blocker.query('commit');
    const outcomes = (await answered).map(({ rows }) => settledBy.parse(rows)[0]?.answers[1]?.outcome);
    const settled = outcomes.filter((outcome) => outcome === 'settled').length;
    assert.ok(settled <= 1, outcomes.join(', '));
    // Whoever was too early to know it settles it when sent again.
    const again = await ledger.settle({ hold: late.id, cost: parseMoney('0.001'), source: 'billed' });
    assert.equal(again.outcome, settled === 1 ? 'replayed' : 'settled');
  }
  assert.deepEqual(await ledger.audit(), []);
  await Promise.all([blocker, ...settlers].map((client) => client.end()));
  await database.close();
});

test('a running total started while a call without a limit is reserved or settled misses nothing of it', async () => {
  const url = await postgres.createDatabase('begun');
  const database = await openLedgerDatabase(url);
  const ledger = new Ledger(database);
  const other = new Client({ connectionString: url });
  await other.connect();
  for (const verb of ['reserve', 'settle'] as const) {
    const hold = createHold({ quota: null });
    const { kind, owner } = hold.debit.account;
    // The account is there, and has no running total yet.
    await ledger.post(randomUUID(), 'test', [
      { account: hold.debit.account, amount: parseMoney('0.5') },
      { account: toCallerAccount(randomUUID()), amount: negate(parseMoney('0.5')) },
    ]);
    if (verb === 'settle') await ledger.reserve(hold);
    await other.query('begin');
    await other.query(
      'select ledger.open_budgets(array(select id from ledger.account where kind = $1 and owner = $2))',
      [kind, owner],
    );
    const done =
      verb === 'reserve'
        ? ledger.reserve(hold)
        : ledger.settle({ hold: hold.id, cost: parseMoney('0.001'), source: 'billed' });
    while ((await database.query(waitingBackends, [])).length < 1) await sleep(2);
    await other.query('commit');
    await done;
    assert.deepEqual(await ledger.audit(), [], verb);
  }
  await other.end();
  await database.close();
});
