// Many mixed calls by every way in, with API processes killed (-9) in between: what was shown, what the
// ledger has and what the router billed are one sum, to the last digit.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { type Database, openLedgerDatabase } from '../../../api/billing/database/database.ts';
import { toPlatformAccount } from '../../../api/billing/ledger/accounts.ts';
import { Ledger } from '../../../api/billing/ledger/ledger.ts';
import { formatMoney, negate, parseMoney, sumMoney, type Money } from '../../../api/billing/ledger/money.ts';
import { reconcile, type LookupResult } from '../../../api/billing/ledger/reconciler.ts';
import { sharePostgres, type SharedPostgres } from '../../support/ledger/postgres.ts';
import { startBilledLiteLlm, type BilledLiteLlm } from '../../support/models/billed-litellm.ts';
import { endApis, runInParallel, createCatalogMocks, startApi, type ApiProcess } from '../../support/models/lab.ts';
import { startLiteLlm, type LiteLlm } from '../../support/models/litellm.ts';
import { waysIn, type ShownCost } from '../../support/models/ways-in.ts';
import { chooseRepetitions } from '../../support/repetitions.ts';

const calls = chooseRepetitions({ usual: 144, deep: 10_000 });
/** A process is killed after each so many calls. */
const kills = chooseRepetitions({ usual: 2, deep: 7 });
const between = Math.ceil(calls / kills);
const replicas = 2;
/** Calls at once. */
const width = 16;

let postgres: SharedPostgres;
let router: LiteLlm;
let billed: BilledLiteLlm;
const folder = mkdtempSync(join(tmpdir(), 'moorage-mixed-'));
beforeAll(async () => {
  [postgres, router] = await Promise.all([sharePostgres(), startLiteLlm(createCatalogMocks())]);
  billed = await startBilledLiteLlm(router);
});
afterAll(async () => {
  await endApis();
  await billed.close();
  await router.stop();
  await postgres.stop();
  rmSync(folder, { recursive: true });
});

const ledgerRows = {
  name: 'test-ledger-rows',
  text: `select h.id::text, h.state, h.cost::text, u.request, u.cost::text as used from ledger.hold h left join ledger.usage u on u.id = h.id::text`,
  row: z.object({
    id: z.string(),
    state: z.string(),
    cost: z.string().nullable(),
    request: z.string().nullable(),
    used: z.string().nullable(),
  }),
};
type LedgerRow = z.output<typeof ledgerRows.row>;

/** API processes over one database, each with a journal that outlives it. */
async function startReplicas(databaseUrl: string): Promise<{ urlOf(index: number): string; kill(): Promise<void> }> {
  const start = (index: number): Promise<ApiProcess> =>
    startApi({
      databaseUrl,
      router: { url: billed.url, key: router.key },
      environment: {
        MOORAGE_FREE_QUOTA_USD: '1000',
        MOORAGE_DAILY_CAP_USD: '1000',
        MOORAGE_CALL_SECONDS: '20',
        MOORAGE_JOURNAL: join(folder, `journal-${index}`),
      },
    });
  const apis = new Map(
    await Promise.all(Array.from({ length: replicas }, async (_none, index) => [index, await start(index)] as const)),
  );
  let killed = 0;
  return {
    // As a Service does, only those that are ready get calls.
    urlOf: (index) => [...apis.values()][index % apis.size]?.url ?? '',
    async kill() {
      const index = killed % replicas;
      killed += 1;
      const api = apis.get(index);
      apis.delete(index);
      await api?.kill();
      apis.set(index, await start(index));
    },
  };
}

test(`${calls} mixed calls, with a process killed after each ${between}: shown = ledger = router's bill`, async (context) => {
  const databaseUrl = await postgres.createDatabase('mixed');
  const apis = await startReplicas(databaseUrl);
  const shown: ShownCost[] = [];
  let lost = 0;
  let done = 0;
  let killing = Promise.resolve();
  await runInParallel(
    Array.from({ length: calls }, (_none, index) => index),
    width,
    async (index) => {
      const way = waysIn[index % waysIn.length] ?? assert.fail('no way in');
      try {
        shown.push(await way.call(apis.urlOf(index), index));
      } catch (error) {
        // The connection to a process that was killed.
        if (!(error instanceof TypeError)) throw error;
        lost += 1;
      }
      done += 1;
      if (done % between === 0) killing = killing.then(() => apis.kill());
    },
  );
  await killing;
  const database = await openLedgerDatabase(databaseUrl);
  const spent = await settled(database);
  await endApis();
  const rows = await database.query(ledgerRows, []);
  const ledger = new Ledger(database);
  assert.deepEqual([await ledger.counts(), await ledger.audit()], [{ open: 0, pending: 0, abandoned: 0 }, []]);
  for (const row of rows) expectBilled(row, spent);
  const total = sumMoney([...spent.values()]);
  assert.equal(await ledger.balance(toPlatformAccount('litellm')), negate(total), 'ledger and the bill of the router');
  for (const answer of shown) expectShown(answer, rows);
  const counts = Object.groupBy(shown, ({ way }) => way);
  await context.annotate(
    `${shown.length} answers (${Object.entries(counts)
      .map(([way, { length } = []]) => `${way} ${length}`)
      .join(', ')}), ${lost} lost with their process, ${rows.length} calls of models, ${formatMoney(total)} USD`,
  );
  assert.ok(lost <= kills * width, `${lost} calls lost`);
  assert.equal(Object.keys(counts).length, waysIn.length);
  await database.close();
}, 1_800_000);

/** Waits until processes that live have closed what they can, and closes the rest by the router's records. */
async function settled(database: Database): Promise<ReadonlyMap<string, Money>> {
  const later = new Ledger(database, { clock: () => new Date(Date.now() + 3_600_000) });
  // What is still on its way is settled by whoever has it.
  for (let quiet = 0, before = -1; quiet < 10; quiet += 1) {
    const { open } = await later.counts();
    if (open !== before) quiet = 0;
    before = open;
    await sleep(200);
  }
  await later.expire();
  const spent = await router.spent(0);
  const lookUp = ({ hold }: { hold: string }): Promise<LookupResult> => {
    const cost = spent.get(hold);
    return Promise.resolve(
      cost === undefined ? { outcome: 'not made' } : { outcome: 'found', cost, source: 'router_record' },
    );
  };
  while ((await later.counts()).pending > 0)
    await reconcile(later, { lookUp, waitMs: 1_000, attempts: 3, leaseMs: 1_000 });
  return spent;
}

function expectBilled({ id, state, cost, used }: LedgerRow, spent: ReadonlyMap<string, Money>): void {
  const bill = spent.get(id);
  assert.equal(state, bill === undefined ? 'voided' : 'settled', id);
  if (bill === undefined) return;
  assert.deepEqual(
    [cost, used].map((text) => (text === null ? null : parseMoney(text))),
    [bill, bill],
    id,
  );
}

/** An answer whose cost was not yet known shows none; what it shows is what its calls of models cost. */
function expectShown({ way, request, cost, pending }: ShownCost, rows: readonly LedgerRow[]): void {
  const own = rows.filter((row) => row.request === request);
  assert.notEqual(own.length, 0, `${way}: ${request} is not in the ledger`);
  if (pending) return;
  assert.equal(cost, sumMoney(own.map(({ used }) => parseMoney(used ?? '0'))), `${way}: ${request}`);
}
