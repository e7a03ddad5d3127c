// Follows docs/tutorial.md on the cluster: every command is run as the page has it, and prints what the page shows.
import assert from 'node:assert/strict';
import { afterAll, test } from 'vitest';
import { deleteApps } from '../support/cluster.ts';
import { assertOutput, createTutorialHome, isRejected, readTutorial } from '../support/tutorial.ts';

const home = createTutorialHome();
afterAll(async () => {
  home.remove();
  await deleteApps('guestbook');
});

test('every step of the tutorial works as written', async () => {
  await deleteApps('guestbook');
  for (const step of readTutorial()) {
    const { exitCode, all } = await home.run(step.command);
    assert.equal(exitCode, isRejected(step) ? 1 : 0, `${step.command}\n${all}`);
    assertOutput(step, all);
  }
});
