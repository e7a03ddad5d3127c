// What each review rule finds, and what it leaves alone.
import assert from 'node:assert/strict';
import licenses from 'spdx-license-list/full.js';
import { test } from 'vitest';
import { pipelineInput } from '../../../../../controller/pipeline/contract.ts';
import { dockerfile } from '../../../../../controller/pipeline/review/rules/dockerfile.ts';
import { largeFiles } from '../../../../../controller/pipeline/review/rules/large-files.ts';
import { license } from '../../../../../controller/pipeline/review/rules/license/license.ts';
import { limits } from '../../../../../controller/pipeline/review/rules/limits.ts';
import { names } from '../../../../../controller/pipeline/review/rules/names.ts';
import type { ReviewContext, Rule } from '../../../../../controller/pipeline/review/rule.ts';
import { sourcePath } from '../../../../../controller/pipeline/review/rules/source-path.ts';
import { submodules } from '../../../../../controller/pipeline/review/rules/submodules.ts';
import { symlinks } from '../../../../../controller/pipeline/review/rules/symlinks.ts';
import { mit, sampleContext } from '../../../../support/pipeline/sample.ts';

/** A finding as `severity rule file:line`. */
type Expectation = readonly string[];

async function found(rule: Rule, context: ReviewContext): Promise<string[]> {
  const findings = await rule.check(context);
  for (const each of findings) {
    assert.ok(each.message.length > 10 && each.fix.length > 10, JSON.stringify(each));
    assert.ok(each.rule.startsWith(`${rule.name}/`), each.rule);
  }
  return findings.map(
    (each) =>
      `${each.severity} ${each.rule}${each.file === undefined ? '' : ` ${each.file}`}${each.line === undefined ? '' : `:${each.line}`}`,
  );
}

const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'a'.repeat(64)}\nsize 12345678\n`;
const clause =
  '\n"Commons Clause" License Condition v1.0\nThe License does not include the right to Sell the Software.\n';
const apacheNotice =
  'Copyright 2026 Somebody\n\nLicensed under the Apache License, Version 2.0 (the "License");\nyou may not use this file except in compliance with the License.\nYou may obtain a copy of the License at\n\n    http://www.apache.org/licenses/LICENSE-2.0\n';
const gplNotice =
  'This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version.\n';
const commit = '1'.repeat(40);
const missing = { path: 'vendor/lib', commit, problem: 'the git host git.example is not allowed here' };
const textOf = (id: string): string => licenses[id]?.licenseText ?? '';
const words = (count: number): string => Array.from({ length: count }, (_, index) => `term${index}`).join(' ');
const cases: readonly { name: string; rule: Rule; context: ReviewContext; expect: Expectation }[] = [
  {
    name: 'within the limits',
    rule: limits,
    context: sampleContext({ a: 'x'.repeat(500), b: 'x'.repeat(500) }),
    expect: [],
  },
  {
    name: 'a file too large',
    rule: limits,
    context: sampleContext({ 'data/a': 'x'.repeat(501) }),
    expect: ['error limits/file-bytes data/a'],
  },
  {
    name: 'too much together',
    rule: limits,
    context: sampleContext({ a: 'x'.repeat(400), b: 'x'.repeat(400), c: 'x'.repeat(400) }),
    expect: ['error limits/repository-bytes'],
  },
  {
    name: 'too many files',
    rule: limits,
    context: sampleContext(Object.fromEntries(Array.from({ length: 11 }, (_, index) => [`f${index}`, '']))),
    expect: ['error limits/files'],
  },

  { name: 'plain names', rule: names, context: sampleContext({ 'a b/ü-1_2.txt': '' }), expect: [] },
  {
    name: 'a terminal escape in a name',
    rule: names,
    context: sampleContext({ 'a\u001b[2Jb': '' }),
    expect: ['error names/unusable ab'],
  },
  {
    name: 'a newline in a name',
    rule: names,
    context: sampleContext({ 'a\nb': '' }),
    expect: ['error names/unusable a?b'],
  },
  {
    name: 'a direction override in a name',
    rule: names,
    context: sampleContext({ 'gpj\u202e.exe': '' }),
    expect: ['error names/unusable gpj.exe'],
  },
  {
    name: 'a nested .git',
    rule: names,
    context: sampleContext({ 'a/.git/config': '' }),
    expect: ['error names/unusable a/.git', 'error names/unusable a/.git/config'],
  },

  {
    name: 'links that stay inside',
    rule: symlinks,
    context: sampleContext({ a: { linkTo: 'b/c' }, 'd/e': { linkTo: '../b' }, loop: { linkTo: 'loop' } }),
    expect: [],
  },
  {
    name: 'an absolute link',
    rule: symlinks,
    context: sampleContext({ a: { linkTo: '/etc/passwd' } }),
    expect: ['error symlinks/absolute a'],
  },
  {
    name: 'what a virtual environment links to',
    rule: symlinks,
    context: sampleContext({
      'venv/bin/activate': '',
      'venv/bin/python3': { linkTo: '/usr/bin/python3' },
      'bin/python3': { linkTo: '/usr/bin/python3' },
    }),
    expect: ['error symlinks/absolute bin/python3', 'warning symlinks/absolute venv/bin/python3'],
  },
  {
    name: 'links that leave',
    rule: symlinks,
    context: sampleContext({ 'a/b': { linkTo: '../../etc' }, c: { linkTo: '..' }, 'd/e': { linkTo: 'x/../../../f' } }),
    expect: ['error symlinks/escape a/b', 'error symlinks/escape c', 'error symlinks/escape d/e'],
  },
  {
    name: 'a link that leaves through another link, and looks as if it stayed',
    rule: symlinks,
    context: sampleContext({
      'deep/er/file': '',
      'deep/er/up': { linkTo: '../..' },
      out: { linkTo: 'deep/er/up/../secret' },
      'deep/via': { linkTo: 'er/up' },
      'deep/far': { linkTo: 'via/../../x' },
      'deep/twice': { linkTo: '../out' },
    }),
    expect: ['error symlinks/escape deep/far', 'error symlinks/escape deep/twice', 'error symlinks/escape out'],
  },
  {
    name: 'links through links that stay, and a chain without an end',
    rule: symlinks,
    context: sampleContext({
      'a/b/file': '',
      'a/link': { linkTo: 'b' },
      'a/again': { linkTo: 'link/../link/file' },
      one: { linkTo: 'two/x' },
      two: { linkTo: 'one/x' },
    }),
    expect: [],
  },

  { name: 'no submodules', rule: submodules, context: sampleContext({ a: '' }), expect: [] },
  {
    name: 'a fetched submodule',
    rule: submodules,
    context: sampleContext({ '.gitmodules': '[submodule "a"]\n\tpath = a\n\turl = ../a.git\n' }, {}, [
      { path: 'a', commit },
    ]),
    expect: [],
  },
  {
    name: 'a missing submodule that nothing needs',
    rule: submodules,
    context: sampleContext({ Dockerfile: 'FROM a\n# COPY vendor/lib .\nCOPY vendor/library .\n' }, {}, [missing]),
    expect: ['warning git/submodule vendor/lib'],
  },
  ...[
    ['is copied', { Dockerfile: 'FROM a\nCOPY --from=b x y\nCOPY ./vendor/lib/ /lib\n' }, {}],
    ['is copied as JSON', { Dockerfile: 'FROM a\nCOPY ["vendor/lib", "/lib"]\n' }, {}],
    ['is installed by a step', { Dockerfile: 'FROM a\nCOPY . .\nRUN cd vendor/lib && make\n' }, {}],
    ['is a requirement', { 'requirements.txt': 'flask\n-e ./vendor/lib\n' }, {}],
    ['is a package', { 'package.json': '{"dependencies":{"lib":"file:vendor/lib"}}' }, {}],
    ['contains the app', { a: '' }, { path: 'vendor/lib/web' }],
    ['is named from a folder', { 'vendor/Cargo.toml': '[dependencies]\nlib = { path = "lib" }\n' }, { path: 'vendor' }],
  ].map(([what, files, changes]) => ({
    name: `a missing submodule that ${String(what)}`,
    rule: submodules,
    context: sampleContext(
      files as Parameters<typeof sampleContext>[0],
      changes as Parameters<typeof sampleContext>[1],
      [missing],
    ),
    expect: ['error git/submodule vendor/lib'],
  })),
  {
    name: 'addresses that run or read something',
    rule: submodules,
    context: sampleContext({
      '.gitmodules':
        '[submodule "a"]\n\tpath = a\n\turl = ext::sh -c id\n[submodule "b"]\n\turl = file:///etc\n[submodule "c"]\n\turl = --upload-pack=id\n\tupdate = !id\n[submodule "d"]\n\tpath = ../../x\n\turl = /srv/x\n',
    }),
    expect: [
      'error git/unsafe-address .gitmodules:3',
      'error git/unsafe-address .gitmodules:5',
      'error git/unsafe-address .gitmodules:7',
      'error git/unsafe-address .gitmodules:8',
      'error git/unsafe-address .gitmodules:10',
      'error git/unsafe-address .gitmodules:11',
    ],
  },

  { name: 'the top as source.path', rule: sourcePath, context: sampleContext({ a: '' }), expect: [] },
  {
    name: 'a folder as source.path',
    rule: sourcePath,
    context: sampleContext({ 'web/a': '' }, { path: 'web' }),
    expect: [],
  },
  {
    name: 'a missing source.path',
    rule: sourcePath,
    context: sampleContext({ 'web/a': '' }, { path: 'wep' }),
    expect: ['error source/path'],
  },
  {
    name: 'a source.path that leaves',
    rule: sourcePath,
    context: sampleContext({ 'web/a': '' }, { path: '../x' }),
    expect: ['error source/path'],
  },
  {
    name: 'a link as source.path',
    rule: sourcePath,
    context: sampleContext({ web: { linkTo: '.' } }, { path: 'web' }),
    expect: ['error source/path'],
  },

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
    name: `known by other means: ${String(what)}`,
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

  { name: 'no Dockerfile, none needed', rule: dockerfile, context: sampleContext({ a: '' }), expect: [] },
  {
    name: 'no Dockerfile, asked for',
    rule: dockerfile,
    context: sampleContext({ a: '' }, { strategy: 'dockerfile' }),
    expect: ['error dockerfile/missing Dockerfile'],
  },
  {
    name: 'a Dockerfile that is not used',
    rule: dockerfile,
    context: sampleContext({ Dockerfile: '# syntax=evil/x\n' }, { strategy: 'python' }),
    expect: [],
  },
  {
    name: "Docker's own syntax",
    rule: dockerfile,
    context: sampleContext({ Dockerfile: '# syntax=docker/dockerfile:1.7-labs\nFROM a\n' }),
    expect: [],
  },
  {
    name: 'another builder',
    rule: dockerfile,
    context: sampleContext(
      { 'web/Dockerfile': '# check=error=true\n#syntax = ghcr.io/evil/frontend:1 arg\nFROM a\n' },
      { path: 'web' },
    ),
    expect: ['error dockerfile/syntax web/Dockerfile:2'],
  },
  {
    name: 'a look-alike builder',
    rule: dockerfile,
    context: sampleContext({ Dockerfile: '# syntax=docker/dockerfile.evil/x\n' }),
    expect: ['error dockerfile/syntax Dockerfile:1'],
  },
  {
    name: 'a comment that is no directive',
    rule: dockerfile,
    context: sampleContext({ Dockerfile: '# hello\n# syntax=evil/x\n' }),
    expect: [],
  },
  {
    name: 'a Dockerfile that is a link to one in the repository',
    rule: dockerfile,
    context: sampleContext(
      {
        'web/Dockerfile': { linkTo: '../docker/Dockerfile.debian' },
        'docker/Dockerfile.debian': 'FROM a\n',
      },
      { path: 'web' },
    ),
    expect: [],
  },
  {
    name: 'a Dockerfile that is a link to one for another builder',
    rule: dockerfile,
    context: sampleContext({ Dockerfile: { linkTo: 'a' }, a: '# syntax=evil/x\n' }),
    expect: ['error dockerfile/syntax Dockerfile:1'],
  },
  {
    name: 'a linked Dockerfile',
    rule: dockerfile,
    context: sampleContext({ Dockerfile: { linkTo: 'other' } }),
    expect: ['error dockerfile/not-a-file Dockerfile'],
  },
  {
    name: 'a named Dockerfile that is not there',
    rule: dockerfile,
    context: sampleContext({ a: '' }, { dockerfile: 'docker/Dockerfile' }),
    expect: ['error dockerfile/not-a-file docker/Dockerfile'],
  },

  { name: 'no large files', rule: largeFiles, context: sampleContext({ a: 'version' }), expect: [] },
  {
    name: 'a pointer of Git LFS',
    rule: largeFiles,
    context: sampleContext({ 'model.bin': pointer }),
    expect: ['warning lfs/pointer model.bin'],
  },
];

for (const { name, rule, context, expect } of cases) {
  test(`${rule.name}: ${name}`, async () => {
    assert.deepEqual(await found(rule, context), expect);
  });
}
