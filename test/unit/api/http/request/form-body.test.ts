// Forms: their fields, and the refusal of what another site sends.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import { defineEndpoint } from '../../../../../api/http/endpoint.ts';
import { appOf } from '../../../../support/api/http-app.ts';
import { send } from '../../../../support/api/send.ts';

const echo = defineEndpoint({
  method: 'POST',
  path: '/form',
  operation: 'form',
  tag: 'test',
  summary: '.',
  description: '.',
  body: z.record(z.string(), z.unknown()),
  bodyForm: 'form',
  bodyLimit: 200,
  output: z.unknown(),
  outputDescription: '.',
  handler: ({ body }) => Promise.resolve(body),
});
const app = appOf([echo]);
const form = 'application/x-www-form-urlencoded';

async function post(body: string, headers: Record<string, string> = {}): Promise<Response> {
  return send(app, '/form', { method: 'POST', body, headers: { 'content-type': form, ...headers } });
}

test('fields by name, with all values of one that came more than once', async () => {
  const answer = await post('a=1&b=x+y&a=2&c=%E4%BD%A0&__proto__=p');
  assert.equal(await answer.text(), '{"a":["1","2"],"b":"x y","c":"你"}');
});

test('only a page of this site may make a browser send it', async () => {
  const host = async (headers: Record<string, string>): Promise<number> => (await post('a=1', headers)).status;
  assert.equal(await host({}), 200);
  assert.equal(await host({ 'sec-fetch-site': 'same-origin' }), 200);
  assert.equal(await host({ 'sec-fetch-site': 'same-site' }), 403);
  assert.equal(await host({ 'sec-fetch-site': 'cross-site' }), 403);
  assert.equal(await host({ host: 'moorage.test', origin: 'https://moorage.test' }), 200);
  assert.equal(await host({ host: 'moorage.test', origin: 'https://app.moorage.test' }), 403);
  assert.equal(await host({ host: 'moorage.test', origin: 'null' }), 403);
});

test('JSON, a compressed body and one that is too long are refused', async () => {
  assert.equal((await post('{}', { 'content-type': 'application/json' })).status, 415);
  assert.equal((await post('a=1', { 'content-encoding': 'gzip' })).status, 415);
  assert.equal((await post(`a=${'x'.repeat(300)}`)).status, 413);
});
