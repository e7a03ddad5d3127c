// Money with a real router and a real database: shown = booked = billed, quotas that hold under a crowd, a crash and a
// second replica.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { toPlatformAccount } from '../../../api/billing/ledger/accounts.ts';
import { type Database, openLedgerDatabase } from '../../../api/billing/database/database.ts';
import { Ledger } from '../../../api/billing/ledger/ledger.ts';
import {
  formatMoney,
  negate,
  parseMoney,
  fromPicoDollars,
  sumMoney,
  type Money,
} from '../../../api/billing/ledger/money.ts';
import { reconcile, type LookupResult } from '../../../api/billing/ledger/reconciler.ts';
import { parseExact } from '../../../api/models/router/openrouter.ts';
import { startLiteLlm, type LiteLlm } from '../../support/models/litellm.ts';
import {
  endApis,
  exactCost,
  exactMock,
  exactModelsFile,
  exactQuestion,
  runInParallel,
  createCatalogMocks,
  post,
  startApi,
} from '../../support/models/lab.ts';
import { sharePostgres, type SharedPostgres } from '../../support/ledger/postgres.ts';
import { chooseRepetitions } from '../../support/repetitions.ts';

/** Each of 40 callers calls a few times, and each kind of call comes up with each model. */
const mixedCalls = chooseRepetitions({ usual: 120, deep: 1_000 });
let postgres: SharedPostgres;
let router: LiteLlm;
const folder = mkdtempSync(join(tmpdir(), 'moorage-models-'));
beforeAll(async () => {
  [postgres, router] = await Promise.all([sharePostgres(), startLiteLlm([...createCatalogMocks(), exactMock])]);
});
afterAll(async () => {
  await endApis();
  await router.stop();
  await postgres.stop();
  rmSync(folder, { recursive: true });
});

/** The ledger of a database, read beside the API. */
async function openedLedger(url: string): Promise<{ database: Database; ledger: Ledger }> {
  const database = await openLedgerDatabase(url);
  return { database, ledger: new Ledger(database) };
}

const heldRows = {
  name: 'test-holds',
  text: 'select id::text, state, cost::text from ledger.hold',
  row: z.object({ id: z.string(), state: z.string(), cost: z.string().nullable() }),
};

const asked = z.looseObject({ model: z.string(), cost_usd: z.number(), cost_source: z.string() });
const compared = z.looseObject({
  results: z.array(z.looseObject({ cost_usd: z.number(), error: z.undefined().optional() })),
  summary: z.looseObject({
    total_cost_usd: z.number(),
    cost_spread: z.string().regex(/^\d+(\.\d)?x between cheapest and priciest$/),
  }),
});

/** The digits of every field of this name in a JSON text. */
function shown(text: string, field: string): Money[] {
  return [...text.matchAll(new RegExp(`"${field}":([^,}\\]]+)`, 'g'))].map(([, digits = '']) => parseMoney(digits));
}

test(`${mixedCalls} mixed calls: the amounts shown, recorded and billed by the router are equal to the last digit [spec service.metered]`, async () => {
  const databaseUrl = await postgres.createDatabase('mixed');
  const api = await startApi({
    databaseUrl,
    router,
    environment: { MOORAGE_FREE_QUOTA_USD: '100', MOORAGE_DAILY_CAP_USD: '100' },
  });
  const already = (await router.spent(0)).size;
  const free = ['alpha-v4-flash', 'beta-K3', 'beta-K3-codex', 'gamma5.2', 'delta-5.6-luna', 'epsilon-3.5-flash'];
  const costs: Money[] = [];
  await runInParallel(
    Array.from({ length: mixedCalls }, (_, index) => index),
    24,
    async (index) => {
      const caller = { 'x-forwarded-for': `198.51.${index % 40}.7` };
      const prompt = `Question ${index}: ${'why? '.repeat(index % 17)}`;
      const model = free[index % free.length];
      if (index % 10 < 6) {
        const text = await (await post(`${api.url}/api/ask`, { prompt, model, max_tokens: 100 }, caller)).text();
        asked.parse(JSON.parse(text));
        costs.push(...shown(text, 'cost_usd'));
      } else if (index % 10 === 6) {
        const text = await (
          await post(`${api.url}/api/ask`, { prompt, model, max_tokens: 100, stream: true }, caller)
        ).text();
        assert.match(text, /^event: delta\n/);
        const last = text.trimEnd().split('\n\n').at(-1) ?? '';
        assert.match(last, /^event: done\n/, text);
        asked.parse(JSON.parse(last.slice(last.indexOf('{'))));
        costs.push(...shown(last, 'cost_usd'));
      } else {
        const named = index % 10 === 7 ? {} : { models: free.slice(0, 2 + (index % 4)) };
        const text = await (await post(`${api.url}/api/compare`, { prompt, ...named, max_tokens: 100 }, caller)).text();
        const { results } = compared.parse(JSON.parse(text));
        assert.equal(results.length, named.models?.length ?? 3);
        const each = shown(text, 'cost_usd');
        assert.deepEqual(shown(text, 'total_cost_usd'), [sumMoney(each)]);
        costs.push(...each);
      }
    },
  );
  await api.stop();
  const { database, ledger } = await openedLedger(databaseUrl);
  const total = sumMoney(costs);
  const billed = await router.spent(already + costs.length);
  const holds = await database.query(heldRows, []);
  assert.equal(holds.length, costs.length);
  assert.equal(await ledger.balance(toPlatformAccount('litellm')), negate(total));
  assert.equal(
    sumMoney(holds.map(({ id }) => billed.get(id) ?? assert.fail(`the router has no record of ${id}`))),
    total,
  );
  for (const { id, state, cost } of holds)
    assert.deepEqual([state, cost === null ? null : parseMoney(cost)], ['settled', billed.get(id)]);
  assert.deepEqual([await ledger.counts(), await ledger.audit()], [{ open: 0, pending: 0, abandoned: 0 }, []]);
  await database.close();
});

/** So many callers at once. @returns how many were served, the others having been refused with 402 */
async function crowd(
  urls: readonly string[],
  addresses: (index: number) => string,
): Promise<{ served: number; refused: number; broken: number }> {
  const tally = { served: 0, refused: 0, broken: 0 };
  await Promise.all(
    Array.from({ length: 200 }, async (_, index) => {
      const answer = await post(`${urls[index % urls.length] ?? ''}/api/ask`, exactQuestion, {
        'x-forwarded-for': addresses(index),
      }).catch(() => undefined);
      const kind = ({ 200: 'served', 402: 'refused' } as const)[answer?.status ?? 0] ?? 'broken';
      tally[kind] += 1;
      if (kind === 'served') assert.deepEqual(shown(await (answer?.text() ?? ''), 'cost_usd'), [parseMoney(exactCost)]);
      else await answer?.body?.cancel();
    }),
  );
  return tally;
}

const roomForSeven = formatMoney(fromPicoDollars(parseMoney(exactCost) * 7n + 1n));
const oneCaller = (): string => '203.0.113.5';
const manyCallers = (index: number): string => `203.0.${index}.5`;

async function expectSpent(databaseUrl: string, calls: bigint): Promise<void> {
  const { database, ledger } = await openedLedger(databaseUrl);
  assert.equal(
    await ledger.balance(toPlatformAccount('litellm')),
    negate(fromPicoDollars(parseMoney(exactCost) * calls)),
  );
  assert.equal((await ledger.budget({ account: toPlatformAccount('litellm'), limit: null })).held, 0n);
  assert.deepEqual([await ledger.counts(), await ledger.audit()], [{ open: 0, pending: 0, abandoned: 0 }, []]);
  await database.close();
}

for (const { name, quota, cap, addresses, replicas } of [
  { name: 'the quota of one caller', quota: roomForSeven, cap: '1', addresses: oneCaller, replicas: 1 },
  { name: 'the daily cap of all callers', quota: '1', cap: roomForSeven, addresses: manyCallers, replicas: 1 },
  { name: 'one quota over two replicas', quota: roomForSeven, cap: '1', addresses: oneCaller, replicas: 2 },
]) {
  test(`200 parallel callers, with room for 7 in ${name}: exactly 7 are served`, async () => {
    const databaseUrl = await postgres.createDatabase(name.replaceAll(' ', '-'));
    const environment = {
      MOORAGE_FREE_QUOTA_USD: quota,
      MOORAGE_DAILY_CAP_USD: cap,
      MOORAGE_MODELS_FILE: exactModelsFile(folder),
    };
    const apis = await Promise.all(
      Array.from({ length: replicas }, () => startApi({ databaseUrl, router, environment })),
    );
    const tally = await crowd(
      apis.map(({ url }) => url),
      addresses,
    );
    await Promise.all(apis.map((api) => api.stop()));
    assert.deepEqual(tally, { served: 7, refused: 193, broken: 0 });
    await expectSpent(databaseUrl, 7n);
  });
}

test('kill -9 during 7 calls, and a restart: no caller overspends, and nothing stays reserved', async () => {
  const databaseUrl = await postgres.createDatabase('killed');
  const environment = {
    // One call before: until it has ended, the caller has no other one in flight.
    MOORAGE_FREE_QUOTA_USD: formatMoney(fromPicoDollars(parseMoney(roomForSeven) + parseMoney(exactCost))),
    MOORAGE_DAILY_CAP_USD: '1',
    MOORAGE_MODELS_FILE: exactModelsFile(folder),
  };
  const first = await startApi({ databaseUrl, router, environment });
  const { database, ledger } = await openedLedger(databaseUrl);
  assert.equal((await post(`${first.url}/api/ask`, exactQuestion, { 'x-forwarded-for': oneCaller() })).status, 200);
  const calling = crowd([first.url], oneCaller);
  while ((await ledger.counts()).open < 7) await sleep(20);
  await first.kill();
  const before = await calling;
  const second = await startApi({ databaseUrl, router, environment });
  // What the dead process held is held still.
  assert.deepEqual(await crowd([second.url], oneCaller), { served: 0, refused: 200, broken: 0 });

  const later = new Ledger(database, { clock: () => new Date(Date.now() + 600_000) });
  const left = await later.expire();
  assert.equal(left, 7 - before.served);
  // Nor is it free once the hold has expired: only what the router's records say decides.
  assert.deepEqual(await crowd([second.url], oneCaller), { served: 0, refused: 200, broken: 0 });
  await second.stop();
  const billed = await router.spent(0);
  const lookUp = ({ hold }: { hold: string }): Promise<LookupResult> => {
    const cost = billed.get(hold);
    return Promise.resolve(
      cost === undefined ? { outcome: 'not made' } : { outcome: 'found', cost, source: 'router_record' },
    );
  };
  const found = await reconcile(later, { lookUp, waitMs: 1_000, attempts: 3, leaseMs: 60_000 });
  assert.equal(found.settled + found.released, left);
  await database.close();

  const third = await startApi({ databaseUrl, router, environment });
  assert.deepEqual(await crowd([third.url], oneCaller), {
    served: found.released,
    refused: 200 - found.released,
    broken: 0,
  });
  await third.stop();
  await expectSpent(databaseUrl, 8n);
});

test('reads the spend records as exact decimals, not floats', () => {
  assert.deepEqual(parseExact('[{"response_cost": 6.300000000000001e-06}]'), [
    { response_cost: '6.300000000000001e-06' },
  ]);
});
