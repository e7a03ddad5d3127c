// Which packages are installed although no list names them, and what says so.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { parseReport } from '../../../../../../../controller/pipeline/plan/build-warnings.ts';
import { makePlan } from '../../../../../../../controller/pipeline/plan/plan.ts';
import { createMemoryTree } from '../../../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../../../support/pipeline/sample.ts';
import type { Files } from '../../plan.cases.ts';

/** The pairs of module and package that the build looks for. */
function list(files: Files): string[] {
  const { dockerfile = '' } = makePlan(createMemoryTree(files), sampleInput());
  return /^RUN .* bash \/opt\/moorage\/uv\/undeclared (.*)$/m.exec(dockerfile)?.[1]?.split(' ') ?? [];
}

const app = (code: string, others: Files = {}): Files => ({
  'requirements.txt': 'streamlit\n',
  'app.py': `import streamlit as st\n${code}\nst.title("x")\n`,
  ...others,
});

test('looks for well-known packages that the started file imports and no list names', () => {
  assert.deepEqual(
    list(app('import os, requests\nfrom PIL import Image\nimport sklearn.cluster\nfrom google import genai')),
    ['requests=requests', 'PIL=pillow', 'sklearn=scikit-learn', 'google.genai=google-genai'],
  );
});

test('looks for Alembic if the app migrates with it and has it among the packages of development alone', () => {
  const files = (dependencies: string): Files => ({
    'pyproject.toml': `[project]\nname = "a"\nversion = "1"\ndependencies = [${dependencies}]\n\n[dependency-groups]\ndev = [\n    "alembic>=1.14",\n]\n`,
    'uv.lock': '[[package]]\nname = "fastapi"\nversion = "0.1"\n\n[[package]]\nname = "alembic"\nversion = "1.14"\n',
    'main.py': 'from fastapi import FastAPI\napp = FastAPI()\n',
    'alembic.ini': '[alembic]\nscript_location = migrations\n',
    'migrations/versions/1_a.py': '',
  });
  assert.deepEqual(list(files('"fastapi"')), ['alembic=alembic']);
  assert.deepEqual(list(files('"fastapi", "alembic"')), []);
});

test('follows imports of own files and the pages of Streamlit, and nothing that is not started', () => {
  const files = app('import helpers', {
    'helpers.py': 'import yaml\n',
    'pages/1_more.py': 'import seaborn\n',
    'train.py': 'import torch\n',
  });
  assert.deepEqual(list(files), ['yaml=pyyaml', 'seaborn=seaborn']);
});

const passedOver: [string, string, Files?][] = [
  ['what a list names', 'import streamlit'],
  ['an own module of that name', 'import requests', { 'requests.py': '' }],
  ['what the code can do without', 'try:\n    import torch\nexcept ImportError:\n    torch = None'],
  ['what is only imported when it is used', 'def f():\n    import torch'],
  ['what is imported under a condition', 'import os\nif os.environ.get("X"):\n    import torch'],
  ['a name that is not well known', 'import requsets'],
];

test.each(passedOver)('does not look for %s', (_, code, others = {}) => {
  assert.deepEqual(list(app(code, others)), []);
});

test('takes the module of a server in the start command for the started file', () => {
  const files = {
    'requirements.txt': 'fastapi\nuvicorn\n',
    'api/main.py': 'from fastapi import FastAPI\nimport requests\napp = FastAPI()\n',
  };
  assert.deepEqual(list(files), ['requests=requests']);
});

test('installs the Debian packages that such a package needs', () => {
  const { dockerfile = '' } = makePlan(createMemoryTree(app('import pytesseract')), sampleInput());
  assert.match(dockerfile, /apt-get install .* tesseract-ocr/);
});

test('reports each package that was installed', () => {
  const report = parseReport('#12 4.5 moorage-warning: undeclared-package requests');
  assert.equal(report?.rule, 'build/undeclared-package');
  assert.match(report.message, /needs requests, which no list of the packages/);
  assert.equal(report.file, undefined);
});
