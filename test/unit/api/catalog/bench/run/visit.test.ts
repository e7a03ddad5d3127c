// First visits: a page, a question and a useful answer in time; each thing that can go wrong is said; and what they add up to.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Database, openLedgerDatabase } from '../../../../../../api/billing/database/database.ts';
import { readVisitFigures } from '../../../../../../api/catalog/bench/bench.ts';
import { prepareCampaign } from '../../../../../../api/catalog/bench/run/runner.ts';
import { makeVisits, visitApp } from '../../../../../../api/catalog/bench/run/visit.ts';
import { BenchWriter, writeVisit } from '../../../../../../api/catalog/bench/store.ts';
import { loadBenchmarks } from '../../../../../../api/catalog/bench/tasks/task.ts';
import { serve } from '../../../../../support/bench/lab.ts';
import { migratedDatabase } from '../../../../../support/ledger/snapshot.ts';

const manifest = loadBenchmarks().find(({ app }) => app === 'chat-ui-4') ?? assert.fail();
const release = { commit: 'abc', image: 'image@sha256:1', router: 'litellm' };

let database: Database;
beforeAll(async () => {
  database = await openLedgerDatabase(migratedDatabase);
});
afterAll(() => database.close());

interface Site {
  readonly page?: { readonly status: number; readonly type: string };
  readonly answer?: string;
}

/** Visits an app that answers like this. @returns why the visit was in vain, and what the app was asked */
async function visit({ page = { status: 200, type: 'text/html' }, answer = '4' }: Site): Promise<{
  detail: string | undefined;
  steps: number;
  asked: unknown[];
}> {
  const asked: unknown[] = [];
  const app = await serve((path, body, response) => {
    asked.push([path, body]);
    if (path === '/') response.writeHead(page.status, { 'content-type': page.type }).end('<p>hello');
    else response.end(JSON.stringify({ choices: [{ message: { content: answer } }] }));
  });
  try {
    const { detail, steps } = await visitApp({ url: app.url }, manifest);
    return { detail, steps, asked };
  } finally {
    await app.close();
  }
}

test('a visitor opens the page, asks by the interface of the app, and gets the right answer', async () => {
  const { detail, steps, asked } = await visit({ answer: 'It is 4.' });
  assert.deepEqual([detail, steps, asked.length], [undefined, 2, 2]);
  assert.deepEqual(asked[0], ['/', undefined]);
  expect(asked[1]).toMatchObject(['/api/openai/v1/chat/completions', { model: 'alpha-v4-flash', stream: false }]);
});

test('a visit in vain says why', async () => {
  assert.match((await visit({ answer: '5' })).detail ?? '', /^the answer is of no use: /);
  assert.equal((await visit({ answer: '' })).detail, 'the response of the app has no answer');
  assert.equal((await visit({ page: { status: 503, type: 'text/html' } })).detail, 'the page answered 503');
  assert.equal((await visit({ page: { status: 200, type: 'application/json' } })).detail, 'the page is not HTML');
  const gone = await visitApp({ url: 'http://127.0.0.1:1' }, manifest);
  assert.match(gone.detail ?? '', /^the app could not be reached: /);
});

test('no visit is made while every call of the app belongs to a run, and all are written otherwise', async () => {
  const app = await serve((path, _body, response) => {
    if (path === '/') response.writeHead(200, { 'content-type': 'text/html' }).end('<p>hello');
    else response.end(JSON.stringify({ choices: [{ message: { content: '4' } }] }));
  });
  const reported: (string | undefined)[] = [];
  const visits = (): Promise<boolean> =>
    makeVisits({
      database,
      address: { url: app.url },
      manifest,
      count: 2,
      release: () => Promise.resolve(release),
      report: ({ detail }) => reported.push(detail),
      signal: new AbortController().signal,
    });
  const writer = new BenchWriter(database);
  const choice = { manifest: { ...manifest, attribution: 'app' as const }, models: ['a'], runs: 1, seed: 'seed' };
  const { id } = await prepareCampaign(choice, writer);
  const run = await writer.startNext(id, release, 60_000);
  assert.ok(typeof run === 'object');
  assert.deepEqual([await visits(), reported], [false, []]);
  await writer.endCalls(run.id);
  assert.deepEqual([await visits(), reported], [true, [undefined, undefined]]);
  const { answered } = (await readVisitFigures({ database: () => database })).get(manifest.app) ?? assert.fail();
  assert.equal(answered.passed, 2);
  await app.close();
});

test('visits add up to a rate with its interval, and to the times of those that were answered', async () => {
  const times = [900, 1_000, 1_100, 5_000];
  for (const latencyMs of times)
    await writeVisit(database, { app: 'chat', release, steps: 3, latencyMs, detail: undefined });
  // The clock of the embedded database has milliseconds.
  await sleep(5);
  await writeVisit(database, {
    app: 'chat',
    release,
    steps: 2,
    latencyMs: 60_000,
    detail: 'no whole answer within 60 s',
  });
  await writeVisit(database, { app: 'other', release, steps: 2, latencyMs: 10, detail: 'the page answered 404' });
  const figures = await readVisitFigures({ database: () => database });
  const { answered, steps, p50, p95 } = figures.get('chat') ?? assert.fail();
  assert.deepEqual([answered.passed, answered.n, answered.rate], [4, 5, 0.8]);
  // Wilson's interval of 4 in 5.
  assert.deepEqual(
    answered.interval?.map((bound) => bound.toFixed(4)),
    ['0.3755', '0.9638'],
  );
  assert.deepEqual([steps, p50, p95], [2, 1_000, 5_000]);
  const other = figures.get('other') ?? assert.fail();
  assert.deepEqual([other.answered.rate, other.p50], [0, null]);
});
