// The roles of the database on a real PostgreSQL: what the API may not do, what it may, the upgrade of a database that
// one role owned, and TLS.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { Client } from 'pg';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import {
  type Database,
  migrationsFolder,
  openDatabase,
  openLedgerDatabase,
} from '../../../api/billing/database/database.ts';
import { migrate, readMigrations } from '../../../api/billing/database/migrate.ts';
import { prepareDatabase } from '../../../api/billing/database/prepare.ts';
import { toKeyAccount, toRevenueAccount } from '../../../api/billing/ledger/accounts.ts';
import { Ledger } from '../../../api/billing/ledger/ledger.ts';
import { negate, parseMoney } from '../../../api/billing/ledger/money.ts';
import { openLedger } from '../../../api/billing/open-ledger.ts';
import { createLog } from '../../../lib/telemetry.ts';
import { findFreePort } from '../../support/free-port.ts';
import {
  toMigratorUrl,
  toRuntimeUrl,
  toSuperuserUrl,
  migratorRole,
  runtimeRole,
  makeCertificate,
  startPostgres,
  type Postgres,
} from '../../support/ledger/postgres.ts';
import { createHold } from '../../support/ledger/hold.ts';

const folder = mkdtempSync(join(tmpdir(), 'moorage-roles-'));
let postgres: Postgres;
let port: number;
let plain: { readonly server: Postgres; readonly port: number };
let url: string;
let client: Client;
beforeAll(async () => {
  const tls = await makeCertificate(folder, 'database authority');
  port = await findFreePort();
  postgres = await startPostgres({ durable: false, port, tls });
  const plainPort = await findFreePort();
  plain = { server: await startPostgres({ durable: false, port: plainPort }), port: plainPort };
  url = await postgres.createDatabase('roles');
  client = new Client({ connectionString: url });
  await client.connect();
}, 180_000);
afterAll(async () => {
  await client.end();
  await Promise.all([postgres.stop(), plain.server.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

/** What is booked, signed or published: rows are added, and never changed or removed. */
const lasting = [
  'author.action',
  'ledger.transaction',
  'ledger.entry',
  'receipts.link',
  'receipts.day',
  'revenue.line',
  'revenue.price_version',
];

const forbidden: readonly string[] = [
  ...lasting.flatMap((table) => [
    `alter table ${table} disable trigger all`,
    `drop table ${table} cascade`,
    `alter table ${table} owner to ${runtimeRole}`,
    `create trigger mine before insert on ${table} for each row execute function suppress_redundant_updates_trigger()`,
    `create rule mine as on update to ${table} do instead nothing`,
    `delete from ${table}`,
    `truncate ${table} cascade`,
  ]),
  'update ledger.transaction set at = now()',
  'update ledger.entry set amount = 0',
  'update receipts.link set leaf = null',
  "update receipts.day set document = '{}'",
  'update revenue.line set amount = 0',
  'update revenue.price_version set content = null',
  'insert into ledger.entry select * from ledger.entry on conflict (transaction_id, line) do update set amount = 0',
  'merge into ledger.entry e using ledger.account a on a.id = e.account_id when matched then delete',
  'select * from ledger.entry for update',
  'update ledger.overrun set lifted_at = now()',
  "update ledger.account set owner = 'somebody else'",
  'delete from ledger.account',
  'update moorage_migration set checksum = null',
  "insert into moorage_migration values ('999-mine.sql', '')",
  'set session_replication_role = replica',
  `set role ${migratorRole}`,
  `set session authorization ${migratorRole}`,
  `alter role ${runtimeRole} superuser`,
  'create role another',
  'create database another',
  'create schema mine',
  'create table public.mine ()',
  'create table ledger.mine ()',
  'create temporary table mine ()',
  'create extension hstore',
  "create function ledger.mine() returns void language sql as 'select'",
  "create or replace function ledger.refuse_change() returns trigger language plpgsql as 'begin return new; end'",
  'alter function ledger.make_days(integer, timestamptz) security invoker',
  'alter function ledger.check_balanced() owner to current_user',
  'drop function ledger.check_balanced() cascade',
  'drop schema ledger cascade',
  'alter table ledger.usage_default add column mine integer',
  "alter database roles set session_replication_role = 'replica'",
  'alter system set fsync = off',
  `grant ${migratorRole} to ${runtimeRole}`,
  'select rolpassword from pg_authid',
  "copy (select 1) to program 'true'",
  "select pg_read_file('/etc/passwd')",
];

const reported = z.object({ code: z.string() });
const code = (error: unknown): string | undefined => reported.safeParse(error).data?.code;

async function attempt(statement: string): Promise<string | undefined> {
  // These two run in no transaction.
  const inTransaction = !/^(create database|alter system)/.test(statement);
  if (inTransaction) await client.query('begin');
  try {
    return await client.query(statement).then(() => 'allowed', code);
  } finally {
    if (inTransaction) await client.query('rollback');
  }
}

test.for(forbidden)("the API's role cannot: %s", async (statement) => {
  assert.equal(await attempt(statement), '42501');
});

async function read<Row extends object>(on: string, sql: string, ...values: readonly unknown[]): Promise<Row[]> {
  const reader = new Client({ connectionString: on });
  await reader.connect();
  try {
    return (await reader.query<Row>(sql, [...values])).rows;
  } finally {
    await reader.end();
  }
}

test('every table with permanent rows can be read and inserted into, and those are exactly the tables with a trigger against changes', async () => {
  const guarded = await read<{ name: string }>(
    url,
    `select distinct tgrelid::regclass::text as name from pg_trigger t join pg_proc p on p.oid = tgfoid where proname = 'refuse_change' order by 1`,
  );
  assert.deepEqual(
    guarded.map(({ name }) => name),
    lasting.toSorted(),
  );
  const rights = await read<{ name: string; rights: string }>(
    url,
    `select c.oid::regclass::text as name, string_agg(privilege, ', ' order by privilege) as rights
      from pg_class c cross join unnest(array['select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger']) as privilege
      where c.oid = any ($1::text[]::regclass[])
        and (has_table_privilege($2, c.oid, privilege) or (privilege = 'update' and has_any_column_privilege($2, c.oid, privilege)))
      group by 1 order by 1`,
    lasting,
    runtimeRole,
  );
  assert.deepEqual(
    rights,
    lasting.toSorted().map((name) => ({ name, rights: 'insert, select' })),
  );
});

test("the API's role owns nothing, can create nothing, and has only granted rights to the schema", async () => {
  const owned = await read(
    url,
    `select oid from pg_class where relowner = $1::regrole union all select oid from pg_proc where proowner = $1::regrole
      union all select oid from pg_namespace where nspowner = $1::regrole union all select oid from pg_database where datdba = $1::regrole`,
    runtimeRole,
  );
  assert.deepEqual(owned, []);
  const creating = await read(
    url,
    `select nspname from pg_namespace where has_schema_privilege($1, oid, 'create')
      union all select datname from pg_database where datname = current_database() and has_database_privilege($1, oid, 'create, temporary')`,
    runtimeRole,
  );
  assert.deepEqual(creating, []);
  const ofPublic = await read(
    url,
    `select p.oid::regprocedure::text from pg_proc p join pg_namespace n on n.oid = pronamespace
      where nspowner = $1::regrole and exists (select from aclexplode(coalesce(proacl, acldefault('f', proowner))) where grantee = 0)`,
    migratorRole,
  );
  assert.deepEqual(ofPublic, []);
});

test("only functions that need their owner's rights have them, with a fixed search path", async () => {
  assert.deepEqual(
    await read(
      url,
      `select oid::regprocedure::text as name, proconfig as settings from pg_proc where prosecdef and pronamespace::regnamespace::text <> 'pg_catalog' order by 1`,
    ),
    ['ledger.make_days(integer,timestamp with time zone)', 'metering.drop_days(timestamp with time zone)'].map(
      (name) => ({
        name,
        settings: ['search_path=pg_catalog, pg_temp'],
      }),
    ),
  );
});

const usageDays = `select relname as name, relowner::regrole::text as owner from pg_inherits join pg_class c on c.oid = inhrelid
  where inhparent = 'ledger.usage'::regclass order by 1`;

test('the API can create and drop the daily tables, which belong to the migrator', async () => {
  const on = await postgres.createDatabase('days');
  const opened = await openLedgerDatabase(on);
  const ledger = new Ledger(opened, { clock: () => new Date('2031-05-04T10:00:00Z') });
  assert.ok((await ledger.makeDays()) > 0);
  const days = await read<{ name: string; owner: string }>(on, usageDays);
  assert.ok(days.some(({ name }) => name === 'usage_20310504'));
  assert.deepEqual([...new Set(days.map(({ owner }) => owner))], [migratorRole]);
  const [dropped] = await read<{ days: number }>(on, `select metering.drop_days('2031-05-04') as days`);
  assert.ok(dropped !== undefined && dropped.days > 0);
  assert.ok(!(await read<{ name: string }>(on, usageDays)).some(({ name }) => name < 'usage_20310504'));
  await opened.close();
});

const line = { account: toKeyAccount(randomUUID()), amount: parseMoney('1') };
const lines = [line, { account: toRevenueAccount('hello'), amount: negate(line.amount) }];

async function migrateTo(opened: Database, last: string): Promise<void> {
  await migrate(
    opened,
    readMigrations(migrationsFolder).filter(({ name }) => name <= last),
  );
}

test('several replicas in parallel upgrade a database that one superuser owned, while that role still writes', async () => {
  const adminUrl = await postgres.createEmptyDatabase('upgrade');
  const earlier = await openDatabase(adminUrl);
  await migrateTo(earlier, '049');
  const before = new Ledger(earlier);
  const held = createHold();
  await before.reserve(held);
  await before.post('before', 'test', lines);
  const preparation = { runtimeUrl: toRuntimeUrl(adminUrl), migratorUrl: toMigratorUrl(adminUrl), adminUrl };
  // While an old replica reads for long, nothing waits behind the change of owners.
  const audit = new Client({ connectionString: adminUrl });
  await audit.connect();
  await audit.query('begin; select count(*) from ledger.entry');
  await assert.rejects(prepareDatabase(preparation), /canceling statement due to lock timeout/);
  await audit.query('commit');
  await audit.end();
  const applied = await Promise.all([1, 2, 3].map(() => prepareDatabase(preparation)));
  assert.deepEqual(
    applied.flat().filter((name) => name === '050-runtime-role.sql'),
    ['050-runtime-role.sql'],
  );
  // An old replica.
  await before.post('meanwhile', 'test', lines);
  await before.makeDays();
  const opened = await openLedgerDatabase(toRuntimeUrl(adminUrl));
  const ledger = new Ledger(opened);
  assert.equal(
    (await ledger.settle({ hold: held.id, cost: parseMoney('0.001'), source: 'billed' })).outcome,
    'settled',
  );
  assert.equal(await ledger.post('before', 'test', lines), 'replayed');
  assert.equal(await ledger.balance(line.account), parseMoney('2'));
  assert.deepEqual(await ledger.audit(), []);
  const owners = await read<{ owner: string }>(
    adminUrl,
    `select distinct owner::regrole::text as owner from (
        select relowner as owner, relnamespace as namespace from pg_class union all select proowner, pronamespace from pg_proc
        union all select typowner, typnamespace from pg_type union all select nspowner, oid from pg_namespace where nspname <> 'public') o
      where namespace::regnamespace::text !~ '^(pg_|information_schema)'`,
  );
  assert.deepEqual(owners, [{ owner: migratorRole }]);
  const rights = `select c.oid::regclass::text as name, relacl::text as rights from pg_class c where relowner = '${migratorRole}'::regrole order by 1`;
  const first = await read(adminUrl, rights);
  assert.deepEqual(await prepareDatabase(preparation), []);
  assert.deepEqual(await read(adminUrl, rights), first);
  await Promise.all([earlier.close(), opened.close()]);
});

test('on an unprepared database, or one that lacks a migration, the API names the command to run', async () => {
  const adminUrl = await postgres.createEmptyDatabase('unprepared');
  const expected = /the schema is older than this version.*MOORAGE_MIGRATOR_DATABASE_URL/;
  await read(adminUrl, 'revoke create on schema public from public');
  await assert.rejects(openLedgerDatabase(toRuntimeUrl(adminUrl)), expected);
  const opened = await openDatabase(adminUrl);
  await migrateTo(opened, '040');
  await opened.close();
  await read(adminUrl, `grant select on moorage_migration to ${runtimeRole}`);
  await assert.rejects(openLedgerDatabase(toRuntimeUrl(adminUrl)), expected);
});

test('without a superuser, both roles must exist and have the rights for their parts', async () => {
  const adminUrl = await postgres.createEmptyDatabase('managed');
  const migratorUrl = toMigratorUrl(adminUrl);
  await read(adminUrl, `alter database managed owner to ${migratorRole}`);
  const as = (role: string): string => adminUrl.replace('postgres@', `${role}@`);
  await assert.rejects(
    prepareDatabase({ migratorUrl, runtimeUrl: as('nobody') }),
    /the role nobody of DATABASE_URL does not exist: create it/,
  );
  await assert.rejects(
    prepareDatabase({ migratorUrl, runtimeUrl: migratorUrl }),
    /both name the role moorage_migrator: give the API another one/,
  );
  await assert.rejects(
    prepareDatabase({ migratorUrl, runtimeUrl: adminUrl }),
    /the role postgres of DATABASE_URL is a superuser or a member of moorage_migrator/,
  );
  assert.ok((await prepareDatabase({ migratorUrl, runtimeUrl: toRuntimeUrl(adminUrl) })).length > 0);
  await read(adminUrl, 'create role other login');
  await assert.rejects(
    prepareDatabase({ migratorUrl: as('other'), runtimeUrl: toRuntimeUrl(adminUrl) }),
    /the role of MOORAGE_MIGRATOR_DATABASE_URL may not change the schema: use the role that owns it/,
  );
});

test("the init container's program waits for the database, and exits with the reason if a right is missing", async () => {
  const adminUrl = await plain.server.createEmptyDatabase('program');
  const addresses = { DATABASE_URL: toRuntimeUrl(adminUrl), MOORAGE_MIGRATOR_DATABASE_URL: toMigratorUrl(adminUrl) };
  const run = (environment: Readonly<Record<string, string>>) =>
    execa(process.execPath, ['api/billing/database/prepare.ts'], { env: environment, reject: false, all: true });
  await plain.server.end();
  const waiting = run({ ...addresses, MOORAGE_ADMIN_DATABASE_URL: adminUrl });
  const [first] = z.tuple([z.instanceof(Buffer)]).parse(await once(waiting.stdout, 'data'));
  assert.match(first.toString(), /waiting for the database/);
  await plain.server.start();
  const { exitCode, all } = await waiting;
  assert.equal(exitCode, 0, all);
  assert.match(all, /050-runtime-role\.sql.*the database is ready/);
  const unfit = await postgres.createEmptyDatabase('unfit');
  await read(unfit, 'revoke create on schema public from public');
  const failed = await run({ DATABASE_URL: toRuntimeUrl(unfit), MOORAGE_MIGRATOR_DATABASE_URL: toMigratorUrl(unfit) });
  assert.equal(failed.exitCode, 1);
  assert.match(failed.all, /may not change the schema: use the role that owns it/);
});

test('a single address for everything still works, and the API warns about it', async () => {
  const warnings: string[] = [];
  const log = createLog('test');
  const warn = (_fields: unknown, message: string): void => void warnings.push(message);
  Object.assign(log, { warn });
  const openAt = async (databaseUrl: string): Promise<void> => {
    const ledger = openLedger({ databaseUrl, registry: new Registry(), log });
    assert.equal((await ledger.opened)?.database.connections, 10);
    await ledger.close();
  };
  await openAt(url);
  assert.deepEqual(warnings, []);
  await openAt(await postgres.createEmptyDatabase('single'));
  assert.match(warnings.join('\n'), /^the database role of DATABASE_URL owns the ledger/);
});

const encrypted = {
  name: 'test-tls',
  text: 'select ssl from pg_stat_ssl where pid = pg_backend_pid()',
  row: z.object({ ssl: z.boolean() }),
};

async function isEncrypted(on: string): Promise<boolean | undefined> {
  const opened = await openDatabase(on);
  try {
    return (await opened.query(encrypted, []))[0]?.ssl;
  } finally {
    await opened.close();
  }
}

test('connections are encrypted where the server offers it, unless the address says otherwise', async () => {
  const to = (at: number, query = ''): string => `postgres://${runtimeRole}@127.0.0.1:${at}/postgres${query}`;
  const certified = `sslrootcert=${join(folder, 'ca.crt')}`;
  assert.equal(await isEncrypted(to(port)), true);
  assert.equal(await isEncrypted(to(port, '?sslmode=prefer')), true);
  assert.equal(await isEncrypted(to(port, `?sslmode=verify-full&${certified}`)), true);
  assert.equal(await isEncrypted(to(port, '?sslmode=disable')), false);
  await assert.rejects(isEncrypted(to(port, '?sslmode=verify-full')), /does not accept requests/);
  // A name that the certificate does not have.
  await assert.rejects(
    isEncrypted(to(port, `?sslmode=verify-full&${certified}`).replace('127.0.0.1', 'localhost')),
    /does not accept requests/,
  );
  await plain.server.createDatabase('roles');
  assert.equal(await isEncrypted(to(plain.port)), false);
  assert.equal(await isEncrypted(to(plain.port, '?application_name=a&sslmode=prefer')), false);
  await assert.rejects(isEncrypted(to(plain.port, `?sslmode=verify-full&${certified}`)), /does not accept requests/);
  // A socket of this machine has no TLS.
  assert.equal(await isEncrypted(toSuperuserUrl(url)), false);
});
