// The money of tools on a real PostgreSQL: tariffs booked exactly, failures booked not at all, model calls on top, no
// quota overspent.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { toCallerAccount, toToolAccount } from '../../../api/billing/ledger/accounts.ts';
import { formatMoney, parseMoney } from '../../../api/billing/ledger/money.ts';
import type { Ledger } from '../../../api/billing/ledger/ledger.ts';
import { openLedgerDatabase } from '../../../api/billing/database/database.ts';
import { readCatalog } from '../../../api/models/catalog.ts';
import { completion, reply, startScriptedRouter, type ScriptedRouter } from '../../support/models/scripted-router.ts';
import { artifactSuite } from '../../support/tools/artifacts-suite.ts';
import { sampleToolApp, type ToolSample } from '../../support/tools/sample.ts';
import { sharePostgres, type SharedPostgres } from '../../support/ledger/postgres.ts';

const [paid, late] = readCatalog().models.filter(({ tier }) => tier === 'free');
const answer = z.looseObject({
  cost_usd: z.number().optional(),
  cost_source: z.string().optional(),
  hint: z.string().optional(),
  quota: z.looseObject({}).optional(),
});

let postgres: SharedPostgres;
let router: ScriptedRouter;
let sample: ToolSample;
let ledger: Ledger;

beforeAll(async () => {
  postgres = await sharePostgres();
  router = await startScriptedRouter({
    [paid?.upstream ?? '']: reply(200, completion('{"prompt_tokens":3,"completion_tokens":1,"cost":0.000123}')),
    [late?.upstream ?? '']: reply(200, completion(undefined)),
    '/key': reply(200, '{"data":{}}'),
    '/generation': reply(404, '{}'),
  });
  const environment = {
    DATABASE_URL: await postgres.createDatabase('tools'),
    MOORAGE_ROUTER_URL: router.url,
    MOORAGE_ROUTER_KEY: 'sk-platform-1234',
    MOORAGE_FREE_QUOTA_USD: '0.01',
    MOORAGE_TOOL_CALLS: '200',
    MOORAGE_TOOL_CALLS_PER_CALLER: '64',
  };
  sample = await sampleToolApp({ environment });
  ({ ledger } = sample.models.ledger.get());
});

afterAll(async () => {
  await sample.stop();
  await router.close();
  await postgres.stop();
});

async function call(
  path: string,
  address = '192.0.2.1',
  headers: Record<string, string> = {},
): Promise<z.output<typeof answer> & { status: number }> {
  const response = await sample.request(path, { headers: { 'x-forwarded-for': address, ...headers } });
  return { ...answer.parse(await response.json()), status: response.status };
}

async function earned(tool: string): Promise<string> {
  return formatMoney(await ledger.balance(toToolAccount(tool)));
}

test('charges a tariff exactly, however many calls run in parallel [spec tools.cost]', async () => {
  const answers = await Promise.all(Array.from({ length: 40 }, () => call('/t/draw')));
  assert.ok(
    answers.every(
      ({ status, cost_usd, cost_source }) => status === 200 && cost_usd === 0.0001 && cost_source === 'tariff',
    ),
  );
  assert.equal(await earned('draw'), '-0.004');
});

test('charges and holds nothing for a call that fails or is rejected', async () => {
  const paths = ['problem', 'unprocessable', 'throw', 'bad-output', 'late', 'stubborn', 'nonsense'].map(
    (how) => `/t/fail?how=${how}`,
  );
  const answers = await Promise.all(
    [...paths, '/t/draw?bytes=-1', '/t/draw?format=none&raw=1'].map((path) => call(path)),
  );
  assert.ok(answers.every(({ status }) => status >= 400));
  assert.deepEqual([await earned('fail'), await earned('draw')], ['0', '-0.004']);
  assert.equal((await ledger.counts()).open, 0);
});

test('adds model calls to the tariff, to the digit', async () => {
  const { cost_usd, cost_source } = await call(`/t/asks?model=${paid?.id ?? ''}`);
  assert.deepEqual([cost_usd, cost_source], [0.000323, 'metered']);
  assert.equal(await earned('asks'), '-0.0002');
});

test('reports the model cost of a call that fails after calling a model, and charges no tariff', async () => {
  const { status, cost_usd, cost_source } = await call(`/t/asks?model=${paid?.id ?? ''}&then=fail`);
  assert.deepEqual([status, cost_usd, cost_source], [502, 0.000123, 'metered']);
  assert.equal(await earned('asks'), '-0.0002');
});

test('reports a cost that the router has not reported yet as pending, and leaves it out of the total', async () => {
  const { cost_usd, cost_source, hint } = await call(`/t/asks?model=${late?.id ?? ''}`);
  assert.deepEqual([cost_usd, cost_source], [0.0002, 'pending']);
  assert.match(hint ?? '', /not reported the cost of one model call yet; cost_usd does not include it/);
});

test('reports a low quota, and never overspends it with parallel calls [spec tools.low-quota limits.quota]', async () => {
  const answers = await Promise.all(Array.from({ length: 64 }, () => call('/t/draw', '198.51.100.7')));
  const more = await Promise.all(Array.from({ length: 60 }, () => call('/t/draw', '198.51.100.7')));
  const paidFor = [...answers, ...more].filter(({ status }) => status === 200);
  assert.equal(paidFor.length, 100);
  assert.ok([...answers, ...more].every(({ status }) => status === 200 || status === 402));
  assert.ok(paidFor.some(({ quota, hint }) => quota !== undefined && /daily quota left/.test(hint ?? '')));
});

test('applies no quota with the caller’s own key [spec tools.key]', async () => {
  const key = { authorization: 'Bearer sk-own-12345678' };
  assert.equal((await call('/t/draw', '198.51.100.7')).status, 402);
  assert.equal((await call('/t/draw', '198.51.100.7', key)).status, 200);
});

test("releases a dead process's holds for a tool", async () => {
  const debit = { account: toCallerAccount('dead'), limit: parseMoney('1') };
  await ledger.reserve({
    id: randomUUID(),
    amount: parseMoney('0.0001'),
    ttlMs: 1,
    debit,
    credit: { account: toToolAccount('draw'), limit: null },
  });
  await new Promise((resolve) => {
    setTimeout(resolve, 20);
  });
  await ledger.expire();
  await ledger.releaseToolHolds();
  const { used, held } = await ledger.budget(debit);
  assert.deepEqual([used, held], [0n, 0n]);
});

test('keeps the ledger correct to the last row', async () => {
  assert.deepEqual(await ledger.audit(), []);
});

artifactSuite('PostgreSQL', async () => openLedgerDatabase(await postgres.createDatabase('files')));

test('names the tool in the usage records of its tariff and its model calls', async () => {
  const uses = await sample.models.ledger.get().database.query(
    {
      name: 'uses',
      text: "select distinct tool, model is not null as asked from ledger.usage where kind = 'tool' order by tool, asked",
      row: z.object({ tool: z.string().nullable(), asked: z.boolean() }),
    },
    [],
  );
  assert.deepEqual(uses, [
    { tool: 'asks', asked: false },
    { tool: 'asks', asked: true },
    { tool: 'draw', asked: false },
  ]);
});
