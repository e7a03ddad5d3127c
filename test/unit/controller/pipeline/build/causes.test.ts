// What real tools print when a build fails, and what their author reads.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { buildCauses } from '../../../../../controller/pipeline/build/causes.ts';
import { suggestFix } from '../../../../../controller/pipeline/build/fixes.ts';
import { findMissingProgram } from '../../../../../controller/pipeline/build/step-log.ts';
import { causeCases } from './causes.cases.ts';

test('keeps each fix within the limits of a finding', () => {
  for (const { fix, planned = '' } of buildCauses) {
    assert.ok(Buffer.byteLength(fix) <= 600, fix);
    assert.ok(Buffer.byteLength(planned) <= 600, planned);
  }
});

test('advises no build of a Dockerfile where there is none', () => {
  for (const log of ['Fatal: the moon is down', 'sh: 1: ffmpeg: not found', 'Error: API_TOKEN is not set', '']) {
    assert.doesNotMatch(suggestFix(log, true).fix, /docker build|with ENV in the Dockerfile|in an earlier step/);
  }
  assert.match(suggestFix('Error: API_TOKEN is not set', true).fix, /placeholder in build\.env/);
  assert.match(suggestFix('Error: API_TOKEN is not set').fix, /ENV in the Dockerfile/);
});

for (const { name, log, rule, says } of causeCases) {
  test(name, () => {
    const fix = suggestFix(log);
    assert.equal(fix.rule, rule);
    assert.match(`${fix.message ?? ''} ${fix.fix} ${fix.line ?? ''}`, says);
  });
}

test('property: parses any log quickly', () => {
  const word = fc.constantFrom(
    'error ',
    'getaddrinfo ',
    'https://',
    'a.example',
    ': not found',
    'see ',
    'DATABASE_URL ',
    'A_B',
    ' requires ext-a ',
    'Could not load ',
    'ENOTFOUND ',
    'System.cmd("',
    'sh: 1: ',
    '> a@1 b',
    '\n',
    'x'.repeat(3_000),
  );
  fc.assert(
    fc.property(fc.array(word, { maxLength: 300 }), (words) => {
      assert.ok(suggestFix(words.join('')).fix.length > 0);
      findMissingProgram(words.join('').split('\n'));
    }),
  );
});
