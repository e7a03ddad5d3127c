// What every endpoint gets: request ids, metrics, fault reports, derived documents and the front page.
import assert from 'node:assert/strict';
import { METHODS } from 'node:http';
import { test } from 'vitest';
import { z } from 'zod';
import { defineEndpoint } from '../../../../api/http/endpoint.ts';
import { ApiError } from '../../../../lib/kubernetes/index.ts';
import { sampleServer, sampleServices } from '../../../support/api/sample.ts';
import { send } from '../../../support/api/send.ts';

const faulty = (path: string, error: Error): ReturnType<typeof defineEndpoint> =>
  defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path,
    operation: 'fail',
    tag: 'test',
    summary: '.',
    description: '.',
    output: z.object({}),
    outputDescription: '.',
    handler: () => Promise.reject(error),
  });

test('reports an internal fault without its details', async () => {
  const { app } = sampleServer(sampleServices(), [faulty('/broken', new Error('password is hunter2'))]);
  const answer = await send(app, '/broken', { headers: { 'x-request-id': 'request-0001' } });
  const text = await answer.text();
  assert.equal(answer.status, 500);
  assert.doesNotMatch(text, /hunter2/);
  assert.match(text, /request-0001/);
});

test('answers 503 with Retry-After when the cluster does not answer', async () => {
  const { app } = sampleServer(sampleServices(), [
    faulty('/away', new ApiError(0, 'Unreachable', 'x')),
    faulty('/busy', new ApiError(429, 'TooManyRequests', 'x', 7)),
    faulty('/forbidden', new ApiError(403, 'Forbidden', 'x')),
    faulty('/invalid', new ApiError(422, 'Invalid', 'x')),
  ]);
  const away = await send(app, '/away');
  assert.deepEqual([away.status, away.headers.get('retry-after')], [503, '5']);
  assert.equal((await send(app, '/busy')).headers.get('retry-after'), '7');
  assert.equal((await send(app, '/forbidden')).status, 503);
  assert.equal((await send(app, '/invalid')).status, 500);
});

test('drops fields that the output schema does not name', async () => {
  const endpoint = defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/narrow',
    operation: 'narrow',
    tag: 'test',
    summary: '.',
    description: '.',
    output: z.object({ shown: z.int() }),
    outputDescription: '.',
    handler: () => Promise.resolve({ shown: 1, hidden: 2 }),
  });
  const { app } = sampleServer(sampleServices(), [endpoint]);
  assert.deepEqual(await (await send(app, '/narrow')).json(), { shown: 1 });
});

test('adopts a harmless request id, else generates one', async () => {
  const { app } = sampleServer();
  const idOf = async (given: string): Promise<string | null> =>
    (await send(app, '/', { headers: { 'x-request-id': given } })).headers.get('x-request-id');
  assert.equal(await idOf('abcd-1234'), 'abcd-1234');
  assert.match((await idOf('short')) ?? '', /^[0-9a-f-]{36}$/);
  assert.match((await idOf('with spaces and "quotes"')) ?? '', /^[0-9a-f-]{36}$/);
});

/** What the parser takes and no endpoint answers; it refuses invented methods itself. */
const unusual = METHODS.filter((method) => /^(?!(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|CONNECT|TRACE)$)/.test(method));

test('keeps metric labels bounded whatever paths, methods and statuses callers invent', async () => {
  const { app, registry } = sampleServer();
  for (const [number, method] of unusual.entries()) {
    await send(app, `/api/submit-status/octo/app${number}`);
    await send(app, `/nothing/${number}`, { method });
  }
  const text = await registry.metrics();
  const counts = text.split('\n').filter((line) => line.startsWith('moorage_http_request_duration_seconds_count'));
  assert.deepEqual(counts.map((line) => /\{(.*)\}/.exec(line)?.[1]).sort(), [
    'method="GET",route="/api/submit-status/{owner}/{name}",status="404"',
    'method="OTHER",route="unmatched",status="404"',
  ]);
});

test('answers HEAD like GET, without a body', async () => {
  const { app } = sampleServer();
  const answer = await send(app, '/openapi.json', { method: 'HEAD' });
  assert.deepEqual([answer.status, await answer.text()], [200, '']);
});

test('serves the front page to programs as JSON', async () => {
  const { app } = sampleServer();
  const program = await send(app, '/', { headers: { accept: '*/*' } });
  assert.equal(((await program.json()) as { openapi: string }).openapi, 'https://moorage.test/openapi.json');
});

test('the OpenAPI document names every endpoint, its input, and its problems [spec service.openapi version.openapi]', async () => {
  const { app, endpoints } = sampleServer();
  const shape = z.object({
    openapi: z.literal('3.1.0'),
    info: z.object({ version: z.literal('1.1.0') }),
    paths: z.record(
      z.string(),
      z.record(
        z.string(),
        z.looseObject({
          operationId: z.string(),
          parameters: z.array(z.object({ name: z.string(), in: z.string(), required: z.boolean() })),
          responses: z.record(z.string(), z.unknown()),
        }),
      ),
    ),
  });
  const document = shape.parse(await (await send(app, '/openapi.json')).json());
  const described = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  assert.deepEqual(described.sort(), endpoints.map(({ method, path }) => `${method} ${path}`).sort());
  const status = document.paths['/api/submit-status/{owner}/{name}']?.['get'];
  assert.deepEqual(
    status?.parameters.map(({ name, in: part, required }) => [name, part, required]),
    [
      ['owner', 'path', true],
      ['name', 'path', true],
      ['host', 'query', false],
    ],
  );
  assert.deepEqual(Object.keys(status.responses), ['200', '400', '404', '406', '431', '500']);
  assert.deepEqual(Object.keys(document.paths['/api/submit']?.['post']?.responses ?? {}), [
    '200',
    '400',
    '406',
    '409',
    '413',
    '415',
    '422',
    '429',
    '431',
    '500',
    '503',
  ]);
});
