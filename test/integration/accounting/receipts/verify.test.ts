// `npm run verify` as a person runs it: a document from its issuer, the same offline, and the database behind both.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, test } from 'vitest';
import { findFreePort } from '../../../support/free-port.ts';
import { openDatabase } from '../../../../api/billing/database/database.ts';
import { toSuperuserUrl, sharePostgres, type SharedPostgres } from '../../../support/ledger/postgres.ts';
import { advanceTo, keys, privateKey, receiptKey } from '../../../support/receipts/record.ts';
import { Signer } from '../../../../api/accounting/receipts/ledger-log.ts';
import { sampleToolApp, type ToolSample } from '../../../support/tools/sample.ts';

const root = join(import.meta.dirname, '../../../..');
const today = new Date().toISOString().slice(0, 10);
const folder = mkdtempSync(join(tmpdir(), 'moorage-verify-'));
const file = (name: string): string => join(folder, name);
let postgres: SharedPostgres;
let databaseUrl = '';
let api: ToolSample;
let server: Server;
let issuer = '';

beforeAll(async () => {
  postgres = await sharePostgres();
  databaseUrl = await postgres.createDatabase('verify');
  const port = await findFreePort();
  issuer = `http://127.0.0.1:${port}`;
  api = await sampleToolApp({
    baseUrl: issuer,
    environment: { DATABASE_URL: databaseUrl, MOORAGE_RECEIPT_KEY: receiptKey },
  });
  server = createServer(api.app).listen(port, '127.0.0.1');
  await once(server, 'listening');
  const id = crypto.randomUUID();
  for (let n = 0; n < 3; n += 1) await fetch(`${issuer}/t/draw?bytes=3`, { headers: { 'x-request-id': id } });
  const tomorrow = new Date(Date.parse(today) + 86_400_000 + 3_600_000).toISOString();
  await advanceTo(api.models.ledger.get().database, tomorrow, { signer: new Signer(issuer, privateKey, keys) });
  const pages = {
    charges: `/api/charges?day=${today}&request=${id}`,
    days: '/api/ledger/days',
    keys: '/.well-known/jwks.json',
    checkpoint: '/api/ledger/checkpoint',
  };
  for (const [name, path] of Object.entries(pages))
    writeFileSync(file(`${name}.json`), await (await fetch(`${issuer}${path}`)).text());
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await api.stop();
  await postgres.stop();
  rmSync(folder, { recursive: true });
});

async function verify(...args: string[]): Promise<{ exitCode: number | undefined; lines: string }> {
  const { exitCode, stdout, stderr } = await execa(
    'node',
    [join(root, 'api/accounting/receipts/verify/main.ts'), ...args],
    {
      cwd: root,
      reject: false,
      env: { INIT_CWD: folder, NODE_NO_WARNINGS: '1' },
    },
  );
  return { exitCode, lines: stdout + stderr };
}
const changed = (name: string, change: (text: string) => string): string => {
  writeFileSync(file(`changed-${name}`), change(readFileSync(file(name), 'utf8')));
  return `changed-${name}`;
};
const offline = ['--keys', 'keys.json', '--days', 'days.json'];

test('verifies a document against its issuer', async () => {
  const { exitCode, lines } = await verify('charges.json', 'checkpoint.json', 'days.json');
  assert.equal(exitCode, 0, lines);
  assert.match(lines, new RegExp(`charges.json: right, signed by ${issuer}, 3 lines, 3 of them in sealed days`));
  const other = await verify('charges.json', '--issuer', 'https://moorage.example.org/');
  assert.equal(other.exitCode, 1);
  assert.match(other.lines, /its issuer is http:\/\/127.0.0.1:\d+, not https:\/\/moorage.example.org/);
});

test('verifies a document offline, and finds what was changed in it', async () => {
  assert.deepEqual(await verify('charges.json', ...offline).then(({ exitCode }) => exitCode), 0);
  const edited = changed('charges.json', (text) => text.replace('"0.0001"', '"0.0002"'));
  const { exitCode, lines } = await verify(edited, ...offline);
  assert.equal(exitCode, 1);
  assert.match(lines, /something in it was changed/);
  const days = changed('days.json', (text) => text.replace(/"count":\d+/, '"count":99'));
  const forged = await verify('charges.json', '--keys', 'keys.json', '--days', days);
  assert.equal(forged.exitCode, 1);
  assert.match(forged.lines, /not to be trusted/);
});

test('verifies the database, against what was kept of it', async () => {
  const right = await verify('--database', databaseUrl, '--keys', 'keys.json', 'days.json', 'checkpoint.json');
  // The day that is sealed here has not ended yet by the clock, so nothing is overdue.
  assert.equal(right.exitCode, 0, right.lines);
  assert.match(right.lines, /^right: 3 transactions in 1 sealed days and those since/m);
  const tampering = await openDatabase(toSuperuserUrl(databaseUrl));
  await tampering.transaction((transaction) =>
    transaction.script(
      "set local session_replication_role = replica; update ledger.entry set amount = amount * 2 where transaction_id = (select min(id) from ledger.transaction); update ledger.usage set model = 'other' where id = (select id::text from ledger.hold where transaction_id = 2)",
    ),
  );
  await tampering.close();
  const { exitCode, lines } = await verify('--database', databaseUrl, '--issuer', issuer);
  assert.equal(exitCode, 1);
  assert.match(lines, /transaction 1: entry 1 has amount 0.0002, it was 0.0001/);
  assert.match(lines, /transaction 2: the model of its call is "other", it was null/);
  assert.match(lines, /^audit: /m);
  assert.match(lines, /^\d+ findings in 3 transactions/m);
});

test('requests no keys from the database if there are none, and prints the usage for a wrong command line', async () => {
  const without = await verify('--database', databaseUrl);
  assert.equal(without.exitCode, 1);
  assert.match(without.lines, /set --keys, --issuer or MOORAGE_RECEIPT_KEY/);
  assert.equal((await verify()).exitCode, 64);
});
