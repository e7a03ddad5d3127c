// A quota that runs low is said in every form of a response, and a refusal gives advice that fits the call.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../../../../../api/tools/tool.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';
import { startScriptedRouter, reply, type ScriptedRouter } from '../../../../support/models/scripted-router.ts';
import { sampleToolApp, type ToolSample } from '../../../../support/tools/sample.ts';

const common = {
  description: 'Of the tests.',
  openWorld: false,
  example: {},
  input: z.strictObject({}),
  output: z.object({}),
};
const dot = { bytes: Uint8Array.of(1), mediaType: 'image/png', fileName: 'dot.png' };
const tools = [
  defineTool({
    ...common,
    name: 'picture',
    title: 'Picture',
    price: '0.0004',
    artifacts: ['image/png'],
    run: () => Promise.resolve({ result: {}, artifact: dot }),
  }),
  defineTool({
    ...common,
    name: 'slow',
    title: 'Slow',
    price: '0',
    long: true,
    artifacts: ['image/png'],
    run: () => Promise.resolve({ result: {}, artifact: dot }),
  }),
];

let router: ScriptedRouter;
let sample: ToolSample;
beforeAll(async () => {
  router = await startScriptedRouter({ '/key': reply(200, '{"data":{}}') });
  sample = await sampleToolApp({
    tools,
    environment: {
      DATABASE_URL: migratedDatabase,
      MOORAGE_ROUTER_URL: router.url,
      MOORAGE_ROUTER_KEY: 'sk-platform-1234',
      MOORAGE_FREE_QUOTA_USD: '0.0009',
      MOORAGE_KEY_LIMIT_USD: '0.0005',
    },
    jobTimes: { pollMs: 20 },
  });
});
afterAll(async () => {
  await sample.stop();
  await router.close();
});

const from = (address: string, more: Record<string, string> = {}): RequestInit => ({
  headers: { 'x-forwarded-for': address, ...more },
});
const hint =
  /^You have \$0\.0001 of your \$0\.0009 daily quota left; .*own API key.*Authorization: Bearer sk-(?:…|\.\.\.)/;
const envelope = z.object({ hint: z.string(), quota: z.record(z.string(), z.string()), job: z.unknown().optional() });
const refusal = z.object({
  detail: z.string(),
  actions: z.array(z.object({ action: z.string(), description: z.string(), header: z.string().optional() })),
});

test('sends the hint as a header with raw=1, and none while plenty of quota is left', async () => {
  const first = await sample.request('/t/picture?raw=1', from('192.0.2.1'));
  assert.deepEqual([first.status, first.headers.get('x-quota-hint')], [200, null]);
  const second = await sample.request('/t/picture?raw=1', from('192.0.2.1'));
  assert.equal(second.headers.get('content-type'), 'image/png');
  assert.match(second.headers.get('x-quota-hint') ?? '', hint);
});

test('sends the hint when a job starts, when it is done, and with its file [spec tools.low-quota]', async () => {
  const begun = await sample.request('/t/slow', from('192.0.2.1'));
  const started = envelope.parse(await begun.json());
  assert.match(started.hint, hint);
  const { resets_at: resetsAt, ...rest } = started.quota;
  const amounts = { limit: '0.0009', used: '0.0008', reserved: '0', remaining: '0.0001', left: '0.0001' };
  assert.deepEqual(rest, { scope: 'caller', currency: 'USD', ...amounts });
  assert.match(resetsAt ?? '', /T00:00:00/);
  const { id } = z.object({ id: z.string() }).parse(started.job);
  const done = await sample.request(`/t/slow?job=${id}&wait=20`, from('192.0.2.1'));
  assert.match(envelope.parse(await done.json()).hint, hint);
  assert.match(done.headers.get('ratelimit') ?? '', /^"free-day";r=100;/);
  const file = await sample.request(`/t/slow?job=${id}&raw=1`, from('192.0.2.1'));
  assert.equal(file.headers.get('content-type'), 'image/png');
  assert.match(file.headers.get('x-quota-hint') ?? '', hint);
});

test('advises a key, a cheaper tool, or waiting, because a shorter prompt does not lower a fixed price', async () => {
  const answer = await sample.request('/t/picture', from('192.0.2.1'));
  assert.equal(answer.status, 402);
  const { detail, actions } = refusal.parse(await answer.json());
  assert.match(detail, /^This call costs \$0\.0004\. .*own API key.*Authorization: Bearer sk-…/);
  assert.deepEqual(
    actions.map(({ action }) => action),
    ['use-own-key', 'choose-cheaper', 'wait'],
  );
  assert.doesNotMatch(JSON.stringify(actions), /prompt|max_tokens/);
  assert.match(actions[1]?.description ?? '', /at most \$0\.0001/);
});

test('explains what a key can still do after it has used up its limit', async () => {
  const key = { authorization: 'Bearer sk-own-12345678' };
  assert.equal((await sample.request('/t/picture', from('192.0.2.2', key))).status, 200);
  const answer = await sample.request('/t/picture', from('192.0.2.2', key));
  assert.equal(answer.status, 402);
  const { detail, actions } = refusal.parse(await answer.json());
  assert.match(detail, /call them with your key \(POST \/api\/ask, Authorization: Bearer sk-…\)/);
  assert.deepEqual(
    actions.map(({ action }) => action),
    ['use-models', 'choose-cheaper', 'wait'],
  );
});
