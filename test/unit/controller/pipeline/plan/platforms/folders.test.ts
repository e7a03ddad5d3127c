// Which folders and packages become components, and at which path the page reaches its API.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { DeclaredComponent } from '../../../../../../crds/components.ts';
import type { Finding } from '../../../../../../crds/hosted-app.ts';
import { mergeManifest } from '../../../../../../controller/pipeline/app-manifest.ts';
import { Rejected } from '../../../../../../controller/pipeline/contract.ts';
import { isWorkspacePackage } from '../../../../../../controller/pipeline/plan/node/workspace.ts';
import { makePlan } from '../../../../../../controller/pipeline/plan/plan.ts';
import { locateApp } from '../../../../../../controller/pipeline/plan/repository.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../../support/pipeline/sample.ts';

type Files = Parameters<typeof createMemoryTree>[0];
const merge = (files: Files): { components: readonly DeclaredComponent[]; findings: readonly Finding[] } => {
  const { settings, findings } = mergeManifest(sampleInput(), createMemoryTree(files));
  return { components: settings?.components ?? [], findings };
};
const below = (folder: string, files: Files): Files =>
  Object.fromEntries(Object.entries(files).map(([path, content]) => [`${folder}/${path}`, content]));
const problem = (files: Files): string | undefined =>
  locateApp(sampleInput(), createMemoryTree(files)).images[0]?.problem?.rule;

const express = {
  'package.json': '{"scripts":{"start":"node server.js"},"dependencies":{"express":"5"}}',
  'server.js': "require('express')().listen(process.env.PORT || 5000)",
};
const vite = { 'package.json': '{"scripts":{"build":"vite build"},"devDependencies":{"vite":"6"}}', 'index.html': '' };
const next = {
  'package.json': '{"scripts":{"build":"next build","start":"next start"},"dependencies":{"next":"15","react":"19"}}',
  'app/layout.tsx': '',
};
const fastapi = {
  'requirements.txt': 'fastapi\nuvicorn\n',
  'main.py': 'from fastapi import FastAPI\napp = FastAPI()\n',
};
const streamlit = {
  'requirements.txt': 'streamlit\n',
  'app.py': 'import streamlit as st\nAPI = "http://localhost:8000"\nst.title("x")\n',
};

test('wires a page to an API by the proxy of its development server', () => {
  const config = "export default { server: { proxy: { '/api': 'http://localhost:5000' } } }";
  const { components } = merge({
    ...below('backend', express),
    ...below('frontend', { ...vite, 'vite.config.js': config }),
  });
  assert.deepEqual(components, [
    { name: 'frontend', kind: 'web', path: 'frontend' },
    { name: 'backend', kind: 'web', path: 'backend', port: 5000, route: { path: '/api', stripPath: false } },
  ]);
  const react = {
    'package.json':
      '{"scripts":{"build":"react-scripts build"},"dependencies":{"react-scripts":"5"},"proxy":"http://localhost:5000"}',
    'src/App.js': "fetch('/api/time'); axios.get('/login')",
  };
  assert.deepEqual(merge({ ...below('server', express), ...below('client', react) }).components[1]?.route, {
    path: '/api',
    stripPath: false,
    morePaths: ['/login'],
  });
});

test('gives the build of a page the address of the API that its variable holds', () => {
  const sources = { 'src/api.ts': 'export const api = import.meta.env.VITE_API_URL ?? "http://localhost:8000/v1";' };
  const { components } = merge({ ...below('api', fastapi), ...below('web', { ...vite, ...sources }) });
  const variable = { name: 'VITE_API_URL', value: '${{app.url}}/v1' };
  assert.deepEqual(components[0]?.build, { env: [variable] });
  assert.deepEqual([components[1]?.port, components[1]?.route], [8000, { path: '/v1', stripPath: false }]);
  const socket = {
    '.env.example': 'VITE_WS_URL=ws://localhost:8000/ws\n',
    'src/a.ts': 'new WebSocket(import.meta.env.VITE_WS_URL)',
  };
  assert.deepEqual(merge({ ...below('api', fastapi), ...below('web', { ...vite, ...socket }) }).components[0]?.env, [
    { name: 'VITE_WS_URL', value: 'wss://${{app.host}}/ws' },
  ]);
});

test('keeps an API inside that only the server of the pages calls', () => {
  const rewrites =
    "module.exports = { async rewrites() { return [{ source: '/api/:path*', destination: 'http://localhost:8000/:path*' }] } }";
  const nextjs = merge({
    ...below('api', fastapi),
    ...below('web', { ...next, 'next.config.js': rewrites }),
  }).components;
  assert.deepEqual(
    nextjs.map(({ name, kind, port, route }) => [name, kind, port, route]),
    [
      ['web', 'web', undefined, undefined],
      ['api', 'worker', 8000, undefined],
    ],
  );
  const screens = merge({ ...below('api', fastapi), ...below('ui', streamlit) }).components;
  assert.deepEqual(
    screens.map(({ name, kind, port }) => [name, kind, port]),
    [
      ['ui', 'web', undefined],
      ['api', 'worker', 8000],
    ],
  );
});

test('refuses folders that nothing connects, and pages that call the machine of their developer', () => {
  const apart = { ...below('backend', express), ...below('frontend', vite) };
  assert.deepEqual(merge(apart).components, []);
  assert.equal(problem(apart), 'plan/several-apps');
  const wrong = merge({ ...apart, 'frontend/src/main.js': 'fetch("http://localhost:5000/items")' });
  assert.deepEqual(wrong.components, []);
  assert.deepEqual(
    wrong.findings.map(({ rule, severity, file }) => [rule, severity, file]),
    [['components/local-address', 'error', 'frontend/src/main.js']],
  );
  // Code of the server reaches the other component at localhost, as on the machine of its developer.
  const server = {
    'app/page.tsx': 'export default async function Page() { await fetch("http://localhost:5000/items") }',
  };
  const rendered = merge({ ...below('backend', express), ...below('frontend', { ...next, ...server }) });
  assert.deepEqual(
    rendered.components.map(({ name, kind }) => [name, kind]),
    [
      ['frontend', 'web'],
      ['backend', 'worker'],
    ],
  );
});

test('leaves an app of one process, or with a Dockerfile for all of it, as it is', () => {
  const config = "export default { server: { proxy: { '/api': 'http://localhost:5000' } } }";
  const both = { ...below('backend', express), ...below('frontend', { ...vite, 'vite.config.js': config }) };
  assert.deepEqual(merge({ ...both, Dockerfile: 'FROM a\nCMD b\n' }).components, []);
  assert.deepEqual(merge({ ...both, 'moorage.yaml': 'source: {path: backend}' }).components, []);
  assert.deepEqual(merge(below('backend', express)).components, []);
});

const workspace = {
  'package.json': '{"private":true,"workspaces":["apps/*","packages/*"]}',
  'package-lock.json': '{}',
  'packages/ui/package.json': '{"name":"ui","scripts":{"build":"tsc"}}',
  'apps/web/package.json':
    '{"name":"web","scripts":{"build":"next build","start":"next start"},"dependencies":{"next":"15","ui":"*"}}',
  'apps/web/app/page.tsx': '',
  'apps/admin/app/page.tsx': '',
  'apps/web/lib/api.ts': 'export const url = process.env.NEXT_PUBLIC_API_URL;',
  'apps/admin/package.json':
    '{"name":"admin","scripts":{"build":"next build","start":"next start"},"dependencies":{"next":"15"}}',
  'apps/api/package.json': '{"name":"api","scripts":{"start":"node main.js"},"dependencies":{"fastify":"5"}}',
  'apps/api/main.js': 'app.listen({ port: 4000 })',
};

test('makes components of the apps of a workspace', () => {
  const { components } = merge(workspace);
  assert.deepEqual(
    components.map(({ name, path, port, route }) => [name, path, port, route?.path, route?.subdomain]),
    [
      ['web', 'apps/web', undefined, undefined, undefined],
      ['admin', 'apps/admin', undefined, '/', 'admin'],
      ['api', 'apps/api', 4000, '/api', undefined],
    ],
  );
  assert.deepEqual(components[0]?.build?.env, [{ name: 'NEXT_PUBLIC_API_URL', value: '${{app.url}}/api' }]);
});

test('plans a package of a workspace from its root', () => {
  const tree = createMemoryTree(workspace);
  assert.deepEqual([isWorkspacePackage(tree, 'apps/web'), isWorkspacePackage(tree, 'docs')], [true, false]);
  const { plan, dockerfile } = makePlan(tree, { ...sampleInput(), package: 'apps/web' });
  assert.match(plan.reason, /package web in apps\/web is the component/);
  assert.match(dockerfile ?? '', /packages\/ui/);
});

test('names what deploys the app elsewhere, if nothing says how it starts', () => {
  const files = {
    'charts/shop/Chart.yaml': 'name: shop\n',
    'k8s/web.yaml': 'apiVersion: apps/v1\nkind: Deployment\n',
    '.devcontainer/devcontainer.json': '{}',
    'src/Shop.AppHost/Shop.AppHost.csproj': '<Project/>',
  };
  const explain = (content: Files): string => {
    try {
      makePlan(createMemoryTree(content), sampleInput());
    } catch (error) {
      if (error instanceof Rejected) return error.findings[0].message;
      throw error;
    }
    return '';
  };
  const message = explain(files);
  for (const part of [
    'a Helm chart (charts/shop/Chart.yaml)',
    'Kubernetes manifests (k8s/web.yaml)',
    'a dev container',
    'an Aspire host',
  ])
    assert.ok(message.includes(part), `${part}: ${message}`);
  assert.doesNotMatch(explain({ 'README.md': '' }), /does not read/);
});

test('finds the path of an API in a proxy of the repository, or where page and API both have it', () => {
  const page = { ...vite, 'src/api.ts': "mande('/api/records', {})" };
  const conf =
    'server { location / { proxy_pass http://localhost:3000; } location /api/ { proxy_pass http://localhost:5000; } }';
  const fixed = { ...express, 'server.js': "const app = require('express')(); app.listen(5000)" };
  const proxied = merge({ ...below('front', page), ...below('server', fixed), 'site.nginx.conf': conf });
  assert.deepEqual(proxied.components[1]?.route, { path: '/api', stripPath: false });
  const routes = {
    ...express,
    'server.js': "const app = require('express')(); app.get('/api/records', f); app.listen(process.env.PORT)",
  };
  const named = merge({ ...below('front', page), ...below('server', routes) });
  assert.deepEqual(named.components[1]?.route, { path: '/api', stripPath: false });
});

test('builds a Dockerfile from where its files are, or plans the folder if they are nowhere', () => {
  const config = "export default { server: { proxy: { '/api': 'http://localhost:5000' } } }";
  const page = below('web', { ...vite, 'vite.config.js': config });
  const build = (dockerfile: string): unknown => {
    const { components } = merge({ ...page, ...below('api', { ...express, Dockerfile: dockerfile }) });
    const { path, build: own } = components.find(({ name }) => name === 'api') ?? {};
    return [path, own];
  };
  assert.deepEqual(build('FROM node\nCOPY package.json .\nCMD node server.js\n'), ['api', undefined]);
  assert.deepEqual(build('FROM node\nCOPY api ./\nCMD node server.js\n'), ['.', { dockerfile: 'api/Dockerfile' }]);
  assert.deepEqual(build('FROM node\nCOPY gone.txt .\nCMD node server.js\n'), ['api', { strategy: 'node' }]);
  // A folder with nothing but a Dockerfile for the others is no part.
  const packed = { ...page, ...below('package', { Dockerfile: 'FROM node\nCOPY ./web /app\nCMD serve\n' }) };
  assert.deepEqual(merge(packed).components, []);
});

test('keeps the path of an API that has all of its paths below it, or whose address the pages use without a path', () => {
  const read = (page: Files, server: Files): unknown => {
    const { components } = merge({ ...below('api', server), ...below('web', { ...vite, ...page }) });
    return [components[0]?.build?.env?.[0]?.value, components[1]?.route];
  };
  const variable = 'const base = import.meta.env.VITE_API_URL; ';
  const kept = ['${{app.url}}', { path: '/api', stripPath: false }];
  const prefixed = { ...express, 'server.js': "app.setGlobalPrefix('api'); require('express')().listen(5000)" };
  assert.deepEqual(read({ 'src/a.ts': variable }, prefixed), kept);
  assert.deepEqual(read({ 'src/a.ts': `${variable}fetch(new URL('/api/x', baseUrl))` }, express), kept);
  assert.deepEqual(read({ 'src/a.ts': variable }, express), ['${{app.url}}/api', { path: '/api', stripPath: true }]);
});

test('makes two components of pages and a Python server at the same root', () => {
  const config =
    "module.exports = { rewrites: async () => [{ source: '/api/:path*', destination: process.env.NODE_ENV === 'development' ? 'http://127.0.0.1:8000/api/:path*' : '/api/' }] }";
  const files = {
    ...next,
    'next.config.js': config,
    'requirements.txt': 'fastapi\nuvicorn\n',
    'api/index.py': fastapi['main.py'],
  };
  const { components } = merge(files);
  assert.deepEqual(
    components.map(({ name, path, build, port, route }) => [name, path, build, port, route]),
    [
      ['web', '.', { strategy: 'node' }, undefined, undefined],
      ['api', '.', { strategy: 'python' }, 8000, { path: '/api', stripPath: false }],
    ],
  );
  assert.deepEqual(merge({ ...files, 'next.config.js': '' }).components, []);
});

test('lets the server of a page reach the API that a variable of its sample file names', () => {
  const sample =
    'BACKEND_API_URL=http://localhost:8000/v1\nNEXTAUTH_URL=http://localhost:3000\nSMTP_SERVER=localhost\n';
  const route = 'const base = process.env.BACKEND_API_URL; export const GET = () => fetch(base);';
  const pages = { ...next, 'app/api/x/route.ts': route };
  const files = { ...below('backend', fastapi), ...below('frontend', pages) };
  assert.deepEqual(merge(files).components, []);
  const { components } = merge({ ...files, 'frontend/.env.local.example': sample });
  assert.deepEqual(
    components.map(({ name, kind, port, env }) => [name, kind, port, env]),
    [
      ['frontend', 'web', undefined, [{ name: 'BACKEND_API_URL', value: 'http://backend:8000/v1' }]],
      ['backend', 'worker', 8000, undefined],
    ],
  );
});

test('takes a package of a workspace that only a development script starts for a server', () => {
  const manifest = {
    scripts: { dev: 'tsx watch --env-file=.env --tsconfig ./tsconfig.json src/index.ts', build: 'tsc' },
    dependencies: { hono: '4' },
    devDependencies: { tsx: '4' },
  };
  const sources = { 'src/api.ts': 'export const api = import.meta.env.VITE_SERVER_URL;' };
  const files = {
    'package.json': '{"workspaces":["apps/*"]}',
    ...below('apps/api', { 'package.json': JSON.stringify(manifest), 'src/index.ts': 'serve(app)' }),
    ...below('apps/web', { ...vite, ...sources }),
  };
  assert.deepEqual(
    merge(files).components.map(({ name, path, route }) => [name, path, route?.path]),
    [
      ['web', 'apps/web', undefined],
      ['api', 'apps/api', '/api'],
    ],
  );
  const { dockerfile = '' } = makePlan(createMemoryTree(files), { ...sampleInput(), package: 'apps/api' });
  assert.match(dockerfile, /exec tsx --tsconfig \.\/tsconfig\.json src\/index\.ts/);
  const library = { ...files, 'apps/api/package.json': JSON.stringify({ ...manifest, dependencies: {} }) };
  assert.deepEqual(merge({ ...library, 'apps/api/src/index.ts': 'export const a = 1;' }).components, []);
});

test('takes a call of a model server on the machine of the visitor for none of an API', () => {
  const page = "fetch('http://localhost:11434/api/tags')";
  const { findings, components } = merge({
    ...below('backend', fastapi),
    ...below('frontend', { ...vite, 'src/a.ts': page }),
  });
  assert.deepEqual([findings, components], [[], []]);
});
