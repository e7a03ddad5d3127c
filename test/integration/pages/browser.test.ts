// Pages in a real browser: a form is sent and its build followed as it goes on; answers of models come in side by side;
// and no page is wider than a telephone or breaks its own policy.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import type { App } from '../../../api/apps/hosted-apps.ts';
import { formatEvent } from '../../../api/http/response.ts';
import type { PublicServer } from '../../../api/http/server.ts';
import { waitFor } from '../../../localnode/shell.ts';
import { openTab, type Tab } from '../../support/devtools.ts';
import { serve, stop } from '../../support/api/http-app.ts';
import { sampleApp, sampleApps, sampleServices } from '../../support/api/sample.ts';
import { createLiveStatus } from '../../support/discovery/sample.ts';
import { samplePages } from '../../support/pages/sample.ts';
import { evaluateExpression, navigate } from '../../support/tab.ts';

const { store, apps } = sampleApps();
let tab: Tab;
let server: PublicServer;
let origin: string;
const complaints: string[] = [];
/** Lines of the log that a build has written. */
let logged = Promise.withResolvers<undefined>();

async function* buildLog(): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode('<b>Step 1</b>\n');
  await logged.promise;
  yield new TextEncoder().encode('Step 2\n');
}

/** A newer version of an object of the cluster. */
function changed(app: App, status: App['status']): App {
  const resourceVersion = String(Number(app.metadata.resourceVersion) + 1);
  return { ...app, metadata: { ...app.metadata, resourceVersion }, ...(status === undefined ? {} : { status }) };
}

const evaluate = <Schema extends z.ZodType>(expression: string, schema: Schema): Promise<z.output<Schema>> =>
  evaluateExpression(tab, expression, schema);
const open = (path: string): Promise<void> => navigate(tab, `${origin}${path}`);

async function seen(what: string, expression: string): Promise<void> {
  await waitFor(what, () => evaluate(`Boolean(${expression})`, z.boolean()).catch(() => false), { seconds: 20 });
}

beforeAll(async () => {
  const { app } = samplePages({
    services: sampleServices({
      apps,
      submit: () => {
        const submitted = sampleApp('chat', undefined, {
          phase: 'Building',
          pipeline: { job: 'chat-1', number: 1, pod: 'pod-1' },
        });
        store.set(submitted);
        return Promise.resolve({ app: submitted, created: true, polled: true, retried: false });
      },
      openLog: (_pod, container) =>
        Promise.resolve(
          container === 'build' ? { state: 'open', bytes: buildLog() } : { state: 'open', bytes: nothing() },
        ),
    }),
    ask: async function* (model) {
      yield formatEvent('delta', { text: `<i>${model}</i>` });
      if (model === 'beta-K3') {
        yield formatEvent('error', { detail: 'The model did not answer.' });
        return;
      }
      await logged.promise;
      yield formatEvent('done', { model, cost_usd: 0.0000123, cost_source: 'billed', latency_ms: 1_234 });
    },
  });
  server = await serve(app);
  origin = `http://127.0.0.1:${server.port}`;
  tab = await openTab();
  await tab.send('Page.enable');
  await tab.send('Log.enable');
  await tab.send('Runtime.enable');
  tab.on('Log.entryAdded', (entry) => complaints.push(JSON.stringify(entry)));
  tab.on('Runtime.exceptionThrown', (thrown) => complaints.push(JSON.stringify(thrown)));
});
afterAll(async () => {
  await tab.close();
  await stop(server);
});

async function* nothing(): AsyncGenerator<Uint8Array> {
  await Promise.resolve();
  yield* [];
}

test('submits a repository with the form, and follows its build until it is live', async () => {
  logged = Promise.withResolvers<undefined>();
  await open('/submit?lang=zh');
  await evaluate(`document.getElementById('repo').value = 'octo/chat'; true`, z.boolean());
  const loaded = tab.event('Page.loadEventFired');
  await evaluate(`document.querySelector('main form').requestSubmit(); true`, z.boolean());
  await loaded;
  assert.equal(await evaluate('location.pathname + location.search', z.string()), '/status/octo/chat?lang=zh');
  await seen('the first line', `document.querySelector('.log').textContent.includes('<b>Step 1</b>')`);
  assert.equal(await evaluate(`document.querySelectorAll('.log b').length`, z.int()), 0);
  logged.resolve(undefined);
  await seen('the second line', `document.querySelector('.log').textContent.includes('Step 2')`);
  const app = apps.get('chat');
  assert.ok(app);
  store.set(changed(app, createLiveStatus('https://chat.apps.test')));
  await seen('the new state', `document.querySelector('#state').dataset.state === 'live'`);
  await seen('the announcement', `document.querySelector('#announcement').textContent === '应用已上线'`);
  assert.deepEqual(complaints, []);
});

test('shows answers next to each other with cost and latency; a failing one does not stop the others', async () => {
  logged = Promise.withResolvers<undefined>();
  await open('/compare');
  const fill = `document.getElementById('prompt').value = 'Hello';
    for (const id of ['alpha-v4-flash', 'beta-K3']) document.querySelector('[value="' + id + '"]').click();
    document.getElementById('compare').requestSubmit(); true`;
  await evaluate(fill, z.boolean());
  const text = `document.getElementById('columns').textContent`;
  await seen('the first piece', `${text}.includes('<i>alpha-v4-flash</i>')`);
  await seen('the failure', `${text}.includes('The model did not answer.')`);
  assert.equal(await evaluate(`document.querySelectorAll('#columns i').length`, z.int()), 0);
  logged.resolve(undefined);
  await seen('the figures', `${text}.includes('$0.0000123') && ${text}.includes('1.2 sec')`);
  await seen(
    'the summary',
    `document.getElementById('summary').textContent === 'Alpha V4 Flash: Done, Beta K3: Failed'`,
  );
  assert.deepEqual(complaints, []);
});

test('no page is wider than a phone, or violates its own policy', async () => {
  await tab.send('Emulation.setDeviceMetricsOverride', { width: 360, height: 800, deviceScaleFactor: 1, mobile: true });
  for (const path of [
    '/',
    '/apps/chat-ui-1',
    '/bench/chat-ui-1',
    '/guides/compare-llm-cost-for-a-prompt',
    '/rank',
    '/submit',
    '/compare',
    '/status/octo/chat',
  ])
    for (const language of ['en', 'zh']) {
      await open(`${path}?lang=${language}`);
      assert.equal(await evaluate('document.documentElement.scrollWidth', z.int()), 360, `${path} ${language}`);
    }
  assert.deepEqual(complaints, []);
});
