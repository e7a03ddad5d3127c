// Which versions of a package the files of a project ask for, and whether any of them is new enough.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { readRequestedRange, isBelow } from '../../../../../../../controller/pipeline/plan/python/packages/asked.ts';
import { createMemoryTree } from '../../../../../../../controller/pipeline/tree.ts';

test('reads a range from the file that names the packages', () => {
  const files: readonly (readonly [file: string, content: string, range: string | undefined])[] = [
    [
      'requirements.txt',
      'flask==1\n# reflex==0.1\nReflex [db] >=0.7.11 , <1 ; python_version > "3" # x\n',
      '>=0.7.11 , <1',
    ],
    ['requirements.txt', 'reflex-chat==1\nreflex\n', undefined],
    ['requirements.txt', 'reflex (==0.2.6)', '==0.2.6'],
    ['requirements.txt', 'flask', undefined],
    ['pyproject.toml', '[project]\ndependencies = ["flask", "reflex~=0.8.1"]\n', '~=0.8.1'],
    ['pyproject.toml', '[tool.poetry.dependencies]\nreflex = "^0.7.1"\n', '^0.7.1'],
    ['pyproject.toml', '[tool.poetry.dependencies]\nreflex = { version = "^0.7.1", extras = ["x"] }\n', '^0.7.1'],
    [
      'uv.lock',
      '[[package]]\nname = "reflex-base"\nversion = "1"\n\n[[package]]\nname = "reflex"\nversion = "0.8.9"\n',
      '0.8.9',
    ],
    ['Pipfile', '[packages]\nreflex = "*"\n', undefined],
    ['Pipfile.lock', JSON.stringify({ default: { reflex: { version: '==0.8.9' } } }), '==0.8.9'],
    ['environment.yml', 'dependencies:\n  - python=3.11\n  - pip:\n    - reflex==0.8.9\n', '==0.8.9'],
  ];
  for (const [file, content, range] of files)
    assert.equal(readRequestedRange(createMemoryTree({ [file]: content }), file, 'reflex'), range, content);
});

test('reports a range as too old if none of its versions is new enough', () => {
  const below = [
    '==0.2.6',
    '0.2.6',
    '<0.8',
    '<=0.8',
    '~=0.7.1',
    '^0.7.1',
    '~0.7',
    '==0.7.*',
    '>=0.6, <0.7.3',
    '===0.8.13.post1',
  ];
  const fitting = [
    '>=0.7.11',
    '==0.8.14',
    '==0.8.14.post1',
    '~=0.8',
    '~=0.8.1',
    '^0.8',
    '==0.8.*',
    '!=0.8.14',
    '<1',
    '<0.8 || >=0.9',
  ];
  const unreadable = ['', '@ git+https://git.example/reflex', 'latest', '>='];
  for (const range of below) assert.equal(isBelow(range, '0.8.14'), true, range);
  for (const range of [...fitting, ...unreadable]) assert.equal(isBelow(range, '0.8.14'), false, range);
});
