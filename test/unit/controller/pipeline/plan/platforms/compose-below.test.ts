// Components of a compose file below the root, and what moorage.yaml changes of them.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { findComponent, listComponents, mergeFiles, readEnv } from '../../../../../support/pipeline/components.ts';

const files = {
  'compose.yaml': `
services:
  frontend:
    build: ./web
    ports: ["5173:5173"]
    environment: {VITE_API_URL: "http://localhost:8000"}
  api:
    build: {context: ./api, dockerfile: dev.Dockerfile}
    ports: ["8000:8000"]
`,
  'web/package.json': '{"scripts":{"build":"vite build"},"dependencies":{"react":"19"},"devDependencies":{"vite":"6"}}',
  'web/Dockerfile': 'FROM node:22\nCOPY . .\nRUN npm ci\nCMD ["npx", "vite", "--host"]\n',
  'api/dev.Dockerfile': 'FROM python\nCMD python main.py\n',
};

test('keeps the folder and the addresses of a component whose build alone moorage.yaml changes', () => {
  const own =
    'components: [{name: frontend, build: {strategy: node}}, {name: api, build: {strategy: python}, route: {path: /api}}]\n';
  assert.equal(findComponent(mergeFiles(files), 'api').build?.dockerfile, 'dev.Dockerfile');
  const merged = mergeFiles({ ...files, 'moorage.yaml': own });
  const api = findComponent(merged, 'api');
  assert.deepEqual([api.path, api.port, api.build], ['api', 8000, { strategy: 'python' }]);
  const { path, build } = findComponent(merged, 'frontend');
  assert.equal(path, 'web');
  assert.deepEqual(build, {
    strategy: 'node',
    env: findComponent(mergeFiles(files), 'frontend').build?.env,
  });
  assert.ok(build.env?.some(({ name }) => name === 'VITE_API_URL'));
});

test('reads the only compose file with several images of a folder below the root', () => {
  const nested = {
    'deploy/docker-compose.yml': `
services:
  web:
    build: {context: .., dockerfile: web/Dockerfile}
    ports: ["80:8000"]
    env_file: [web.env]
    environment: {LEVEL: "\${LEVEL}", API_URL: http://api:9000}
  api: {build: ../api, expose: [9000]}
`,
    'deploy/.env': 'LEVEL=3\n',
    'deploy/web.env': 'X=1\n',
    'web/Dockerfile': 'FROM a\nCOPY web .\nCMD b\n',
    'api/Dockerfile': 'FROM a\nCMD b\n',
  };
  const merged = mergeFiles(nested);
  assert.deepEqual(
    listComponents(merged).map(({ name, path, build }) => [name, path, build?.dockerfile]),
    [
      ['web', '.', 'web/Dockerfile'],
      ['api', 'api', undefined],
    ],
  );
  assert.deepEqual(readEnv(findComponent(merged, 'web')), { X: '1', LEVEL: '3', API_URL: 'http://api:9000' });
  assert.equal(merged.findings.find(({ rule }) => rule === 'components/found')?.file, 'deploy/docker-compose.yml');
  const text = nested['deploy/docker-compose.yml'];
  for (const other of [
    { Dockerfile: 'FROM a\nCMD b\n' },
    { 'docker-compose.yml': 'services: {db: {image: postgres}}' },
    { 'infra/docker-compose.yml': text },
  ])
    assert.deepEqual(listComponents(mergeFiles({ ...nested, ...other })), [], Object.keys(other).join(', '));
  const { 'deploy/docker-compose.yml': _, ...rest } = nested;
  assert.deepEqual(listComponents(mergeFiles({ ...rest, 'examples/docker-compose.yml': text })), []);
});
