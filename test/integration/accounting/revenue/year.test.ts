// A simulated year, or in `npm test` the days of it at which something begins or ends: the ledger balances, and statements are what SQL that knows nothing of them computes from the uses.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { type Database, openDatabase, openLedgerDatabase } from '../../../../api/billing/database/database.ts';
import { toAuthorAccount } from '../../../../api/billing/ledger/accounts.ts';
import { Ledger } from '../../../../api/billing/ledger/ledger.ts';
import { formatMoney, negate, parseMoney, type Money } from '../../../../api/billing/ledger/money.ts';
import { findLineFaults } from '../../../../api/accounting/receipts/verify/verify-queries.ts';
import { postShares, readStatement } from '../../../../api/accounting/revenue/statement.ts';
import { toSuperuserUrl, sharePostgres, type SharedPostgres } from '../../../support/ledger/postgres.ts';
import { chooseRepetitions, isDeep } from '../../../support/repetitions.ts';
import { authors, edgesOfTheYear, everyDay, runYear, random, rules, type Year } from '../../../support/revenue/year.ts';

let postgres: SharedPostgres;
let database: Database;
let superuser: Database;
let year: Year;
const days = isDeep ? everyDay : edgesOfTheYear;
const ended = new Date('2028-03-01T00:00:00Z');

beforeAll(async () => {
  postgres = await sharePostgres();
  const url = await postgres.createDatabase('year');
  superuser = await openDatabase(toSuperuserUrl(url));
  // A zone with daylight saving: days and months are UTC, whatever the server thinks.
  await superuser.query(
    {
      name: 'zone',
      text: `do $$ begin execute format('alter database %I set timezone to %L', current_database(), 'Europe/Berlin'); end $$`,
      row: z.unknown(),
    },
    [],
  );
  database = await openLedgerDatabase(url);
  year = await runYear(database, { days });
});
afterAll(async () => {
  await Promise.all([database.close(), superuser.close()]);
  await postgres.stop();
});

/** What each day of each app accrued, from the uses alone: written anew, by other means than the product's SQL. */
const expected = {
  name: 'year-expected',
  text: `with price (first, last, visit, cap, free_calls) as (values
      (date '2027-01-01', date '2027-03-27', 0.0001, 3, false), ('2027-03-28', '2027-07-31', 0.000123456789, 50, false),
      ('2027-08-01', '2027-10-31', 0.0002, 50, true), ('2027-11-01', '2099-12-31', 0, 0, true)),
    owner (app, first, last, author, part) as (values
      ('one', date '2027-01-01', date '2027-05-30', 'git.test/ada', 0.7), ('one', '2027-05-31', '2099-12-31', 'git.test/ada', 0.65),
      ('two', '2027-01-01', '2027-07-19', 'git.test/ada', 0.5), ('two', '2027-07-20', '2099-12-31', 'git.test/cyd', 0.7),
      ('three', '2027-02-10', '2099-12-31', 'git.test/bob', 0.333333)),
    daily as (
      select o.author, u.app, date(timezone('UTC', u.at)) as day, 'use' as item, u.caller, p.visit * least(count(*), p.cap) as worth, o.part
        from ledger.usage u join price p on date(timezone('UTC', u.at)) between p.first and p.last
        join owner o on o.app = u.app and date(timezone('UTC', u.at)) between o.first and o.last
        where u.kind = 'visit' and u.class = 'use' group by 1, 2, 3, 5, p.visit, p.cap, o.part
      union all
      select o.author, u.app, date(timezone('UTC', u.at)), 'call', u.id, u.cost, o.part
        from ledger.usage u join price p on date(timezone('UTC', u.at)) between p.first and p.last
        join owner o on o.app = u.app and date(timezone('UTC', u.at)) between o.first and o.last
        where u.kind = 'app' and u.caller not like 'submitter-of-%'
          and (p.free_calls or exists (select from ledger.entry e join ledger.account a on a.id = e.account_id join ledger.transaction t on t.id = e.transaction_id
            where t.reference = 'settle:' || u.id and a.kind = 'key'))
    )
    select author, app, day::text, item, trunc(sum(worth) * part, 12)::text as amount from daily group by author, app, day, item, part having trunc(sum(worth) * part, 12) <> 0
    order by 1, 2, 3, 4`,
  row: z.object({ author: z.string(), app: z.string(), day: z.string(), item: z.string(), amount: z.string() }),
};
const posted = {
  name: 'year-posted',
  text: `select author, app, day::text, item, sum(amount)::text as amount from revenue.line where kind in ('share', 'late') group by 1, 2, 3, 4
    having sum(amount) <> 0 order by 1, 2, 3, 4`,
  row: expected.row,
};

test('every planned event happened', () => {
  for (const [what, count] of Object.entries(year)) assert.ok(count > 3, `${what}: ${String(count)}`);
});

test('each day of each app accrues the value of its uses', async () => {
  const rows = await database.query(expected, []);
  assert.ok(rows.length > 2.7 * days.length, `${rows.length} rows`);
  const normal = (list: typeof rows): string[] =>
    list.map(
      ({ author, app, day, item, amount }) => `${author} ${app} ${day} ${item} ${formatMoney(parseMoney(amount))}`,
    );
  assert.deepEqual(normal(await database.query(posted, [])), normal(rows));
});

test('statements add up from month to month, and to the balance in the ledger', async () => {
  const ledger = new Ledger(database);
  const months = Array.from({ length: 14 }, (_, index) => new Date(Date.UTC(2027, index, 1)).toISOString().slice(0, 7));
  const states = new Set<string>();
  for (const author of authors) {
    let closing = '0';
    for (const month of months) {
      const statement = await readStatement(database, {
        author,
        month,
        baseUrl: 'https://moorage.test',
        disputeDays: 14,
        buildEventsUrl: (line) => line,
        now: ended,
      });
      states.add(statement.state);
      assert.equal(statement.opening_usd, closing, `${author} ${month}`);
      closing = statement.closing_usd;
      for (const { kind, day } of statement.lines) {
        if (kind === 'share') assert.equal(day?.slice(0, 7), month, 'a share stands in the month of its day');
        if (kind === 'late') assert.ok((day ?? '').slice(0, 7) <= month);
      }
    }
    const owed = negate(await ledger.balance(toAuthorAccount(author)));
    assert.equal(closing, formatMoney(owed), author);
    assert.ok(owed > (0n as Money), author);
  }
  assert.ok(states.has('final'));
});

test('the ledger balances, and each line is unchanged', async () => {
  const { faults, imbalance } = await new Ledger(database).auditAtLength();
  assert.deepEqual(faults, []);
  assert.equal(imbalance, 0n);
  assert.deepEqual(await database.transaction((transaction) => findLineFaults(transaction)), []);
});

test('final statements have not changed since', async () => {
  const rows = await database.query(
    {
      name: 'year-after-final',
      text: `select l.id::text from revenue.line l join revenue.statement s using (author, month) where s.state = 'final' and l.posted_at > s.changed_at`,
      row: z.object({ id: z.string() }),
    },
    [],
  );
  assert.deepEqual(rows, []);
});

test('attack: detects a changed or deleted line in the database', async () => {
  const chance = random(7);
  const attacks = chooseRepetitions({ usual: 50, deep: 200 });
  const changes = [
    'amount = amount + 0.000000000001',
    "month = month + interval '1 month'",
    "author = 'git.test/eve'",
    'uses = uses + 1',
    'gross = gross + 1',
    "day = day + 1, reason = 'x'",
    "reason = 'moved'",
    "events = repeat('0', 64)",
    "kind = 'correction', app = 'other'",
    "key = key || 'x'",
  ];
  class Undo extends Error {}
  for (let attack = 0; attack < attacks; attack += 1) {
    const change = changes[Math.floor(chance() * (changes.length + 1))];
    const at = `(select id from revenue.line order by md5(id || '${attack}') limit 1)`;
    const sql =
      change === undefined
        ? `delete from revenue.line where id = ${at}`
        : `update revenue.line set ${change} where id = ${at}`;
    const attacked = superuser.transaction(async (transaction) => {
      await transaction.script(`set local session_replication_role = replica; ${sql}`);
      assert.equal((await findLineFaults(transaction)).length, 1, sql);
      throw new Undo();
    });
    await assert.rejects(attacked, Undo);
  }
  assert.deepEqual(await database.transaction((transaction) => findLineFaults(transaction)), []);
});

test('running everything again posts nothing', async () => {
  await database.query(
    { name: 'year-again', text: "update revenue.progress set received_until = '-infinity'", row: z.unknown() },
    [],
  );
  assert.equal(await postShares(database, rules, ended), 0);
});
