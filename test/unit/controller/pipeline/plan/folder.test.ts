// Where in a repository the app is, and that half of one is never served in silence.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Rejected } from '../../../../../controller/pipeline/contract.ts';
import { locateApp, planApp } from '../../../../../controller/pipeline/plan/repository.ts';
import type { Recipe } from '../../../../../controller/pipeline/plan/recipe.ts';
import { createMemoryTree } from '../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../support/pipeline/sample.ts';
import { flask, json, type Changes, type Files } from './plan.cases.ts';

const below = (folder: string, files: Files): Files =>
  Object.fromEntries(Object.entries(files).map(([path, text]) => [`${folder}/${path}`, text]));
const vite: Files = {
  'package.json': json({ scripts: { build: 'vite build' }, devDependencies: { vite: '7' } }),
  'index.html': '<script type="module" src="/src/main.ts"></script>',
  'src/main.ts': '',
};
const express: Files = {
  'package.json': json({ scripts: { start: 'node server.js' }, dependencies: { express: '5' } }),
  'server.js': '',
};
const python: Files = { 'requirements.txt': 'flask', 'app.py': flask };

function plan(files: Files, changes: Changes = {}): Recipe & { readonly path: string } {
  const tree = createMemoryTree(files);
  const app = locateApp(sampleInput(changes), tree);
  return { ...planApp(tree, app), path: app.input.path };
}

function refusal(files: Files, changes: Changes = {}): Rejected {
  try {
    plan(files, changes);
  } catch (error) {
    assert.ok(error instanceof Rejected);
    return error;
  }
  throw new assert.AssertionError({ message: 'it was planned' });
}

const markers: readonly (readonly [string, RegExp])[] = [
  ['go.mod', /makes this a Go app, which Moorage cannot plan yet/],
  ['Cargo.toml', /a Rust app/],
  ['Gemfile', /a Ruby app/],
  ['pom.xml', /a Java app/],
  ['build.gradle.kts', /a Java app/],
  ['composer.json', /a PHP app/],
  ['mix.exs', /an Elixir app/],
  ['Shop.sln', /a \.NET app/],
  ['deno.json', /a Deno app/],
  ['Package.swift', /a Swift app/],
  ['pubspec.yaml', /a Dart app/],
];

for (const [file, message] of markers) {
  test(`refuses to serve only the pages below ${file} at the root, or next to it`, () => {
    for (const pages of [below('web', vite), { 'index.html': '<p>' }, below('public', { 'index.html': '' })]) {
      const { findings } = refusal({ [file]: '{}', ...pages });
      // A language that has a planner by now says itself what it misses.
      if (findings[0].rule !== 'plan/unknown') continue;
      assert.match(findings[0].message, message);
      assert.equal(findings[0].file, file);
      assert.match(findings[0].fix, /Add a Dockerfile/);
    }
  });
}

test("follows the author's choice, even next to a marker", () => {
  assert.equal(plan({ 'go.mod': '', ...below('web', vite) }, { path: 'web' }).plan.framework, 'Vite');
  assert.equal(plan({ 'go.mod': '', 'index.html': '<p>' }, { strategy: 'static' }).plan.strategy, 'static');
  assert.equal(plan({ 'moorage.yaml': 'source:\n  path: web\n', 'go.mod': '', ...below('web', vite) }).path, 'web');
});

test('plans a server next to a marker of another language', () => {
  assert.equal(plan({ 'composer.json': '{}', ...python }).plan.framework, 'Flask');
  assert.equal(plan({ 'deno.json': '{}', ...vite }).plan.framework, 'Vite');
});

test('rejects several apps below the root by name', () => {
  const [finding] = refusal({ ...below('backend', python), ...below('frontend', vite) }).findings;
  assert.equal(finding.rule, 'plan/several-apps');
  assert.match(finding.message, /backend \(Python, Flask\), frontend \(Node, Vite\)/);
  assert.match(finding.fix, /source\.path.*backend/);
  assert.match(
    refusal({ ...below('server', { 'go.mod': '' }), ...below('web', vite) }).findings[0].message,
    /server \(Go, by go\.mod\), web/,
  );
  assert.equal(refusal({ ...below('one', express), ...below('two', express) }).findings[0].rule, 'plan/several-apps');
});

test('rejects pages at the root with a server below, and warns about a server at the root with pages below', () => {
  assert.match(refusal({ ...vite, ...below('api', python) }).findings[0].message, /the top \(Node, Vite\), api/);
  const serving = { ...python, 'pages.py': 'send_from_directory("frontend/dist", name)' };
  const { findings, plan: made } = plan({ ...serving, ...below('frontend', vite) });
  assert.equal(made.framework, 'Flask');
  assert.deepEqual(
    findings.map(({ rule, file, severity }) => [rule, file, severity]),
    [['plan/unbuilt', 'frontend', 'warning']],
  );
});

test('says nothing of pages that a plugin of Maven or Gradle builds', () => {
  const spring = '<project><parent><groupId>org.springframework.boot</groupId></parent>';
  const plugin = (folder: string): string =>
    `${spring}<plugin><artifactId>frontend-maven-plugin</artifactId><workingDirectory>${folder}</workingDirectory></plugin></project>`;
  const gradle =
    'plugins { id "org.springframework.boot"; id "com.github.node-gradle.node" }\nnode { nodeProjectDir = file("frontend") }\n';
  for (const files of [
    { 'pom.xml': plugin('frontend') },
    { 'pom.xml': plugin('${project.basedir}/frontend/') },
    { 'build.gradle': gradle, gradlew: '' },
  ])
    assert.deepEqual(plan({ ...files, ...below('frontend', vite) }).findings, [], Object.values(files)[0]);
  const { findings } = plan({ 'pom.xml': plugin('web'), ...below('frontend', vite) });
  assert.deepEqual(
    findings.map(({ rule }) => rule),
    ['plan/unbuilt'],
  );
});

test('treats an API-only server as half of an app whose pages are built below', () => {
  const api = { 'requirements.txt': 'fastapi', 'main.py': 'from fastapi import FastAPI\napp = FastAPI()\n' };
  assert.match(
    refusal({ ...api, ...below('frontend', vite) }).findings[0].message,
    /the top \(Python, FastAPI\), frontend \(Node, Vite\)/,
  );
  const mounting = { ...api, 'pages.py': 'app.mount("/", StaticFiles(directory="frontend/dist"))' };
  assert.equal(plan({ ...mounting, ...below('frontend', vite) }).plan.framework, 'FastAPI');
});

test('chooses the only app below the root, whatever other folders there are', () => {
  const files = {
    ...below('app', python),
    ...below('docs', vite),
    ...below('mobile', vite),
    'db/Dockerfile': 'FROM postgres',
    'cloud-deployments/x/Dockerfile': 'FROM a',
  };
  const { path, plan: made } = plan(files);
  assert.equal(path, 'app');
  assert.match(made.reason, /in the folder app/);
});

test('does not skip a problem at the root in favour of a folder below', () => {
  const files = {
    'package.json': json({ scripts: { build: 'vite build' }, devDependencies: { '@sveltejs/kit': '2' } }),
    'svelte.config.js': "import adapter from '@sveltejs/adapter-vercel';",
    ...below('functions', express),
  };
  assert.equal(refusal(files).findings[0].rule, 'plan/adapter');
});

test('treats pages next to a server that nothing starts as half of an app', () => {
  for (const files of [
    { ...vite, 'requirements.txt': 'flask' },
    {
      ...vite,
      'package.json': json({
        scripts: { build: 'vite build', 'dev:server': 'tsx a.ts' },
        devDependencies: { vite: '7' },
      }),
    },
    { ...vite, 'package.json': json({ scripts: { build: 'vite build' }, dependencies: { vite: '7', fastify: '5' } }) },
    { ...vite, 'api/todo.ts': '' },
  ])
    assert.match(refusal(files).findings[0].rule, /plan\/(?:no-start|half-app)/, json(files));
});

test("prefers an author's Dockerfile anywhere to what the files suggest", () => {
  const dockerfile = 'FROM python\nCOPY . .\nCMD ["python"]\n';
  assert.match(plan({ ...python, 'docker/Dockerfile': dockerfile }).plan.reason, /has a docker\/Dockerfile/);
  assert.match(plan({ ...python, 'docker/Dockerfile.oracle': dockerfile }).plan.reason, /requirements\.txt/);
  assert.match(plan({ 'a.f90': '', 'docker/Dockerfile.oracle': dockerfile }).plan.reason, /docker\/Dockerfile\.oracle/);
  assert.match(
    plan({ Dockerfile: { linkTo: 'docker/Dockerfile.oracle' }, 'docker/Dockerfile.oracle': dockerfile }).plan.reason,
    /has a Dockerfile,/,
  );
});

test('is less sure of a Dockerfile that it chose among several, or whose name says little', () => {
  const dockerfile = 'FROM python\nCOPY . .\nCMD ["python", "app.py"]\n';
  const chosen = (files: Files): unknown => [plan(files).plan.certainty, plan(files).plan.otherwise];
  assert.deepEqual(chosen({ 'docker/Dockerfile': dockerfile }), ['certain', undefined]);
  assert.deepEqual(chosen({ 'docker/Dockerfile': dockerfile, 'docker/Dockerfile.alpine': dockerfile }), [
    'likely',
    'Another Dockerfile is docker/Dockerfile.alpine: set build.dockerfile in moorage.yaml to build it.',
  ]);
  assert.deepEqual(chosen({ 'a.f90': '', 'docker/Dockerfile.oracle': dockerfile }), ['guessed', undefined]);
});

test('counts no folder of tests or examples as an app next to others', () => {
  const files = {
    ...below('app', python),
    ...below('integration-tests', express),
    ...below('test_app', python),
    ...below('example-next', vite),
    ...below('__tests__/site', vite),
  };
  assert.equal(plan(files).path, 'app');
  assert.equal(plan(below('demo-app', python)).path, 'demo-app');
});

test('plans the root if source.path names it, whatever is below', () => {
  const files = { ...vite, ...below('api', python) };
  const [finding] = refusal(files).findings;
  assert.match(finding.fix, /source\.path with its folder, such as api, or source\.path: \. for the top alone/);
  assert.equal(plan({ ...files, 'moorage.yaml': 'source:\n  path: .\n' }).plan.framework, 'Vite');
  assert.equal(plan(files, { pinned: ['source.path'] }).plan.framework, 'Vite');
});

test('names the Dockerfile that builds all apps, or the compose file that starts them apart', () => {
  const both = { ...below('backend', python), ...below('frontend', vite) };
  const whole = 'FROM node AS pages\nCOPY frontend/ .\nFROM python\nCOPY backend .\nCMD ["python", "app.py"]\n';
  assert.match(
    refusal({ ...both, 'deploy/gpu/Dockerfile.local': whole }).findings[0].fix,
    /^deploy\/gpu\/Dockerfile\.local builds them into one image: set build\.dockerfile: deploy\/gpu\/Dockerfile\.local in moorage\.yaml/,
  );
  const compose = {
    ...both,
    'backend/Dockerfile': 'FROM a\nCMD a',
    'frontend/Dockerfile': 'FROM a\nCMD a',
    'compose.yaml': 'services:\n  api: {build: ./backend}\n  web: {build: frontend}\n',
  };
  assert.match(
    refusal(compose).findings[0].fix,
    /^compose\.yaml starts them in a container each; an app here is one container\. Add a Dockerfile/,
  );
  const several = (files: Files): string | undefined =>
    locateApp(sampleInput(), createMemoryTree(files)).platform.find(({ rule }) => rule === 'compose/several-services')
      ?.fix;
  assert.match(
    several(compose) ?? '',
    /^Choose one in moorage\.yaml: set source\.path to its folder \(\. for the top\)/,
  );
  assert.match(
    several({ ...compose, 'all.Dockerfile': whole }) ?? '',
    /^all\.Dockerfile builds them into one image: set build\.dockerfile: all\.Dockerfile in moorage\.yaml\. Or choose one/,
  );
});
