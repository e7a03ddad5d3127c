// Why a run did not pass: the notes of /v1 first, then what the app answered, then the grader.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { AppFailure } from '../../../../../../api/catalog/bench/run/ask-app.ts';
import { classify } from '../../../../../../api/catalog/bench/run/classify.ts';

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
