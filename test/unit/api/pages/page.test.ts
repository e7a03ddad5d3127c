// Calls of endpoints from pages: found by the endpoint's own schema, answered with the value that HTTP sends.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import { defineEndpoint, JsonAnswer, type RequestContext } from '../../../../api/http/endpoint.ts';
import { Calls } from '../../../../api/pages/page.ts';
import { silent } from '../../../support/api/sample.ts';

const output = z.object({ slug: z.string() });
const described = { operation: 'read', tag: 'test', summary: '.', description: '.', outputDescription: '.' };
const found = defineEndpoint({
  ...described,
  method: 'GET',
  head: 'as GET',
  path: '/found/{slug}',
  params: z.strictObject({ slug: z.string() }),
  output,
  handler: ({ params }, { headers }) => {
    const stored = { slug: params.slug, key: headers.get('authorization') };
    return Promise.resolve(new JsonAnswer(stored, { link: '</next>; rel="next"' }));
  },
});
const whole = defineEndpoint({
  ...described,
  method: 'POST',
  path: '/whole',
  output,
  handler: () => Promise.resolve(new Response('{"slug": "a"}')),
});
const calls = new Calls([found, whole]);
const context: RequestContext = {
  id: 'visit',
  headers: new Headers({ 'if-none-match': '*' }),
  mediaType: 'text/html',
  caller: () => assert.fail('nobody asked who calls'),
  signal: new AbortController().signal,
  log: silent,
  onFinished: () => undefined,
};

test('returns the value that the endpoint sends over HTTP, without the fields that its schema does not name', async () => {
  const input = { params: { slug: 'chat' }, query: {}, body: undefined };
  const response = await found.run(input, context);
  assert.deepEqual(await calls.find('GET', '/found/{slug}', output)?.(context, { params: { slug: 'chat' } }), {
    slug: 'chat',
  });
  assert.deepEqual(
    [await response.json(), response.headers.get('link'), response.headers.get('cache-control')],
    [{ slug: 'chat' }, '</next>; rel="next"', 'no-store'],
  );
});

test('finds an endpoint only by its own output schema', () => {
  assert.equal(calls.find('GET', '/none', output), undefined);
  assert.equal(calls.find('POST', '/found/{slug}', output), undefined);
  assert.throws(() => calls.find('GET', '/found/{slug}', z.object({ slug: z.string() })), TypeError);
});

test('does not accept a whole Response as a value', async () => {
  await assert.rejects(async () => calls.find('POST', '/whole', output)?.(context), TypeError);
});
