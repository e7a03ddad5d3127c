// Alerts fired on purpose: real processes are made to misbehave under a real Prometheus with the real rules, whose
// alerts do not wait. Here those of calls, money and uses; of builds and of processes beside it. How long each condition has
// to hold is tried by promtool (rules.test.ts).
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { afterAll, beforeAll, test } from 'vitest';
import { toSuperuserUrl } from '../../support/ledger/postgres.ts';
import { ask, buildApps, useUpQuota } from '../../support/monitoring/activity.ts';
import { startLab, unbilled, type Lab } from '../../support/monitoring/lab.ts';
import { watch, type Watch } from '../../support/monitoring/watch.ts';
import { waitFor } from '../../support/operator/world.ts';

let lab: Lab;
let watching: Watch;
const summaryOf: Watch['summaryOf'] = (...asked) => watching.summaryOf(...asked);
const ended: Watch['ended'] = (...asked) => watching.ended(...asked);

beforeAll(async () => {
  lab = await startLab({
    certificateDays: 1,
    api: {
      MOORAGE_LEDGER_AUDIT_SECONDS: '1',
      MOORAGE_FREE_QUOTA_USD: '1',
      // Room for all calls of these tests, however many fail or wait for their cost, before the one that costs $0.45.
      MOORAGE_DAILY_CAP_USD: '0.5',
      MOORAGE_METERING_GRACE_SECONDS: '5',
    },
  });
  watching = await watch(lab);
});
afterAll(async () => {
  await watching.stop();
  await lab.stop();
});

/** A client that changes what only an administrator can, with the triggers off. */
async function asAdministrator<T>(work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: toSuperuserUrl(lab.databaseUrl) });
  await client.connect();
  await client.query('set session_replication_role = replica');
  const done = await work(client);
  await client.end();
  return done;
}

test('fires nothing while everything works, except for a certificate that expires tomorrow', async () => {
  for (let asked = 0; asked < 5; asked += 1) assert.equal(await ask(lab, 'Hello'), 200);
  await buildApps(lab);
  assert.match(
    await summaryOf('MoorageCertificateEnding'),
    /^The certificate for apps\.localhost ends in (23h \d+m|1d 0h 0m)/,
  );
  await summaryOf('MoorageCertificateExpiring');
  // A build waits for a moment before it is started, on a loaded machine for longer than alerts wait here.
  await ended('MoorageBuildQueueStuck');
  assert.deepEqual(await watching.firing(), ['MoorageCertificateEnding', 'MoorageCertificateExpiring']);
});

test('fires for a disk that fills up', async () => {
  lab.faults.freeDisk = 0.05;
  assert.match(await summaryOf('MoorageNodeDiskFilling'), /^5% of the disk \((node|images)\) of node node-a are free$/);
  assert.equal(await summaryOf('MoorageVolumeFilling'), '5% of the volume data-moorage-postgres-0 are free');
  lab.faults.freeDisk = 0.6;
  await ended('MoorageNodeDiskFilling');
  await ended('MoorageVolumeFilling');
});

test('fires for a broken model router', async () => {
  lab.faults.isRouterBroken = true;
  await waitFor('failures enough', async () => {
    assert.equal(await ask(lab, 'Hello'), 502);
    const names = await watching.firing();
    return names.includes('MoorageRouterFailing') && names.includes('MoorageApiErrors');
  });
  assert.match(await summaryOf('MoorageRouterFailing'), /^\d+(\.\d+)?% of the model calls/);
  assert.match(await summaryOf('MoorageApiErrors'), /^\d+(\.\d+)?% of the requests to the API are answered/);
  lab.faults.isRouterBroken = false;
});

test('fires for a cost that the router has not reported for half an hour', async () => {
  assert.equal(await ask(lab, unbilled, '203.0.113.99'), 200);
  await asAdministrator((client) => client.query("update ledger.pending set since = since - interval '31 minutes'"));
  assert.match(await summaryOf('MoorageCostsPending'), /^The cost of a model call has been looked up for 31m /);
});

test('fires for a call that cost more than its reservation, until the operator lifts its stop', async () => {
  // This test must run while the daily limit has room: afterwards, calls are refused for that reason.
  lab.faults.isRouterDear = true;
  assert.equal(await ask(lab, 'Hello', '203.0.114.1'), 200);
  lab.faults.isRouterDear = false;
  assert.equal(await summaryOf('MoorageCallAboveHold'), '1 model calls of today cost more than was reserved for them');
  assert.equal(await ask(lab, 'Hello', '203.0.115.1'), 503);
  await asAdministrator((client) =>
    client.query('update ledger.overrun set lifted_at = now() where lifted_at is null'),
  );
  await ended('MoorageCallAboveHold');
});

test('fires for a daily limit that is almost used up', async () => {
  await useUpQuota(lab);
  assert.match(
    await summaryOf('MoorageDailyLimitNear'),
    /^\d+(\.\d+)?% of the daily limit of the platform key is used$/,
  );
});

test('fires for a missing use of a reconciled day, and for a day that was not reconciled', async () => {
  // A call of today, as if it had been yesterday, whose use somebody removed.
  await asAdministrator((client) =>
    client.query(`with gone as (delete from ledger.usage where id = (select id::text from ledger.hold where state = 'settled' limit 1) returning id)
      update ledger.hold h set created_at = created_at - interval '1 day' from gone where h.id::text = gone.id`),
  );
  const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
  const { code, text } = await lab.run('api/accounting/reconciliation/command.ts', '--day', yesterday);
  assert.equal(code, 1, text);
  assert.match(text, /settled, and its use is not there/);
  assert.match(
    await summaryOf('MoorageReconciliationDifference'),
    /^Records of the last days differ, unexplained: (ledger|router) by /,
  );
  await lab.run('api/accounting/reconciliation/command.ts', '--day', yesterday, '--explain', 'Moved by this test.');
  await ended('MoorageReconciliationDifference');
  await asAdministrator((client) => client.query('update reconciliation.day set day = day - 2'));
  assert.match(await summaryOf('MoorageReconciliationOverdue'), /^The last day that was reconciled ended 2d /);
});

test('fires for requests that a gateway counted and did not send, and for changed uses', async () => {
  await lab.sendAccessLog([1, 2, 3, 7]);
  assert.match(
    await summaryOf('MoorageMeterGap'),
    /^3(\.\d+)? requests that a gateway counted were lost within an hour$/,
  );
  await asAdministrator((client) => client.query('update metering.instance set events = events - 2'));
  assert.equal(
    await summaryOf('MoorageMeterDifference'),
    'Requests counted by gateways and recorded uses differ by 2, unexplained',
  );
});

test('fires for a changed row of the ledger', async () => {
  const { rowCount } = await asAdministrator((client) =>
    client.query(
      'update ledger.entry set amount = amount + 1 where (transaction_id, line) = (select transaction_id, line from ledger.entry limit 1)',
    ),
  );
  assert.equal(rowCount, 1);
  assert.match(await summaryOf('MoorageLedgerImbalance'), /^The audit of the ledger found [1-9]\d* faults$/);
  assert.deepEqual(
    (await watching.prometheus.query('moorage_ledger_imbalance_usd')).map(({ value }) => value),
    [1],
  );
});

test('fires for a changed signed record', async () => {
  const client = new Client({ connectionString: toSuperuserUrl(lab.databaseUrl) });
  await client.connect();
  try {
    const changed = async (sql: string): Promise<number> => (await client.query(sql)).rowCount ?? 0;
    await waitFor('a checkpoint', async () => (await changed('delete from receipts.checkpoint')) > 0);
    const lines = ['1', '-1'].map((amount) => ({ kind: 'test', owner: amount, daily: false, amount }));
    await client.query("select ledger.post('firing', 'test', $1)", [JSON.stringify(lines)]);
    // As long ago as it would be ten minutes from now.
    await waitFor(
      'what waits',
      async () => (await changed("update receipts.waiting set since = since - interval '1 hour'")) > 0,
    );
    assert.equal(await summaryOf('MoorageReceiptsBehind'), 'The signed record of the ledger is not continued');
  } finally {
    await client.end();
  }
});

test('fires for a missing database, operator or API', async () => {
  await lab.postgres.stop();
  assert.equal(await summaryOf('MoorageDatabaseUnreachable'), 'A replica of the API does not reach the database');
  await lab.operator.kill();
  assert.equal(await summaryOf('MoorageOperatorWithoutLeader'), 'No replica of the operator leads');
  await lab.api.stop();
  assert.equal(await summaryOf('MoorageApiAbsent'), 'No replica of the API can be scraped');
});
