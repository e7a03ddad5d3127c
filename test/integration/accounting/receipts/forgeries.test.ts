// `npm run verify` against an issuer that signs what its sealed ledger does not say.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, test } from 'vitest';
import { parseMoney } from '../../../../api/billing/ledger/money.ts';
import { recordUses } from '../../../../api/accounting/metering/usage-store.ts';
import { readPriceList } from '../../../../api/billing/prices.ts';
import { Receipts } from '../../../../api/accounting/receipts/receipts.ts';
import { addProofs, noteAuthors, postAppDay, readStatement } from '../../../../api/accounting/revenue/statement.ts';
import { baseUrl } from '../../../support/api/sample.ts';
import { migratedDatabase } from '../../../support/ledger/snapshot.ts';
import {
  chargeForgeries,
  forgeDocument,
  type Forgery,
  type GenuineRecords,
  type JsonObject,
  statementForgeries,
} from '../../../support/receipts/forgeries.ts';
import { advanceTo, keys, privateKey, receiptKey } from '../../../support/receipts/record.ts';
import { Signer } from '../../../../api/accounting/receipts/ledger-log.ts';
import { sampleToolApp, type ToolSample } from '../../../support/tools/sample.ts';

const root = join(import.meta.dirname, '../../../..');
const folder = mkdtempSync(join(tmpdir(), 'moorage-forgeries-'));
const today = new Date().toISOString().slice(0, 10);
const forgeries: readonly Forgery[] = [...chargeForgeries, ...statementForgeries];
let api: ToolSample;
let genuine: GenuineRecords;

beforeAll(async () => {
  api = await sampleToolApp({ environment: { DATABASE_URL: migratedDatabase, MOORAGE_RECEIPT_KEY: receiptKey } });
  // Without a key, the charges of a request are found by its id.
  const requestId = randomUUID();
  const draw = (address: string) =>
    api.request('/t/draw?bytes=3', { headers: { 'x-forwarded-for': address, 'x-request-id': requestId } });
  for (const address of ['203.0.113.7', '203.0.113.7', '203.0.113.7', '198.51.100.7'])
    assert.equal((await draw(address)).status, 200);
  const { database } = api.models.ledger.get();
  await noteAuthors(database, [
    {
      app: 'mine',
      author: 'git.test/octo',
      repository: 'git.test/octo/mine',
      sharePpm: 700_000,
      submitter: undefined,
      keys: [],
    },
  ]);
  await recordUses(
    database,
    ['a', 'b'].map((id) => ({
      ...{ id, kind: 'visit', app: 'mine', caller: id, class: 'use' },
      at: new Date(`${today}T00:00:00Z`),
    })),
  );
  await postAppDay(database, {
    app: 'mine',
    day: today,
    prices: readPriceList(undefined, 0),
    budget: parseMoney('1000'),
  });
  const tomorrow = new Date(Date.parse(today) + 86_400_000 + 3_600_000).toISOString();
  await advanceTo(database, tomorrow, { signer: new Signer(baseUrl, privateKey, keys) });
  const receipts = new Receipts({
    settings: { key: privateKey, keys },
    ledger: api.models.ledger,
    baseUrl,
  });
  const charges = async (address: string): Promise<JsonObject> =>
    (await (
      await api.request(`/api/charges?day=${today}&request=${requestId}`, { headers: { 'x-forwarded-for': address } })
    ).json()) as JsonObject;
  const statement = await readStatement(database, {
    author: 'git.test/octo',
    month: today.slice(0, 7),
    baseUrl,
    disputeDays: 14,
    buildEventsUrl: (line) => `${baseUrl}/${line}`,
  });
  genuine = {
    charges: await charges('203.0.113.7'),
    otherCharges: await charges('198.51.100.7'),
    statement: (await addProofs(statement, receipts)) as JsonObject,
    day: today,
  };
  const write = (name: string, content: unknown): void => {
    writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content));
  };
  write('charges.json', genuine.charges);
  write('statement.json', genuine.statement);
  write('days.json', await (await api.request('/api/ledger/days')).text());
  write('keys.json', keys);
  for (const [index, forgery] of forgeries.entries())
    write(`forged-${index}.json`, await forgeDocument(forgery, genuine));
});
afterAll(async () => {
  await api.stop();
  rmSync(folder, { recursive: true });
});

async function verify(...files: string[]): Promise<{ exitCode: number | undefined; output: string }> {
  const { exitCode, stdout, stderr } = await execa(
    'node',
    [join(root, 'api/accounting/receipts/verify/main.ts'), ...files, '--keys', 'keys.json', '--days', 'days.json'],
    { cwd: root, reject: false, env: { INIT_CWD: folder, NODE_NO_WARNINGS: '1' } },
  );
  return { exitCode, output: stdout + stderr };
}

test("accepts the issuer's genuine answers", async () => {
  const { exitCode, output } = await verify('charges.json', 'statement.json');
  assert.equal(exitCode, 0, output);
  assert.match(output, /charges\.json: right, .* 3 lines, 3 of them in sealed days/);
  assert.match(output, /statement\.json: right, .* 1 lines, 1 of them in sealed days/);
});

test('attack: rejects each document that an issuer forged and signed, and names the forged field', async () => {
  const { exitCode, output } = await verify(...forgeries.map((_, index) => `forged-${index}.json`));
  assert.equal(exitCode, 1);
  const lines = output.split('\n');
  const accepted = forgeries.flatMap(({ name, finding }, index) => {
    const own = lines.filter((line) => line.includes(`/forged-${index}.json`)).join('\n');
    return finding.test(own) && !own.includes('right, signed by') ? [] : [`${name}: ${own.replaceAll(folder, '')}`];
  });
  assert.ok(forgeries.length >= 10);
  assert.deepEqual(accepted, []);
});
