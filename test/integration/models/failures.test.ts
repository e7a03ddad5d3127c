// Routers that misbehave: what the caller sees, and what is settled, on a real PostgreSQL. The routers are scripted
// servers on loopback.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { toPlatformAccount } from '../../../api/billing/ledger/accounts.ts';
import { Ledger } from '../../../api/billing/ledger/ledger.ts';
import { parseMoney } from '../../../api/billing/ledger/money.ts';
import { reconcile } from '../../../api/billing/ledger/reconciler.ts';
import { RouterClient } from '../../../api/models/router/client.ts';
import { json, sampleModels, type Sample } from '../../support/models/sample.ts';
import {
  completion,
  delta,
  events,
  reply,
  startScriptedRouter,
  stream,
  usageEvent,
  type Script,
  type ScriptedRouter,
} from '../../support/models/scripted-router.ts';
import { waitUntil } from '../../support/kubernetes/until.ts';
import { sharePostgres, type SharedPostgres } from '../../support/ledger/postgres.ts';

const usage = '{"prompt_tokens":3,"completion_tokens":1,"cost":0.000123}';
let lateLooks = 0;
const left = Promise.withResolvers<undefined>();

const scripts: Readonly<Record<string, Script>> = {
  good: reply(200, completion(usage)),
  hangs: () => undefined,
  'resets-at-once': (response) => {
    response.socket?.resetAndDestroy();
  },
  'resets-in-the-body': (response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'x-generation-id': 'gen-1' }).write('{"id":');
    setImmediate(() => {
      response.socket?.resetAndDestroy();
    });
  },
  'says-429': reply(429, '{"error":{"message":"slow down"}}', { 'retry-after': '17' }),
  'says-402': reply(402, '{"error":{"message":"no credit"}}'),
  'says-401': reply(401, '{"error":{"message":"no such key"}}'),
  'says-400': reply(400, '{"error":{"message":"prompt too long for sk-secret-1234567"}}'),
  'says-500': reply(500, '{"error":{"message":"oops"}}'),
  'says-500-in-html': reply(502, '<html>bad gateway</html>'),
  'says-503': reply(503, '{"error":{"message":"overloaded"}}'),
  'not-json': reply(200, '{"id": "gen-1", "choices": ['),
  empty: reply(200, ''),
  'other-json': reply(200, '{"hello": "world"}'),
  'error-in-200': reply(200, '{"error":{"message":"upstream died","code":502}}'),
  'no-choices': reply(200, '{"id":"gen-1","choices":[]}'),
  'no-usage': reply(200, completion(undefined)),
  'no-cost': reply(200, completion('{"prompt_tokens":3,"completion_tokens":1}')),
  'negative-cost': reply(200, completion('{"prompt_tokens":3,"completion_tokens":1,"cost":-1}')),
  'absurd-cost': reply(200, completion('{"prompt_tokens":3,"completion_tokens":1,"cost":1e30}')),
  'zero-cost': reply(200, completion('{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4,"cost":0}')),
  'zero-record': reply(200, completion('{"prompt_tokens":3,"completion_tokens":1}', 'gen-zero')),
  'late-cost': reply(200, completion(undefined, 'gen-late')),
  'stream-good': stream(delta('H'), delta('i', 'stop'), usageEvent(usage), '[DONE]'),
  'stream-float': stream(
    delta('H', 'stop'),
    usageEvent('{"prompt_tokens":3,"completion_tokens":1,"cost":0.000022499999999999998}'),
    '[DONE]',
  ),
  'stream-resets': (response) => {
    events(response, delta('H'));
    setTimeout(() => {
      response.socket?.resetAndDestroy();
    }, 50);
  },
  'stream-breaks-off': stream(delta('H')),
  'stream-errs': stream(delta('H'), '{"id":"gen-1","error":{"message":"upstream died","code":502},"choices":[]}'),
  'stream-not-json': stream(delta('H'), '{'),
  'stream-no-usage': stream(delta('H'), delta('i', 'stop'), '[DONE]'),
  'stream-hangs': async (response, _asked, closed) => {
    events(response, delta('H'));
    await closed;
    left.resolve(undefined);
  },
  '/key': (response, { authorization }) => {
    response
      .writeHead(authorization === 'Bearer sk-valid-12345678' ? 200 : 401, { 'content-type': 'application/json' })
      .end('{"data":{}}');
  },
  '/generation': (response, { path }) => {
    if (path.endsWith('gen-zero')) {
      const record = '{"data":{"total_cost":0,"tokens_prompt":3,"tokens_completion":1}}';
      response.writeHead(200, { 'content-type': 'application/json' }).end(record);
      return;
    }
    const found = path.endsWith('gen-late') && (lateLooks += 1) > 2;
    response
      .writeHead(found ? 200 : 404, { 'content-type': 'application/json' })
      .end(found ? '{"data":{"total_cost":0.00045}}' : '{"error":{"message":"not yet"}}');
  },
};

let postgres: SharedPostgres;
let router: ScriptedRouter;
let sample: Sample;
const folder = mkdtempSync(join(tmpdir(), 'moorage-failures-'));
beforeAll(async () => {
  const models = Object.keys(scripts)
    .filter((name) => !name.startsWith('/'))
    .concat('unknown')
    .map((id) => ({
      id,
      label: id,
      maker: 'test',
      quality: 'light',
      tier: 'free',
      in_per_m: '1',
      out_per_m: '1',
      upstream: id,
    }));
  writeFileSync(join(folder, 'models.yaml'), JSON.stringify({ models }));
  [postgres, router] = await Promise.all([sharePostgres(), startScriptedRouter(scripts)]);
  sample = await sampleModels({
    databaseUrl: await postgres.createDatabase('failures'),
    environment: {
      MOORAGE_ROUTER_URL: router.url,
      MOORAGE_ROUTER_KEY: 'sk-platform-1234',
      MOORAGE_MODELS_FILE: join(folder, 'models.yaml'),
      MOORAGE_FREE_QUOTA_USD: '1',
      MOORAGE_CALL_SECONDS: '1',
    },
  });
});
afterAll(async () => {
  await sample.stop();
  await router.close();
  await postgres.stop();
  rmSync(folder, { recursive: true });
});

const newest = {
  name: 'test-newest',
  text: 'select h.state, h.cost::text, u.cost_source, p.reference from ledger.hold h left join ledger.usage u on u.id = h.id::text left join ledger.pending p on p.hold_id = h.id order by h.created_at desc limit 1',
  row: z.object({
    state: z.string(),
    cost: z.string().nullable(),
    cost_source: z.string().nullable(),
    reference: z.string().nullable(),
  }),
};

interface Row {
  readonly model: string;
  readonly key?: string;
  readonly status: number;
  readonly type?: string;
  readonly says?: RegExp;
  /** State of the hold afterwards. */
  readonly closed: 'settled' | 'voided' | 'pending';
  readonly reference?: string;
}

/** What the router says itself, which only the owner of a key may read. */
const routersText = /slow down|no credit|no such key|prompt too long|oops|upstream died/i;

const ownKey = 'sk-valid-12345678';
const table: readonly Row[] = [
  { model: 'good', status: 200, closed: 'settled' },
  { model: 'good', key: ownKey, status: 200, closed: 'settled' },
  { model: 'hangs', status: 504, type: 'model-timeout', closed: 'pending' },
  {
    model: 'resets-at-once',
    status: 502,
    type: 'model-failed',
    says: /connection to the router was lost/,
    closed: 'pending',
  },
  { model: 'resets-in-the-body', status: 502, type: 'model-failed', closed: 'pending', reference: 'gen-1' },
  {
    model: 'says-429',
    status: 503,
    type: 'router-unavailable',
    says: /^The router accepts no more calls at the moment\. Nothing was charged\. Try again in 17 seconds\.$/,
    closed: 'voided',
  },
  { model: 'says-402', status: 503, type: 'router-unavailable', says: /out of credit/, closed: 'voided' },
  {
    model: 'says-402',
    key: ownKey,
    status: 402,
    type: 'key-out-of-credit',
    says: /No credit.*your API key/,
    closed: 'voided',
  },
  { model: 'says-401', status: 503, type: 'router-unavailable', says: /MOORAGE_ROUTER_KEY/, closed: 'voided' },
  { model: 'says-401', key: ownKey, status: 401, type: 'key-refused', closed: 'voided' },
  {
    model: 'says-400',
    status: 422,
    type: 'model-refused',
    says: /^says-400 rejected the request: The prompt and max_tokens are more than the model can take\./,
    closed: 'voided',
  },
  {
    model: 'says-400',
    key: ownKey,
    status: 422,
    type: 'model-refused',
    says: /Prompt too long for sk-…/,
    closed: 'voided',
  },
  { model: 'unknown', status: 502, type: 'model-failed', says: /does not offer unknown/, closed: 'voided' },
  { model: 'says-500', status: 502, type: 'model-failed', says: /responded with status 500/, closed: 'pending' },
  { model: 'says-500', key: ownKey, status: 502, type: 'model-failed', says: /Oops/, closed: 'pending' },
  {
    model: 'says-500-in-html',
    status: 502,
    type: 'model-failed',
    says: /responded with status 502/,
    closed: 'pending',
  },
  { model: 'says-503', status: 503, type: 'router-unavailable', closed: 'voided' },
  { model: 'not-json', status: 502, type: 'model-failed', says: /not JSON/, closed: 'pending' },
  { model: 'empty', status: 502, type: 'model-failed', closed: 'pending' },
  { model: 'other-json', status: 502, type: 'model-failed', closed: 'pending' },
  {
    model: 'error-in-200',
    status: 502,
    type: 'model-failed',
    says: /: The router reported an error\./,
    closed: 'pending',
  },
  { model: 'no-choices', status: 502, type: 'model-failed', closed: 'pending' },
  { model: 'no-usage', status: 200, closed: 'pending', reference: 'gen-1' },
  { model: 'no-cost', status: 200, closed: 'pending', reference: 'gen-1' },
  { model: 'negative-cost', status: 200, closed: 'pending', reference: 'gen-1' },
  { model: 'absurd-cost', status: 200, closed: 'pending', reference: 'gen-1' },
  { model: 'zero-cost', status: 200, closed: 'pending', reference: 'gen-1' },
  { model: 'zero-record', status: 200, closed: 'pending', reference: 'gen-zero' },
];

const reported = z.looseObject({
  type: z.string().optional(),
  detail: z.string().optional(),
  cost_usd: z.number().optional(),
  cost_source: z.string().optional(),
});

async function expectClosed(body: z.output<typeof reported>, closed: Row['closed'], reference?: string): Promise<void> {
  const [row] = await sample.database.query(newest, []);
  assert.equal(row?.state, closed);
  const answered = body.type === undefined;
  if (answered)
    assert.deepEqual(
      [body.cost_usd, body.cost_source],
      closed === 'settled' ? [0.000123, 'billed'] : [undefined, 'pending'],
    );
  if (closed === 'settled') assert.equal(parseMoney(row.cost ?? ''), parseMoney('0.000123'));
  if (closed === 'pending') assert.equal(row.cost_source, 'pending');
  if (reference !== undefined) assert.equal(row.reference, reference);
}

/** Every call bounds its answer, can be found again by its hold, and carries the key of who pays. */
function expectSent(key: string): void {
  const sent = router.asked.findLast(({ path }) => path === '/chat/completions');
  assert.match(sent?.body ?? '', /"max_tokens":1024/);
  assert.match(sent?.hold ?? '', /^[0-9a-f-]{36}$/);
  assert.equal(sent?.authorization, `Bearer ${key}`);
}

for (const { model, key, status, type, says, closed, reference } of table) {
  test(`a router that ${model}${key === undefined ? '' : ', with an own key'}: ${status}${type === undefined ? '' : ` ${type}`}, ${closed}`, async () => {
    const answer = await sample.request(
      '/api/ask',
      json({ prompt: 'Hello', model }, key === undefined ? {} : { authorization: `Bearer ${key}` }),
    );
    const body = reported.parse(await answer.json());
    assert.equal(answer.status, status, JSON.stringify(body));
    assert.equal(body.type, type === undefined ? undefined : `https://moorage.test/problems/${type}`);
    assert.match(body.detail ?? '', says ?? /^/);
    if (key === undefined) assert.doesNotMatch(JSON.stringify(body), routersText);
    await expectClosed(body, closed, reference);
    expectSent(key ?? 'sk-platform-1234');
  });
}

for (const { model, ends, says, closed } of [
  { model: 'stream-good', ends: 'done', says: /"cost_usd":0\.000123/, closed: 'settled' },
  { model: 'stream-no-usage', ends: 'done', says: /"cost_source":"pending"/, closed: 'pending' },
  { model: 'stream-resets', ends: 'error', says: /model-failed/, closed: 'pending' },
  { model: 'stream-breaks-off', ends: 'error', says: /ended before the answer was complete/, closed: 'pending' },
  { model: 'stream-errs', ends: 'error', says: /stopped before its answer was complete/, closed: 'pending' },
  { model: 'stream-not-json', ends: 'error', says: /not JSON/, closed: 'pending' },
] as const) {
  test(`a router whose ${model}: the last event is ${ends}, ${closed}`, async () => {
    const answer = await sample.request('/api/ask', json({ prompt: 'Hello', model, stream: true }));
    assert.equal(answer.headers.get('content-type'), 'text/event-stream');
    const all = (await answer.text()).trimEnd().split('\n\n');
    assert.equal(all[0], 'event: delta\ndata: {"text":"H"}');
    const last = all.at(-1) ?? '';
    assert.match(last, new RegExp(`^event: ${ends}\n`));
    assert.match(last, says);
    const [row] = await sample.database.query(newest, []);
    assert.equal(row?.state, closed);
    assert.equal(row.cost_source, closed === 'settled' ? 'billed' : 'pending');
  });
}

test("a stream over /v1 ends with the settled cost, not with the router's figure", async () => {
  const answer = await sample.request(
    '/v1/chat/completions',
    json({
      model: 'stream-float',
      messages: [{ role: 'user', content: 'Hello' }],
      stream: true,
      stream_options: { include_usage: true },
    }),
  );
  const frames = (await answer.text()).trimEnd().split('\n\n');
  assert.equal(frames.length, 3);
  assert.match(frames[0] ?? '', /"content":"H"/);
  assert.match(frames[1] ?? '', /"choices":\[\],"usage":\{.*"cost":0\.0000225\}/);
  assert.equal(frames[2], 'data: [DONE]');
});

test('a caller who disconnects during a stream ends the call, and its cost is looked up', async () => {
  const answer = await sample.request('/api/ask', json({ prompt: 'Hello', model: 'stream-hangs', stream: true }));
  const reader = answer.body?.getReader() ?? assert.fail('no body');
  await reader.read();
  await reader.cancel();
  await left.promise;
  // The router hears of it over a connection of its own, and the ledger is written after that.
  const newestHold = async (): Promise<unknown[]> => {
    const [row] = await sample.database.query(newest, []);
    return [row?.state, row?.reference];
  };
  await waitUntil(async () => isDeepStrictEqual(await newestHold(), ['pending', 'gen-1']));
});

test('one failing model does not fail a comparison [spec compare.error]', async () => {
  const answer = await sample.request(
    '/api/compare',
    json({ prompt: 'Hello', models: ['good', 'says-500', 'says-429', 'no-usage', 'hangs'] }),
  );
  assert.equal(answer.status, 200);
  const body = z
    .looseObject({
      results: z.array(
        z.looseObject({ model: z.string(), answer: z.string(), cost_source: z.string(), error: z.string().optional() }),
      ),
      summary: z.looseObject({}),
    })
    .parse(await answer.json());
  assert.deepEqual(
    body.results.map(({ model, cost_source, cost_usd, error }) => [model, cost_source, cost_usd, error !== undefined]),
    [
      ['good', 'billed', 0.000123, false],
      ['says-500', 'pending', undefined, true],
      ['says-429', 'none', 0, true],
      ['no-usage', 'pending', undefined, false],
      ['hangs', 'pending', undefined, true],
    ],
  );
  const { fastest, ...rest } = body.summary;
  assert.ok(fastest === 'good' || fastest === 'no-usage');
  assert.deepEqual(rest, {
    cheapest: 'good',
    total_cost_usd: 0.000123,
    total_charged_usd: 0,
    cost_spread: '1x between cheapest and priciest',
    pending: ['says-500', 'no-usage', 'hangs'],
  });
});

test('a late cost is found in the router’s records and settled, and one that never arrives is settled at an estimate', async () => {
  const answer = await sample.request('/api/ask', json({ prompt: 'Hello', model: 'late-cost' }));
  assert.equal(z.looseObject({ cost_source: z.string() }).parse(await answer.json()).cost_source, 'pending');
  const client = new RouterClient({ kind: 'openrouter', url: router.url, key: 'sk-platform-1234' }, { callMs: 1_000 });
  let hours = 0;
  const later = new Ledger(sample.database, { clock: () => new Date(Date.now() + hours * 3_600_000) });
  while ((await later.counts()).pending > 0) {
    hours += 2;
    await reconcile(later, {
      lookUp: (pending) => client.lookUp(pending),
      waitMs: 1_000,
      attempts: 10,
      leaseMs: 1_000,
    });
  }
  await client.close();
  const late = {
    name: 'test-late',
    text: "select h.cost::text, u.cost_source from ledger.hold h join ledger.usage u on u.id = h.id::text where u.model = 'late-cost'",
    row: z.object({ cost: z.string(), cost_source: z.string() }),
  };
  assert.deepEqual(
    (await sample.database.query(late, [])).map(({ cost, cost_source }) => [parseMoney(cost), cost_source]),
    [[parseMoney('0.00045'), 'router_record']],
  );
  assert.deepEqual(await later.counts(), { open: 0, pending: 0, abandoned: 0 });
  const estimated = {
    name: 'test-estimated',
    text: "select u.model, h.cost = h.amount as at_maximum from ledger.hold h join ledger.usage u on u.id = h.id::text where u.cost_source = 'estimated'",
    row: z.object({ model: z.string(), at_maximum: z.boolean() }),
  };
  const estimates = await sample.database.query(estimated, []);
  // By the tokens where the router counted them, else by the maximum that was reserved.
  for (const [model, atMaximum] of [
    ['hangs', true],
    ['stream-hangs', true],
    ['no-cost', false],
    ['zero-cost', false],
    ['zero-record', false],
  ] as const)
    assert.ok(
      estimates.some((one) => one.model === model && one.at_maximum === atMaximum),
      model,
    );
  assert.deepEqual(await later.audit(), []);
  assert.equal((await sample.ledger.budget({ account: toPlatformAccount('openrouter'), limit: null })).held, 0n);
});
