// Calls of tools with an Idempotency-Key: run once, charged once, answered alike.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';
import { toToolAccount } from '../../../../../api/billing/ledger/accounts.ts';
import { IdempotencyKeys } from '../../../../../api/billing/idempotency.ts';
import { formatMoney } from '../../../../../api/billing/ledger/money.ts';
import { defineTool } from '../../../../../api/tools/tool.ts';
import { json } from '../../../../support/models/sample.ts';
import { sampleToolApp, type ToolSample } from '../../../../support/tools/sample.ts';
import { sampleTools } from '../../../../support/tools/sample-tools.ts';

let runs = 0;
let go = Promise.withResolvers<undefined>();
const counted = defineTool({
  name: 'counted',
  title: 'Counted',
  description: 'Of the tests.',
  price: '0.0001',
  openWorld: false,
  example: {},
  artifacts: ['text/plain'],
  input: z.strictObject({
    hold: z.boolean().optional().describe('Wait for the test'),
    large: z.boolean().optional().describe('Make a file that is too large to be kept'),
  }),
  output: z.object({ run: z.int() }),
  async run({ hold, large }) {
    runs += 1;
    const run = runs;
    if (hold === true) await go.promise;
    return {
      result: { run },
      artifact: {
        bytes: large === true ? new Uint8Array(34_000_000) : Buffer.from(`run ${run}`),
        mediaType: 'text/plain',
        fileName: 'run.txt',
      },
    };
  },
});
const slow = defineTool({
  name: 'slow',
  title: 'Slow',
  description: 'Of the tests.',
  price: '0',
  openWorld: false,
  example: { topic: 'a' },
  long: true,
  input: z.strictObject({ topic: z.string().describe('Any') }),
  output: z.object({ run: z.int() }),
  run: () => {
    runs += 1;
    return Promise.resolve({ result: { run: runs } });
  },
});

let sample: ToolSample;
beforeAll(async () => {
  sample = await sampleToolApp({
    environment: { DATABASE_URL: migratedDatabase },
    tools: [...sampleTools, counted, slow],
  });
});
afterAll(() => sample.stop());

/** A key that only its sender has, by a name in these tests; one that is too long as it is. */
const secrets = new Map<string, string>();
function secretKey(name: string): string {
  const secret = name.length > 255 ? name : (secrets.get(name) ?? crypto.randomUUID());
  secrets.set(name, secret);
  return secret;
}

function post(
  tool: string,
  fields: Record<string, unknown>,
  key: string,
  headers: Record<string, string> = {},
): Promise<Response> {
  const init = json(fields);
  return sample.request(`/t/${tool}`, {
    ...init,
    headers: { ...(init.headers as Record<string, string>), 'idempotency-key': secretKey(key), ...headers },
  });
}
async function earned(): Promise<string> {
  return formatMoney(await sample.models.ledger.get().ledger.balance(toToolAccount('counted')));
}
const slug = async (response: Response): Promise<string> =>
  `${response.status} ${z
    .looseObject({ type: z.string() })
    .parse(await response.json())
    .type.split('/')
    .at(-1)}`;

test('runs and charges a repeated call with the same key once, and returns the same response', async () => {
  const first = await post('counted', {}, 'one');
  const text = await first.text();
  const earnedOnce = await earned();
  for (let nth = 0; nth < 2; nth += 1) {
    const again = await post('counted', {}, 'one');
    assert.deepEqual([again.status, again.headers.get('idempotent-replayed'), await again.text()], [200, 'true', text]);
  }
  assert.equal(first.headers.get('idempotent-replayed'), null);
  assert.deepEqual([runs, await earned()], [1, earnedOnce]);
  assert.equal(earnedOnce, '-0.0001');
});

test('replays the bytes of raw=1 too, with their cost', async () => {
  const [first, again] = [await post('counted', { raw: true }, 'raw'), await post('counted', { raw: true }, 'raw')];
  assert.deepEqual(
    [await first.text(), again.headers.get('idempotent-replayed'), again.headers.get('x-cost-usd')],
    [await again.text(), 'true', '0.0001'],
  );
  assert.equal(await slug(await post('counted', {}, 'raw')), '422 idempotency-mismatch');
});

test('neither creates nor charges a file that was not stored again under the same key', async () => {
  const before = runs;
  assert.equal(
    (await (await post('counted', { raw: true, large: true }, 'large')).arrayBuffer()).byteLength,
    34_000_000,
  );
  assert.equal(await slug(await post('counted', { raw: true, large: true }, 'large')), '404 unknown-file');
  assert.equal(runs, before + 1);
});

test('binds a key to one call of one caller: rejects another body or tool, accepts another caller', async () => {
  assert.equal(await slug(await post('counted', { hold: false }, 'one')), '422 idempotency-mismatch');
  assert.equal(await slug(await post('echo', { text: 'a' }, 'one')), '422 idempotency-mismatch');
  const other = await post('counted', {}, 'one', { 'x-forwarded-for': '203.0.113.9' });
  assert.equal(other.headers.get('idempotent-replayed'), null);
  assert.equal(await slug(await post('counted', {}, 'k'.repeat(256))), '400 invalid-request');
});

test('asks a repeated call to wait while the first is in progress; a failed call may be sent again', async () => {
  go = Promise.withResolvers();
  const first = post('counted', { hold: true }, 'busy');
  while ((await slug(await post('counted', { hold: true }, 'busy')).catch(() => '')) !== '409 idempotency-in-flight');
  go.resolve(undefined);
  assert.equal((await first).status, 200);
  assert.equal(await slug(await post('fail', { how: 'problem' }, 'fails')), '502 tool-failed');
  assert.equal(await slug(await post('fail', { how: 'problem' }, 'fails')), '502 tool-failed');
});

test('returns the same job, with its current state, for the same key of a slow tool', async () => {
  const before = runs;
  const handle = z
    .looseObject({ job: z.object({ id: z.string() }) })
    .parse(await (await post('slow', { topic: 'a' }, 'job')).json()).job.id;
  for (let state: unknown; state === undefined;)
    state = z
      .looseObject({ result: z.unknown() })
      .parse(await (await sample.request(`/t/slow?job=${handle}&wait=10`)).json()).result;
  const again = await post('slow', { topic: 'a' }, 'job');
  assert.deepEqual(
    [
      again.headers.get('idempotent-replayed'),
      z.looseObject({ result: z.unknown() }).parse(await again.json()).result,
      runs,
    ],
    ['true', { run: before + 1 }, before + 1],
  );
});

test('limits the stored responses per caller, and removes the oldest', async () => {
  const keys = new IdempotencyKeys(sample.models.ledger.get().database, { leaseMs: 1_000, keepMs: 60_000 });
  const outcome = async (key: string, answer: unknown): Promise<string> => {
    const begun = await keys.begin({ scope: 'bounded', key, body: '' });
    if (begun.outcome === 'begun') await begun.finish(answer);
    // The clock of the embedded database has milliseconds, and the oldest is to be one alone.
    await sleep(3);
    return begun.outcome;
  };
  for (const key of ['a', 'b', 'c']) await outcome(key, {});
  await keys.trim('bounded', { answers: 2, bytes: 1_000_000 });
  assert.deepEqual([await outcome('c', {}), await outcome('a', {})], ['answered', 'begun']);
  await outcome('large', { text: [...Array(3_000).keys()].join('-') });
  await outcome('new', {});
  await keys.trim('bounded', { answers: 100, bytes: 2_000 });
  assert.deepEqual([await outcome('new', {}), await outcome('large', {})], ['answered', 'begun']);
});
