// Calls of hosted apps: what goes there, what comes back, what it costs, and what is said when an app misbehaves.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { toAuthorAccount, toCallerAccount, toRevenueAccount } from '../../../../api/billing/ledger/accounts.ts';
import { formatMoney } from '../../../../api/billing/ledger/money.ts';
import { maxRequestBytes } from '../../../../api/apps/calls/endpoints.ts';
import { computeKeyedHash } from '../../../../api/http/request.ts';
import { baseUrl, sampleApp } from '../../../support/api/sample.ts';
import { sampleAppsServer, type AppsSample } from '../../../support/apps/sample.ts';

let sample: AppsSample;

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

/** Answers of an app that misbehaves, by path. */
const moods: Readonly<Record<string, RequestListener>> = {
  '/hang': () => undefined,
  '/break': (request) => {
    request.socket.destroy();
  },
  '/nonsense': (request) => {
    request.socket.end('SSH-2.0-OpenSSH\r\n\r\n');
  },
  '/headers': (request) => {
    request.socket.end(`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(30_000)}\r\n\r\n`);
  },
  '/large': (_request, response) => {
    response.end('x'.repeat(3_000_000));
  },
  '/huge': (_request, response) => {
    response.writeHead(200, { 'content-length': String(80_000_000) }).write('x');
  },
  '/endless': (_request, response) => {
    pour(response);
  },
  '/half': (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' }).write('half');
  },
  '/to': (_request, response) => {
    response.writeHead(302, { location: '/there?a=1' }).end();
  },
  '/away': (request, response) => {
    const to = new URL(request.url ?? '', 'http://app').searchParams.get('to') ?? '';
    response.writeHead(302, { location: to }).end();
  },
  '/image': (_request, response) => {
    response.writeHead(200, { 'content-type': 'image/png' }).end(Buffer.from([137, 80, 78, 71]));
  },
  '/liar': (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end('{not json');
  },
  '/deep': (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(`${'['.repeat(100_000)}${']'.repeat(100_000)}`);
  },
};

beforeAll(async () => {
  sample = await sampleAppsServer({
    environment: { MOORAGE_APP_CALL_SECONDS: '2', MOORAGE_TOOL_CALLS_PER_CALLER: '4', MOORAGE_TOOL_CALLS: '12' },
  });
  await sample.host('mirror', (request, response) => {
    void bodyOf(request)
      .then((body) => {
        response.setHeader('content-type', 'application/json');
        response.setHeader('set-cookie', 'session=1; Domain=moorage.test');
        response.setHeader('clear-site-data', '"*"');
        response.setHeader('etag', '"1"');
        response.statusCode = Number(/status=(\d+)/.exec(request.url ?? '')?.[1] ?? 200);
        response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers, body }));
      })
      .catch(() => undefined);
  });
  await sample.host('moody', (request, response) => {
    (
      moods[request.url?.split('?')[0] ?? ''] ??
      ((_request, usual) => {
        usual.end('ok');
      })
    )(request, response);
  });
  sample.hostNothing('silent');
  sample.store.set(sampleApp('young', undefined, { phase: 'Building' }));
});
afterAll(() => sample.stop());

function pour(response: {
  write: (chunk: Buffer) => boolean;
  once: (event: 'drain', then: () => void) => unknown;
  destroyed: boolean;
}): void {
  const chunk = Buffer.alloc(1_048_576, 'x');
  while (!response.destroyed && response.write(chunk));
  if (!response.destroyed)
    response.once('drain', () => {
      pour(response);
    });
}

const envelope = z.looseObject({
  app: z.string(),
  status: z.int(),
  media_type: z.string(),
  bytes: z.int(),
  body: z.unknown().optional(),
  base64: z.string().optional(),
  location: z.string().optional(),
  cost_usd: z.number(),
  cost_source: z.string(),
  latency_ms: z.int(),
  request_id: z.string(),
});
const problem = z.looseObject({ type: z.string(), detail: z.string() });
const seen = z.object({
  method: z.string(),
  url: z.string(),
  headers: z.record(z.string(), z.string()),
  body: z.string(),
});

async function json(slug: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return sample.request(`/api/projects/${slug}/call`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
}

async function refused(answer: Response, status: number, slug: string): Promise<z.output<typeof problem>> {
  const reported = problem.parse(await answer.json());
  assert.deepEqual([answer.status, reported.type], [status, `${baseUrl}/problems/${slug}`], reported.detail);
  return reported;
}

async function earned(slug: string): Promise<[revenue: string, author: string]> {
  const { ledger } = sample.models.ledger.get();
  return [
    formatMoney(await ledger.balance(toRevenueAccount(slug))),
    formatMoney(await ledger.balance(toAuthorAccount('git.test/octo'))),
  ];
}

test('forwards method, path, query, headers and body of a JSON call, and returns the response with its cost [spec service.metered service.exposed]', async () => {
  const answer = await json('mirror', {
    method: 'PUT',
    path: '/a/b?x=1',
    query: { y: [2, true], z: 'ä&' },
    headers: { accept: 'text/csv', 'X-Custom': 'mine' },
    body: { hello: 'you' },
  });
  assert.equal(answer.status, 200);
  const reported = envelope.parse(await answer.json());
  assert.deepEqual(
    [reported.app, reported.status, reported.media_type, reported.cost_usd, reported.cost_source],
    ['mirror', 200, 'application/json', 0.0001, 'tariff'],
  );
  const { method, url, headers, body } = seen.parse(reported.body);
  assert.deepEqual([method, url, body], ['PUT', '/a/b?x=1&y=2&y=true&z=%C3%A4%26', '{"hello":"you"}']);
  assert.deepEqual(
    [
      headers['accept'],
      headers['x-custom'],
      headers['content-type'],
      headers['host'],
      headers['x-forwarded-proto'],
      headers['x-request-id'],
    ],
    ['text/csv', 'mine', 'application/json', 'mirror.moorage.test', 'https', reported.request_id],
  );
  assert.match(answer.headers.get('ratelimit') ?? '', /^"free-day";r=\d+;t=\d+$/);
});

test('forwards a call by path, streams the response with its status and media type, and returns the cost in headers', async () => {
  const answer = await sample.request('/api/projects/mirror/call/x/../y%2Fz?q=1&q=%20', {
    method: 'PATCH',
    headers: { 'content-type': 'text/plain' },
    body: 'hello',
  });
  assert.deepEqual(
    [answer.status, answer.headers.get('content-type'), answer.headers.get('etag'), answer.headers.get('x-app')],
    [200, 'application/json', '"1"', 'mirror'],
  );
  assert.deepEqual([answer.headers.get('x-cost-usd'), answer.headers.get('x-cost-source')], ['0.0001', 'tariff']);
  assert.match(answer.headers.get('x-latency-ms') ?? '', /^\d+$/);
  assert.match(answer.headers.get('ratelimit') ?? '', /^"free-day"/);
  const { method, url, body } = seen.parse(await answer.json());
  assert.deepEqual([method, url, body], ['PATCH', '/y%2Fz?q=1&q=%20', 'hello']);
  for (const method of ['GET', 'DELETE', 'HEAD']) {
    const one = await sample.request('/api/projects/mirror/call/', { method });
    assert.equal(one.status, 200, method);
    const text = await one.text();
    if (method !== 'HEAD') assert.equal(seen.parse(JSON.parse(text)).url, '/');
  }
  assert.equal((await sample.request('/api/projects/mirror/call/?status=418')).status, 418);
});

test('does not forward keys, cookies and proxy headers, and returns no cookies and other host-wide headers', async () => {
  const secret = {
    cookie: 'session=secret',
    'x-forwarded-for': '192.0.2.77, 10.0.0.1',
    'x-forwarded-host': 'evil.example',
    forwarded: 'for=secret',
    'x-real-ip': '192.0.2.78',
    'proxy-authorization': 'Basic secret',
    connection: 'keep-alive, x-hop',
    'x-hop': 'secret',
    te: 'trailers',
    via: '1.1 secret',
    origin: 'https://secret.example',
    referer: 'https://secret.example/',
    'x-envoy-original-path': '/secret',
    host: 'evil.example',
    'x-moorage-who': 'secret',
    upgrade: 'websocket',
  };
  const answer = await sample.request('/api/projects/mirror/call/', { headers: secret });
  const { headers } = seen.parse(await answer.json());
  assert.doesNotMatch(JSON.stringify(headers), /secret|evil|192\.0\.2|websocket/);
  assert.deepEqual([headers['x-forwarded-host'], headers['host']], ['mirror.moorage.test', 'mirror.moorage.test']);
  assert.deepEqual(
    ['set-cookie', 'clear-site-data'].map((name) => answer.headers.get(name)),
    [null, null],
  );
  // What a stranger's page could do with the origin of the API.
  assert.deepEqual(
    [answer.headers.get('content-security-policy'), answer.headers.get('x-content-type-options')],
    ['sandbox', 'nosniff'],
  );
  const reported = await refused(
    await json('mirror', { headers: { Cookie: 'a=b', authorization: 'x' } }),
    400,
    'invalid-request',
  );
  assert.match(reported.detail, /headers\.Cookie/);
  await refused(
    await sample.request('/api/projects/mirror/call/', { headers: { authorization: 'Bearer sk-12345678' } }),
    503,
    'models-unconfigured',
  );
});

test('sends no path anywhere but to the app', async () => {
  for (const path of [
    '//evil.example/x',
    '/\\evil.example',
    '/@evil.example',
    '/:80@evil.example/',
    '/..//evil.example',
    '/%2e%2e/x',
  ]) {
    const answer = await json('mirror', { path });
    assert.equal(answer.status, 200, path);
    assert.equal(seen.parse(envelope.parse(await answer.json()).body).headers['host'], 'mirror.moorage.test', path);
  }
  for (const path of ['http://evil.example/', 'evil', '', '/a b', '/a\r\nx: y', `/${'x'.repeat(9_000)}`])
    await refused(await json('mirror', { path }), 400, 'invalid-request');
  for (const slug of ['..', '127.0.0.1', 'mirror.evil', 'mirror%2f', 'mirror:80', '%00'])
    await refused(
      await sample.request(`/api/projects/x/../${slug}/call/`.replace('x/../', '')),
      404,
      slug === '..' ? 'not-found' : 'unknown-app',
    );
});

test('reports similar slugs for an unknown app, and the status of an app that is not live', async () => {
  assert.match((await refused(await json('mirorr', {}), 404, 'unknown-app')).detail, /Did you mean mirror\?/);
  const reported = await refused(await sample.request('/api/projects/young/call/'), 409, 'app-not-live');
  assert.deepEqual([reported['status'], reported['status_url']], [409, `${baseUrl}/api/submit-status/octo/young`]);
  assert.match(reported.detail, /young is not live yet/);
  await refused(await sample.request('/api/projects/mirror/call'), 405, 'method-not-allowed');
});

test('reports an app that does not respond as a problem, and charges nothing', async () => {
  const before = await earned('moody');
  await refused(await json('silent', {}), 502, 'app-unreachable');
  for (const path of ['/break', '/nonsense', '/headers'])
    assert.doesNotMatch(
      (await refused(await json('moody', { path }), 502, 'app-unreachable')).detail,
      /127\.0\.0\.1|svc/,
    );
  await refused(await json('moody', { path: '/large' }), 502, 'app-answer-too-large');
  await refused(await sample.request('/api/projects/moody/call/huge'), 502, 'app-answer-too-large');
  await Promise.all([
    json('moody', { path: '/hang' }).then((answer) => refused(answer, 504, 'app-timeout')),
    json('moody', { path: '/half' }).then((answer) => refused(answer, 504, 'app-timeout')),
    sample.request('/api/projects/moody/call/hang').then((answer) => refused(answer, 504, 'app-timeout')),
  ]);
  assert.deepEqual(await earned('moody'), before);
  assert.equal((await sample.models.ledger.get().ledger.counts()).open, 0);
});

test('cuts off an endless response', async () => {
  const answer = await sample.request('/api/projects/moody/call/endless');
  assert.equal(answer.status, 200);
  let bytes = 0;
  await assert.rejects(async () => {
    for await (const chunk of (answer.body ?? []) as AsyncIterable<Uint8Array>) bytes += chunk.length;
  });
  assert.ok(bytes <= 64 * 1_048_576, String(bytes));
});

test('reports JSON, text and binary responses as what they are', async () => {
  const reported = async (path: string): Promise<z.output<typeof envelope>> =>
    envelope.parse(await (await json('moody', { path })).json());
  assert.deepEqual([(await reported('/image')).base64, (await reported('/image')).body], ['iVBORw==', undefined]);
  assert.equal((await reported('/liar')).body, '{not json');
  assert.match(String((await reported('/deep')).body).slice(0, 3), /^\[\[\[/);
  assert.equal((await reported('/to')).location, '/there?a=1');
  const within = await sample.request('/api/projects/moody/call/to');
  assert.deepEqual(
    [within.status, within.headers.get('location')],
    [302, `${baseUrl}/api/projects/moody/call/there?a=1`],
  );
});

test('attack: no redirect of an app leads a browser away from the origin of the API', async () => {
  const within = `${baseUrl}/api/projects/moody/call`;
  const visible = 'moody.moorage.test';
  for (const [to, header, text] of [
    ['https://evil.example/', null, true],
    ['//evil.example/x', null, true],
    ['/\\evil.example', null, true],
    ['https:evil.example', `${within}/evil.example`, true],
    [`https://${visible}@evil.example/`, null, true],
    [`https://${visible}.evil.example/`, null, true],
    ['javascript:alert(1)', null, false],
    [`javascript://${visible}/%0aalert(1)`, null, false],
    ['JaVaScRiPt:alert(1)', null, false],
    ['data:text/html,<script>alert(1)</script>', null, false],
    [`blob:https://${visible}/1`, null, false],
    ['file:///etc/passwd', null, false],
    [`ftp://${visible}/`, null, false],
    ['', null, false],
    [`https://${visible}/there`, `${within}/there`, true],
    ['../there#here', `${within}/there#here`, true],
    ['?x=1', `${within}/away?x=1`, true],
    ['/..//evil.example', `${within}//evil.example`, true],
  ] as const) {
    const path = `/away?to=${encodeURIComponent(to)}`;
    const answer = await sample.request(`/api/projects/moody/call${path}`);
    assert.deepEqual([answer.status, answer.headers.get('location')], [302, header], to);
    const reported = envelope.parse(await (await json('moody', { path })).json());
    assert.equal(reported.location, text ? to : undefined, to);
  }
});

test('accepts bodies as they are, as JSON and as base64, but not with GET', async () => {
  const sent = async (fields: object): Promise<[string, string | undefined]> => {
    const { body, headers } = seen.parse(
      envelope.parse(await (await json('mirror', { method: 'POST', ...fields })).json()).body,
    );
    return [body, headers['content-type']];
  };
  assert.deepEqual(await sent({ body: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } }), [
    'a=b',
    'application/x-www-form-urlencoded',
  ]);
  assert.deepEqual(await sent({ body: 'text' }), ['"text"', 'application/json']);
  assert.deepEqual(await sent({ base64: 'aGk=' }), ['hi', 'application/octet-stream']);
  assert.deepEqual(await sent({}), ['', undefined]);
  await refused(await json('mirror', { body: {} }), 400, 'invalid-request');
  await refused(await json('mirror', { method: 'POST', body: 1, base64: 'aGk=' }), 400, 'invalid-request');
  await refused(await json('mirror', { method: 'TRACE' }), 400, 'invalid-request');
  const long = await sample.request('/api/projects/mirror/call/', {
    method: 'POST',
    headers: { 'content-length': String(20_000_000) },
    body: 'x',
  });
  await refused(long, 413, 'body-too-large');
  let pulled = 0;
  // It never ends, but stops one byte above the limit: what the server has not read when it closes the connection resets
  // it, and the answer is lost.
  const uncounted = new ReadableStream({
    pull(controller) {
      if (pulled > maxRequestBytes) return new Promise(() => undefined);
      const bytes = pulled < maxRequestBytes ? 1_048_576 : 1;
      pulled += bytes;
      controller.enqueue(new Uint8Array(bytes));
      return undefined;
    },
  });
  const endless = await sample.request('/api/projects/mirror/call/', {
    method: 'POST',
    body: uncounted,
    duplex: 'half',
  });
  await refused(endless, 413, 'body-too-large');
});

test('posts each call to the caller and to the app', async () => {
  const address = '198.51.100.0/24';
  const spent = (): Promise<unknown> =>
    sample.models.ledger
      .get()
      .ledger.balance(toCallerAccount(computeKeyedHash(`address:${address}`, 'salt')))
      .then(formatMoney);
  const [revenue = 0, author = 0] = (await earned('mirror')).map(Number);
  const from = { 'x-forwarded-for': '198.51.100.7' };
  const statuses = await Promise.all(
    [200, 404, 200].map(
      async (status) => (await sample.request(`/api/projects/mirror/call/?status=${status}`, { headers: from })).status,
    ),
  );
  assert.deepEqual(statuses, [200, 404, 200]);
  const fault = await sample.request('/api/projects/mirror/call/?status=500', { headers: from });
  assert.deepEqual(
    [fault.status, fault.headers.get('x-cost-usd'), fault.headers.get('x-cost-source')],
    [500, '0', 'none'],
  );
  assert.equal(await spent(), '0.0003');
  const [revenueAfter = 0, authorAfter = 0] = (await earned('mirror')).map(Number);
  assert.deepEqual([(revenueAfter - revenue).toFixed(6), (authorAfter - author).toFixed(6)], ['-0.000300', '0.000000']);
  assert.deepEqual(await sample.models.ledger.get().ledger.audit(), []);
  const uses = await sample.models.ledger.get().database.query(
    {
      name: 'uses',
      text: "select app, kind, cost_source, count(*)::int as n from ledger.usage where kind = 'app' and caller = $1 group by 1, 2, 3",
      row: z.object({ app: z.string(), kind: z.string(), cost_source: z.string(), n: z.int() }),
    },
    [computeKeyedHash(`address:${address}`, 'salt')],
  );
  assert.deepEqual(uses, [{ app: 'mirror', kind: 'app', cost_source: 'tariff', n: 3 }]);
});

test('limits the concurrent calls of one caller, and frees a slot when the response has been read', async () => {
  const from = { 'x-forwarded-for': '203.0.113.7' };
  const open = await Promise.all(
    Array.from({ length: 4 }, () => sample.request('/api/projects/moody/call/half', { headers: from })),
  );
  assert.deepEqual(
    open.map(({ status }) => status),
    [200, 200, 200, 200],
  );
  await refused(await sample.request('/api/projects/mirror/call/', { headers: from }), 429, 'too-many-calls');
  for (const { body } of open) await body?.cancel();
  // All of them, and well before the time of a call is over.
  const inProgress = async (): Promise<string> =>
    /^moorage_app_calls_running (\d+)$/m.exec(await sample.registry.metrics())?.[1] ?? '';
  for (let tries = 0; (await inProgress()) !== '0' && tries < 50; tries += 1) await sleep(20);
  const again = await Promise.all(
    Array.from({ length: 4 }, () => sample.request('/api/projects/moody/call/half', { headers: from })),
  );
  assert.deepEqual(
    again.map(({ status }) => status),
    [200, 200, 200, 200],
  );
  for (const { body } of again) await body?.cancel();
  for (let tries = 0; (await inProgress()) !== '0' && tries < 50; tries += 1) await sleep(20);
});

test('leaves slots to the other apps while one is slow', async () => {
  const slow = await Promise.all(
    Array.from({ length: 8 }, (_none, index) =>
      sample.request('/api/projects/moody/call/half', { headers: { 'x-forwarded-for': `198.18.${index % 3}.9` } }),
    ),
  );
  assert.deepEqual(slow.map(({ status }) => status).toSorted(), [200, 200, 200, 200, 200, 200, 503, 503]);
  assert.equal((await sample.request('/api/projects/mirror/call/')).status, 200);
  const refusal = slow.find(({ status }) => status === 503);
  if (refusal !== undefined) await refused(refusal, 503, 'tool-busy');
  for (const { body, bodyUsed } of slow) if (!bodyUsed) await body?.cancel();
});

test('streams over a real connection, and ends the call at the app when the caller leaves', async () => {
  const closed = Promise.withResolvers<undefined>();
  await sample.host('stream', (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: 1\n\n');
    response.once('close', () => {
      closed.resolve(undefined);
    });
  });
  const server = createServer(sample.app);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  const leaving = new AbortController();
  const answer = await fetch(
    `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/api/projects/stream/call/events`,
    { signal: leaving.signal },
  );
  assert.equal(answer.headers.get('content-type'), 'text/event-stream');
  const piece = await answer.body?.getReader().read();
  assert.equal(new TextDecoder().decode(piece?.value as Uint8Array), 'data: 1\n\n');
  leaving.abort();
  await closed.promise;
  server.closeAllConnections();
  server.close();
});
