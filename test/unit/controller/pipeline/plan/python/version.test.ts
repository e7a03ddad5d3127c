// The Python that is taken where no file asks for one: the usual, or what all workflows test with.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { choosePython } from '../../../../../../controller/pipeline/plan/python/version.ts';
import { findPackages } from '../../../../../../controller/pipeline/plan/python/packages/find.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';

const matrix = (line: string): string => `jobs:\n  test:\n    strategy:\n      matrix:\n        ${line}\n`;
const step = 'with:\n          python-version: ${{ matrix.python-version }}\n';

const chosen = (files: Readonly<Record<string, string>>): unknown => {
  const choice = choosePython(createMemoryTree(files));
  return 'version' in choice ? [choice.version, choice.because] : choice;
};

test('chooses the lowest version in tests that use only newer versions, or the next available one', () => {
  const asked = (line: string): unknown => chosen({ '.github/workflows/tests.yml': matrix(line) + step });
  assert.deepEqual(asked('python-version: ["3.12", "3.13", "3.14"]'), [
    '3.12',
    '.github/workflows/tests.yml tests with Python 3.12 and no older one.',
  ]);
  assert.deepEqual(asked("python-version:\n          - '3.13'\n          - '3.14'"), [
    '3.13',
    '.github/workflows/tests.yml tests with Python 3.13 and no older one.',
  ]);
  const image = 'python:3.12-slim';
  const there = choosePython(createMemoryTree({ '.github/workflows/a.yaml': matrix('python: 3.12') }), {
    missingImages: [image],
  });
  assert.deepEqual('version' in there && [there.version, there.instead], ['3.13', undefined]);
});

test('keeps the default if a workflow tests with it or with older versions, or if files request a version', () => {
  assert.deepEqual(chosen({ '.github/workflows/a.yml': matrix('python-version: [3.9, 3.12]') }), ['3.11', undefined]);
  const two = {
    '.github/workflows/a.yml': matrix('python-version: 3.13'),
    '.github/workflows/b.yml': matrix('python: 3.11'),
  };
  assert.deepEqual(chosen(two), ['3.11', undefined]);
  assert.deepEqual(chosen({ '.github/workflows/a.yml': 'jobs: {}\n', 'docs/python.yml': 'python: 3.13' }), [
    '3.11',
    undefined,
  ]);
  const named = { '.github/workflows/a.yml': matrix('python-version: 3.13'), '.python-version': '3.10\n' };
  assert.deepEqual(chosen(named), ['3.10', '.python-version asks for Python 3.10.']);
});

const onDay = (day: string, files: Readonly<Record<string, string>> = {}, missingImages: string[] = []): unknown => {
  const tree = createMemoryTree({ 'requirements.txt': '', ...files }, { date: new Date(day) });
  const choice = choosePython(tree, { missingImages }, findPackages(tree));
  return 'version' in choice ? [choice.version, choice.because] : choice;
};

test('chooses the version that was usual on the day of the commit, or the nearest older one that is available', () => {
  assert.deepEqual(onDay('2020-05-01'), ['3.8', 'Python 3.8 was usual when it was committed (2020-05).']);
  assert.deepEqual(onDay('2022-09-01'), ['3.9', 'Python 3.9 was usual when it was committed (2022-09).']);
  assert.deepEqual(onDay('2024-09-01'), ['3.11', undefined]);
  assert.deepEqual(onDay('2025-09-01'), ['3.12', 'Python 3.12 was usual when it was committed (2025-09).']);
  assert.deepEqual(onDay('2027-09-01'), ['3.14', 'Python 3.14 was usual when it was committed (2027-09).']);
  assert.deepEqual(onDay('2025-09-01', {}, ['python:3.12-slim']), ['3.11', undefined]);
});

test('chooses a version that pinned packages have wheels for', () => {
  const pinned = (lines: string): unknown => onDay('2026-11-01', { 'requirements.txt': lines });
  assert.deepEqual(pinned('numpy==1.21.6\npandas==1.3.5\n'), [
    '3.10',
    'numpy ==1.21.6 has wheels for Python 3.10 and no newer one.',
  ]);
  assert.deepEqual(pinned('torch<1.11\n'), ['3.9', 'torch <1.11 has wheels for Python 3.9 and no newer one.']);
  assert.deepEqual(pinned('numpy>=1.21\nflask==2.0.0\n'), [
    '3.13',
    'Python 3.13 was usual when it was committed (2026-11).',
  ]);
});

test('chooses a version that the code runs on', () => {
  assert.deepEqual(onDay('2021-12-01', { 'app.py': 'match x:\n    case 1:\n        pass\n' }), [
    '3.10',
    'Its code needs Python 3.10 or newer.',
  ]);
  assert.deepEqual(onDay('2026-11-01', { 'app.py': 'import cgi\n' }), [
    '3.12',
    'Its code imports modules that Python has no longer after 3.12.',
  ]);
});

test('lets a version and a range that files name decide before pins and days', () => {
  assert.deepEqual(onDay('2020-05-01', { '.python-version': '3.12' }), [
    '3.12',
    '.python-version asks for Python 3.12.',
  ]);
  assert.deepEqual(onDay('2020-05-01', { 'pyproject.toml': '[project]\nname = "a"\nrequires-python = ">=3.10"\n' }), [
    '3.10',
    'pyproject.toml asks for Python >=3.10.',
  ]);
});
