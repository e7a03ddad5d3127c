// A git that the kernel ends for its memory refuses the commit; any other failure may pass and is a fault.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { toGitFailure } from '../../../../../controller/pipeline/clone/fetch.ts';
import { Fault, Rejected } from '../../../../../controller/pipeline/contract.ts';
import type { GitResult } from '../../../../../lib/git/git.ts';

const ended = (rest: Partial<GitResult>): GitResult => ({ code: 128, stdout: '', stderr: '', ...rest });

test('reports a source that is too large if git or its helper is killed or out of memory', () => {
  for (const result of [
    ended({ code: 137 }),
    ended({ stderr: 'error: index-pack died of signal 9\nfatal: could not finish' }),
    ended({ stderr: 'fatal: Out of memory, malloc failed (tried to allocate 1 bytes)' }),
  ]) {
    const error = toGitFailure('fetching', result);
    assert.ok(error instanceof Rejected, error.message);
    assert.equal(error.findings[0].rule, 'source/too-large');
    assert.ok(error.findings[0].fix.length > 20);
  }
});

test('reports any other git error as a fault, to be retried', () => {
  for (const result of [
    ended({ stderr: 'fatal: unable to access: Could not resolve host' }),
    ended({ code: 143 }),
    ended({ stderr: 'remote: fatal: Out of memory, malloc failed' }),
    ended({ stderr: 'error: index-pack died of signal 13' }),
  ]) {
    const error = toGitFailure('the repository could not be fetched', result);
    assert.ok(error instanceof Fault);
    assert.match(error.message, /^the repository could not be fetched: /);
  }
});
