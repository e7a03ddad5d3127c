// The Python that is taken where no file asks for one: the usual, or what all workflows test with.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { choosePython } from '../../../../../../controller/pipeline/plan/python/version.ts';
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
