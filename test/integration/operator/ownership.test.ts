// The contact of an app through the real operator: claimed by a stranger, replaced by the author's commits.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { hostedApps } from '../../../controller/objects/kinds.ts';
import { findAuthorContact } from '../../../crds/effective-settings.ts';
import { annotations } from '../../../crds/names.ts';
import { sealContact } from '../../../lib/ownership-file.ts';
import {
  createCloneEnd,
  completeJob,
  formatImage,
  createBuildEnd,
  createReviewEnd,
  awaitStartedJob,
  startJob,
  writePod,
} from '../../support/operator/stand-in.ts';
import { startWorld, waitFor, type World } from '../../support/operator/world.ts';

const secret = 's'.repeat(32);
const name = 'claimed';
let world: World;
beforeAll(async () => {
  world = await startWorld();
  world.startOperator({ MOORAGE_APP_TOKEN_SECRET: secret });
});
afterAll(() => world.stop());

/** Takes the newest commit through its pipeline, which finds this in it. */
async function builds(tokens: readonly string[], settings: object | undefined, previous?: string): Promise<string> {
  const job = await awaitStartedJob(world, name, previous);
  const commit = job.metadata.annotations?.[annotations.commit] ?? '';
  await startJob(world.client, job);
  const found = tokens.length === 0 ? {} : { ownership: tokens };
  const said = settings === undefined ? {} : { settings };
  await writePod(
    world.client,
    job,
    [createCloneEnd(commit, found), createReviewEnd(said), createBuildEnd(formatImage(job, 'a'))],
    'Succeeded',
  );
  await completeJob(world.client, job);
  await waitFor(`${commit} built`, async () => (await world.app(name))?.status?.built?.commit === commit);
  return job.metadata.name;
}

async function next(message: string): Promise<void> {
  await world.git.commit(message);
  await world.client.patch(
    hostedApps,
    { name, namespace: 'moorage-apps' },
    { metadata: { annotations: { [annotations.poll]: message } } },
    { type: 'application/merge-patch+json' },
  );
}

async function contact(): Promise<string> {
  const found = findAuthorContact((await world.app(name)) ?? assert.fail('no app'));
  return found === undefined ? 'none' : `${found.contact} ${found.from} ${found.verified}`;
}

test('attack: a stranger claims the contact of a repository, and its author takes it over with a commit', async () => {
  await world.submit(name, { submission: { contact: 'mallory@example.org' } });
  const forged = sealContact('mallory@example.org', world.git.url, 'x'.repeat(32));
  const copied = sealContact('mallory@example.org', 'https://git.test/mallory/fork', secret);
  let job = await builds([forged, copied], undefined);
  assert.equal(await contact(), 'mallory@example.org submission false');

  await next('token');
  job = await builds([forged, sealContact('me@example.org', world.git.url, secret)], undefined, job);
  assert.equal(await contact(), 'me@example.org .moorage-owner true');

  await next('moorage.yaml');
  job = await builds([], { author: { contact: 'us@example.org' } }, job);
  assert.equal(await contact(), 'us@example.org moorage.yaml true');

  await next('neither');
  await builds([], undefined, job);
  assert.equal(await contact(), 'none', 'the claim does not come back');
});
