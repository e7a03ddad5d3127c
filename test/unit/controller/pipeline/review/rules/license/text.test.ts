// The licence matcher on near relatives, short forms, and licences of real apps that are their own; on every text of the
// SPDX list: integration/pipeline/licenses.
import assert from 'node:assert/strict';
import licenses from 'spdx-license-list/full.js';
import { test } from 'vitest';
import { classifyLicense } from '../../../../../../../controller/pipeline/review/rules/license/spdx.ts';
import { judgeText } from '../../../../../../../controller/pipeline/review/rules/license/license.ts';
import { mit } from '../../../../../../support/pipeline/sample.ts';
import { customLicenses } from '../../../../../../support/pipeline/custom-licenses.ts';

const terms = { allow: [], deny: [] };
const judge = (text: string): string => {
  const found = judgeText(text, terms);
  return found === undefined ? 'nothing' : `${found.kind} ${found.id ?? '-'}`;
};
const textOf = (id: string): string => licenses[id]?.licenseText ?? '';

test('distinguishes closely related licences', () => {
  for (const id of ['SSPL-1.0', 'AGPL-3.0-only', 'JSON', 'BUSL-1.1', 'Elastic-2.0', 'CC-BY-NC-4.0', 'CC-BY-4.0'])
    assert.match(judge(textOf(id)), new RegExp(`^${classifyLicense(id, terms)} ${id.replace('-only', '')}`));
  assert.equal(judge(textOf('SSPL-1.0').replaceAll('MongoDB, Inc.', 'Another, Inc.')), 'restricted SSPL-1.0');
  assert.equal(
    judge(`${textOf('GPL-3.0-only')}\nYou may not offer this program as a hosted service.\n`),
    'restricted -',
  );
});

for (const { name, text, expect } of customLicenses) {
  test(`reports custom terms: ${name}`, () => {
    assert.equal(judgeText(text, terms)?.kind, expect, JSON.stringify(judgeText(text, terms)));
  });
}

test('recognizes a licence in any formatting', () => {
  const dressed = `# The MIT License (MIT)\r\n\r\nCopyright © 2024-2026, Someone <a@b.example>\r\n\r\n${mit.split('\n').slice(4).join('\r\n')}`;
  assert.equal(judge(dressed), 'open MIT');
  const changed = mit.replace(
    'to use, copy, modify, merge, publish, distribute, sublicense, and/or sell',
    'to look at',
  );
  assert.notEqual(judgeText(changed, terms)?.kind, 'open');
  assert.notEqual(judgeText('a '.repeat(100_000), terms)?.kind, 'open');
  assert.equal(judge(`${mit}\n\n${textOf('Apache-2.0')}`).split(' ')[0], 'open');
});

test('recognizes licences by their short names', () => {
  const forms: readonly (readonly [string, string])[] = [
    ['MIT', 'MIT'],
    ['This project is licensed under the MIT License.', 'MIT'],
    ['Apache License 2.0, see https://www.apache.org/licenses/LICENSE-2.0', 'Apache-2.0'],
    ['Licensed under GPLv3', 'GPL-3.0-or-later'],
    ['AGPL-3.0', 'AGPL-3.0'],
    ['https://opensource.org/licenses/BSD-3-Clause', 'BSD-3-Clause'],
    ['Released into the public domain', 'Unlicense'],
  ];
  for (const [text, id] of forms) assert.equal(judge(text), `open ${id}`, text);
  assert.equal(judge('MIT. Not for commercial use.').split(' ')[0], 'restricted');
  assert.equal(judge('All rights reserved. See the MIT license of our other project.').split(' ')[0], 'restricted');
  assert.equal(judge(''), 'nothing');
});
