// The operations of an app that was renamed: listed by its new name, called by either, and those that were pinned before.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { addAgentPaths, type AppsSample, sampleAppsServer } from '../../../support/apps/sample.ts';

let sample: AppsSample;
/** What the document of the app describes, which changes after its release was inspected. */
let operationId = 'pay';

beforeAll(async () => {
  sample = await sampleAppsServer();
  const app = await sample.host(
    'till',
    (request, response) => {
      const document = { openapi: '3.1.0', paths: { '/a': { get: { operationId } } } };
      if (request.url === '/mcp') response.writeHead(404).end();
      else
        response
          .setHeader('content-type', 'application/json')
          .end(JSON.stringify(request.url === '/openapi.json' ? document : { url: request.url }));
    },
    (one) => addAgentPaths(one),
  );
  while (sample.apps.findOperations('till') === undefined) await sleep(20);
  operationId = 'steal';
  sample.store.set({
    ...app,
    metadata: { ...app.metadata, resourceVersion: '2' },
    spec: { ...app.spec, control: { slug: 'counter', formerSlugs: [{ name: 'till', until: '2099-01-01T00:00:00Z' }] } },
  });
});
afterAll(() => sample.stop());

const answer = z.looseObject({
  result: z
    .looseObject({ tools: z.array(z.looseObject({ name: z.string() })).optional(), isError: z.boolean().optional() })
    .optional(),
});

async function send(path: string, method: string, params: object): Promise<z.output<typeof answer>> {
  const response = await sample.request(path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-06-18',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  const text = await response.text();
  return answer.parse(JSON.parse(text.slice(text.indexOf('{'))));
}

async function isCalled(path: string, name: string): Promise<boolean> {
  const { result } = await send(path, 'tools/call', { name, arguments: {} });
  return result !== undefined && result.isError !== true && JSON.stringify(result).includes('/a');
}

test('each address lists the pinned operations by the new name', async () => {
  for (const path of ['/mcp/counter', '/mcp/till']) {
    const { result } = await send(path, 'tools/list', {});
    assert.deepEqual(
      result?.tools?.map(({ name }) => name),
      ['counter__pay'],
      path,
    );
  }
});

test('an operation is called by its new and its former names', async () => {
  for (const name of ['counter__pay', 'till__pay', 'till.pay', 'counter.pay']) {
    assert.ok(await isCalled('/mcp', name), name);
    assert.ok(await isCalled('/mcp/till', name), name);
  }
});

test('attack: a rename is no way to other descriptions of the same release', async () => {
  assert.equal(await isCalled('/mcp', 'counter__steal'), false);
  assert.equal(await isCalled('/mcp', 'till__steal'), false);
});
