// The licence matcher on every text of the SPDX list. It takes half a minute, so it is not among the quick tests.
import assert from 'node:assert/strict';
import licenses from 'spdx-license-list/full.js';
import { test } from 'vitest';
import { classifyLicense } from '../../../controller/pipeline/review/rules/license/spdx.ts';
import { judgeText } from '../../../controller/pipeline/review/rules/license/license.ts';

const terms = { allow: [], deny: [] };

test('classifies every text of the SPDX list correctly: no restrictive one passes as open', () => {
  const judged = Object.entries(licenses).map(([id, { licenseText }]) => ({
    id,
    expected: classifyLicense(id, terms),
    found: judgeText(licenseText, terms)?.kind,
  }));
  assert.ok(judged.length > 700, `${judged.length} texts`);
  const wrong = judged.filter(({ expected, found }) => (expected === 'open') !== (found === 'open'));
  const mild = judged.filter(({ expected, found }) => expected === 'restricted' && found !== 'restricted');
  assert.deepEqual([wrong, mild], [[], []]);
}, 180_000);
