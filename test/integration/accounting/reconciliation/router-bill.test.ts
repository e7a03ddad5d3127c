// Calls through the API and a real LiteLLM: what the ledger owes is what LiteLLM's own rows bill, call by call; the
// program that an operator runs says so, and names what differs.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { reconciliation, type Reconciliation } from '../../../../api/accounting/reconciliation/result.ts';
import { sharePostgres, type SharedPostgres } from '../../../support/ledger/postgres.ts';
import { startBilledLiteLlm, type BilledLiteLlm } from '../../../support/models/billed-litellm.ts';
import { endApis, createCatalogMocks, post, startApi, type ApiProcess } from '../../../support/models/lab.ts';
import { startLiteLlm, type LiteLlm } from '../../../support/models/litellm.ts';

let postgres: SharedPostgres;
let router: LiteLlm;
let billed: BilledLiteLlm;
let api: ApiProcess;
let databaseUrl: string;

beforeAll(async () => {
  [postgres, router] = await Promise.all([sharePostgres(), startLiteLlm(createCatalogMocks())]);
  billed = await startBilledLiteLlm(router);
  databaseUrl = await postgres.createDatabase('bill');
  api = await startApi({ databaseUrl, router: { url: billed.url, key: router.key } });
});
afterAll(async () => {
  await endApis();
  await billed.close();
  await router.stop();
  await postgres.stop();
});

const spendRow = z.looseObject({ litellm_call_id: z.string() });
const failed = z.object({ code: z.number(), stdout: z.string() });

/** Runs the program of the operator. */
async function command(...args: string[]): Promise<{ code: number; text: string }> {
  const program = join(import.meta.dirname, '../../../../api/accounting/reconciliation/command.ts');
  const environment = {
    ...process.env,
    DATABASE_URL: databaseUrl,
    MOORAGE_ROUTER_KIND: 'litellm',
    MOORAGE_ROUTER_URL: billed.url,
    MOORAGE_ROUTER_KEY: router.key,
  };
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], { env: environment });
    return { code: 0, text: stdout };
  } catch (error) {
    const { code, stdout } = failed.parse(error);
    return { code, text: stdout };
  }
}

async function resultOf(): Promise<Reconciliation> {
  return reconciliation.parse(JSON.parse((await command('--json')).text));
}

test('responses and streams: each call of the ledger is in the bill, with its amount', async () => {
  for (let index = 0; index < 12; index += 1) {
    const body = { prompt: `Question ${index}`, max_tokens: 60, stream: index % 3 === 0 };
    const answer = await post(`${api.url}/api/ask`, body);
    assert.equal(answer.status, 200, await answer.clone().text());
    await answer.text();
  }
  await (await post(`${api.url}/api/compare`, { prompt: 'Why?', max_tokens: 60 })).text();
  await router.spent(15);
  const { code, text } = await command();
  assert.equal(code, 0, text);
  assert.match(text, /Owed to the router by the ledger = billed by the router: equal/);
  assert.match(text, /platform key +15, \$0\.\d+ {2}= {2}15, \$0\.\d+\n/);
  assert.match(text, /Nothing is unexplained\.\n$/);
});

test('names a call that LiteLLM billed higher, one that it lacks and one that was not made here', async () => {
  const [dearer, lacked] = router.spendLogs().map((row) => spendRow.parse(JSON.parse(row)));
  const strange = 'b5b5b5b5-0000-4000-8000-000000000001';
  const changed = (row: string, fields: object): string =>
    JSON.stringify({ ...spendRow.parse(JSON.parse(row)), ...fields });
  billed.change = ([first = '', , third = '', ...rest]) => [
    changed(first, { spend: 0.5 }),
    third,
    changed(third, { request_id: 'chatcmpl-strange', litellm_call_id: strange }),
    ...rest,
  ];
  // Rows come with a delay, so one that lacks is awaited at first.
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query("update ledger.hold set closed_at = closed_at - interval '11 minutes'");
  await client.end();
  const { code, text } = await command();
  assert.equal(code, 1, text);
  const { comparisons } = await resultOf();
  const found = comparisons.find(({ name }) => name === 'router')?.differences ?? [];
  assert.deepEqual(
    found.map(({ kind, subject }) => `${kind} ${subject}`).toSorted(),
    [
      `amount_differs ${dearer?.litellm_call_id}`,
      `not_in_bill ${lacked?.litellm_call_id}`,
      'not_in_ledger chatcmpl-strange',
    ].toSorted(),
  );
  const explained = await command('--explain', 'Changed by the test.');
  assert.equal(explained.code, 0, explained.text);
  assert.match(explained.text, /Explained by hand: Changed by the test\./);
  billed.change = (rows) => rows;
});

test('reports a LiteLLM without a database as unknown', async () => {
  const { url } = billed;
  Object.assign(billed, { url: router.url });
  const { comparisons, unexplained } = await resultOf();
  Object.assign(billed, { url });
  const bill = comparisons.find(({ name }) => name === 'router');
  assert.equal(bill?.outcome, 'not_known');
  assert.match(bill.reason ?? '', /status 401\. It keeps them only where it has a database/);
  assert.equal(unexplained.events, 0);
});

test("the endpoints show the program's results", async () => {
  const { days } = z
    .object({ days: z.array(z.looseObject({ day: z.string(), url: z.url() })) })
    .parse(await (await fetch(`${api.url}/api/reconciliation`)).json());
  // Today, and yesterday, which the API compared when it started.
  assert.equal(days.length, 2);
  const day = days[0]?.day ?? '';
  const text = await (await fetch(`${api.url}/api/reconciliation/${day}`)).text();
  assert.equal(reconciliation.parse(JSON.parse(text)).day, day);
  assert.equal((await fetch(`${api.url}/api/reconciliation/2020-01-01`)).status, 404);
  assert.equal((await fetch(`${api.url}/api/reconciliation/yesterday`)).status, 400);
});
