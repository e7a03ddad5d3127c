// Tools that take long, end to end: two replicas over HTTP on one PostgreSQL, by /t and by /mcp, also when the one at
// work is killed.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { Ledger } from '../../../api/billing/ledger/ledger.ts';
import { toDollarNumber } from '../../../api/billing/ledger/money.ts';
import { openLedgerDatabase, type Database } from '../../../api/billing/database/database.ts';
import { money } from '../../../api/billing/ledger/money.ts';
import { readCatalog } from '../../../api/models/catalog.ts';
import { reply, startScriptedRouter, type Script, type ScriptedRouter } from '../../support/models/scripted-router.ts';
import { createAnswer } from '../../support/tools/model-lab.ts';
import { sharePostgres, type SharedPostgres } from '../../support/ledger/postgres.ts';

interface Replica {
  readonly child: ChildProcess;
  readonly url: string;
}

let postgres: SharedPostgres;
let database: Database;
let router: ScriptedRouter;
let engine: Server;
let replicas: Replica[] = [];
let start: () => Promise<Replica>;
/** The model answers once this has been let go. */
let gate: Promise<unknown> = Promise.resolve();

const answers = createAnswer((said, system = '') => {
  if (system.startsWith('You plan'))
    return said.includes('Searched so far') ? '{"queries": []}' : '{"queries": ["first", "second"]}';
  if (system.startsWith('You take notes')) return 'Noted.';
  return 'It is so [1].';
}, '0.0001');
const model: Script = async (response, asked, closed) => {
  await gate;
  await answers(response, asked, closed);
};

beforeAll(async () => {
  postgres = await sharePostgres();
  const url = await postgres.createDatabase('long');
  database = await openLedgerDatabase(url);
  router = await startScriptedRouter({
    ...Object.fromEntries(readCatalog().models.map(({ upstream }) => [upstream, model])),
    '/key': reply(200, '{"data":{}}'),
    '/generation': reply(404, '{}'),
  });
  engine = createServer((request, response) => {
    const query = new URL(request.url ?? '', 'http://engine').searchParams.get('q') ?? '';
    response.writeHead(200, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        results: ['a', 'b'].map((page) => ({ url: `https://pages.test/${query}-${page}`, title: page, content: '' })),
        unresponsive_engines: [],
      }),
    );
  });
  engine.listen(0, '127.0.0.1');
  await once(engine, 'listening');
  const address = engine.address();
  const engineUrl = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
  start = () => startReplica(url, router.url, engineUrl);
  replicas = await Promise.all([start(), start()]);
});
afterAll(async () => {
  for (const { child } of replicas) child.kill('SIGKILL');
  engine.close();
  await router.close();
  await database.close();
  await postgres.stop();
});

async function startReplica(...parameters: string[]): Promise<Replica> {
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, '../../support/tools/long-server.ts'), ...parameters],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const [port] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return { child, url: `http://127.0.0.1:${port}` };
}
const at = (index: number): Replica => replicas[index] ?? assert.fail('no such replica');

const envelope = z.looseObject({
  tool: z.string(),
  /** Absent while the first call of a job is in progress. */
  cost_usd: z.number().optional(),
  cost_source: z.string(),
  hint: z.string().optional(),
  result: z.looseObject({ answer: z.string().optional(), model_calls: z.int().optional() }).optional(),
  job: z.looseObject({ id: z.string(), state: z.string(), poll_url: z.string() }).optional(),
  artifact: z.looseObject({ url: z.string(), bytes: z.int() }).optional(),
});
type Envelope = z.output<typeof envelope>;

async function get(path: string, index = 0): Promise<Envelope> {
  const response = await fetch(`${at(index).url}${path}`);
  const body: unknown = await response.json();
  assert.equal(response.status, 200, JSON.stringify(body));
  return envelope.parse(body);
}

/** The path of an address that was given out, to be asked of one of these replicas. */
const pathOf = (url: string): string => url.replace('https://moorage.test', '');

async function finished(path: string, index = 0): Promise<Envelope> {
  for (;;) {
    const answer = await get(`${path}&wait=30`, index);
    if (answer.result !== undefined) return answer;
  }
}

function isResearch({ result, cost_usd, cost_source }: Envelope): void {
  assert.match(result?.answer ?? '', /^It is so \[1\]\./);
  assert.deepEqual(
    [cost_source, cost_usd],
    ['metered', toDollarNumber((BigInt(result?.model_calls ?? 0) * 100_000_000n) as never)],
  );
}

test('by /t: returns a handle immediately, its progress and result at poll_url from any replica, and the same with wait', async () => {
  const begun = await get('/t/deep_research?question=How+is+it');
  assert.deepEqual(
    [
      begun.result,
      begun.cost_source === 'pending' ? 0 : begun.cost_usd,
      ['queued', 'running'].includes(begun.job?.state ?? ''),
    ],
    [undefined, 0, true],
  );
  isResearch(await finished(pathOf(begun.job?.poll_url ?? ''), 1));
  isResearch(await get('/t/deep_research?question=How+was+it&wait=60'));
});

test("by /t: serves a job's file at its link to anyone, at poll_url to its caller, and charges once", async () => {
  const { job } = await get('/t/paint?bytes=70000');
  const path = pathOf(job?.poll_url ?? '');
  const { artifact, cost_usd } = await finished(path);
  assert.deepEqual([artifact?.bytes, cost_usd], [70_000, 0.0001]);
  for (const [index, address] of [
    [0, `${path}&raw=1`],
    [1, pathOf(artifact?.url ?? '')],
  ] as const) {
    const file = await fetch(`${at(index).url}${address}`);
    assert.deepEqual(
      [file.headers.get('content-type'), Buffer.from(await file.arrayBuffer())],
      ['image/png', Buffer.alloc(70_000, 7)],
    );
  }
  const charged = await database.query(
    {
      name: 'painted',
      text: "select sum(cost)::text as cost from ledger.usage where tool = 'paint'",
      row: z.object({ cost: money }),
    },
    [],
  );
  assert.equal(toDollarNumber(charged[0]?.cost ?? assert.fail()), 0.0001);
});

test('by /mcp: returns a handle immediately, even if progress is requested; with wait, progress rises until the result', async () => {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${at(1).url}/mcp`)));
  const heard: number[] = [];
  const first = await client.callTool(
    { name: 'deep_research', arguments: { question: 'How will it be?' } },
    { onprogress: () => undefined, timeout: 10_000 },
  );
  const begun = envelope.parse(first.structuredContent).job?.id ?? assert.fail('no job');
  const reported = await client.callTool(
    { name: 'deep_research', arguments: { job: begun, wait: 60 } },
    {
      onprogress: ({ progress }) => {
        heard.push(progress);
      },
    },
  );
  isResearch(envelope.parse(reported.structuredContent));
  assert.ok(heard.length >= 1 && heard.every((one, index) => one > (heard[index - 1] ?? -1)), String(heard));
  const { job } = envelope.parse((await client.callTool({ name: 'paint', arguments: { bytes: 3 } })).structuredContent);
  const done = await client.callTool({ name: 'paint', arguments: { job: job?.id, wait: 30 } });
  assert.deepEqual(
    done.content.map(({ type }) => type),
    ['text', 'resource_link', 'image'],
  );
  await client.close();
});

for (const mode of ['auto', 'legacy'] as const)
  test(`by /mcp, ${mode}: canceling a call before it has the handle ends its job and its model calls`, async () => {
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${at(1).url}/mcp`)));
    const open = Promise.withResolvers<undefined>();
    gate = open.promise;
    const before = router.asked.length;
    const abort = new AbortController();
    const call = client.callTool(
      { name: 'deep_research', arguments: { question: `Is it ${mode}?`, wait: 60 } },
      { signal: abort.signal },
    );
    call.catch(() => undefined);
    while (router.asked.length === before) await sleep(20);
    abort.abort(new Error('enough'));
    await assert.rejects(call);
    const state = async (): Promise<string> => {
      const [job] = await database.query(
        {
          name: 'canceled-job',
          text: "select state || ' ' || coalesce(problem ->> 'slug', '') as state from tools.job where input ->> 'question' = $1",
          row: z.object({ state: z.string() }),
        },
        [`Is it ${mode}?`],
      );
      return job?.state ?? 'none';
    };
    for (let tries = 0; (await state()) !== 'failed job-canceled' && tries < 250; tries += 1) await sleep(20);
    assert.equal(await state(), 'failed job-canceled');
    const asked = router.asked.length;
    open.resolve(undefined);
    await sleep(1_000);
    assert.equal(router.asked.length, asked);
    await client.close();
  });

test(
  'another process takes over a job whose process was killed, and its cost is that of both',
  { timeout: 120_000 },
  async () => {
    at(1).child.kill('SIGKILL');
    const before = router.asked.length;
    const open = Promise.withResolvers<undefined>();
    gate = open.promise;
    const { job } = await get('/t/deep_research?question=What+now');
    while (router.asked.length === before)
      await new Promise((resolve) => {
        setTimeout(resolve, 20);
      });
    at(0).child.kill('SIGKILL');
    open.resolve(undefined);
    replicas = [await start()];
    const { result, cost_source: source, hint } = await finished(pathOf(job?.poll_url ?? ''));
    assert.match(result?.answer ?? '', /^It is so \[1\]\./);
    // Of the call that the dead process was waiting for, nobody knows yet what it cost.
    assert.deepEqual([source, /has not reported the cost of one model call/.test(hint ?? '')], ['pending', true]);
    const [row] = await database.query(
      {
        name: 'attempt',
        text: 'select attempt::int from tools.job where id = $1::uuid',
        row: z.object({ attempt: z.int() }),
      },
      [job?.id],
    );
    assert.equal(row?.attempt, 2);
    assert.deepEqual(await new Ledger(database).audit(), []);
  },
);
