// What is planned for which files.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { plan as planSchema } from '../../../../../crds/hosted-app.ts';
import { plannedLanguages } from '../../../../../crds/languages.ts';
import { Rejected } from '../../../../../controller/pipeline/contract.ts';
import { findAppFolder } from '../../../../../controller/pipeline/plan/folder.ts';
import { makePlan } from '../../../../../controller/pipeline/plan/plan.ts';
import { findPortInCommand, findPortInFile } from '../../../../../controller/pipeline/plan/port-literal.ts';
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
  });
}

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

test('recognizes a fixed port only if the environment cannot change it', () => {
  const files: readonly (readonly [string, number | undefined])[] = [
    ['server.listen({ host, port: 4000 })', 4000],
    ['app.listen(8123)', 8123],
    ['uvicorn.run(app, host="0.0.0.0", port=8123)', 8123],
    ['const PORT = 8123;\napp.listen(PORT)', 8123],
    ['const client = createClient({ host, port: 8123 })', undefined],
    ['const db = new Pool({ port: 5432 });\napp.listen(3000)', 3000],
    ['fetch("http://localhost:8123/query")', undefined],
    ['const PORT = 5000\napp.listen(PORT)', 5000],
    ['uvicorn.run(app, host="0.0.0.0", port=8000)', 8000],
    ['parser.add_argument("--port", type=int, default=7860)', 7860],
    ['listen(80)', undefined],
    ['// app.listen(3000)', undefined],
    ['app.listen(port)', undefined],
    ['app.listen(process.env.PORT ?? 3000)', undefined],
    ['const { PORT = 3000 } = process.env', undefined],
    ['port = int(os.environ.get("PORT", 8000))', undefined],
    ['port=int(os.getenv("APP_PORT", "8000"))', undefined],
  ];
  for (const [text, port] of files) assert.equal(findPortInFile(text), port, text);
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
