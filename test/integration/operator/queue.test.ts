// The build queue of the real operator: a cap on builds at once, oldest first, and positions that are reported.
// The Jobs' ends are written by the test in place of the job controller.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { failJob, startedJob, startJob } from '../../support/operator/stand-in.ts';
import { startWorld, until, type World } from '../../support/operator/world.ts';

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.stop());

async function positionOf(name: string): Promise<number | undefined> {
  return (await world.app(name))?.status?.pipeline?.position;
}

test('one build at a time: the others wait in the order in which they came, and move up', async () => {
  const operator = world.startOperator({ MOORAGE_BUILDS_CONCURRENCY: '1' });
  for (const name of ['one', 'two', 'three']) {
    await world.submit(name);
    await until(`a Job of ${name}`, async () => (await world.jobs(name)).length === 1);
  }
  const first = await startedJob(world, 'one');
  await until('positions 1 and 2', async () => (await positionOf('two')) === 1 && (await positionOf('three')) === 2);
  assert.equal((await world.app('two'))?.status?.phase, 'Queued');
  assert.deepEqual(
    (await Promise.all(['two', 'three'].map((name) => world.jobs(name)))).flat().map(({ spec }) => spec?.suspend),
    [true, true],
  );
  await startJob(world.client, first);
  await failJob(world.client, first, 'DeadlineExceeded');
  await startedJob(world, 'two');
  await until('three to move up', async () => (await positionOf('three')) === 1);
  assert.equal((await world.jobs('three'))[0]?.spec?.suspend, true);
  await operator.end();
});
