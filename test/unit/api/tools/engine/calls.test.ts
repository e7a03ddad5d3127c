// Calls of tools over HTTP: how input is read, what is refused and how, envelopes, files, slots.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';
import { toToolAccount } from '../../../../../api/billing/ledger/accounts.ts';
import { json } from '../../../../support/models/sample.ts';
import { sampleToolApp, type ToolSample } from '../../../../support/tools/sample.ts';
import { echo, createWaitingTool } from '../../../../support/tools/sample-tools.ts';

const problem = z.looseObject({
  type: z.string(),
  status: z.int(),
  detail: z.string(),
  errors: z.array(z.object({ in: z.string(), field: z.string(), message: z.string(), fix: z.string() })).optional(),
});
const answer = z.looseObject({
  tool: z.string(),
  result: z.looseObject({}),
  cost_usd: z.number().optional(),
  cost_source: z.string(),
  latency_ms: z.int(),
  request_id: z.string(),
});

let sample: ToolSample;
beforeAll(async () => {
  sample = await sampleToolApp({ environment: { DATABASE_URL: migratedDatabase } });
});
afterAll(() => sample.stop());

async function call(path: string, init?: RequestInit): Promise<z.output<typeof answer>> {
  const response = await sample.request(path, init);
  const body: unknown = await response.json();
  assert.equal(response.status, 200, JSON.stringify(body));
  return answer.parse(body);
}

test('parses a query by its fields, with defaults, aliases and a session name [spec tools.open auth.optional]', async () => {
  const { result, tool, cost_usd, cost_source } = await call(
    '/t/echo?q=hi&repeat=2&loud=yes&tags=x,y&spec=%7B%22a%22%3A1%7D&kind=b&s=mine-1',
  );
  assert.deepEqual(result, {
    echoed: 'HIHI',
    input: { text: 'hi', times: 2, loud: true, tags: ['x', 'y'], spec: { a: 1 }, kind: 'b' },
    session: 'mine-1',
  });
  assert.deepEqual([tool, cost_usd, cost_source], ['echo', 0, 'none']);
});

test('parses a JSON body with aliases; options may be in the body or in the query', async () => {
  const fields = { query: 'hi', times: 3, loud: true, tags: ['x,y'], spec: { a: 1 } };
  const expected = {
    echoed: 'HIHIHI',
    input: { text: 'hi', times: 3, loud: true, tags: ['x,y'], spec: { a: 1 } },
    session: 'one',
  };
  assert.deepEqual((await call('/t/echo', json({ ...fields, s: 'one' }))).result, expected);
  assert.deepEqual((await call('/t/echo?s=one', json(fields))).result, expected);
});

test('returns the same result whatever the session name [spec tools.session]', async () => {
  const [without, within] = [await call('/t/draw?bytes=3'), await call('/t/draw?bytes=3&s=x')];
  assert.deepEqual(without.result, within.result);
});

test('reports unknown query parameters of a GET as warnings, in the envelope and in a header', async () => {
  const path = '/t/echo?text=a&utm_source=x&wait=5&lound=1&%C3%A9=1';
  const warnings = [
    'Query parameter "utm_source" is not known and was ignored.',
    'Query parameter "wait" is not known and was ignored.',
    'Query parameter "lound" is not known and was ignored. Did you mean "loud"?',
    'Query parameter "é" is not known and was ignored.',
  ];
  const response = await sample.request(path);
  const body = answer.parse(await response.json());
  assert.equal(response.status, 200);
  assert.deepEqual([body.result, body.warnings], [(await call('/t/echo?text=a')).result, warnings]);
  const header = response.headers.get('x-warnings') ?? '';
  assert.match(header, /^[ -~]+$/);
  assert.deepEqual(JSON.parse(header), warnings);
  const file = await sample.request(`/t/draw?bytes=3&raw=1&colour=red`);
  assert.deepEqual([file.status, await file.text()], [200, 'AAA']);
  assert.match(file.headers.get('x-warnings') ?? '', /"colour\\" is not known/);
  const known = await sample.request(`/t/echo?q=a`);
  assert.equal(known.headers.get('x-warnings'), null);
  assert.equal('warnings' in ((await known.json()) as object), false);
});

test('summarizes many unknown query parameters', async () => {
  const many = Array.from({ length: 300 }, (_, index) => `${'x'.repeat(20)}${index}=1`).join('&');
  const response = await sample.request(`/t/echo?text=a&${many}`);
  assert.equal(response.status, 200);
  assert.ok((response.headers.get('x-warnings') ?? '').length < 1_500);
  assert.match(response.headers.get('x-warnings') ?? '', /290 more/);
});

interface Refusal {
  readonly name: string;
  readonly path: string;
  readonly init?: RequestInit;
  readonly expected: readonly [number, string, ...(readonly string[])];
}

const refusals: readonly Refusal[] = [
  { name: 'missing field', path: '/t/echo', expected: [400, 'invalid-request', 'query text is missing'] },
  {
    name: 'number that is none',
    path: '/t/echo?text=a&times=two',
    expected: [400, 'invalid-request', 'query times must be a number'],
  },
  {
    name: 'number out of range',
    path: '/t/echo?text=a&times=9',
    expected: [400, 'invalid-request', 'query times must be at most 5'],
  },
  {
    name: 'boolean that is none',
    path: '/t/echo?text=a&loud=maybe',
    expected: [400, 'invalid-request', 'query loud must be true or false'],
  },
  {
    name: 'scalar given twice',
    path: '/t/echo?text=a&text=b',
    expected: [400, 'invalid-request', 'query text is sent 2 times'],
  },
  {
    name: 'list too long',
    path: '/t/echo?text=a&tags=1,2,3,4,5,6',
    expected: [400, 'invalid-request', 'query tags must have at most 5 items'],
  },
  {
    name: 'enumeration',
    path: '/t/echo?text=a&kind=c',
    expected: [400, 'invalid-request', 'query kind must be one of "a", "b"'],
  },
  {
    name: 'alias and field',
    path: '/t/echo?text=a&q=b',
    expected: [400, 'invalid-request', 'query q duplicates text, which is also set'],
  },
  {
    name: 'two aliases',
    path: '/t/echo?q=a&query=b',
    expected: [400, 'invalid-request', 'query query duplicates q, which is also set'],
  },
  {
    name: 'alias and field in a body',
    path: '/t/echo',
    init: json({ text: 'a', q: 'b' }),
    expected: [400, 'invalid-request', 'body q duplicates text, which is also set'],
  },
  {
    name: 'session name with a blank',
    path: '/t/echo?text=a&s=a%20b',
    expected: [
      400,
      'invalid-request',
      'query s must be 1 to 64 letters, digits, ".", "_" or "-", starting with a letter or digit',
    ],
  },
  {
    name: 'raw that is no boolean',
    path: '/t/draw?raw=please',
    expected: [400, 'invalid-request', 'query raw must be true or false'],
  },
  {
    name: 'raw of a tool without a file',
    path: '/t/echo?text=a&raw=1',
    expected: [422, 'no-artifact', 'query raw is not supported: this tool does not create a file'],
  },
  { name: 'raw of a call without a file', path: '/t/draw?format=none&raw=1', expected: [422, 'no-artifact'] },
  {
    name: 'rule between fields',
    path: '/t/one_of',
    expected: [400, 'invalid-request', 'query url give either url or html'],
  },
  {
    name: 'rule between fields in a body',
    path: '/t/one_of',
    init: json({ url: 'a', html: 'b' }),
    expected: [400, 'invalid-request', 'body url give either url or html'],
  },
  {
    name: 'body that is a list',
    path: '/t/echo',
    init: json([]),
    expected: [400, 'invalid-request', 'body  must be an object'],
  },
  {
    name: 'body that is null',
    path: '/t/echo',
    init: json('null'),
    expected: [400, 'invalid-request', 'body  must be an object'],
  },
  {
    name: 'body with a prototype',
    path: '/t/echo',
    init: json('{"text":"a","__proto__":{"times":5}}'),
    expected: [400, 'invalid-request', 'body __proto__ is not known'],
  },
  {
    name: 'body with text for a number',
    path: '/t/echo',
    init: json({ text: 'a', times: '2' }),
    expected: [400, 'invalid-request', 'body times must be a number'],
  },
  {
    name: 'unknown option beside a body',
    path: '/t/echo?foo=1',
    init: json({ text: 'a' }),
    expected: [400, 'invalid-request', 'query foo is not known'],
  },
  { name: 'not JSON', path: '/t/echo', init: json('{'), expected: [400, 'invalid-request'] },
  { name: 'key in the query', path: '/t/echo?text=a&api_key=sk-123456789', expected: [400, 'key-in-query'] },
  { name: 'unknown tool', path: '/t/ecko?text=a', expected: [404, 'unknown-tool'] },
  { name: 'unknown tool by POST', path: '/t/ecko', init: json({}), expected: [404, 'unknown-tool'] },
  { name: 'other method', path: '/t/echo?text=a', init: { method: 'DELETE' }, expected: [405, 'method-not-allowed'] },
  { name: 'service that is off', path: '/t/off', expected: [503, 'service-off'] },
  { name: 'models without a router', path: '/t/asks', expected: [503, 'models-unconfigured'] },
  {
    name: 'key without a router',
    path: '/t/echo?text=a',
    init: { headers: { authorization: 'Bearer sk-12345678' } },
    expected: [503, 'models-unconfigured'],
  },
  { name: 'service that misbehaves', path: '/t/fail?how=problem', expected: [502, 'tool-failed'] },
  { name: 'input that cannot be worked on', path: '/t/fail?how=unprocessable', expected: [422, 'unprocessable'] },
  { name: 'fault of ours', path: '/t/fail?how=throw', expected: [500, 'internal-fault'] },
  { name: 'answer that is not as stated', path: '/t/fail?how=bad-output', expected: [500, 'internal-fault'] },
  { name: 'over its time', path: '/t/fail?how=late', expected: [422, 'tool-limit'] },
  { name: 'over its time, deaf to signals', path: '/t/fail?how=stubborn', expected: [422, 'tool-limit'] },
];

for (const {
  name,
  path,
  init,
  expected: [status, slug, ...errors],
} of refusals) {
  test(`rejects ${name}`, async () => {
    const response = await sample.request(path, init);
    const text = await response.text();
    assert.equal(response.headers.get('content-type'), 'application/problem+json', text);
    const body = problem.parse(JSON.parse(text));
    assert.deepEqual([response.status, body.type.split('/').at(-1)], [status, slug], text);
    for (const error of errors)
      assert.ok(
        body.errors?.some((one) => `${one.in} ${one.field} ${one.message}` === error && one.fix !== ''),
        text,
      );
    assert.doesNotMatch(text, /hunter2/);
  });
}

for (const { path, status, init } of [
  { path: '/t/echo', status: 400 },
  { path: '/t/echo?q=hi&times=99', status: 400 },
  { path: '/t/zzzzzzzzzz', status: 404 },
  { path: '/t/off', status: 503 },
  { path: '/t/echo?q=hi&raw=1', status: 422 },
  { path: '/t/echo', status: 415, init: { method: 'POST', body: 'text', headers: { 'content-type': 'text/plain' } } },
  { path: '/t/artifacts/0000000000000000000000', status: 404 },
])
  test(`${init?.method ?? 'GET'} ${path}: reports in body and header that the problem cost nothing`, async () => {
    const response = await sample.request(path, init);
    const { cost_usd, charged_usd, cost_source, ...rest } = problem.parse(await response.json());
    assert.equal(response.status, status, JSON.stringify(rest));
    assert.deepEqual([cost_usd, charged_usd, cost_source], [0, 0, 'none']);
    const headers = ['x-cost-usd', 'x-charged-usd', 'x-cost-source'].map((name) => response.headers.get(name));
    assert.deepEqual(headers, ['0', '0', 'none']);
  });

test('reports no cost for problems outside /t', async () => {
  const response = await sample.request('/api/nothing');
  assert.equal(response.headers.get('x-cost-usd'), null);
  assert.equal(problem.parse(await response.json())['cost_usd'], undefined);
});

test('answers an unknown tool with the nearest names, and with none if no name is near', async () => {
  const nearest = async (name: string): Promise<unknown> =>
    problem.parse(await (await sample.request(`/t/${name}`)).json())['nearest'];
  assert.deepEqual(await nearest('Echo!'), ['echo']);
  assert.deepEqual(await nearest('one-of'), ['one_of']);
  assert.deepEqual(await nearest('zzzzzzzzzz'), []);
});

test('names the setting that enables a service that is off', async () => {
  const { detail } = problem.parse(await (await sample.request('/t/off')).json());
  assert.match(detail, /tools\.gotenberg\.enabled.*MOORAGE_GOTENBERG_URL/);
});

test('returns only the bytes with raw=1, with their cost in headers [spec tools.raw]', async () => {
  const raw = await sample.request('/t/draw?bytes=100&raw=1');
  assert.deepEqual(Buffer.from(await raw.arrayBuffer()), Buffer.alloc(100, 65));
  assert.deepEqual(
    ['content-type', 'content-disposition', 'x-cost-usd', 'x-cost-source', 'x-content-type-options'].map((name) =>
      raw.headers.get(name),
    ),
    ['image/svg+xml', 'inline; filename="drawing.svg"', '0.0001', 'tariff', 'nosniff'],
  );
  assert.match(raw.headers.get('content-security-policy') ?? '', /default-src 'none'.*sandbox/);
});

test('serves files that a browser could run as downloads, under a safe name', async () => {
  const raw = await sample.request('/t/draw?format=html&raw=1');
  assert.equal(raw.headers.get('content-disposition'), 'attachment; filename="file"');
});

test('returns the file to a client that does not accept JSON', async () => {
  const raw = await sample.request('/t/draw?format=png', { headers: { accept: 'image/png' } });
  assert.equal(raw.headers.get('content-type'), 'image/png');
  const either = await sample.request('/t/draw?format=png', { headers: { accept: 'text/html,*/*;q=0.8' } });
  assert.equal(((await either.json()) as { tool: string }).tool, 'draw');
});

test('HEAD reports whether GET would succeed, and neither runs the tool nor charges', async () => {
  const calls = async (): Promise<number> =>
    (await sample.registry.getSingleMetric('moorage_tool_calls_total')?.get())?.values.reduce(
      (sum, { value }) => sum + value,
      0,
    ) ?? 0;
  const earned = (): Promise<unknown> => sample.models.ledger.get().ledger.balance(toToolAccount('draw'));
  const before = [await calls(), await earned()];
  const heads = await Promise.all(
    ['/t/draw', '/t/draw?raw=1', '/t/draw?bytes=-1', '/t/echo?text=a&raw=1', '/t/off', '/t/ecko'].map((path) =>
      sample.request(path, { method: 'HEAD' }),
    ),
  );
  assert.deepEqual(
    heads.map(({ status, headers }) => [status, headers.get('content-type')]),
    [
      [200, 'application/json'],
      [200, null],
      [400, 'application/problem+json'],
      [422, 'application/problem+json'],
      [503, 'application/problem+json'],
      [404, 'application/problem+json'],
    ],
  );
  assert.deepEqual([await calls(), await earned()], before);
});

test('GET /t lists the tools for programs and for people', async () => {
  const { tools } = (await (await sample.request('/t')).json()) as {
    tools: { name: string; on: boolean; off_because?: string; input_schema: { required: string[] } }[];
  };
  assert.deepEqual(
    tools.map(({ name, on }) => [name, on]),
    [
      ['echo', true],
      ['draw', true],
      ['fail', true],
      ['one_of', true],
      ['off', false],
      ['asks', false],
    ],
  );
  assert.match(tools[4]?.off_because ?? '', /tools\.gotenberg\.enabled/);
  assert.deepEqual(tools[0]?.input_schema.required, ['text']);
  const page = await sample.request('/t', { headers: { accept: 'text/html' } });
  assert.match(await page.text(), /<code>one_of<\/code>/);
});

test('describes every tool and method as an operation in the OpenAPI document', async () => {
  const { paths } = (await (await sample.request('/openapi.json')).json()) as {
    paths: Record<string, Record<string, { operationId: string; parameters: { name: string; required: boolean }[] }>>;
  };
  assert.deepEqual(Object.keys(paths['/t/draw'] ?? {}), ['get', 'post']);
  assert.deepEqual(
    paths['/t/echo']?.['get']?.parameters.filter(({ required }) => required).map(({ name }) => name),
    ['text'],
  );
});

test('limits slots per caller and in total, and releases a slot only when the work has ended', async () => {
  const gate = Promise.withResolvers<undefined>();
  const busy = await sampleToolApp({
    tools: [createWaitingTool(() => gate.promise), echo],
    environment: { MOORAGE_TOOL_CALLS: '3', MOORAGE_TOOL_CALLS_PER_CALLER: '2' },
  });
  const as = (address: string): RequestInit => ({ headers: { 'x-forwarded-for': address } });
  const waiters = ['192.0.2.1', '192.0.2.1', '198.51.100.1'].map((address) => busy.request('/t/waiting', as(address)));
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
  const own = await busy.request('/t/echo?text=a', as('192.0.2.1'));
  const other = await busy.request('/t/echo?text=a', as('203.0.113.1'));
  assert.deepEqual(
    [own.status, other.status, own.headers.get('retry-after'), other.headers.get('retry-after')],
    [429, 503, '2', '2'],
  );
  gate.resolve(undefined);
  assert.deepEqual(
    (await Promise.all(waiters)).map(({ status }) => status),
    [200, 200, 200],
  );
  assert.equal((await busy.request('/t/echo?text=a', as('192.0.2.1'))).status, 200);
  await busy.stop();
});

test('without a ledger, runs free tools and explains what a priced tool lacks', async () => {
  const bare = await sampleToolApp();
  assert.equal((await bare.request('/t/echo?text=a')).status, 200);
  const refused = await bare.request('/t/draw');
  const { detail, type } = problem.parse(await refused.json());
  assert.deepEqual([refused.status, type.split('/').at(-1)], [503, 'ledger-unconfigured']);
  assert.match(detail, /DATABASE_URL/);
  await bare.stop();
});

test('labels metrics with tools of the registry, protocols, and outcomes', async () => {
  const text = await sample.registry.metrics();
  const labels = [...text.matchAll(/^moorage_tool_calls_total\{(.*)\} /gm)].map(([, found]) => found);
  assert.ok(
    labels.includes('tool="fail",via="http",outcome="tool-limit"') &&
      labels.includes('tool="fail",via="http",outcome="fault"'),
    labels.join('\n'),
  );
  assert.ok(
    labels.every((found) => /^tool="(echo|draw|fail|one_of|asks)",via="http",outcome="[a-z-]+"$/.test(found ?? '')),
    labels.join('\n'),
  );
});
