// Alerts of builds and of the operator, fired on purpose as in firing.test.ts, and ended by what their runbooks say.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import type { Job } from '../../../controller/objects/kinds.ts';
import { annotations, labels } from '../../../crds/names.ts';
import { faultBuild, goLive, reject, rejectStarted } from '../../support/monitoring/activity.ts';
import { startLab, type Lab } from '../../support/monitoring/lab.ts';
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
  lab = await startLab();
  watching = await watch(lab);
  // Disks of nodes are looked at once something runs there.
  await goLive(lab, 'live');
});
afterAll(async () => {
  await watching.stop();
  await lab.stop();
});

/** The Job of an app that waits in the queue. */
async function queuedJob(app: string): Promise<Job> {
  return waitFor(`a queued Job of ${app}`, async () =>
    (await lab.world.jobs(app)).find(({ spec }) => spec?.suspend === true),
  );
}

/** What the operator may do with Jobs, beside reading them. */
async function allow(...verbs: readonly string[]): Promise<void> {
  const value = ['get', 'list', 'watch', ...verbs];
  const patch = JSON.stringify([{ op: 'replace', path: '/rules/0/verbs', value }]);
  await lab.world.api.kubectl('patch', 'role', 'moorage-operator', '-n', 'moorage-builds', '--type=json', '-p', patch);
}

async function fillDisk(): Promise<void> {
  lab.faults.freeDisk = 0.03;
  await waitFor('the shortage', async () => (await watching.prometheus.query('moorage_disk_short == 1')).length > 0);
}

test('fires for a disk with too little space for builds', async () => {
  await fillDisk();
  await lab.world.submit('waits');
  await queuedJob('waits');
  assert.equal(await summaryOf('MoorageBuildsWithoutSpace'), 'No build is started, for lack of disk space');
  lab.faults.freeDisk = 0.6;
  await rejectStarted(lab, 'waits');
  await ended('MoorageBuildsWithoutSpace');
});

test('fires for an operator that lost the right to start builds', async () => {
  await fillDisk();
  await lab.world.submit('stuck');
  await queuedJob('stuck');
  await allow('create', 'delete');
  lab.faults.freeDisk = 0.6;
  assert.equal(await summaryOf('MoorageBuildQueueStuck'), '1 builds wait, and none runs');
  assert.match(
    await summaryOf('MoorageReconcileErrors', { controller: 'build-queue' }, 180),
    /^\d+(\.\d+)?% of the reconciles of build-queue end in an error$/,
  );
  await allow('create', 'patch', 'delete');
  await rejectStarted(lab, 'stuck');
  await ended('MoorageBuildQueueStuck');
  // Once more has been done than failed.
  for (let count = 1; (await watching.firing()).includes('MoorageReconcileErrors'); count += 1) {
    assert.ok(count < 40, 'it fires still');
    await reject(lab, `again-${count}`);
  }
});

test('fires for a submitter with more builds than can run', async () => {
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

test('fires for a build for which no node has space', async () => {
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

test('fires for builds that fail because of platform faults', async () => {
  // More of them than a third of all that ended.
  for (let count = 1; count < 20 && !(await watching.firing()).includes('MoorageBuildsFailing'); count += 1)
    await faultBuild(lab, `fault-${count}`);
  assert.match(await summaryOf('MoorageBuildsFailing'), /^\d+(\.\d+)?% of the builds of the last hour failed/);
});
