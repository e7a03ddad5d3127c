// Submitted apps that never went live are warned and deleted by the real operator; those made with kubectl stay.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { labels } from '../../../crds/names.ts';
import { listEvents, startWorld, waitFor, type World } from '../../support/operator/world.ts';

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.stop());

test('a platform full of apps that never go live is empty again after a while', async () => {
  const operator = world.startOperator({ MOORAGE_APPS_EXPIRE_AFTER: '8s' });
  const flood = Array.from({ length: 5 }, (_, index) => `flood-${index}`);
  for (const [index, name] of flood.entries()) await world.submit(name, {}, { [labels.caller]: `network-${index}` });
  await world.submit('by-hand');
  await waitFor('the warning', async () =>
    (await world.app('flood-0'))?.status?.conditions?.some(
      ({ type, status, message }) => type === 'Expiring' && status === 'True' && message.includes('never been live'),
    ),
  );
  await waitFor('their end', async () =>
    (await Promise.all(flood.map((name) => world.app(name)))).every((app) => !app),
  );
  assert.notEqual(await world.app('by-hand'), undefined);
  for (const reason of ['NeverLive', 'Expired']) {
    await waitFor(`an event ${reason}`, async () =>
      (await listEvents(world, 'moorage-apps')).some((event) => event.reason === reason),
    );
  }
  assert.equal(await operator.end(), 0);
});
