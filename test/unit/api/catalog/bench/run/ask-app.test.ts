// Asking an app by steps: values go into requests, captured ones into later steps, and every failure is a result.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { askApp } from '../../../../../../api/catalog/bench/run/ask-app.ts';
import type { Step } from '../../../../../../api/catalog/bench/tasks/task.ts';
import { serve } from '../../../../../support/bench/lab.ts';

const step = (fields: Partial<Step>): Step => ({
  method: 'POST',
  path: '/ask',
  headers: {},
  capture: { answer: '/answer' },
  ...fields,
});

test('steps follow each other with what was captured, and poll until the app is done', async () => {
  const asked: unknown[] = [];
  let polls = 0;
  const app = await serve((path, body, response) => {
    asked.push([path, body]);
    if (path === '/sessions') response.end('{"id": "s1"}');
    else response.end(JSON.stringify((polls += 1) < 3 ? { done: false } : { done: true, answer: '["q", "42"]' }));
  });
  const reply = await askApp({
    url: app.url,
    steps: [
      step({
        path: '/sessions',
        body: { prompt: '{{prompt}}', temperature: '{{temperature}}' },
        capture: { session: '/id' },
      }),
      step({
        method: 'GET',
        path: '/sessions/{{session}}',
        capture: { answer: '/answer#/1' },
        repeat: { until: '/done', equals: true, times: 5, wait_ms: 1 },
      }),
    ],
    values: { prompt: 'six times seven', temperature: 0 },
    timeoutMs: 5_000,
  });
  assert.equal(reply.answer, '42');
  assert.deepEqual(asked[0], ['/sessions', { prompt: 'six times seven', temperature: 0 }]);
  assert.deepEqual([asked.length, asked[1]], [4, ['/sessions/s1', undefined]]);
  await app.close();
});

test('what goes wrong is a result of its own kind', async () => {
  const app = await serve((path, _body, response) => {
    if (path === '/broken') response.writeHead(500).end('{}');
    else if (path === '/text') response.end('<html>');
    else if (path === '/empty') response.end('{"answer": " "}');
    else if (path === '/large') response.end(JSON.stringify({ answer: 'x'.repeat(5_000_000) }));
    else if (path === '/busy') response.end('{"done": false}');
    // /slow never answers.
  });
  const kind = async (path: string, fields: Partial<Step> = {}, url = app.url): Promise<unknown> =>
    (await askApp({ url, steps: [step({ path, ...fields })], values: {}, timeoutMs: path === '/slow' ? 200 : 20_000 }))
      .failure;
  assert.deepEqual(await kind('/broken'), { kind: 'status', status: 500, detail: 'the app answered 500' });
  for (const path of ['/text', '/empty', '/large'])
    assert.equal(((await kind(path)) as { kind: string }).kind, 'unreadable', path);
  assert.equal(((await kind('/slow')) as { kind: string }).kind, 'timeout');
  const repeat = { until: '/done', equals: true, times: 2, wait_ms: 1 };
  assert.equal(((await kind('/busy', { repeat })) as { kind: string }).kind, 'timeout');
  await app.close();
  assert.equal(((await kind('/gone')) as { kind: string }).kind, 'unreachable');
});
