// What each file for another platform says, which of two is believed, and that a broken one says nothing.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { type MergedInput, mergeManifest } from '../../../../../../controller/pipeline/app-manifest.ts';
import { makePlan } from '../../../../../../controller/pipeline/plan/plan.ts';
import { findDeclaredSite, findDeclaredStart } from '../../../../../../controller/pipeline/plan/platforms/start.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../../support/pipeline/sample.ts';

type Files = Parameters<typeof createMemoryTree>[0];
const merge = (files: Files): MergedInput => mergeManifest(sampleInput(), createMemoryTree(files));
const start = (files: Files): string | undefined => findDeclaredStart(createMemoryTree(files))?.command;
const env = (files: Files): Record<string, string> =>
  Object.fromEntries((merge(files).settings?.run?.env ?? []).map(({ name, value }) => [name, value]));

const render = `
services:
  - {type: worker, startCommand: work}
  - type: web
    startCommand: gunicorn app:app
    preDeployCommand: ./migrate.sh
    healthCheckPath: /up
    disk: {name: d, mountPath: /var/data}
    envVars:
      - {key: DATABASE_URL, fromDatabase: {name: main, property: connectionString}}
      - {key: CACHE, fromService: {type: keyvalue, name: r, property: host}}
      - {key: WORKERS, value: 2}
      - {key: SITE, value: shop.onrender.com}
      - {key: SECRET, generateValue: true}
  - {type: keyvalue, name: r}
databases: [{name: main}]
`;
const fly = `
app = "shop"
[build]
dockerfile = "ops/Dockerfile"
build-target = "final"
[env]
LEVEL = "info"
[deploy]
release_command = "bin/migrate"
[http_service]
internal_port = 4000
[[mounts]]
source = "data"
destination = "/data"
`;

test('reads how an app starts, and what runs before it', () => {
  assert.equal(start({ Procfile: 'web: npm start\nworker: work' }), 'exec npm start');
  assert.equal(start({ Procfile: 'release: a; b\nweb: npm start' }), '( a; b ) && exec npm start');
  assert.equal(start({ 'railway.json': '{"deploy":{"startCommand":"node a.js"}}' }), 'exec node a.js');
  assert.equal(start({ 'railway.toml': '[deploy]\nstartCommand = "cd x && y"' }), 'cd x && y');
  assert.equal(start({ 'render.yaml': render }), '( ./migrate.sh ) && exec gunicorn app:app');
  assert.equal(start({ 'fly.toml': '[processes]\napp = "serve"' }), 'exec serve');
  assert.equal(start({ Procfile: 'web: one', 'railway.json': '{"deploy":{"startCommand":"two"}}' }), 'exec one');
  for (const files of [{}, { Procfile: 'worker: x' }, { 'railway.json': '{' }, { 'render.yaml': '- a' }])
    assert.equal(start(files), undefined);
});

test("prefers another platform's start command to detection, and names the file in the plan", () => {
  const app = 'from flask import Flask\napp = Flask(__name__)\n';
  const files = {
    'requirements.txt': 'flask',
    'app.py': app,
    'render.yaml': 'services: [{type: web, startCommand: python serve.py}]',
  };
  const recipe = makePlan(createMemoryTree(files), sampleInput());
  assert.match(recipe.plan.reason, /render\.yaml defines how it starts/);
  assert.match(recipe.dockerfile ?? '', /exec python serve\.py/);
});

test('reads databases, variables, disk and health check of render.yaml', () => {
  const { settings } = merge({ 'render.yaml': render });
  assert.deepEqual(
    settings?.services?.map(({ name, type }) => [name, type]),
    [
      ['db', 'postgres'],
      ['redis', 'redis'],
    ],
  );
  assert.deepEqual(env({ 'render.yaml': render }), {
    DATABASE_URL: '${{services.db.url}}',
    CACHE: '${{services.redis.host}}',
    SECRET: '${{secret}}',
    WORKERS: '2',
  });
  assert.deepEqual([settings.run?.healthPath, settings.run?.volumes?.[0]?.path], ['/up', '/var/data']);
});

test('reads port, Dockerfile, stage, variables and disk of fly.toml', () => {
  const { input, settings } = merge({ 'fly.toml': fly, 'ops/Dockerfile': '' });
  assert.deepEqual([input.port, input.build.dockerfile, input.build.target], [4000, 'ops/Dockerfile', 'final']);
  assert.deepEqual([settings?.run?.volumes?.[0]?.path, env({ 'fly.toml': fly })], ['/data', { LEVEL: 'info' }]);
});

test("reads add-ons and defaults of app.json, and ignores Expo's", () => {
  const heroku = {
    addons: ['heroku-postgresql:mini', { plan: 'heroku-redis' }],
    env: { A: 'a', B: { value: 'b' }, C_KEY: { generator: 'secret' }, INVITATION: { generator: 'secret' } },
  };
  const files = { 'app.json': JSON.stringify(heroku) };
  assert.deepEqual(
    merge(files).settings?.services?.map(({ type }) => type),
    ['postgres', 'redis'],
  );
  assert.deepEqual(env(files), { A: 'a', B: 'b', C_KEY: '${{secret}}' });
  assert.equal(merge({ 'app.json': '{"expo":{"name":"x"},"env":{"A":"a"}}' }).settings, undefined);
});

test('reads a Hugging Face Space: its script, its version, its port', () => {
  const readme = (more: string): Files => ({ 'README.md': `---\ntitle: x\n${more}\n---\n# x`, 'demo.py': '' });
  const gradio = findDeclaredStart(createMemoryTree(readme('sdk: gradio\nsdk_version: 4.44.0\napp_file: demo.py')));
  assert.match(gradio?.command ?? '', /exec python demo\.py$/);
  assert.deepEqual([gradio?.framework, gradio?.needs], ['Gradio', ['gradio==4.44.0']]);
  assert.match(start(readme('sdk: streamlit\napp_file: demo.py')) ?? '', /streamlit run demo\.py/);
  assert.equal(start(readme('sdk: gradio\napp_file: ../x.py')), undefined);
  assert.equal(merge(readme('sdk: docker\napp_port: 3000')).input.port, 3000);
  assert.equal(merge(readme('sdk: docker')).input.port, 7860);
});

test('reads folder and fallback of a built site', () => {
  const site = (files: Files): unknown => findDeclaredSite(createMemoryTree(files));
  const netlify = '[build]\npublish = "./out/"\n[[redirects]]\nfrom = "/*"\nto = "/index.html"\nstatus = 200\n';
  assert.deepEqual(site({ 'netlify.toml': netlify }), { file: 'netlify.toml', folder: 'out', fallback: true });
  const vercel = { outputDirectory: 'public/app', rewrites: [{ source: '/(.*)', destination: '/index.html' }] };
  assert.deepEqual(site({ 'vercel.json': JSON.stringify(vercel) }), {
    file: 'vercel.json',
    folder: 'public/app',
    fallback: true,
  });
  assert.equal(site({ 'vercel.json': JSON.stringify(vercel), 'api/hello.ts': '' }), undefined);
  assert.equal(site({ 'netlify.toml': '[build]\npublish = "../x"' }), undefined);
  const recipe = makePlan(
    createMemoryTree({
      'package.json': '{"scripts":{"build":"vite build"},"dependencies":{"vite":"7"}}',
      'index.html': '',
      'netlify.toml': netlify,
    }),
    sampleInput(),
  );
  assert.match(recipe.dockerfile ?? '', /\/out\b/);
});

test('uses the only port that a devcontainer forwards if no Dockerfile exposes one', () => {
  const files = { '.devcontainer/devcontainer.json': '{\n// shown\n"forwardPorts": [8501,],\n}' };
  assert.equal(merge(files).input.port, 8501);
  assert.equal(merge({ ...files, Dockerfile: '' }).input.port, undefined);
  assert.equal(merge({ ...files, 'docker/Dockerfile': 'FROM a\nCMD run\n' }).input.port, undefined);
});

test('reports each value that names a host of another platform or a service that is missing here', () => {
  const found = (files: Files): unknown =>
    merge(files).findings.map(({ rule, file, message }) => [rule, file, message.replace(/:.*/, '')]);
  assert.deepEqual(found({ 'render.yaml': render }), [['platform/foreign-host', 'render.yaml', 'SITE is not set']]);
  assert.match(
    merge({ 'render.yaml': render }).findings[0]?.message ?? '',
    /names shop\.onrender\.com, a host of another/,
  );
  assert.deepEqual(
    found({ 'render.yaml': render, 'moorage.yaml': 'run:\n  env:\n    - {name: SITE, value: x}\n' }),
    [],
  );
  const missing =
    'services:\n  - {type: web, envVars: [{key: CACHE, fromService: {type: redis, property: connectionString}}]}\n';
  assert.deepEqual(found({ 'render.yaml': missing }), [
    ['platform/unknown-service', 'render.yaml', 'CACHE is not set'],
  ]);
});

test('reports a placeholder of a compose file as a variable without a value', () => {
  const compose = 'services:\n  web: {build: ., environment: {API_KEY: your-key-here, LEVEL: info}}\n';
  const { findings, settings } = merge({ Dockerfile: 'FROM a', 'compose.yaml': compose });
  assert.deepEqual(settings?.run?.env, [{ name: 'LEVEL', value: 'info' }]);
  assert.match(findings.find(({ rule }) => rule === 'compose/unset-variables')?.message ?? '', /not set: API_KEY\./);
});
