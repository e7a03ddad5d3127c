// A hosted app called by agents on a real node: through the API by HTTP, and its operations as tools on /mcp, each call
// metered.
import assert from 'node:assert/strict';
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
  type Answer,
} from '../support/cluster.ts';

const name = 'e2e-callee';
afterAll(() => deleteApps(name));

/** FastAPI writes the OpenAPI document by itself. */
const main = `from fastapi import FastAPI, Header, HTTPException, Request

app = FastAPI(title="Callee")


@app.get("/add/{a}", operation_id="add", summary="Add two numbers")
def add(a: int, b: int = 1) -> dict[str, int]:
    return {"sum": a + b}


@app.post("/echo", operation_id="echo")
def echo(body: dict[str, str]) -> dict[str, str]:
    return body


@app.get("/seen", include_in_schema=False)
def seen(request: Request) -> dict[str, str]:
    return dict(request.headers)


@app.get("/fail", include_in_schema=False)
def fail() -> None:
    raise HTTPException(500)
`;
const files = {
  'main.py': main,
  'requirements.txt': 'fastapi==0.118.0\n',
  'moorage.yaml': 'agents: {enabled: true}\nlisting: {title: Callee, description: Adds numbers}\n',
};

beforeAll(async () => {
  const ended = await runWithFiles(name, files, (folder) => submit(folder));
  assert.equal(ended.exitCode, 0, ended.all);
  await waitFor('Ready', async () => ((await readApp(name)).status?.phase === 'Live' ? true : undefined));
});

const api = (path: string): URL => new URL(path, baseUrl);
const post = (path: string, body: object, headers: Record<string, string> = {}): Promise<Answer> =>
  get(api(path), {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
const reported = z.looseObject({
  app: z.string(),
  status: z.int(),
  body: z.unknown(),
  cost_usd: z.number(),
  cost_source: z.string(),
  latency_ms: z.int(),
});

test('the app is called through the API, and each call is metered [spec service.exposed service.metered]', async () => {
  const answer = await post(`/api/projects/${name}/call`, { path: '/add/40', query: { b: 2 } });
  assert.equal(answer.status, 200, answer.body);
  const { status, body, cost_usd: cost, cost_source: source } = reported.parse(JSON.parse(answer.body));
  assert.deepEqual([status, body, cost, source], [200, { sum: 42 }, 0.0001, 'tariff']);
  const plain = await get(api(`/api/projects/${name}/call/add/1?b=1`), { headers: { cookie: 'a=secret' } });
  assert.deepEqual([plain.status, plain.body, plain.headers['x-cost-usd']], [200, '{"sum":2}', '0.0001']);
  const seen = await get(api(`/api/projects/${name}/call/seen`), {
    headers: { cookie: 'a=secret', 'x-real-ip': '192.0.2.1' },
  });
  assert.doesNotMatch(seen.body, /secret|192\.0\.2/);
  assert.equal((JSON.parse(seen.body) as { host: string }).host, appUrl(name).host);
  const failed = await get(api(`/api/projects/${name}/call/fail`));
  assert.deepEqual([failed.status, failed.headers['x-cost-usd']], [500, '0']);
});

async function rpc(method: string, params: object, path = '/mcp'): Promise<unknown> {
  const answer = await post(
    path,
    { jsonrpc: '2.0', id: 1, method, params },
    { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-06-18' },
  );
  const data = /^data: (.*)$/m.exec(answer.body)?.[1] ?? answer.body;
  return z.looseObject({ result: z.unknown() }).parse(JSON.parse(data)).result;
}

test('its operations are tools at /mcp/{slug}, found and called on /mcp, because its moorage.yaml declares them', async () => {
  const listed = z.looseObject({
    tools: z.array(
      z.looseObject({ name: z.string(), inputSchema: z.looseObject({ required: z.array(z.string()).optional() }) }),
    ),
  });
  const tools = await waitFor('the operations of the app', async () => {
    const own = listed.parse(await rpc('tools/list', {}, `/mcp/${name}`)).tools;
    return own.length === 0 ? undefined : own;
  });
  assert.deepEqual(
    tools.map((tool) => tool.name),
    [`${name}__add`, `${name}__echo`],
  );
  assert.deepEqual(tools[0]?.inputSchema.required, ['a']);
  const result = z.looseObject({
    isError: z.boolean().optional(),
    structuredContent: z.looseObject({
      result: z.looseObject({ status: z.int(), body: z.unknown() }),
      cost_usd: z.number(),
    }),
  });
  const main = listed.parse(await rpc('tools/list', {})).tools.map((tool) => tool.name);
  assert.ok(main.includes('call_tool') && !main.some((tool) => tool.startsWith(name)));
  // Each replica reads the operations of a live app itself, so another one may have them a moment later.
  await waitFor('a search that finds them', async () => {
    const found = await rpc('tools/call', { name: 'search_tools', arguments: { query: 'add', app: name } });
    return JSON.stringify(found).includes(`"name":"${name}__add"`) ? found : undefined;
  });
  const through = { name: 'call_tool', arguments: { name: `${name}__add`, arguments: { a: 5, b: 6 } } };
  // Clients of earlier versions know a name with a dot.
  for (const call of [through, { name: `${name}.add`, arguments: { a: 5, b: 6 } }]) {
    const added = result.parse(await rpc('tools/call', call));
    assert.deepEqual(
      [added.structuredContent.result.body, added.structuredContent.cost_usd, added.isError],
      [{ sum: 11 }, 0.0001, undefined],
    );
  }
  const refused = result.parse(await rpc('tools/call', { name: `${name}__add`, arguments: { a: 'five' } }));
  assert.deepEqual([refused.isError, refused.structuredContent.result.status], [true, 422]);
});

test('agents find it in every document', async () => {
  const documents = ['/llms.txt', '/agent-capabilities.json', '/openapi.json', '/.well-known/agent-card.json'];
  for (const path of documents)
    assert.match((await get(api(path))).body, new RegExp(`/api/projects/(${name}|<slug>)/call`), path);
  assert.match((await get(api('/agent-capabilities.json'))).body, new RegExp(`"${name}__add"`));
});

test('a suspended app is not called', async () => {
  await runKubectl('patch', 'happ', name, '-n', appsNamespace, '--type=merge', '-p', '{"spec":{"suspend":true}}');
  const answer = await waitFor('the refusal', async () => {
    const one = await post(`/api/projects/${name}/call`, {});
    return one.status === 409 ? one : undefined;
  });
  assert.match(answer.body, /app-not-live/);
});
