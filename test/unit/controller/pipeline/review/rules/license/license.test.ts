// What the licence rule finds: texts, names, manifests, README and headers, and what the policy makes of them.
import assert from 'node:assert/strict';
import licenses from 'spdx-license-list/full.js';
import { test } from 'vitest';
import { pipelineInput } from '../../../../../../../controller/pipeline/contract.ts';
import type { ReviewContext, Rule } from '../../../../../../../controller/pipeline/review/review.ts';
import { license } from '../../../../../../../controller/pipeline/review/rules/license/license.ts';
import { listFoundRules, mit, sampleContext } from '../../../../../../support/pipeline/sample.ts';

const clause =
  '\n"Commons Clause" License Condition v1.0\nThe License does not include the right to Sell the Software.\n';
const apacheNotice =
  'Copyright 2026 Somebody\n\nLicensed under the Apache License, Version 2.0 (the "License");\nyou may not use this file except in compliance with the License.\nYou may obtain a copy of the License at\n\n    http://www.apache.org/licenses/LICENSE-2.0\n';
const gplNotice =
  'This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version.\n';
const textOf = (id: string): string => licenses[id]?.licenseText ?? '';
const words = (count: number): string => Array.from({ length: count }, (_, index) => `term${index}`).join(' ');
const cases: readonly { name: string; rule: Rule; context: ReviewContext; expect: readonly string[] }[] = [
  { name: 'a licence file', rule: license, context: sampleContext({ LICENSE: mit }), expect: [] },
  { name: 'a licence file by another name', rule: license, context: sampleContext({ 'Licence.md': mit }), expect: [] },
  { name: 'REUSE folder', rule: license, context: sampleContext({ 'LICENSES/MIT.txt': mit }), expect: [] },
  {
    name: 'an SPDX tag in the file',
    rule: license,
    context: sampleContext({ COPYING: 'SPDX-License-Identifier: Apache-2.0 OR MIT\n' }),
    expect: [],
  },
  {
    name: 'an SPDX tag with who wrote it',
    rule: license,
    context: sampleContext({
      LICENSE: 'SPDX-FileCopyrightText: 2026 Somebody\nSPDX-License-Identifier: MIT\n\nCopyright (c) 2026 Somebody\n',
    }),
    expect: [],
  },
  {
    name: 'an SPDX tag above the text of its licence',
    rule: license,
    context: sampleContext({ LICENSE: `SPDX-License-Identifier: MIT\n\n${mit}` }),
    expect: [],
  },
  {
    name: 'an SPDX tag above a notice',
    rule: license,
    context: sampleContext({ LICENSE: `SPDX-License-Identifier: Apache-2.0\n\n${apacheNotice}` }),
    expect: [],
  },
  ...[
    ['forbids use', 'You may not use, run or host this software.'],
    ['reserves all rights', 'Copyright (c) 2026 Somebody. All rights reserved.'],
    ['is proprietary', 'This code is proprietary and confidential.'],
    ['grants nothing', 'No permission is granted to anyone.'],
    ['limits the purpose', 'For evaluation purposes. Ask for anything else.'],
    ['asks for consent', 'Hosting it needs our prior written consent.'],
    ['is the licence with the Commons Clause', `${mit}${clause}`],
    ['is the licence with a prohibition', `${mit}\nYou may not run this software on servers of others.\n`],
  ].map(([what = '', text = '']) => ({
    name: `an SPDX tag above a text that ${what}`,
    rule: license,
    context: sampleContext({ LICENSE: `SPDX-License-Identifier: MIT\n\n${text}\n` }),
    expect: ['error license/approval LICENSE'],
  })),
  {
    name: 'an SPDX tag above a text that is other terms',
    rule: license,
    context: sampleContext({
      LICENSE: `SPDX-License-Identifier: MIT\n\n${words(30)}. These are terms of our own, which hold for all of it. ${words(60)}\n`,
    }),
    expect: ['warning license/custom LICENSE'],
  },
  {
    name: 'only the notice of the Apache License',
    rule: license,
    context: sampleContext({ LICENSE: apacheNotice }),
    expect: [],
  },
  { name: 'only the notice of the GPL', rule: license, context: sampleContext({ COPYING: gplNotice }), expect: [] },
  {
    name: 'a notice with a limit',
    rule: license,
    context: sampleContext({ LICENSE: `${apacheNotice}\nFor non-commercial use only.\n` }),
    expect: ['error license/approval LICENSE'],
  },
  {
    name: 'a notice within other terms',
    rule: license,
    context: sampleContext({
      LICENSE: `${apacheNotice}\n${'These other terms of ours hold for all the rest of it, which you may only read. '.repeat(3)}${words(300)}`,
    }),
    expect: ['warning license/custom LICENSE'],
  },
  ...[
    [
      'the README names it',
      { 'README.md': '# App\n\n## License\n\nThis project is licensed under the MIT License.\n' },
    ],
    ['the README links it', { 'readme.md': '## 📄 Licence\n[MIT](https://opensource.org/licenses/MIT)\n\n## More\n' }],
    ['front matter', { 'README.md': '---\ntitle: A\nsdk: gradio\nlicense: apache-2.0\n---\n' }],
    ['a badge', { 'README.md': '![](https://img.shields.io/badge/license-Apache--2.0-green)\n' }],
    ['a classifier', { 'setup.py': "setup(classifiers=['License :: OSI Approved :: MIT License'])" }],
    ['setup.py', { 'setup.py': 'setup(license="BSD 3-Clause")' }],
    ['setup.cfg', { 'setup.cfg': '[metadata]\nlicense = GPLv3+\n' }],
    [
      'pyproject.toml with classifiers',
      {
        'pyproject.toml': '[project]\nclassifiers = ["License :: OSI Approved :: Apache Software License"]\n',
      },
    ],
    ['Cargo.toml as it was written', { 'Cargo.toml': '[package]\nname = "a"\nlicense = "MIT/Apache-2.0"\n' }],
    ['pom.xml', { 'pom.xml': '<licenses><license><name>Apache License, Version 2.0</name></license></licenses>' }],
    ['composer.json', { 'composer.json': '{"license":["MIT"]}' }],
    ['package.json as it was written', { 'package.json': '{"license":{"type":"ISC"}}' }],
    ['headers', { 'a/main.py': '# SPDX-License-Identifier: AGPL-3.0-or-later\n', 'b.py': '' }],
  ].map(([what, files]) => ({
    name: `known by other means: ${what as string}`,
    rule: license,
    context: sampleContext(files as Parameters<typeof sampleContext>[0]),
    expect: [],
  })),
  {
    name: 'a custom licence by name',
    rule: license,
    context: sampleContext({ 'README.md': '---\nlicense: openrail\n---\n' }),
    expect: ['warning license/custom README.md'],
  },
  {
    name: 'the licence of somebody else',
    rule: license,
    context: sampleContext({ LICENSE: textOf('SSPL-1.0'), 'LICENSE-THIRD-PARTY': mit }),
    expect: ['error license/approval LICENSE'],
  },
  ...[
    ['reject', 'error license/unrecognised LICENSE', 'error license/unrecognised LICENSE', 'error license/missing'],
    ['ask', 'error license/approval LICENSE', 'error license/approval LICENSE', 'error license/approval'],
    ['warn', 'warning license/custom LICENSE', 'warning license/restricted LICENSE', 'warning license/missing'],
  ].flatMap(([verdict, ...expected]) =>
    [{ LICENSE: textOf('JSON') }, { LICENSE: textOf('Elastic-2.0') }, { a: '' }].map((files, index) => ({
      name: `policy ${verdict} on ${JSON.stringify(Object.keys(files))} ${index}`,
      rule: license,
      context: sampleContext(files, {
        licenses: pipelineInput.shape.licenses.parse({ custom: verdict, restricted: verdict, missing: verdict }),
      }),
      expect: [expected[index] ?? ''],
    })),
  ),
  {
    name: 'a licence that the installation allows',
    rule: license,
    context: sampleContext(
      { LICENSE: textOf('Elastic-2.0') },
      { licenses: pipelineInput.shape.licenses.parse({ allow: ['Elastic-2.0'] }) },
    ),
    expect: [],
  },
  {
    name: 'a licence that the installation does not want',
    rule: license,
    context: sampleContext(
      { LICENSE: textOf('AGPL-3.0-only') },
      { licenses: pipelineInput.shape.licenses.parse({ deny: ['AGPL-3.0-or-later'] }) },
    ),
    expect: ['error license/approval LICENSE'],
  },
  {
    name: 'package.json',
    rule: license,
    context: sampleContext({ 'package.json': '{"license":"(MIT OR GPL-3.0-or-later)"}' }),
    expect: [],
  },
  {
    name: 'pyproject.toml, both forms',
    rule: license,
    context: sampleContext({ 'pyproject.toml': '[project]\nlicense = {text = "BSD-3-Clause"}\n' }),
    expect: [],
  },
  {
    name: 'pyproject.toml of poetry',
    rule: license,
    context: sampleContext({ 'pyproject.toml': '[tool.poetry]\nlicense = "AGPL-3.0-only"\n' }),
    expect: [],
  },
  {
    name: 'the licence of the whole for a folder',
    rule: license,
    context: sampleContext({ LICENSE: mit, 'web/a': '' }, { path: 'web' }),
    expect: [],
  },
  {
    name: 'no licence',
    rule: license,
    context: sampleContext({ 'README.md': 'MIT' }),
    expect: ['error license/missing'],
  },
  {
    name: 'a name only',
    rule: license,
    context: sampleContext({ LICENSE: 'MIT' }),
    expect: [],
  },
  {
    name: 'an own licence',
    rule: license,
    context: sampleContext({
      LICENSE:
        'You may look at this code but you may not run it, sell it or show it to anyone at all without asking me first.',
    }),
    expect: ['error license/approval LICENSE'],
  },
  {
    name: 'MIT with the Commons Clause',
    rule: license,
    context: sampleContext({ LICENSE: mit + clause }),
    expect: ['error license/approval LICENSE'],
  },
  {
    name: 'MIT, but not commercially',
    rule: license,
    context: sampleContext({ LICENSE: `${mit}\nFor non-commercial use only.\n` }),
    expect: ['error license/approval LICENSE'],
  },
  {
    name: 'a text that contradicts the manifest',
    rule: license,
    context: sampleContext({ LICENSE: mit + clause, 'package.json': '{"license":"MIT"}' }),
    expect: ['error license/approval LICENSE'],
  },
  {
    name: 'a closed name',
    rule: license,
    context: sampleContext({ 'package.json': '{"license":"UNLICENSED"}' }),
    expect: ['error license/approval package.json'],
  },
  {
    name: 'open and closed together',
    rule: license,
    context: sampleContext({ 'package.json': '{"license":"MIT AND BUSL-1.1"}' }),
    expect: ['error license/approval package.json'],
  },
];

for (const { name, rule, context, expect } of cases) {
  test(name, async () => {
    assert.deepEqual(await listFoundRules(rule, context), expect);
  });
}
