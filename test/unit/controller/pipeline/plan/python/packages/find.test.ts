// How the packages of a Python project are named and installed.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { findPackages } from '../../../../../../../controller/pipeline/plan/python/packages/find.ts';
import { createMemoryTree } from '../../../../../../../controller/pipeline/tree.ts';
import type { Files } from '../../plan.cases.ts';

const conda = `name: x
channels: [conda-forge]
dependencies:
  - python=3.10
  - conda-forge::pytorch=2.1
  - numpy=1.21.2=py39h20f2e39_0
  - opencv
  - cudatoolkit=11.3
  - ffmpeg
  - pip:
    - flask==3.0.0
    - git+https://git.example/x
`;

const installs = (files: Files): string => findPackages(createMemoryTree(files))?.install([]).join('\n') ?? '';
const names = (files: Files): string[] => [...(findPackages(createMemoryTree(files))?.names ?? [])];

test('reads exact versions from Pipfile.lock, and ranges from Pipfile', () => {
  const lock = JSON.stringify({
    default: {
      flask: { version: '==3.0.0', markers: "python_version >= '3.8'", hashes: ['sha256:a'] },
      EOF: { version: '' },
      mine: { path: '.' },
      celery: { version: '==5.3.0', extras: ['redis'] },
    },
  });
  const locked = installs({ Pipfile: '[packages]\nflask = "*"\n', 'Pipfile.lock': lock });
  assert.match(
    locked,
    /^COPY <<'EOF' \/opt\/requirements\.txt\nflask==3\.0\.0 ; python_version >= '3\.8'\ncelery\[redis\]==5\.3\.0\nEOF$/m,
  );
  assert.match(locked, /install Pipfile\.lock --no-deps -r/);
  const open = installs({
    Pipfile:
      '[packages]\nflask = "*"\nx = {version = ">=1", extras = ["a"]}\ny = {git = "https://git.example/y", ref = "v1"}\n',
  });
  assert.match(open, /^flask\nx\[a\]>=1\ny @ git\+https:\/\/git\.example\/y@v1\nEOF$/m);
});

test('installs a conda environment from PyPI, without the packages that conda itself needs', () => {
  assert.match(
    installs({ 'environment.yml': conda }),
    /^torch==2\.1\.\*\nnumpy==1\.21\.2\.\*\nopencv-python-headless\nflask==3\.0\.0\ngit\+https:\/\/git\.example\/x\nEOF$/m,
  );
  assert.deepEqual(names({ 'environment.yml': 'dependencies: [' }), []);
});

test('installs a lock file with torch from the CPU wheel index, without CUDA', () => {
  const project = '[project]\nname = "x"\ndependencies = ["torch"]\n';
  const uv = installs({ 'pyproject.toml': project, 'uv.lock': '[[package]]\nname = "torch"\n' });
  assert.match(uv, /uv export .*--frozen.* > \/tmp\/locked\.txt && sed .*nvidia-.* && bash \S+ \S+ --no-deps -r/);
  assert.doesNotMatch(uv, /uv sync/);
  const poetry = installs({ 'pyproject.toml': project, 'poetry.lock': '[[package]]\nname = "torch"\n' });
  assert.match(poetry, /poetry export .*sed /);
  const plain = { 'pyproject.toml': project.replace('torch', 'flask') };
  assert.match(installs({ ...plain, 'uv.lock': '' }), /uv sync --frozen/);
  assert.match(
    installs({ ...plain, 'poetry.lock': '' }),
    /poetry export .*\|\| \{ .*poetry lock .*moorage-warning: poetry-lock poetry\.lock/,
  );
});

test("rewrites CUDA pins to versions on other indexes, and keeps the file's date", () => {
  const text = installs({ 'requirements.txt': '--extra-index-url https://x\ntorch==2.1.0+cu118\n' });
  assert.match(
    text,
    /touch -d "@\$day" requirements\.txt\n# step.*\nRUN .*install requirements\.txt -r requirements\.txt/,
  );
  assert.doesNotMatch(installs({ 'requirements.txt': 'torch==2.1.0\n' }), /sed/);
});

test('reads names from the lock file too, and excludes the project itself', () => {
  assert.deepEqual(
    names({
      'pyproject.toml': '[project]\nname = "My_App"\ndependencies = ["flask", "my-app[x]"]\n',
      'uv.lock': '[[package]]\nname = "psycopg2"\n[[package]]\nname = "my-app"\n',
    }),
    ['flask', 'psycopg2'],
  );
  assert.deepEqual(names({ 'setup.cfg': '[options]\ninstall_requires =\n    flask>=2\n    rich\n' }), [
    'flask',
    'rich',
  ]);
});
