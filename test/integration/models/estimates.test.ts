// Streams that callers abort on a LiteLLM without a database: what is shown, what is booked and what the router billed. Real
// PostgreSQL and LiteLLM; the model behind it is a slow stream on loopback.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { toPlatformAccount } from '../../../api/billing/ledger/accounts.ts';
import { Ledger } from '../../../api/billing/ledger/ledger.ts';
import { formatMoney, negate, parseMoney, sumMoney } from '../../../api/billing/ledger/money.ts';
import { openLedgerDatabase } from '../../../api/billing/database/database.ts';
import { RouterClient } from '../../../api/models/router/client.ts';
import { waitUntil } from '../../support/kubernetes/until.ts';
import { sharePostgres, type SharedPostgres } from '../../support/ledger/postgres.ts';
import { endApis, runInParallel, startApi } from '../../support/models/lab.ts';
import { startLiteLlm, type LiteLlm } from '../../support/models/litellm.ts';

const streams = 50;
let postgres: SharedPostgres;
let router: LiteLlm;
let slow: Server;
const folder = mkdtempSync(join(tmpdir(), 'moorage-estimates-'));

/** A provider that says a word every 50 milliseconds for as long as somebody listens. */
function slowProvider(): Server {
  return createServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const head = { id: 'chatcmpl-slow', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'slow' };
    const timer = setInterval(() => {
      const choices = [{ index: 0, delta: { role: 'assistant', content: 'word ' }, finish_reason: null }];
      response.write(`data: ${JSON.stringify({ ...head, choices })}\n\n`);
    }, 50);
    response.on('close', () => {
      clearInterval(timer);
    });
  });
}

beforeAll(async () => {
  slow = slowProvider();
  slow.listen(0, '127.0.0.1');
  await once(slow, 'listening');
  const address = slow.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const model = {
    name: 'slow',
    inPerToken: '0.000001',
    outPerToken: '0.00001',
    apiBase: `http://127.0.0.1:${port}/v1`,
  };
  [postgres, router] = await Promise.all([sharePostgres(), startLiteLlm([model])]);
  writeFileSync(
    join(folder, 'models.yaml'),
    JSON.stringify({
      models: [
        {
          id: model.name,
          label: 'Slow',
          maker: 'test',
          quality: 'light',
          tier: 'free',
          in_per_m: '1',
          out_per_m: '10',
          upstream: model.name,
        },
      ],
    }),
  );
});
afterAll(async () => {
  await endApis();
  await router.stop();
  await postgres.stop();
  slow.closeAllConnections();
  slow.close();
  rmSync(folder, { recursive: true });
});

const usage = z.looseObject({
  pending: z.int(),
  uses: z.array(z.looseObject({ state: z.string(), cost_usd: z.string().nullable(), cost_source: z.string() })),
});

const held = {
  name: 'test-held',
  text: 'select coalesce(sum(held), 0)::text as held, count(*)::int as budgets from ledger.budget',
  row: z.object({ held: z.string().transform(parseMoney), budgets: z.int() }),
};

test(`${streams} aborted streams on a LiteLLM without a database: shown and recorded at an estimate, never below the bill`, async () => {
  const databaseUrl = await postgres.createDatabase('estimates');
  const api = await startApi({
    databaseUrl,
    router,
    environment: {
      MOORAGE_MODELS_FILE: join(folder, 'models.yaml'),
      MOORAGE_FREE_QUOTA_USD: '1',
      MOORAGE_DAILY_CAP_USD: '5',
    },
  });
  const requests = await runInParallel(Array.from({ length: streams }), 10, async () => {
    const leaving = new AbortController();
    const response = await fetch(`${api.url}/api/ask`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ prompt: 'Hello', max_tokens: 200, stream: true }),
      signal: leaving.signal,
    });
    assert.equal(response.status, 200);
    const reader = response.body?.getReader() ?? assert.fail('no body');
    await reader.read();
    await sleep(200);
    leaving.abort();
    return response.headers.get('x-request-id') ?? assert.fail('no id');
  });
  const usesOf = async (id: string): Promise<z.output<typeof usage>> =>
    usage.parse(await (await fetch(`${api.url}/api/usage/${id}`)).json());
  const uses: z.output<typeof usage>['uses'] = [];
  for (const id of requests) {
    await waitUntil(async () => {
      await sleep(100);
      return (await usesOf(id)).pending === 0;
    });
    uses.push(...(await usesOf(id)).uses);
  }
  const billed = await router.spent(streams);
  await api.stop();

  assert.deepEqual(
    [...new Set(uses.map(({ state, cost_source }) => `${state} ${cost_source}`))],
    ['settled estimated'],
  );
  const shown = sumMoney(uses.map(({ cost_usd }) => parseMoney(cost_usd ?? '')));
  const database = await openLedgerDatabase(databaseUrl);
  const ledger = new Ledger(database);
  const bill = sumMoney([...billed.values()]);
  process.stdout.write(
    `shown ${formatMoney(shown)}, booked ${formatMoney(negate(await ledger.balance(toPlatformAccount('litellm'))))}, billed ${formatMoney(bill)}\n`,
  );
  assert.ok(bill > 0n && shown >= bill);
  assert.equal(await ledger.balance(toPlatformAccount('litellm')), negate(shown));
  // It counts against quota and daily limit, and nothing of it stays reserved.
  assert.equal((await ledger.budget({ account: toPlatformAccount('litellm'), limit: null })).used, shown);
  assert.deepEqual(
    (await database.query(held, [])).map((row) => row.held),
    [0n],
  );
  assert.deepEqual([await ledger.counts(), await ledger.audit()], [{ open: 0, pending: 0, abandoned: 0 }, []]);
  await database.close();
});

test('a LiteLLM without a database reports that it keeps no records', async () => {
  const client = new RouterClient({ kind: 'litellm', url: router.url, key: router.key }, { callMs: 1_000 });
  assert.match((await client.missingRecords()) ?? '', /has no database/);
  assert.equal((await client.lookUp({ hold: 'moorage', reference: null })).outcome, 'never');
  await client.close();
});
