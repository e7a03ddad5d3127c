// The gate between review and build: open only after a review that passed, shut by one that ends in any other way.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'vitest';
import { hasPassed, runWithGate } from '../../../../controller/pipeline/handover.ts';
import { toWorkspacePaths, type WorkspacePaths } from '../../../../controller/pipeline/contract.ts';

async function workspace(t: TestContext): Promise<WorkspacePaths> {
  const root = await mkdtemp(join(tmpdir(), 'moorage-gate-'));
  t.onTestFinished(() => rm(root, { recursive: true, force: true }));
  return toWorkspacePaths(root, root);
}

test('the build waits if it starts first, and continues once the review has passed', async (t) => {
  const paths = await workspace(t);
  const order: string[] = [];
  const waiting = hasPassed(paths, 'review').then((passed) => {
    order.push('build');
    return passed;
  });
  const review = Promise.withResolvers<string>();
  const reviewing = runWithGate(paths, 'review', () => review.promise);
  await new Promise((resolve) => {
    setTimeout(resolve, 100);
  });
  order.push('review');
  review.resolve('fine');
  assert.equal(await reviewing, 'fine');
  assert.equal(await waiting, true);
  assert.deepEqual(order, ['review', 'build']);
});

test('lets the build continue if the review passed long ago', async (t) => {
  const paths = await workspace(t);
  await runWithGate(paths, 'review', () => Promise.resolve());
  assert.equal(await hasPassed(paths, 'review'), true);
});

test('a review that rejects keeps the build from starting, whichever comes first', async (t) => {
  const paths = await workspace(t);
  const refused = Promise.withResolvers<never>();
  const refusal = assert.rejects(
    runWithGate(paths, 'review', () => refused.promise),
    /no licence/,
  );
  refused.promise.catch(() => undefined);
  const waiting = hasPassed(paths, 'review');
  refused.reject(new Error('no licence'));
  await refusal;
  assert.equal(await waiting, false);
  assert.equal(await hasPassed(paths, 'review'), false);
});

test('a killed review keeps the build from starting', async (t) => {
  const paths = await workspace(t);
  const gate = join(import.meta.dirname, '../../../../controller/pipeline/handover.ts');
  const program = `import { runWithGate } from ${JSON.stringify(gate)}; await runWithGate(${JSON.stringify(paths)}, 'review', () => new Promise(() => { process.stdout.write('at work'); setInterval(() => undefined, 1000); }));`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  const waiting = hasPassed(paths, 'review');
  child.kill('SIGKILL');
  assert.equal(await waiting, false);
  assert.equal(await hasPassed(paths, 'review'), false);
});

test('stops waiting when aborted', async (t) => {
  const paths = await workspace(t);
  const stop = new AbortController();
  const waiting = hasPassed(paths, 'review', stop.signal);
  stop.abort(new Error('stopped'));
  await assert.rejects(waiting);
});

test('a passed clone does not count as a passed review', async (t) => {
  const paths = await workspace(t);
  await runWithGate(paths, 'clone', () => Promise.resolve());
  assert.equal(await hasPassed(paths, 'clone'), true);
  const stop = new AbortController();
  const waiting = hasPassed(paths, 'review', stop.signal);
  stop.abort(new Error('stopped'));
  await assert.rejects(waiting);
});
