// An app that nobody uses sleeps, and its next requests wake it: none of them fails, whatever kind it is.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { z } from 'zod';
import {
  appsNamespace,
  appUrl,
  baseUrl,
  deleteApps,
  listPods,
  waitFor,
  get,
  runKubectl,
  readApp,
  submit,
  runWithFiles,
} from '../support/cluster.ts';
import { openTab } from '../support/devtools.ts';
import { evaluateExpression, navigate } from '../support/tab.ts';
import { openEvents, openSocket, listPodNames, sleeperFiles, measureTime, waitForState } from '../support/sleeper.ts';

/** One app for each group of tests: most of their time is the wait for an app to fall asleep. */
const [name, streaming, slow] = ['e2e-sleeper', 'e2e-sleeper-streaming', 'e2e-sleeper-slow'] as const;
afterAll(() => deleteApps(name, streaming, slow));

const groups = { concurrent: true };
const inTurn = { concurrent: false };

function hostBefore(app: string): void {
  beforeAll(() =>
    runWithFiles(app, sleeperFiles('10s'), async (folder) => {
      const { exitCode, all } = await submit(folder);
      assert.equal(exitCode, 0, all);
    }),
  );
}

const wake = async (): Promise<Awaited<ReturnType<typeof measureTime>>> => {
  await waitForState(name, 'Asleep');
  return measureTime(appUrl(name));
};

describe('an app without use', groups, () => {
  hostBefore(name);

  test('an unused app sleeps without a pod and stays live, and the next request wakes it', inTurn, async () => {
    await waitForState(name, 'Asleep');
    assert.deepEqual(await listPodNames(name), []);
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

  test('a client that does not wait gets a problem, and a browser gets a page', inTurn, async () => {
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
});

describe('an app with open connections', groups, () => {
  hostBefore(streaming);

  test(
    'a WebSocket and an event stream connect through a wake, and the app does not sleep while they are open',
    inTurn,
    async () => {
      await waitForState(streaming, 'Asleep');
      const [events, socket] = await Promise.all([
        openEvents(appUrl(streaming, '/events')),
        openSocket(appUrl(streaming, '/ws')),
      ]);
      assert.equal(events.statusCode, 200);
      const back = once(socket, 'data') as Promise<[Buffer]>;
      socket.write('hello');
      assert.equal((await back)[0].toString(), 'hello');
      let ticks = 0;
      events.on('data', () => (ticks += 1));
      await sleep(25_000);
      assert.ok(ticks > 50, `${ticks} events`);
      assert.equal((await readApp(streaming)).status?.idle?.state, 'Awake');
      const again = once(socket, 'data') as Promise<[Buffer]>;
      socket.write('still there');
      assert.equal((await again)[0].toString(), 'still there');
      socket.destroy();
      events.destroy();
      await waitForState(streaming, 'Asleep');
    },
  );
});

describe('an app that starts slowly', groups, () => {
  hostBefore(slow);

  test(
    'a person who opens a slow app sees a waiting page, and then the app, without further action',
    inTurn,
    async () => {
      const delay = JSON.stringify({ spec: { run: { env: [{ name: 'DELAY_MS', value: '5000' }] } } });
      await runKubectl('patch', 'happ', slow, '-n', appsNamespace, '--type=merge', '-p', delay);
      await waitForState(slow, 'Awake');
      await waitForState(slow, 'Asleep');
      const tab = await openTab();
      try {
        await tab.send('Page.enable');
        const heading = (): Promise<string> =>
          evaluateExpression(tab, `document.querySelector('h1')?.textContent ?? ''`, z.string()).catch(() => '');
        const headings = new Set<string>();
        await navigate(tab, appUrl(slow).href);
        // The waiting page reloads after a second, and has no heading meanwhile.
        await waitFor('the app in the same tab', async () => {
          const seen = await heading();
          if (seen !== '') headings.add(seen);
          return headings.has('I am awake') ? true : undefined;
        });
        assert.deepEqual([...headings], [`${slow} is waking up`, 'I am awake']);
      } finally {
        await tab.close();
      }
    },
  );

  test('a napping app keeps its process, requests a minimum, and responds immediately', inTurn, async () => {
    const nap = JSON.stringify({ spec: { run: { idle: 'nap' } } });
    await runKubectl('patch', 'happ', slow, '-n', appsNamespace, '--type=merge', '-p', nap);
    await waitForState(slow, 'Napping');
    await waitFor('a minimum', async () => ((await readRequests(slow)) === '1m 1Mi' ? true : undefined));
    const pods = await listPodNames(slow);
    assert.equal((await measureTime(appUrl(slow))).status, 200);
    await waitForState(slow, 'Awake');
    assert.deepEqual(await listPodNames(slow), pods);
    await waitFor('its requests of before', async () => ((await readRequests(slow)) === '1m 1Mi' ? undefined : true));
  });
});

/** More than both activators together hold for one client. */
const requests = 600;

// Alone: requests of one client that are held count together, whatever app they wake.
test('during a wake, the app answers 100 requests of one client at a time; more are rejected with 429', async () => {
  await waitForState(streaming, 'Asleep');
  const answers = await Promise.all(Array.from({ length: requests }, () => measureTime(appUrl(streaming))));
  const statuses = Object.groupBy(answers, ({ status }) => String(status));
  assert.deepEqual(Object.keys(statuses), ['200', '429']);
  assert.ok((statuses['200']?.length ?? 0) >= 100);
});

/** CPU and memory that the pod of an app requests. */
async function readRequests(app: string): Promise<string> {
  const [pod] = await listPods(`moorage.dev/app=${app}`);
  const { cpu = '', memory = '' } = pod?.spec?.containers[0]?.resources?.requests ?? {};
  return `${cpu} ${memory}`;
}
