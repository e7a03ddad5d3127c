// `npm run bench:receipts`: how fast transactions are linked, sealed and verified on a real PostgreSQL, and what of it settling feels.
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { toCallerAccount, toPlatformAccount } from '../../api/billing/ledger/accounts.ts';
import { Ledger } from '../../api/billing/ledger/ledger.ts';
import { parseMoney } from '../../api/billing/ledger/money.ts';
import { openLedgerDatabase } from '../../api/billing/database/database.ts';
import { advanceLog } from '../../api/accounting/receipts/ledger-log.ts';
import { readProofs } from '../../api/accounting/receipts/receipts.ts';
import { verifyRecord } from '../../api/accounting/receipts/verify/record.ts';
import { readCommandLine, parseWholeNumber } from '../../lib/command-line.ts';
import { toSuperuserUrl, startPostgres } from '../support/ledger/postgres.ts';
import { advanceTo, keys, signer } from '../support/receipts/record.ts';

const usage = `usage: npm run bench:receipts -- [--seconds N] [--backlog N]

  --seconds N   how long calls are settled in each setting, twice in turn (default 15)
  --backlog N   transactions that wait to be linked at once (default 100000)`;
const text = { type: 'string' } as const;
const { seconds, backlog } = readCommandLine({ usage, options: { seconds: text, backlog: text } }, ({ values }) => ({
  seconds: parseWholeNumber('--seconds', values.seconds ?? '15', { maximum: 600 }),
  backlog: parseWholeNumber('--backlog', values.backlog ?? '100000', { maximum: 10_000_000 }),
}));

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const postgres = await startPostgres();
const url = await postgres.createDatabase('receipts');
const database = await openLedgerDatabase(url);
const ledger = new Ledger(database);
const cost = parseMoney('0.0001');

/** Calls of 64 callers at once, each reserved and settled. @returns calls a second, and milliseconds of a settlement */
async function spend(): Promise<{ rate: number; p50: number; p95: number }> {
  const until = performance.now() + seconds * 1000;
  const times: number[] = [];
  const caller = async (): Promise<void> => {
    const debit = { account: toCallerAccount(randomUUID()), limit: parseMoney('1000') };
    const credit = { account: toPlatformAccount('router'), limit: null };
    while (performance.now() < until) {
      const id = randomUUID();
      await ledger.reserve({ id, amount: cost, ttlMs: 60_000, debit, credit });
      const start = performance.now();
      await ledger.settle({ hold: id, cost, source: 'billed', usage: { kind: 'ask', caller: debit.account.owner } });
      times.push(performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: 64 }, caller));
  times.sort((a, b) => a - b);
  const at = (share: number): number => times[Math.floor(times.length * share)] ?? NaN;
  return { rate: times.length / seconds, p50: at(0.5), p95: at(0.95) };
}

const settings = {
  'no receipts': 'alter table ledger.transaction disable trigger transaction_waits',
  'waiting only': 'alter table ledger.transaction enable trigger transaction_waits',
  'with linking': 'alter table ledger.transaction enable trigger transaction_waits',
};

print(
  `${'setting'.padEnd(14)} ${'calls/s'.padStart(8)} ${'settle p50 ms'.padStart(14)} ${'p95 ms'.padStart(8)} ${'linked/s'.padStart(9)}`,
);
for (const round of [1, 2])
  for (const [setting, sql] of Object.entries(settings)) {
    await script(sql);
    await advanceTo(database, new Date().toISOString());
    const ending = new AbortController();
    const linking = setting === 'with linking' ? link(ending.signal) : Promise.resolve(0);
    const { rate, p50, p95 } = await spend();
    ending.abort();
    const linked = (await linking) / seconds;
    print(
      `${`${setting} ${round}`.padEnd(14)} ${rate.toFixed(0).padStart(8)} ${p50.toFixed(1).padStart(14)} ${p95.toFixed(1).padStart(8)} ${linked.toFixed(0).padStart(9)}`,
    );
  }
// What was made without the trigger was never linked, and would be found below.
await script(
  'insert into receipts.waiting (transaction_id) select id from ledger.transaction t where not exists (select from receipts.link where transaction_id = t.id) on conflict do nothing',
);
await advanceTo(database, new Date().toISOString());

await script(`
  with t as (insert into ledger.transaction (reference, kind, at)
    select 'bench ' || n, 'settle', timestamptz '2020-01-01 12:00Z' from generate_series(1, ${backlog}) n returning id)
  insert into ledger.entry (transaction_id, line, account_id, amount)
    select t.id, line, (select min(id) + line from ledger.account), case line when 1 then 0.0001 else -0.0001 end from t, generate_series(1, 2) line`);
const size = await one("select pg_total_relation_size('receipts.link')");
const linkTime = await timed(async () => {
  while ((await advanceLog({ database, signer })).more);
});
print(
  `a backlog of ${backlog}: ${(backlog / linkTime).toFixed(0)} links/s, ${((await one("select pg_total_relation_size('receipts.link')")) - size) / backlog} bytes a link with indexes`,
);
const id = String(await one('select max(id) from ledger.transaction'));
print(
  `a proof in a day of ${backlog}: ${((await timed(async () => readProofs(database, [id]))) * 1000).toFixed(1)} ms`,
);
const links = await one('select count(*)::int from receipts.link');
let findings = 0;
const verifyTime = await timed(async () => {
  findings = (await verifyRecord({ database, keys })).findings.length;
});
print(`verify --database: ${(links / verifyTime).toFixed(0)} transactions/s, ${findings} findings`);
await database.close();
await postgres.stop();

/** Without the pauses of the task: as much as there is to link. */
async function link(signal: AbortSignal): Promise<number> {
  let linked = 0;
  while (!signal.aborted) {
    linked += (await advanceLog({ database, signer })).linked;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  return linked;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

async function script(sql: string): Promise<void> {
  const client = new Client({ connectionString: toSuperuserUrl(url) });
  await client.connect();
  await client.query(sql);
  await client.end();
}

async function one(sql: string): Promise<number> {
  const client = new Client({ connectionString: toSuperuserUrl(url) });
  await client.connect();
  const { rows } = await client.query<Record<string, string | number>>(sql);
  await client.end();
  return Number(Object.values(rows[0] ?? {})[0]);
}
