// Alerts fired on purpose: real processes are made to misbehave under a real Prometheus with the real rules, whose
// alerts do not wait, and most are ended by what their runbooks say. Alerts of builds, of workers and of the API fire at the
// same time, each by a fault that does not concern the others. How long each condition has to hold is tried by promtool
// (rules.test.ts); that a component is absent, in firing-absence.test.ts.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { z } from 'zod';
import { openDatabase } from '../../../api/billing/database/database.ts';
import type { Job } from '../../../controller/objects/kinds.ts';
import { annotations, labels } from '../../../crds/names.ts';
import { toMigratorUrl, toSuperuserUrl } from '../../support/ledger/postgres.ts';
import { ask, buildApps, faultBuild, reject, rejectStarted, useUpQuota } from '../../support/monitoring/activity.ts';
import { startLab, unbilled, type Lab } from '../../support/monitoring/lab.ts';
import { watch, type Watch } from '../../support/monitoring/watch.ts';
import {
  findNoRoom,
  createRunningContainer,
  awaitStartedJob,
  startJob,
  writePod,
} from '../../support/operator/stand-in.ts';
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
      MOORAGE_METERING_GRACE_SECONDS: '2',
    },
  });
  watching = await watch(lab);
});
afterAll(async () => {
  await watching.stop();
  await lab.stop();
});

/** The value of a series that exists once. */
async function readValue(expr: string): Promise<number | undefined> {
  return (await watching.prometheus.query(expr))[0]?.value;
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

/** Groups run side by side, and the tests of a group one after another. */
const group = { concurrent: true };
const inTurn = { concurrent: false };

describe('builds and the operator', group, () => {
  test('fires for an operator that lost the right to start builds', inTurn, async () => {
    await fillDisk();
    await lab.world.submit('stuck');
    await queuedJob('stuck');
    await allow('create', 'delete');
    lab.faults.freeDisk = 0.6;
    assert.equal(await summaryOf('MoorageBuildQueueStuck'), '1 builds wait, and none runs');
    // By itself the queue tries a failure again later and later; each build that is added has it try again immediately.
    const isFiring = async (): Promise<boolean> => (await watching.firing()).includes('MoorageReconcileErrors');
    const stuck = ['stuck'];
    while (!(await isFiring())) {
      assert.ok(stuck.length < 40, 'it does not fire');
      const name = `stuck-${stuck.length}`;
      stuck.push(name);
      await lab.world.submit(name);
      await queuedJob(name);
      await sleep(200);
    }
    assert.match(
      await summaryOf('MoorageReconcileErrors', { controller: 'build-queue' }),
      /^\d+(\.\d+)?% of the reconciles of build-queue end in an error$/,
    );
    await allow('create', 'patch', 'delete');
    // Ends once more has been done than failed.
    for (let count = 1; count === 1 || (await isFiring()); count += 1) {
      assert.ok(count < 40, 'it fires still');
      await reject(lab, `again-${count}`);
      for (const name of stuck.splice(0)) await rejectStarted(lab, name);
    }
    await ended('MoorageBuildQueueStuck');
  });

  test('fires for a disk that fills up', inTurn, async () => {
    lab.faults.freeDisk = 0.05;
    assert.match(
      await summaryOf('MoorageNodeDiskFilling'),
      /^5% of the disk \((node|images)\) of node node-a are free$/,
    );
    assert.equal(await summaryOf('MoorageVolumeFilling'), '5% of the volume data-moorage-postgres-0 are free');
    lab.faults.freeDisk = 0.6;
    await ended('MoorageNodeDiskFilling');
    await ended('MoorageVolumeFilling');
  });

  test('fires for a disk with too little space for builds', inTurn, async () => {
    await fillDisk();
    await lab.world.submit('waits');
    await queuedJob('waits');
    assert.equal(await summaryOf('MoorageBuildsWithoutSpace'), 'No build is started, for lack of disk space');
    lab.faults.freeDisk = 0.6;
    await rejectStarted(lab, 'waits');
    await ended('MoorageBuildsWithoutSpace');
  });

  test('fires for a submitter with more builds than can run', inTurn, async () => {
    const submitter = { [labels.network]: 'one' };
    await lab.world.submit('first', {}, submitter);
    await awaitStartedJob(lab.world, 'first');
    await lab.world.submit('second', {}, submitter);
    const { metadata } = await queuedJob('second');
    // As long ago as it would be an hour from now.
    const annotation = `${annotations.queuedAt}=${new Date(Date.now() - 61 * 60_000).toISOString()}`;
    await lab.world.api.kubectl('annotate', '--overwrite', 'job', metadata.name, '-n', 'moorage-builds', annotation);
    assert.match(await summaryOf('MoorageBuildQueueLong'), /^A build has waited in the queue for 1h 1m \d+(\.\d+)?s$/);
    assert.ok(!(await watching.firing()).includes('MoorageBuildQueueStuck'));
    await rejectStarted(lab, 'first');
    await rejectStarted(lab, 'second');
    await ended('MoorageBuildQueueLong');
  });

  test('fires for a build for which no node has space', inTurn, async () => {
    await lab.world.submit('roomless');
    const job = await awaitStartedJob(lab.world, 'roomless');
    await startJob(lab.world.client, job);
    await findNoRoom(lab.world.client, job, '0/1 nodes are available');
    assert.equal(await summaryOf('MoorageBuildsWithoutRoom'), 'No node has room for 1 builds');
    // A node was added.
    const scheduled = { type: 'PodScheduled', status: 'True', lastTransitionTime: new Date().toISOString() };
    await writePod(lab.world.client, job, [createRunningContainer('clone')], 'Running', [scheduled]);
    await ended('MoorageBuildsWithoutRoom');
  });

  test('fires for builds that fail because of platform faults', inTurn, async () => {
    // More of them than a third of all that ended.
    for (let count = 1; count < 20 && !(await watching.firing()).includes('MoorageBuildsFailing'); count += 1)
      await faultBuild(lab, `fault-${count}`);
    assert.match(await summaryOf('MoorageBuildsFailing'), /^\d+(\.\d+)?% of the builds of the last hour failed/);
  });
});

/** The calls of the workers' tests go through the API, which the last tests of its group restart. */
const callsOfWorkers = Promise.withResolvers<undefined>();

describe('workers', group, () => {
  test('fires for more work than the workers can do', inTurn, async () => {
    try {
      const calls = Array.from({ length: 4 }, (_none, number) => runForever(`203.0.113.${number + 1}`));
      assert.match(await summaryOf('MoorageWorkersBusy'), /^[1-4] tasks of tools wait for a worker$/);
      assert.deepEqual(await Promise.all(calls), [false, false, false, false]);
    } finally {
      callsOfWorkers.resolve(undefined);
    }
    await ended('MoorageWorkersBusy');
  });

  test('fires for a process that exits repeatedly', inTurn, async () => {
    const startedAt = 'process_start_time_seconds{job="moorage-workers"}';
    for (let times = 1; times <= 4; times += 1) {
      assert.ok(!(await watching.firing()).includes('MoorageProcessRestarting'), `fires after ${times - 1}`);
      // After a scrape that failed there is no value for a moment.
      const before = await waitFor('its start', () => readValue(startedAt));
      await lab.workers.stop();
      // The metric has whole seconds.
      await sleep(Math.max(0, (before + 2) * 1_000 - Date.now()));
      await lab.workers.start();
      await waitFor('its new start', async () => ((await readValue(startedAt)) ?? before) !== before);
    }
    assert.match(
      await summaryOf('MoorageProcessRestarting', { job: 'moorage-workers' }),
      /^moorage-workers \(127\.0\.0\.1:\d+\) was started 4 times in half an hour$/,
    );
  });
});

describe('the API and the ledger', group, () => {
  test('fires for a broken model router', inTurn, async () => {
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

  test('fires for a cost that the router has not reported for half an hour', inTurn, async () => {
    assert.equal(await ask(lab, unbilled, '203.0.113.99'), 200);
    await asAdministrator((client) => client.query("update ledger.pending set since = since - interval '31 minutes'"));
    assert.match(await summaryOf('MoorageCostsPending'), /^The cost of a model call has been looked up for 31m /);
  });

  test('fires for a call that cost more than its reservation, until the operator lifts its stop', inTurn, async () => {
    // This test must run while the daily limit has room: afterwards, calls are refused for that reason.
    lab.faults.isRouterDear = true;
    assert.equal(await ask(lab, 'Hello', '203.0.114.1'), 200);
    lab.faults.isRouterDear = false;
    assert.equal(
      await summaryOf('MoorageCallAboveHold'),
      '1 model calls of today cost more than was reserved for them',
    );
    assert.equal(await ask(lab, 'Hello', '203.0.115.1'), 503);
    await asAdministrator((client) =>
      client.query('update ledger.overrun set lifted_at = now() where lifted_at is null'),
    );
    await ended('MoorageCallAboveHold');
  });

  test('fires for a daily limit that is almost used up', inTurn, async () => {
    await useUpQuota(lab);
    assert.match(
      await summaryOf('MoorageDailyLimitNear'),
      /^\d+(\.\d+)?% of the daily limit of the platform key is used$/,
    );
  });

  test('fires for a missing use of a reconciled day, and for a day that was not reconciled', inTurn, async () => {
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

  test('fires for requests that a gateway counted and did not send, and for changed uses', inTurn, async () => {
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

  test('fires for a changed row of the ledger', inTurn, async () => {
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

  test('fires for a changed signed record', inTurn, async () => {
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

  test('fires for a ledger audit that has failed for three hours', inTurn, async () => {
    await callsOfWorkers.promise;
    const expectOverdue = await startBehind();
    // Three hours ago all was well.
    await waitFor('an audit', async () => ((await readValue(audited)) ?? 0) * 1_000 > overdueMs - 60_000);
    await withoutAudit(async () => {
      // An audit that began before the rename would end with the time of the corrected clock.
      await waitFor('the end of the last audit', async () => (await readValue(auditsOfLastSeconds)) === 0);
      await expectOverdue();
    });
    await ended('MoorageLedgerAuditOverdue');
    await waitFor('an audit of the last minute', async () => ((await readValue(audited)) ?? Infinity) < 60);
  });

  test('fires for a replica that started three hours ago and has never audited the ledger', inTurn, async () => {
    await withoutAudit(async () => {
      const expectOverdue = await startBehind();
      await expectOverdue();
      assert.deepEqual(await watching.prometheus.query('moorage_ledger_audit_timestamp_seconds'), []);
    });
    await ended('MoorageLedgerAuditOverdue');
  });
});

/** The Job of an app that waits in the queue. */
async function queuedJob(app: string): Promise<Job> {
  return waitFor(`a queued Job of ${app}`, async () =>
    (await lab.world.jobs(app)).find(({ spec }) => spec?.suspend === true),
  );
}

/** Sets what the operator may do with Jobs in addition to reading them. */
async function allow(...verbs: readonly string[]): Promise<void> {
  const value = ['get', 'list', 'watch', ...verbs];
  const patch = JSON.stringify([{ op: 'replace', path: '/rules/0/verbs', value }]);
  await lab.world.api.kubectl('patch', 'role', 'moorage-operator', '-n', 'moorage-builds', '--type=json', '-p', patch);
}

async function fillDisk(): Promise<void> {
  lab.faults.freeDisk = 0.03;
  await waitFor('the shortage', async () => (await watching.prometheus.query('moorage_disk_short == 1')).length > 0);
}

/** Runs code that never ends and takes no processor time, as a caller at this address. @returns whether it ran to its end */
async function runForever(address: string): Promise<boolean> {
  const answer = await fetch(`${lab.url}/t/run_code`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': address },
    body: JSON.stringify({ code: 'for (;;) await new Promise((again) => setTimeout(again, 100));' }),
  });
  // A busy machine has no processor time for the worker; the answer says when to try again.
  if (answer.status === 503) {
    await answer.body?.cancel();
    await sleep(5_000);
    return runForever(address);
  }
  return z.looseObject({ result: z.looseObject({ ok: z.boolean() }) }).parse(await answer.json()).result.ok;
}

const overdueMs = (3 * 60 + 5) * 60_000;

/** The audit is there under this name only; by another one it cannot be called. */
async function nameAudit(from: string, to: string): Promise<void> {
  const database = await openDatabase(toMigratorUrl(lab.databaseUrl));
  try {
    const text = `alter function ledger.${from}() rename to ${to}`;
    await database.query({ name: `name-${to}`, text, row: z.unknown() }, []);
  } finally {
    await database.close();
  }
}

const audited = 'time() - moorage_ledger_audit_timestamp_seconds';
const auditsOfLastSeconds = 'changes(moorage_ledger_audit_timestamp_seconds[5s])';

/** Runs work while the ledger cannot be audited. */
async function withoutAudit(work: () => Promise<void>): Promise<void> {
  await nameAudit('audit', 'no_audit');
  try {
    await work();
  } finally {
    await nameAudit('no_audit', 'audit');
  }
}

/** Starts the API over, with a clock that is behind. @returns a check of the alert that fires once the clock is right */
async function startBehind(): Promise<() => Promise<void>> {
  await lab.api.stop();
  const since = Date.now();
  await lab.api.start({ behindMs: overdueMs });
  return async () => {
    lab.api.setClock();
    const summary = await summaryOf('MoorageLedgerAuditOverdue');
    const [, minutes, seconds] =
      /^A replica of the API has not audited the ledger for 3h (\d+)m (\d+(?:\.\d+)?)s$/.exec(summary) ?? [];
    const shownMs = ((3 * 60 + Number(minutes)) * 60 + Number(seconds)) * 1_000;
    // Start times are rounded to a second, durations down to one.
    assert.ok(shownMs >= overdueMs - 2_000 && shownMs <= overdueMs + (Date.now() - since) + 2_000, summary);
  };
}

/** A client that changes what only an administrator can, with the triggers off. */
async function asAdministrator<T>(work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: toSuperuserUrl(lab.databaseUrl) });
  await client.connect();
  await client.query('set session_replication_role = replica');
  const done = await work(client);
  await client.end();
  return done;
}
