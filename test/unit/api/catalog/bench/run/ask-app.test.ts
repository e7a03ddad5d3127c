// Asking an app in steps: values are filled into requests, captures reach later steps, every failure is a result with a class.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { type AppFailure, askApp, classify } from '../../../../../../api/catalog/bench/run/ask-app.ts';
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

const failure = (what: AppFailure, calls: (string | null)[] = []): unknown =>
  classify({ latencyMs: 1, failure: what }, undefined, calls).error;
const status = (code: number, calls: (string | null)[] = []): unknown =>
  failure({ kind: 'status', status: code, detail: 'x' }, calls);
const answered = { latencyMs: 1, answer: 'a' };

test('an answer that passes is a pass, whatever went wrong on the way', () => {
  assert.deepEqual(classify(answered, { score: 1 }, ['broken', 'answered']), {
    passed: true,
    score: 1,
    error: undefined,
    detail: undefined,
  });
});

test('an outage is one also where the app shows it as an answer', () => {
  const wrong = { score: 0, error: 'wrong' } as const;
  for (const call of ['unreachable', 'busy', 'credit', 'key', 'model', 'broken', 'interrupted', 'unsent'])
    assert.equal(classify(answered, wrong, [call]).error, 'outage', call);
  assert.equal(classify(answered, wrong, ['busy', 'answered']).error, 'wrong');
  assert.equal(classify(answered, wrong, ['limit']).error, 'limit');
  assert.equal(classify(answered, wrong, ['request']).error, 'refused');
  assert.equal(status(502, ['malformed']), 'malformed');
  assert.equal(status(504, ['timeout']), 'timeout');
});

test('what the app does without a failed model call is its own', () => {
  assert.equal(status(503), 'wake');
  assert.equal(status(503, ['answered']), 'app-5xx');
  assert.equal(status(500), 'app-5xx');
  assert.equal(status(401), 'refused');
  assert.equal(status(429), 'limit');
  assert.equal(failure({ kind: 'unreachable', detail: 'x' }), 'wake');
  assert.equal(failure({ kind: 'unreachable', detail: 'x' }, ['answered']), 'app-5xx');
  assert.equal(failure({ kind: 'timeout', detail: 'x' }, [null]), 'timeout');
  assert.equal(failure({ kind: 'unreadable', detail: 'x' }, ['answered']), 'malformed');
});

test('a grader that fails is no fault of the answer, and details are bounded', () => {
  const seen = classify(answered, { score: 0, error: 'grader', detail: 'x'.repeat(900) }, ['answered']);
  assert.deepEqual([seen.error, seen.detail?.length], ['grader', 500]);
});
