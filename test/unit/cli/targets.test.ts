// Which local cluster is used where nothing says so.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { chooseLocal } from '../../../cli/targets.ts';

const bare = { nodeExists: false, kindExists: false, nodeRuns: false, dockerAnswers: false };

for (const [what, machine, expected] of [
  ['Debian as root', { nodeRuns: true }, 'node'],
  ['Debian as root with Docker', { nodeRuns: true, dockerAnswers: true }, 'node'],
  ['a laptop with Docker', { dockerAnswers: true }, 'kind'],
  ['neither, whose refusal says what is missing', {}, 'node'],
  ['a node that is up', { nodeExists: true, kindExists: true, dockerAnswers: true }, 'node'],
  ['a kind cluster that is up', { kindExists: true, nodeRuns: true, dockerAnswers: true }, 'kind'],
] as const) {
  test(`${what}: ${expected}`, () => {
    assert.equal(chooseLocal({ ...bare, ...machine }), expected);
  });
}
