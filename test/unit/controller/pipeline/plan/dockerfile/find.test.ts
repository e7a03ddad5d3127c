// Which Dockerfile makes the app when none stands at the top.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { findDockerfile } from '../../../../../../controller/pipeline/plan/dockerfile/find.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';

type Files = Parameters<typeof createMemoryTree>[0];
const good = 'FROM debian:bookworm\nCOPY . .\nCMD ["sh"]\n';
const find = (files: Files): string | undefined => findDockerfile(createMemoryTree(files))?.path;

const cases: readonly (readonly [string, Files, string | undefined])[] = [
  ['docker/Dockerfile', { 'docker/Dockerfile': good }, 'docker/Dockerfile'],
  ['a folder in capitals', { 'Docker/Dockerfile': good, 'Docker/Dockerfile-Alpine': good }, 'Docker/Dockerfile'],
  ['Dockerfile.prod before Dockerfile.dev', { 'Dockerfile.dev': good, 'Dockerfile.prod': good }, 'Dockerfile.prod'],
  ['a named one', { 'web.Dockerfile': good }, 'web.Dockerfile'],
  [
    'default before alpine',
    { 'docker/alpine.Dockerfile': good, 'docker/default.Dockerfile': good },
    'docker/default.Dockerfile',
  ],
  ['scripts/Dockerfile', { 'scripts/Dockerfile': good }, 'scripts/Dockerfile'],
  [
    'the image among packages',
    {
      'packaging/rpm/Dockerfile': good,
      'packaging/docker/alpine/Dockerfile': good,
      'packaging/docker/distroless/Dockerfile': good,
    },
    'packaging/docker/alpine/Dockerfile',
  ],
  ['never that of the editor', { '.devcontainer/Dockerfile': good }, undefined],
  [
    'none for development or tests',
    { 'Dockerfile.dev': good, 'docker/test.Dockerfile': good, 'docker/gpu/Dockerfile': good },
    undefined,
  ],
  ['none for a GPU', { 'docker/Dockerfile': good.replace('debian:bookworm', 'nvidia/cuda:12') }, undefined],
  ['none that starts nothing', { 'docker/Dockerfile': 'FROM a\nCMD ["x"]\nFROM b\nRUN x\n' }, undefined],
  [
    'one that starts by an earlier stage',
    { 'docker/Dockerfile': 'FROM a AS one\nENTRYPOINT ["x"]\nFROM one\nRUN x\n' },
    'docker/Dockerfile',
  ],
  [
    'none whose files are not at the top',
    { 'docker/Dockerfile': 'FROM a\nCOPY entry.sh /\nCMD ["x"]\n', 'docker/entry.sh': '' },
    undefined,
  ],
  [
    'patterns and links of files',
    {
      'docker/Dockerfile':
        'FROM a\nCOPY package*.json ./src/ /\nADD https://example.org/x /\nCOPY --from=b /y /\nCMD x\n',
      'src/a': '',
    },
    'docker/Dockerfile',
  ],
  [
    'none that leaves the pages unbuilt',
    { 'scripts/Dockerfile': `# pnpm release first\n${good}`, 'web/package.json': '{"scripts":{"build":"vite build"}}' },
    undefined,
  ],
  ['two of which none is more so', { 'api.Dockerfile': good, 'jobs.Dockerfile': good }, undefined],
];

for (const [name, files, path] of cases) {
  test(name, () => {
    assert.equal(find(files), path);
  });
}

test('lists the other candidates', () => {
  const found = findDockerfile(createMemoryTree({ 'docker/Dockerfile': good, 'docker/Dockerfile.alpine': good }));
  assert.deepEqual(found, { path: 'docker/Dockerfile', others: ['docker/Dockerfile.alpine'], certain: true });
});

test('property: parses any text quickly', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.constantFrom(
          'FROM a AS b\n',
          'COPY ',
          '["x", "y"]',
          '\\\n',
          '#',
          'CMD x\n',
          '--from=b ',
          '<<EOF\n',
          ' ',
          '\u0000',
        ),
        { maxLength: 200 },
      ),
      (parts) => {
        find({ 'docker/Dockerfile': parts.join('') });
      },
    ),
  );
});
