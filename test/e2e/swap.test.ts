// An app with a volume under one request every 100 ms: a commit that starts well replaces the one that serves without a
// failed request, and a commit that does not start replaces nothing.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import {
  appUrl,
  deleteApps,
  edit,
  waitFor,
  get,
  readApp,
  removeFiles,
  submit,
  writeFiles,
} from '../support/cluster.ts';
import { requestSteadily, volumeAppFiles, type RequestLog } from '../support/steady-requests.ts';

const name = 'e2e-swap';
let folder: string;
/** Starts that the volume counted before: a volume outlives the deletion of its app for a while. */
let starts = 0;
beforeAll(async () => {
  folder = writeFiles(name, volumeAppFiles);
  const { exitCode, all } = await submit(folder);
  assert.equal(exitCode, 0, all);
  const { body } = await waitFor('a response', async () => {
    const answer = await get(appUrl(name));
    return answer.status === 200 ? answer : undefined;
  });
  starts = Number(/start (\d+)$/.exec(body)?.[1]);
});
afterAll(async () => {
  removeFiles(folder);
  await deleteApps(name);
});

/** How long requests wait is measured by `npm run bench:swap`. */
const describeLog = ({ count, failures, longestMs }: RequestLog): string =>
  `${count} requests, ${failures.length} failed, longest ${Math.round(longestMs)} ms`;

test('with a good commit, no request fails', async (context) => {
  edit(folder, 'app.py', (text) => text.replace('version 1', 'version 2'));
  const seen = await requestSteadily(
    appUrl(name),
    submit(folder).then(({ exitCode, all }) => {
      assert.equal(exitCode, 0, all);
    }),
    10_000,
  );
  await context.annotate(describeLog(seen));
  assert.deepEqual(seen.failures, []);
  const expected = [`version 1, start ${starts}`, `version 2, start ${starts + 1}`];
  assert.deepEqual([...seen.bodies].sort(), expected, 'with the same data');
});

test('with a commit that does not start, no request fails, and the reason is shown', async (context) => {
  edit(folder, 'app.py', (text) => `this is no python\n${text}`);
  const seen = await requestSteadily(
    appUrl(name),
    submit(folder).then(({ exitCode, all }) => {
      assert.equal(exitCode, 1, all);
      assert.match(all, /SyntaxError/);
    }),
    20_000,
  );
  await context.annotate(describeLog(seen));
  assert.deepEqual(seen.failures, []);
  assert.deepEqual([...seen.bodies], [`version 2, start ${starts + 1}`]);
  const { status } = await readApp(name);
  assert.match(status?.rejection?.message ?? '', /It has not replaced commit [0-9a-f]{7}\.$/);
});
