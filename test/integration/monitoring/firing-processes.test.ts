// Alerts of processes and of the gateway, fired on purpose as in firing.test.ts, and ended.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { openDatabase } from '../../../api/billing/database/database.ts';
import { toMigratorUrl } from '../../support/ledger/postgres.ts';
import { startLab, type Lab } from '../../support/monitoring/lab.ts';
import { watch, type Watch } from '../../support/monitoring/watch.ts';
import { waitFor } from '../../support/operator/world.ts';

const overdueMs = (3 * 60 + 5) * 60_000;
let lab: Lab;
let watching: Watch;
const summaryOf: Watch['summaryOf'] = (...asked) => watching.summaryOf(...asked);
const ended: Watch['ended'] = (...asked) => watching.ended(...asked);

beforeAll(async () => {
  lab = await startLab({ api: { MOORAGE_LEDGER_AUDIT_SECONDS: '1' } });
  watching = await watch(lab);
});
afterAll(async () => {
  await watching.stop();
  await lab.stop();
});

/** The value of a series that exists once. */
async function valueOf(expr: string): Promise<number | undefined> {
  return (await watching.prometheus.query(expr))[0]?.value;
}

test('fires for a missing gateway', async () => {
  await lab.gateway.stop();
  // It looks when it begins to lead, and every five minutes.
  await lab.restartOperator();
  assert.equal(
    await summaryOf('MoorageGatewayUnreachable', { domain: 'apps.localhost' }),
    'The gateway takes no TLS connection for apps.localhost',
  );
  await lab.gateway.start();
  await lab.restartOperator();
  await waitFor('the gateway to be seen', async () => (await valueOf('moorage_gateway_up')) === 1);
  await ended('MoorageGatewayUnreachable');
});

/** Runs code that never ends, as a caller at this address. @returns whether it ran to its end */
async function runForever(address: string): Promise<boolean> {
  const answer = await fetch(`${lab.url}/t/run_code`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': address },
    body: JSON.stringify({ code: 'while (true);' }),
  });
  // A busy machine has no processor time for the worker; the answer says when to try again.
  if (answer.status === 503) {
    await answer.body?.cancel();
    await sleep(5_000);
    return runForever(address);
  }
  return z.looseObject({ result: z.looseObject({ ok: z.boolean() }) }).parse(await answer.json()).result.ok;
}

test('fires for more work than the workers can do', async () => {
  const calls = Array.from({ length: 6 }, (_none, number) => runForever(`203.0.113.${number + 1}`));
  assert.match(await summaryOf('MoorageWorkersBusy'), /^[1-6] tasks of tools wait for a worker$/);
  assert.deepEqual(await Promise.all(calls), [false, false, false, false, false, false]);
  await ended('MoorageWorkersBusy');
});

test('fires for a process that exits repeatedly', async () => {
  const startedAt = 'process_start_time_seconds{job="moorage-workers"}';
  for (let times = 1; times <= 4; times += 1) {
    assert.ok(!(await watching.firing()).includes('MoorageProcessRestarting'), `fires after ${times - 1}`);
    // After a scrape that failed there is no value for a moment.
    const before = await waitFor('its start', () => valueOf(startedAt));
    await lab.workers.stop();
    // The metric has whole seconds.
    await sleep(Math.max(0, (before + 2) * 1_000 - Date.now()));
    await lab.workers.start();
    await waitFor('its new start', async () => ((await valueOf(startedAt)) ?? before) !== before);
  }
  assert.match(
    await summaryOf('MoorageProcessRestarting', { job: 'moorage-workers' }),
    /^moorage-workers \(127\.0\.0\.1:\d+\) was started 4 times in half an hour$/,
  );
});

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

test('fires for a ledger audit that has failed for three hours', async () => {
  const expectOverdue = await startBehind();
  // Three hours ago all was well.
  await waitFor('an audit', async () => ((await valueOf(audited)) ?? 0) * 1_000 > overdueMs - 60_000);
  await withoutAudit(async () => {
    // An audit that began before the rename would end with the time of the corrected clock.
    await waitFor('the end of the last audit', async () => (await valueOf(auditsOfLastSeconds)) === 0);
    await expectOverdue();
  });
  await ended('MoorageLedgerAuditOverdue');
  await waitFor('an audit of the last minute', async () => ((await valueOf(audited)) ?? Infinity) < 60);
});

test('fires for a replica that started three hours ago and has never audited the ledger', async () => {
  await withoutAudit(async () => {
    const expectOverdue = await startBehind();
    await expectOverdue();
    assert.deepEqual(await watching.prometheus.query('moorage_ledger_audit_timestamp_seconds'), []);
  });
  await ended('MoorageLedgerAuditOverdue');
});
