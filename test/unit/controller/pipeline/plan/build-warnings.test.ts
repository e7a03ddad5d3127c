// What a step of a planned build prints about itself becomes a warning in words.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'vitest';
import { formatReport, parseReport } from '../../../../../controller/pipeline/plan/build-warnings.ts';

test('warns about a failed install of sharp, with its consequences', () => {
  const printed = execFileSync('sh', ['-c', `false || { ${formatReport('sharp', 'package.json')}; }`], {
    encoding: 'utf8',
  });
  const { rule, severity, file, message, fix } = parseReport(`#12 3.4 ${printed.trimEnd()}`) ?? {};
  assert.deepEqual({ rule, severity, file }, { rule: 'build/sharp', severity: 'warning', file: 'package.json' });
  assert.match(message ?? '', /scales pictures in JavaScript/);
  assert.match(fix ?? '', /npm install sharp/);
});
