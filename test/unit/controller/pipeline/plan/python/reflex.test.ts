// How a Reflex app is known and started, and its image: the pages are compiled in the build, and what runs has no Node.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Rejected } from '../../../../../../controller/pipeline/contract.ts';
import { makePlan } from '../../../../../../controller/pipeline/plan/plan.ts';
import { firstReflex } from '../../../../../../controller/pipeline/plan/python/reflex.ts';
import { findStart } from '../../../../../../controller/pipeline/plan/python/start/find.ts';
import type { PlanInput, Recipe } from '../../../../../../controller/pipeline/plan/recipe.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../../support/pipeline/sample.ts';
import { fastapi, type Files } from '../plan.cases.ts';

const config = 'import reflex as rx\n\nconfig = rx.Config(\n    app_name="chat",\n)\n';
const findIn = (files: Files, ...names: string[]): ReturnType<typeof findStart> =>
  findStart(createMemoryTree(files), new Set(names));

test("reads the app's name from rxconfig.py, whatever the other files look like", () => {
  const found = findIn(
    { 'rxconfig.py': config, 'chat/chat.py': 'import reflex as rx\n', 'main.py': fastapi },
    'reflex',
  );
  assert.equal(found?.framework, 'Reflex');
  assert.equal(found.command, 'exec granian --interface asgi --factory --host 0.0.0.0 --port $PORT chat.chat:app');
  assert.equal(found.environment?.['__REFLEX_SKIP_COMPILE'], 'true');
  assert.equal(found.environment['__REFLEX_MOUNT_FRONTEND_COMPILED_APP'], 'true');
  assert.deepEqual(found.needs, [`'reflex>=${firstReflex}'`]);
});

test('starts the module that it names, after migrations if there are any', () => {
  const named = config.replace(',\n)', ',\n    app_module_import="web.pages",\n)');
  const found = findIn({ 'rxconfig.py': named, 'alembic/env.py': '', 'uv.lock': '' });
  assert.match(found?.command ?? '', /^\( reflex db migrate \) && exec granian .* web\.pages:app$/);
  assert.deepEqual(found?.needs, []);
});

test('replaces a command that would compile at each start, and keeps any other', () => {
  const files = { 'rxconfig.py': config, 'chat/chat.py': '' };
  assert.equal(findIn({ ...files, Procfile: 'web: reflex run --env prod' })?.framework, 'Reflex');
  assert.match(findIn({ ...files, Procfile: 'web: python serve.py' })?.command ?? '', /python serve\.py$/);
});

test('ignores a file with that name without an app, or for another library', () => {
  assert.equal(findIn({ 'rxconfig.py': 'import reflex\n' }, 'reflex'), undefined);
  assert.equal(findIn({ 'rxconfig.py': 'import other\nconfig = other.Config(app_name="x")\n' }), undefined);
});

const files = {
  'rxconfig.py': 'import reflex as rx\nconfig = rx.Config(app_name="chat")\n',
  'requirements.txt': 'reflex>=0.7.11\nopenai>=1.78.1\n',
  'chat/__init__.py': '',
  'chat/chat.py':
    'import os\nimport reflex as rx\nif not os.getenv("VENDOR_API_KEY"):\n    raise Exception("key")\napp = rx.App()\n',
};
const plan = (changed: Record<string, string> = {}, input: Partial<PlanInput> = {}): Recipe =>
  makePlan(createMemoryTree({ ...files, ...changed }), { ...sampleInput(), ...input });

function refusal(changed: Record<string, string>, input: Partial<PlanInput> = {}): Rejected['findings'][0] {
  try {
    plan(changed, input);
  } catch (error) {
    if (error instanceof Rejected) return error.findings[0];
    throw error;
  }
  return assert.fail('it was planned');
}

test('compiles pages with npm next to Python and placeholder keys, and serves them from the app', () => {
  const { plan: made, dockerfile = '', ignore } = plan();
  assert.deepEqual([made.strategy, made.framework, made.port], ['python', 'Reflex', 8080]);
  assert.match(made.reason, /rxconfig\.py makes it the Reflex app chat\./);
  const [, build = '', run = ''] = dockerfile.split(/^FROM python.*$/m);
  assert.match(dockerfile, /^FROM node:24-bookworm-slim AS node$/m);
  assert.match(build, new RegExp(`install requirements\\.txt -r requirements\\.txt 'reflex>=${firstReflex}'$`, 'm'));
  const steps = ['COPY --from=node /usr/local/bin/node', 'COPY . .', 'ARG REFLEX_USE_NPM=true', 'reflex export'];
  const order = steps.map((each) => build.indexOf(each));
  assert.ok(
    order.every((at, index) => at > (order[index - 1] ?? 0)),
    build,
  );
  assert.match(build, /^ARG REFLEX_API_URL=http:\/\/localhost:8000$/m);
  assert.match(build, /^ARG OPENAI_API_KEY=given-when-it-runs\nARG VENDOR_API_KEY=given-when-it-runs$/m);
  assert.match(build, /reflex export --frontend-only --no-zip && rm -rf \.web\/node_modules$/m);
  assert.match(run, /^COPY --link --from=build --chown=1000:1000 \["\/app\/","\.\/"\]$/m);
  assert.match(run, /__REFLEX_MOUNT_FRONTEND_COMPILED_APP=true/);
  assert.doesNotMatch(run, /node|given-when-it-runs|REFLEX_API_URL/);
  assert.ok(ignore?.includes('.web'));
});

test("keeps the author's build arguments", () => {
  const { build } = sampleInput();
  const env = [{ name: 'REFLEX_API_URL', value: 'https://api.example.org' }];
  const { dockerfile = '' } = plan({}, { build: { ...build, env } });
  assert.deepEqual(dockerfile.match(/^ARG REFLEX_API_URL.*$/gm), ['ARG REFLEX_API_URL']);
});

test('rejects a Reflex version that downloads Node, and suggests a fix', () => {
  const old = refusal({ 'requirements.txt': 'reflex==0.2.6' });
  assert.deepEqual([old.rule, old.file], ['plan/reflex-version', 'requirements.txt']);
  assert.match(old.message, /asks for Reflex ==0\.2\.6\. Reflex older than/);
  assert.match(old.fix, new RegExp(`reflex>=${firstReflex.replaceAll('.', String.raw`\.`)} .*or add a Dockerfile`));
  const locked = {
    'pyproject.toml': '[project]\nname = "x"\ndependencies = ["reflex"]\n',
    'uv.lock': 'name = "reflex"\nversion = "0.7.3"\n',
  };
  assert.match(refusal(locked).message, /Reflex 0\.7\.3/);
});

test('names the Node image in the rejection if it is missing', () => {
  const missing = refusal({}, { missingImages: ['node:24-bookworm-slim'] });
  assert.deepEqual([missing.rule, missing.file], ['plan/base-image', 'rxconfig.py']);
});

test('explains what is missing without a list of packages', () => {
  const { 'requirements.txt': _, ...rest } = files;
  assert.throws(
    () => makePlan(createMemoryTree(rest), sampleInput()),
    (error: unknown) => error instanceof Rejected && error.findings[0].rule === 'plan/no-packages',
  );
});
