// An API that is killed (-9) after its caller has the answer and before the ledger has the cost: the next one settles what was answered.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { openLedgerDatabase } from '../../../api/billing/database/database.ts';
import { toPlatformAccount } from '../../../api/billing/ledger/accounts.ts';
import { Ledger } from '../../../api/billing/ledger/ledger.ts';
import { negate, parseMoney, sumMoney } from '../../../api/billing/ledger/money.ts';
import { sharePostgres, type SharedPostgres } from '../../support/ledger/postgres.ts';
import { endApis, post, startApi } from '../../support/models/lab.ts';
import { completion, startScriptedRouter, type ScriptedRouter } from '../../support/models/scripted-router.ts';

let postgres: SharedPostgres;
let router: ScriptedRouter;
/** Answers of the router wait for this. */
let answering = Promise.withResolvers<undefined>();
const folder = mkdtempSync(join(tmpdir(), 'moorage-journal-'));

beforeAll(async () => {
  postgres = await sharePostgres();
  router = await startScriptedRouter({
    '/models': (response) => {
      response.writeHead(200).end('{"data":[]}');
    },
    'alpha/alpha-v4-flash': async (response) => {
      await answering.promise;
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(completion('{"prompt_tokens":3,"completion_tokens":1,"cost":0.000000000123}'));
    },
  });
}, 120_000);
afterAll(async () => {
  await endApis();
  await router.close();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
});

const answer = z.looseObject({ cost_usd: z.literal(0.000000000123), cost_source: z.literal('billed') });

test('the next process settles an answered call, even if the router has no record of it under our id', async () => {
  const databaseUrl = await postgres.createDatabase('journal');
  const start = () =>
    startApi({
      databaseUrl,
      router: { url: router.url, key: 'sk-platform-12345678' },
      environment: { MOORAGE_ROUTER_KIND: 'openrouter', MOORAGE_JOURNAL: join(folder, 'journal') },
    });
  const first = await start();
  const ledger = new Ledger(await openLedgerDatabase(databaseUrl));
  const call = (index: number): Promise<Response> =>
    post(`${first.url}/api/ask`, { prompt: 'Hello', max_tokens: 10 }, { 'x-forwarded-for': `192.0.${index}.1` });
  // Until one call of the model is settled, no other is made at the same time.
  const proof = call(99);
  answering.resolve(undefined);
  assert.equal((await proof).status, 200);
  while ((await ledger.counts()).open > 0) await sleep(20);
  answering = Promise.withResolvers();
  const calls = Array.from({ length: 12 }, (_, index) => call(index));
  while ((await ledger.counts()).open < calls.length) await sleep(20);
  // From here on nothing can be settled.
  const locks = new Client({ connectionString: databaseUrl });
  await locks.connect();
  await locks.query('begin');
  await locks.query('select from ledger.hold for update');
  answering.resolve(undefined);
  for (const response of await Promise.all(calls)) {
    assert.equal(response.status, 200);
    answer.parse(await response.json());
  }
  await first.kill();
  assert.ok(readdirSync(join(folder, 'journal')).length > 0);
  await locks.query('rollback');
  await locks.end();
  answering = Promise.withResolvers();
  const second = await start();
  for (let tries = 0; (await ledger.counts()).open > 0 && tries < 200; tries += 1) await sleep(50);
  const cost = sumMoney([proof, ...calls].map(() => parseMoney('0.000000000123')));
  assert.equal(await ledger.balance(toPlatformAccount('openrouter')), negate(cost));
  assert.deepEqual([await ledger.counts(), await ledger.audit()], [{ open: 0, pending: 0, abandoned: 0 }, []]);
  await second.stop();
  assert.deepEqual(readdirSync(join(folder, 'journal')), []);
});
