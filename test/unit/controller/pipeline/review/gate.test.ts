// The gate between review and build: open only after a review that passed, shut by one that ends in any other way.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'vitest';
import { reviewPassed, withGate } from '../../../../../controller/pipeline/review/gate.ts';
import { placesBelow, type Places } from '../../../../../controller/pipeline/config.ts';

async function workspace(t: TestContext): Promise<Places> {
  const root = await mkdtemp(join(tmpdir(), 'moorage-gate-'));
  t.onTestFinished(() => rm(root, { recursive: true, force: true }));
  return placesBelow(root, root);
}

test('the build that comes first waits, and goes on once the review has passed', async (t) => {
  const places = await workspace(t);
  const order: string[] = [];
  const waiting = reviewPassed(places).then((passed) => {
    order.push('build');
    return passed;
  });
  const review = Promise.withResolvers<string>();
  const reviewing = withGate(places, () => review.promise);
  await new Promise((resolve) => {
    setTimeout(resolve, 100);
  });
  order.push('review');
  review.resolve('fine');
  assert.equal(await reviewing, 'fine');
  assert.equal(await waiting, true);
  assert.deepEqual(order, ['review', 'build']);
});

test('a review that passed long ago lets the build through', async (t) => {
  const places = await workspace(t);
  await withGate(places, () => Promise.resolve());
  assert.equal(await reviewPassed(places), true);
});

test('a review that refuses keeps the build from starting, whichever of the two comes first', async (t) => {
  const places = await workspace(t);
  const refused = Promise.withResolvers<never>();
  const refusal = assert.rejects(
    withGate(places, () => refused.promise),
    /no licence/,
  );
  refused.promise.catch(() => undefined);
  const waiting = reviewPassed(places);
  refused.reject(new Error('no licence'));
  await refusal;
  assert.equal(await waiting, false);
  assert.equal(await reviewPassed(places), false);
});

test('a review that is killed keeps the build from starting', async (t) => {
  const places = await workspace(t);
  const gate = join(import.meta.dirname, '../../../../../controller/pipeline/review/gate.ts');
  const program = `import { withGate } from ${JSON.stringify(gate)}; await withGate(${JSON.stringify(places)}, () => new Promise(() => { process.stdout.write('at work'); setInterval(() => undefined, 1000); }));`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  const waiting = reviewPassed(places);
  child.kill('SIGKILL');
  assert.equal(await waiting, false);
  assert.equal(await reviewPassed(places), false);
});

test('the wait can be called off', async (t) => {
  const places = await workspace(t);
  const stop = new AbortController();
  const waiting = reviewPassed(places, stop.signal);
  stop.abort(new Error('stopped'));
  await assert.rejects(waiting);
});
