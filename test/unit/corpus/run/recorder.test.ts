// What is taken down of a submission.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { Status } from '../../../../cli/submit/api-client.ts';
import { createRecorder } from '../../../corpus/run/recorder.ts';

const status: Status = {
  status: 'live',
  message: 'Live.',
  slug: 'a',
  url: 'https://a.apps.localhost/',
  status_url: 'https://localhost/api/submit/a',
  log_url: 'https://localhost/api/submit/a/log',
};

test('the log in order, the outcome, and the time since the submission', () => {
  let now = 0;
  const { output, log, outcome } = createRecorder(() => now);
  now = 5_000;
  output.printLine('pushed /tmp/a to local/a at 1234567');
  now = 7_000;
  output.printLine('submitted: a');
  output.writeEvent({ type: 'log', stage: 'build', line: 'one' });
  output.writeEvent({ type: 'gone' });
  output.writeEvent({ type: 'log', stage: 'build', line: 'two' });
  assert.equal(outcome(), undefined);
  now = 19_340;
  output.writeVerdict(status, undefined);
  assert.deepEqual(log, ['one', 'two']);
  assert.deepEqual(outcome(), { status, reason: undefined, seconds: 12.3 });
});
