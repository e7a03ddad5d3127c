// An app that nobody uses sleeps, and its next requests wake it: none of them fails, whatever kind it is.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import {
  appsNamespace,
  appUrl,
  baseUrl,
  deleteApps,
  waitFor,
  get,
  runKubectl,
  readApp,
  submit,
  runWithFiles,
} from '../support/cluster.ts';
import { openTab } from '../support/devtools.ts';
import { evaluateExpression, navigate } from '../support/tab.ts';
import { openEvents, openSocket, listPods, sleeperFiles, measureTime, waitForState } from '../support/sleeper.ts';

const name = 'e2e-sleeper';
beforeAll(() =>
  runWithFiles(name, sleeperFiles('10s'), async (folder) => {
    const { exitCode, all } = await submit(folder);
    assert.equal(exitCode, 0, all);
  }),
);
afterAll(() => deleteApps(name));

const wake = async (): Promise<Awaited<ReturnType<typeof measureTime>>> => {
  await waitForState(name, 'Asleep');
  return measureTime(appUrl(name));
};

test('an unused app sleeps without a pod and stays live, and the next request wakes it', async () => {
  await waitForState(name, 'Asleep');
  assert.deepEqual(await listPods(name), []);
  const { status } = await readApp(name);
  assert.equal(status?.phase, 'Live');
  const ready = status.conditions?.find(({ type }) => type === 'Ready');
  assert.deepEqual([ready?.status, ready?.reason], ['True', 'Asleep']);
  const shown = await get(new URL(`/api/submit-status/local/${name}`, baseUrl));
  assert.match(shown.body, /"status":"live"/);
  for (let round = 0; round < 3; round += 1) {
    const answer = await wake();
    assert.equal(answer.status, 200);
    assert.match(answer.body, /I am awake/);
  }
  const wakes = await waitFor('the wakes in the status', async () => {
    const found = (await readApp(name)).status?.idle?.wakes;
    return found !== undefined && found.count >= 3 ? found : undefined;
  });
  assert.ok(wakes.p50Ms > 0 && wakes.p95Ms >= wakes.p50Ms);
});

test('during a wake, the app answers 100 requests of one client at a time; more are rejected with 429', async () => {
  await waitForState(name, 'Asleep');
  const answers = await Promise.all(Array.from({ length: 1_000 }, () => measureTime(appUrl(name))));
  const statuses = Object.groupBy(answers, ({ status }) => String(status));
  assert.deepEqual(Object.keys(statuses), ['200', '429']);
  assert.ok((statuses['200']?.length ?? 0) >= 100);
});

test('a WebSocket and an event stream connect through a wake, and the app does not sleep while they are open', async () => {
  await waitForState(name, 'Asleep');
  const [events, socket] = await Promise.all([openEvents(appUrl(name, '/events')), openSocket(appUrl(name, '/ws'))]);
  assert.equal(events.statusCode, 200);
  const back = once(socket, 'data') as Promise<[Buffer]>;
  socket.write('hello');
  assert.equal((await back)[0].toString(), 'hello');
  let ticks = 0;
  events.on('data', () => (ticks += 1));
  await sleep(25_000);
  assert.ok(ticks > 50, `${ticks} events`);
  assert.equal((await readApp(name)).status?.idle?.state, 'Awake');
  const again = once(socket, 'data') as Promise<[Buffer]>;
  socket.write('still there');
  assert.equal((await again)[0].toString(), 'still there');
  socket.destroy();
  events.destroy();
  await waitForState(name, 'Asleep');
});

test('a client that does not wait gets a problem, and a browser gets a page', async () => {
  await waitForState(name, 'Asleep');
  const [impatient, held] = await Promise.all([
    measureTime(appUrl(name), { prefer: 'wait=0' }),
    measureTime(appUrl(name)),
  ]);
  assert.equal(impatient.status, 503);
  assert.match(String(impatient.headers['content-type']), /problem\+json/);
  assert.match(String(impatient.headers['retry-after']), /^\d+$/);
  assert.equal(held.status, 200);
});

test('a person who opens a slow app sees a waiting page, and then the app, without further action', async () => {
  const slow = JSON.stringify({ spec: { run: { env: [{ name: 'DELAY_MS', value: '5000' }] } } });
  await runKubectl('patch', 'happ', name, '-n', appsNamespace, '--type=merge', '-p', slow);
  await waitForState(name, 'Awake');
  await waitForState(name, 'Asleep');
  const tab = await openTab();
  try {
    await tab.send('Page.enable');
    const heading = (): Promise<string> =>
      evaluateExpression(tab, `document.querySelector('h1')?.textContent ?? ''`, z.string()).catch(() => '');
    await navigate(tab, appUrl(name).href);
    assert.equal(await heading(), `${name} is waking up`);
    await waitFor('the app in the same tab', async () => ((await heading()) === 'I am awake' ? true : undefined));
  } finally {
    await tab.close();
  }
});

const podList = z.object({
  items: z.array(
    z.object({
      spec: z.object({
        containers: z.array(z.object({ resources: z.object({ requests: z.record(z.string(), z.string()) }) })),
      }),
    }),
  ),
});

async function requestsOf(): Promise<string> {
  const { items } = podList.parse(
    JSON.parse(await runKubectl('get', 'pods', '-n', appsNamespace, '-l', `moorage.dev/app=${name}`, '-o', 'json')),
  );
  const { cpu = '', memory = '' } = items[0]?.spec.containers[0]?.resources.requests ?? {};
  return `${cpu} ${memory}`;
}

test('a napping app keeps its process, requests a minimum, and responds immediately', async () => {
  const nap = JSON.stringify({ spec: { run: { idle: 'nap' } } });
  await runKubectl('patch', 'happ', name, '-n', appsNamespace, '--type=merge', '-p', nap);
  await waitForState(name, 'Napping');
  await waitFor('a minimum', async () => ((await requestsOf()) === '1m 1Mi' ? true : undefined));
  const pods = await listPods(name);
  assert.equal((await measureTime(appUrl(name))).status, 200);
  await waitForState(name, 'Awake');
  assert.deepEqual(await listPods(name), pods);
  await waitFor('its requests of before', async () => ((await requestsOf()) === '1m 1Mi' ? undefined : true));
});
