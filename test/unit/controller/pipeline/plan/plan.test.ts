// What is planned for which files.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { plan as planSchema } from '../../../../../crds/hosted-app.ts';
import { plannedLanguages } from '../../../../../crds/languages.ts';
import { Rejected } from '../../../../../controller/pipeline/contract.ts';
import { findAppFolder } from '../../../../../controller/pipeline/plan/folder.ts';
import { makePlan } from '../../../../../controller/pipeline/plan/plan.ts';
import { findPortInCommand } from '../../../../../controller/pipeline/plan/port-literal.ts';
import { locateApp, planApp } from '../../../../../controller/pipeline/plan/repository.ts';
import type { Recipe } from '../../../../../controller/pipeline/plan/recipe.ts';
import { createMemoryTree } from '../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../support/pipeline/sample.ts';
import { type Files, type Changes, fastapi, flask, json, cases, refusals } from './plan.cases.ts';

const plan = (files: Files, changes: Changes = {}): Recipe => makePlan(createMemoryTree(files), sampleInput(changes));

for (const { name, files, changes, strategy, framework, reason, lines = [], port } of cases) {
  test(`plans ${name}`, () => {
    const recipe = plan(files, changes);
    assert.equal(recipe.plan.strategy, strategy);
    assert.equal(recipe.plan.framework, framework);
    assert.match(recipe.plan.reason, reason);
    if (port !== undefined) assert.equal(recipe.plan.port, port);
    for (const line of lines) assert.match(recipe.dockerfile ?? '', line);
    const linked = (recipe.dockerfile ?? '').split('COPY --link').slice(1).join('');
    assert.doesNotMatch(linked, /^WORKDIR/m, 'a WORKDIR after a linked layer unpacks every layer below it');
  });
}

test('builds Create React App without treating warnings as errors, for the top of its own host', () => {
  const environment = (homepage: string | undefined): string | undefined =>
    /^ENV CI=false SKIP_PREFLIGHT_CHECK=true.*$/m.exec(
      plan({
        'package.json': json({
          homepage,
          scripts: { build: 'react-scripts build' },
          dependencies: { 'react-scripts': '5' },
        }),
        'src/index.js': '',
      }).dockerfile ?? '',
    )?.[0];
  assert.equal(environment(undefined), 'ENV CI=false SKIP_PREFLIGHT_CHECK=true');
  assert.equal(environment('https://shop.example/'), 'ENV CI=false SKIP_PREFLIGHT_CHECK=true');
  assert.equal(environment('.'), 'ENV CI=false SKIP_PREFLIGHT_CHECK=true');
  assert.equal(environment('https://author.github.io/shop'), 'ENV CI=false SKIP_PREFLIGHT_CHECK=true PUBLIC_URL=/');
  assert.equal(environment('/shop'), 'ENV CI=false SKIP_PREFLIGHT_CHECK=true PUBLIC_URL=/');
});

test('keeps the packages of a Node app without a build in a layer apart from its source', () => {
  const dockerfile = (build: string | undefined): string =>
    plan({
      'package.json': json({ scripts: { start: 'node server.js', build }, dependencies: { express: '5' } }),
      'server.js': '',
    }).dockerfile ?? '';
  const last = dockerfile(undefined).split('\nFROM').at(-1) ?? '';
  assert.match(last, /^COPY --link --from=build .*\nCOPY --link --chown=1000:1000 \["\.","\/app\/"\]$/m);
  assert.doesNotMatch(dockerfile(undefined), /^COPY \. \.$/m);
  assert.match(dockerfile('vite build'), /^COPY \. \.$/m);
});

for (const { name, files, changes, rule, file, fix } of refusals) {
  test(`rejects ${name}`, () => {
    assert.throws(
      () => plan(files, changes),
      (error: unknown) => {
        assert.ok(error instanceof Rejected);
        const [first] = error.findings;
        assert.equal(first.rule, rule);
        assert.equal(first.file, file);
        assert.match(first.fix, fix);
        return true;
      },
    );
  });
}

test('lists every language in a refusal, with the files that identify it', () => {
  assert.throws(
    () => plan({ 'main.bf': '' }),
    (error: unknown) => {
      assert.ok(error instanceof Rejected);
      const { fix } = error.findings[0];
      assert.match(
        fix,
        /^Add one of: a Dockerfile; Python \(requirements\.txt, pyproject\.toml, uv\.lock, setup\.py\); Node \(package\.json\); Go \(go\.mod\); .*; a static site \(index\.html at the top or in public, dist, site, docs\)\.$/,
      );
      for (const { title } of plannedLanguages) assert.ok(fix.includes(`; ${title} (`), title);
      return true;
    },
  );
});

test('rejects a recognized but unplanned language by name, and explains what its Dockerfile must do', () => {
  const named = [
    ['Package.swift', /^Package\.swift makes this a Swift app/],
    ['DESCRIPTION', /makes this an R app/],
    ['build.sbt', /makes this a Scala app/],
  ] as const;
  for (const [file, says] of named)
    assert.throws(
      () => plan({ [file]: '', 'package.json': json({ scripts: { build: 'vite build' } }) }),
      (error: unknown) => {
        assert.ok(error instanceof Rejected);
        assert.equal(error.findings[0].file, file);
        assert.match(error.findings[0].message, says);
        assert.match(error.findings[0].fix, /Dockerfile at the top level .* on 0\.0\.0\.0 and \$PORT\./);
        return true;
      },
    );
});

test('searches below a root without an app, and chooses the only app', () => {
  const app = { 'requirements.txt': 'flask', 'app.py': flask };
  const below = (folder: string): Files =>
    Object.fromEntries(Object.entries(app).map(([path, text]) => [`${folder}/${path}`, text]));
  const folder = (files: Files, changes: Changes = {}): string =>
    findAppFolder(createMemoryTree(files), sampleInput(changes)).path;
  assert.equal(folder({ 'README.md': '', ...below('project') }), 'project');
  assert.equal(
    folder({ ...below('services/web'), ...below('examples/one'), 'lib/package.json': '{}', 'pages/index.html': '' }),
    'services/web',
  );
  assert.equal(folder({ ...below('one'), ...below('two') }), '.');
  assert.equal(folder({ ...app, ...below('two') }), '.');
  assert.equal(folder({ ...below('one') }, { path: 'two' }), 'two');
  assert.equal(folder({ 'package.json': json({ workspaces: ['one'] }), ...below('one') }), '.');
  assert.equal(folder({ 'main.go': '', 'page/package.json': '{}', 'page/index.html': '' }), '.');
});

test('recognizes a fixed port in a command only if the environment cannot change it', () => {
  const commands: readonly (readonly [string, number | undefined])[] = [
    ['gunicorn -b 0.0.0.0:8000 a:app', 8000],
    ['serve -s dist -l 3000', 3000],
    ['next start -p 3001', 3001],
    ['uvicorn a:app --port 8123', 8123],
    ['streamlit run a.py --server.port=8501', 8501],
    ['uvicorn a:app --port $PORT', undefined],
    ['node a.js', undefined],
    ['redis-cli -p 6379', undefined],
  ];
  for (const [text, port] of commands) assert.equal(findPortInCommand(text), port, text);
});

test('warns about a Node version that no image has', () => {
  const { findings } = plan({
    'package.json': json({ engines: { node: '14.x' }, scripts: { start: 'node a.js' } }),
  });
  assert.deepEqual(
    findings.map((each) => [each.rule, each.severity]),
    [['plan/node-version', 'warning']],
  );
});

test('warns about a development Dockerfile if no other file shows how the app is served', () => {
  const { plan: made, findings } = plan({ Dockerfile: 'FROM node:22\nCOPY . .\nCMD ["npx", "vite"]\n' });
  assert.deepEqual([made.strategy, made.certainty], ['dockerfile', 'guessed']);
  assert.deepEqual(
    findings.map(({ rule, file }) => [rule, file]),
    [['dockerfile/development', 'Dockerfile']],
  );
  for (const text of [
    'FROM node:22\nCOPY . .\nCMD ["npm", "start"]\n',
    'FROM php:8-apache\nCOPY . /var/www/html\n',
    'FROM node:22 AS base\nCMD ["node", "a.js"]\nFROM base\nRUN true\n',
    'FROM python:3.12\nENTRYPOINT ["sh", "-c", "uvicorn a:app --reload"]\n',
  ])
    assert.deepEqual(plan({ Dockerfile: text }).findings, [], text);
});

test('states how sure a plan is, and the start that it did not choose', () => {
  const certainty = (files: Files): unknown => plan(files).plan.certainty;
  assert.equal(certainty({ Dockerfile: 'FROM a' }), 'certain');
  assert.equal(
    certainty({ 'requirements.txt': 'flask', 'app.py': flask, Procfile: 'web: gunicorn app:app' }),
    'certain',
  );
  assert.equal(certainty({ 'requirements.txt': 'flask', 'app.py': flask }), 'likely');
  assert.equal(certainty({ 'requirements.txt': 'rich', 'main.py': 'from lib import go\ngo()\n' }), 'guessed');
  const both = plan({
    'requirements.txt': 'fastapi\nstreamlit',
    'app.py': 'import streamlit as st\nst.set_page_config()\n',
    'tools/deep/api.py': '',
    'deep/api.py': fastapi,
  });
  assert.equal(both.plan.framework, 'Streamlit');
  const long = plan({
    'requirements.txt': 'fastapi\nstreamlit',
    'app.py': 'import streamlit as st\nst.set_page_config()\n',
    [`${'d'.repeat(400)}/api.py`]: fastapi,
  });
  assert.ok((long.plan.otherwise ?? '').length <= 300 && planSchema.safeParse(long.plan).success);
  assert.match(both.plan.otherwise ?? '', /^deep\/api\.py holds the FastAPI application "app"\. Set run\.command/);
});

test('adds no placeholder for a key given for the build', () => {
  const input = sampleInput();
  const files = {
    'package.json': json({ scripts: { build: 'next build' }, dependencies: { next: '16', openai: '6' } }),
    'app/page.tsx': '',
  };
  const recipe = makePlan(createMemoryTree(files), {
    ...input,
    build: { ...input.build, env: [{ name: 'OPENAI_API_KEY', value: 'x' }] },
  });
  assert.deepEqual((recipe.dockerfile ?? '').match(/^ARG OPENAI_API_KEY.*$/gm), ['ARG OPENAI_API_KEY']);
});

test('declares the names of build.env in the Dockerfile, but never their values', () => {
  const input = sampleInput();
  const recipe = makePlan(createMemoryTree({ 'requirements.txt': 'flask', 'app.py': flask }), {
    ...input,
    build: { ...input.build, env: [{ name: 'KEY', value: 'value"\n$x' }] },
  });
  assert.match(recipe.dockerfile ?? '', /^ARG KEY$/m);
  assert.doesNotMatch(recipe.dockerfile ?? '', /value"/);
});

const fileName = fc.constantFrom(
  'requirements.txt',
  'pyproject.toml',
  'uv.lock',
  'poetry.lock',
  'setup.py',
  'main.py',
  'app.py',
  'app/main.py',
  'src/x/y.py',
  'manage.py',
  'a/wsgi.py',
  'package.json',
  'pnpm-lock.yaml',
  'yarn.lock',
  'package-lock.json',
  'next.config.js',
  'vite.config.ts',
  'index.html',
  'public/index.html',
  'svelte.config.js',
  'astro.config.mjs',
  'web/package.json',
  'web/app.py',
  'pages/index.js',
  '.env.example',
  'settings.py',
  'Procfile',
  'packages.txt',
  '.python-version',
  'runtime.txt',
  'a b/$c.py',
  '[x].py',
);
const content = fc.oneof(
  fc.string({ maxLength: 200 }),
  fc.constantFrom(
    '{}',
    '[]',
    'null',
    '{"scripts":{"start":null,"__proto__":1}}',
    '{"license":{},"dependencies":[],"scripts":"x","engines":{"node":">=banana"}}',
    '[project]\ndependencies = 5\n',
    '[tool.poetry]\ndependencies = []\n',
    fastapi,
    flask,
    'import streamlit\n',
    '='.repeat(5000),
    'web: \u0000',
    'app = FastAPI('.repeat(500),
  ),
  fc.json({ maxDepth: 3 }),
  fc.string({ unit: 'binary', maxLength: 100 }),
);
const name = fc.oneof(
  { weight: 4, arbitrary: fileName },
  {
    weight: 1,
    arbitrary: fc
      .stringMatching(/^[ -.0-~]{1,20}$/)
      .filter((each) => each.trim() !== '' && each !== '.' && each !== '..'),
  },
);

test('property: a planner throws nothing but a verdict, and renders one instruction per line', () => {
  fc.assert(
    fc.property(
      fc.dictionary(
        name,
        fc.oneof({ weight: 9, arbitrary: content }, { weight: 1, arbitrary: fc.record({ linkTo: fc.string() }) }),
        { maxKeys: 8, noNullPrototype: true },
      ),
      fc.boolean(),
      fc.constantFrom('auto' as const, 'python' as const, 'node' as const, 'static' as const),
      (files, hasCommand, strategy) => {
        try {
          const tree = createMemoryTree(files);
          const recipe = planApp(tree, locateApp(sampleInput({ hasCommand, strategy }), tree));
          planSchema.parse(recipe.plan);
          const outside = (recipe.dockerfile ?? '')
            .replace(/<<'EOF'[\s\S]*?\nEOF\n/g, '\n')
            .split('\n')
            .filter((line) => line !== '');
          for (const line of outside)
            assert.match(line, /^(?:#|FROM|ARG|ENV|RUN|COPY|WORKDIR|USER|EXPOSE|CMD|ENTRYPOINT|STOPSIGNAL)/);
        } catch (error) {
          assert.ok(error instanceof Rejected, String(error));
        }
      },
    ),
    { numRuns: 500 },
  );
});
