// Graders: which answers pass, which are wrong or malformed, and when the grader itself failed.
import assert from 'node:assert/strict';
import { afterAll, test } from 'vitest';
import { grade, type Grade, createScriptRunner } from '../../../../../api/catalog/bench/grade.ts';
import { type Grader, createInstance, loadBenchmarks } from '../../../../../api/catalog/bench/tasks/task.ts';
import { createWorkers } from '../../../../../api/tools/engine/workers/pool.ts';
import { rightAnswer } from '../../../../support/bench/lab.ts';

const workers = createWorkers();
afterAll(() => workers.close());
const runScript = createScriptRunner(workers);

const graded = async (grader: Grader, answer: string, values = {}): Promise<Grade['error'] | 'passed'> =>
  (await grade({ answer, grader, values }, runScript)).error ?? 'passed';

test('texts that have to stand in the answer', async () => {
  const grader: Grader = { kind: 'contains', values: ['Riga', 'Porto'], ignore_case: true };
  assert.equal(await graded(grader, 'porto, then RIGA'), 'passed');
  const half = await grade({ answer: 'Riga', grader, values: {} }, runScript);
  assert.deepEqual([half.error, half.score], ['wrong', 0.5]);
});

test('a pattern for the whole answer, which cannot run away', async () => {
  const grader: Grader = { kind: 'regex', pattern: 'forty-two\\.?', ignore_case: true };
  assert.equal(await graded(grader, ' Forty-Two.\n'), 'passed');
  assert.equal(await graded(grader, 'It is forty-two'), 'wrong');
  assert.equal(await graded({ ...grader, pattern: '(a+)+b' }, 'a'.repeat(50_000)), 'wrong');
  assert.equal(await graded({ ...grader, pattern: '(' }, 'a'), 'grader');
});

test('JSON by a schema, in a code fence or not', async () => {
  const grader: Grader = { kind: 'json_schema', schema: { const: { a: [1, true], b: 'x' } } };
  assert.equal(await graded(grader, '{"b": "x", "a": [1, true]}'), 'passed');
  assert.equal(await graded(grader, '```json\n{"a":[1,true],"b":"x"}\n```'), 'passed');
  assert.equal(await graded(grader, '{"a":[1,true],"b":"y"}'), 'wrong');
  assert.equal(await graded(grader, 'Here it is: {"a":[1,true],"b":"x"}'), 'malformed');
  assert.equal(await graded({ kind: 'json_schema', schema: { type: 'nonsense' } }, '1'), 'grader');
});

test('the last number of the answer, within a tolerance', async () => {
  const grader: Grader = { kind: 'number', value: 1250.5, tolerance: 0.01 };
  assert.equal(await graded(grader, '3 boxes make\n1,250.50'), 'passed');
  assert.equal(await graded(grader, '1250.5 or 12'), 'wrong');
  assert.equal(await graded(grader, 'about twelve hundred'), 'malformed');
  assert.equal(await graded({ ...grader, value: 'x' }, '1'), 'grader');
});

test('a script in the sandbox sees the answer and the values, and nothing else', async () => {
  const script = (code: string): Grader => ({ kind: 'script', code });
  assert.equal(await graded(script('input.answer === input.values.right'), 'yes', { right: 'yes' }), 'passed');
  assert.equal(await graded(script('0.5'), 'yes'), 'wrong');
  assert.equal(await graded(script('"yes"'), 'yes'), 'grader');
  assert.equal(await graded(script('throw new Error("no")'), 'yes'), 'grader');
  assert.equal(await graded(script('typeof process === "undefined" && typeof fetch === "undefined"'), 'yes'), 'passed');
});

test('the right answer of every task passes, and another one does not', async () => {
  const seeds = { seed: 'right', heldBack: 'other' };
  for (const task of loadBenchmarks()[0]?.tasks ?? assert.fail())
    for (const number of [1, 2, 3]) {
      const { grader, values } = createInstance(task, number, seeds);
      const right = rightAnswer(grader, values);
      assert.equal(await graded(grader, right, values), 'passed', `${task.slug}: ${right}`);
      const other = createInstance(task, number + 10, seeds);
      assert.notEqual(await graded(grader, rightAnswer(other.grader, other.values), values), 'passed', task.slug);
      assert.notEqual(await graded(grader, 'I would rather not say.', values), 'passed', task.slug);
    }
});
