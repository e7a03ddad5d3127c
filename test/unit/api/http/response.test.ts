// Responses with an ETag: 304 for a reader who has the content, and the content for any other.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import { buildOpenApi } from '../../../../api/protocols/discovery/openapi.ts';
import { defineEndpoint } from '../../../../api/http/endpoint.ts';
import { createConditionalJsonResponse } from '../../../../api/http/response.ts';
import { createApp } from '../../../support/api/http-app.ts';
import { baseUrl } from '../../../support/api/sample.ts';
import { send } from '../../../support/api/send.ts';

let word = 'one';
const endpoint = defineEndpoint({
  method: 'GET',
  head: 'as GET',
  path: '/api/word',
  operation: 'getWord',
  tag: 'test',
  summary: '.',
  description: '.',
  maxAgeSeconds: 15,
  output: z.object({ word: z.string() }),
  outputDescription: '.',
  handler: () => Promise.resolve({ word }),
});
const app = createApp([endpoint]);
const ask = (tag?: string, method = 'GET'): Promise<Response> =>
  send(app, '/api/word', { method, headers: tag === undefined ? {} : { 'if-none-match': tag } });

test('sends an ETag and a max-age with the first response', async () => {
  const first = await ask();
  assert.equal(first.status, 200);
  assert.match(first.headers.get('etag') ?? '', /^W\/"[\w-]{27}"$/);
  assert.equal(first.headers.get('cache-control'), 'public, max-age=15');
  assert.deepEqual(await first.json(), { word: 'one' });
});

test('answers 304 with the ETag and no content when the reader has it', async () => {
  const etag = (await ask()).headers.get('etag') ?? '';
  for (const tag of [etag, etag.slice(2), `"other", ${etag}`, '*']) {
    const again = await ask(tag);
    assert.equal(again.status, 304, tag);
    assert.equal(again.headers.get('etag'), etag);
    assert.equal(again.headers.get('cache-control'), 'public, max-age=15');
    assert.equal(again.headers.get('content-type'), null);
    assert.equal(await again.text(), '');
  }
  assert.equal((await ask(etag, 'HEAD')).status, 304);
});

test('sends changed content with another ETag, also for an old or malformed one', async () => {
  word = 'one';
  const before = (await ask()).headers.get('etag') ?? '';
  word = 'two';
  for (const tag of [before, '"other"', '', 'W/', '",,,"']) {
    const answer = await ask(tag);
    assert.equal(answer.status, 200, tag);
    assert.deepEqual(await answer.json(), { word: 'two' });
  }
  assert.notEqual((await ask()).headers.get('etag'), before);
});

test('answers HEAD with the headers of GET', async () => {
  const [got, head] = [await ask(), await ask(undefined, 'HEAD')];
  assert.equal(head.headers.get('etag'), got.headers.get('etag'));
  assert.equal(await head.text(), '');
});

test('sends the response headers with 304 too', () => {
  const headers = { link: '</next>; rel="next"' };
  const full = createConditionalJsonResponse([1], { headers: new Headers() }, { maxAgeSeconds: 1, headers });
  const reader = { headers: new Headers({ 'if-none-match': full.headers.get('etag') ?? '' }) };
  const unchanged = createConditionalJsonResponse([1], reader, { maxAgeSeconds: 1, headers });
  assert.deepEqual([unchanged.status, unchanged.headers.get('link')], [304, headers.link]);
});

test('lists 304 in the OpenAPI document where it can be answered', () => {
  const document = buildOpenApi([endpoint], baseUrl) as {
    paths: Record<string, { get: { responses: Record<string, unknown> } }>;
  };
  assert.ok(document.paths['/api/word']?.get.responses['304'] !== undefined);
});
