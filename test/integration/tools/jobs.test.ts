// Jobs on a real PostgreSQL, with processes of their own: raced for, and killed in the middle.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { Ledger } from '../../../api/billing/ledger/ledger.ts';
import { formatMoney } from '../../../api/billing/ledger/money.ts';
import { openLedgerDatabase } from '../../../api/billing/database/database.ts';
import { toCallerAccount } from '../../../api/billing/ledger/accounts.ts';
import { createPayer, awaitEnd, jobSuite, shortJobs } from '../../support/tools/jobs-suite.ts';
import { sharePostgres, type SharedPostgres } from '../../support/ledger/postgres.ts';

let postgres: SharedPostgres;
let databases = 0;
const processes = new Set<ChildProcess>();
const folder = mkdtempSync(join(tmpdir(), 'moorage-jobs-'));

beforeAll(async () => {
  postgres = await sharePostgres();
});
afterAll(async () => {
  for (const child of processes) child.kill('SIGKILL');
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function databaseUrl(): Promise<string> {
  databases += 1;
  return postgres.createDatabase(`jobs_${databases}`);
}

/** Starts a process that works on jobs, and waits until it does. */
async function startWorker(url: string, log: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../support/tools/jobs-worker.ts'), url, log], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  processes.add(child);
  await once(child.stdout, 'data');
  return child;
}

async function kill(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const gone = once(child, 'exit');
  child.kill(signal);
  await gone;
  processes.delete(child);
}

describe('on PostgreSQL', () => {
  jobSuite(
    async () => openLedgerDatabase(await databaseUrl()),
    (database) => database.close(),
  );
});

test(
  'two processes share the jobs; when one is killed, the other takes over its jobs, with the cost of all attempts',
  { timeout: 120_000 },
  async () => {
    const url = await databaseUrl();
    const database = await openLedgerDatabase(url);
    const logs = ['first', 'second'].map((name) => {
      const file = join(folder, name);
      writeFileSync(file, '');
      return file;
    });
    const [first = assert.fail(), second = assert.fail()] = await Promise.all(logs.map((log) => startWorker(url, log)));
    const lines = (index: number): string[] =>
      readFileSync(logs[index] ?? '', 'utf8')
        .split('\n')
        .filter((line) => line !== '');
    // It only begins jobs and looks at them.
    const jobs = shortJobs(database, () => Promise.reject(new Error('not here')), {
      maximum: { anonymous: 100, key: 100, all: 500 },
      maxKept: 100,
    });
    const ids = await Promise.all(
      [...Array(24).keys()].map((q) =>
        jobs.begin({ tool: 'dig', input: { q }, payer: createPayer('me'), session: undefined }),
      ),
    );
    while (lines(0).length < 8 || lines(1).length < 8)
      await new Promise((resolve) => {
        setTimeout(resolve, 10);
      });
    await kill(first, 'SIGKILL');
    const views = await Promise.all(ids.map((id) => awaitEnd(jobs, id, 'me')));
    assert.deepEqual(
      views.map(({ state }) => state),
      ids.map(() => 'done'),
    );
    const again = views.filter(({ attempt }) => attempt > 1);
    assert.ok(again.length >= 1, 'the process was killed in the middle of at least one job');
    assert.ok(lines(0).length >= 8 && lines(1).length >= 8);

    // What the workers say that they have spent, is what the jobs say that they cost, is what the ledger says of the
    // caller.
    const spent = [...lines(0), ...lines(1)].map((line) => line.split(' '));
    for (const view of views) {
      const settled = spent.filter(([id]) => id === view.id);
      // A worker writes down a cost after it is booked: of one that is killed in between, the ledger knows more.
      assert.ok(view.cost >= BigInt(settled.reduce((sum, [, pico]) => sum + Number(pico), 0)), view.id);
      assert.ok(view.attempt > 1 || view.pending === 0);
    }
    const total = views.reduce((sum, { cost }) => sum + cost, 0n);
    assert.equal(formatMoney(await new Ledger(database).balance(toCallerAccount('me'))), formatMoney(total as never));
    assert.deepEqual(await new Ledger(database).audit(), []);
    await kill(second, 'SIGTERM');
    await database.close();
  },
);
