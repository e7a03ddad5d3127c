// What Moorage answers to failing logs of others: each answer says what the log shows, and none is untrue.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'vitest';
import { answerLog, readFailingLogs, renderPage } from '../../corpus/logs/corpus.ts';

const logs = readFailingLogs();

test.each(logs)('answers $file: $name', (failing) => {
  assert.match(answerLog(failing), new RegExp(failing.says, 's'));
});

test('gives no untrue cause for any of at least sixty logs', () => {
  assert.ok(logs.length >= 60);
  assert.deepEqual(
    logs.filter(({ now }) => now === 'wrong').map(({ name }) => name),
    [],
  );
});

test('has the first verdict on each log of the second reader, and a second one on all others', () => {
  const judged = ({ before, first, second }: (typeof logs)[number]): boolean =>
    before === undefined ? first !== undefined && second === undefined : second !== undefined;
  assert.deepEqual(
    logs.filter((each) => !judged(each)).map(({ name }) => name),
    [],
  );
  assert.ok(logs.filter(({ before }) => before === undefined).length >= 20);
});

test('keeps every log short and with its source', () => {
  for (const { name, log, source } of logs) {
    assert.ok(log.split('\n').length <= 41, name);
    assert.match(
      source,
      /^(?:https:\/\/github\.com\/[\w.-]+\/[\w.-]+\/(?:issues|pull)\/\d+$|docs\/measured\/[\w-]+\.md \()/,
      name,
    );
  }
});

test('docs/measured/failing-logs.md has the answers that were judged', () => {
  assert.equal(
    readFileSync('docs/measured/failing-logs.md', 'utf8'),
    renderPage(logs),
    'Judge the changed answers in test/corpus/logs again, then run `npm run show:failing-logs -- --publish docs/measured/failing-logs.md`.',
  );
});
