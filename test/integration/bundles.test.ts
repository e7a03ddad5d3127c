// The bundles of the images, made by the Dockerfile's own commands, in folders that have only what the images have. All tests
// of the pipeline run its bundle.
import assert from 'node:assert/strict';
import { cp, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, test } from 'vitest';
import { startAppsServer } from '../support/api/apps-server.ts';
import { findFreePort } from '../support/free-port.ts';
import { program } from '../support/monitoring/program.ts';

const root = join(import.meta.dirname, '..', '..');
const { NODE_COMPILE_CACHE } = process.env;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'moorage-bundles-'));
  const dockerfile = await readFile(join(root, 'Dockerfile'), 'utf8');
  const commands = [...dockerfile.matchAll(/node (bundle\.ts [^\\\n]+)/g)].map(([, command = '']) => command);
  assert.ok(commands.length > 0);
  for (const command of commands)
    await execa(process.execPath, command.trim().replace('/bundles/', `${folder}/`).split(' '), { cwd: root });
  const sources = /^FROM scratch AS sources\n((?:COPY .*\n)+)/m.exec(dockerfile)?.[1] ?? '';
  for (const line of [...sources.trim().split('\n'), 'COPY manifests /']) {
    const [, ...paths] = line.split(' ');
    for (const path of paths.slice(0, -1))
      await cp(join(root, path), join(folder, 'moorage', path), {
        recursive: true,
        // The bundles are there already, at the paths of their programs.
        force: false,
      });
  }
  await symlink(join(root, 'node_modules'), join(folder, 'moorage', 'node_modules'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const pipeline = (): string => join(folder, 'moorage-pipeline');

for (const stage of ['clone', 'review', 'build'])
  test(`the bundle of the stage ${stage} loads and reads its configuration`, async () => {
    const log = join(folder, `${stage}.json`);
    const { exitCode, stderr } = await execa(process.execPath, ['controller/pipeline/main.ts', stage], {
      cwd: pipeline(),
      env: { MOORAGE_PIPELINE: '{"app":1}', MOORAGE_TERMINATION_LOG: log, NODE_COMPILE_CACHE },
      reject: false,
    });
    assert.equal(exitCode, 1, stderr);
    assert.match(await readFile(log, 'utf8'), /"fault":".*MOORAGE_PIPELINE/);
    // The line of a source in the bundle, which is not minified.
    assert.match(stderr, /at readPipelineConfig \(file:.*\/bundle\/\w+-[\w-]+\.js:\d+:\d+\)/);
  });

test('the image of the pipeline has the licences of the packages in its bundle', async () => {
  const licenses = await readFile(join(pipeline(), 'bundle', 'LICENSES'), 'utf8');
  assert.match(licenses, /^yaml\n\nCopyright Eemeli Aro/m);
  assert.match(licenses, /^zod\n\nMIT License/m);
});

const moorage = (): string => join(folder, 'moorage');

for (const [file, complaint] of [
  ['controller/main.ts', 'MOORAGE_PIPELINE_IMAGE'],
  ['activator/main.ts', '/root/.kube/config'],
  ['api/main.ts', 'MOORAGE_BASE_DOMAIN'],
  ['api/accounting/metering/shipper/main.ts', 'MOORAGE_ACCESS_LOG'],
] as const)
  test(`the bundle of ${file} loads and reads its configuration`, async () => {
    assert.match(await readFile(join(moorage(), file), 'utf8'), /^import '[./]+bundle\/[\w-]+\.js';\n$/);
    const { exitCode, stderr } = await execa(process.execPath, [file], {
      cwd: moorage(),
      env: { HOME: '/root', NODE_COMPILE_CACHE },
      extendEnv: false,
      reject: false,
    });
    assert.equal(exitCode, 1, stderr);
    assert.ok(stderr.includes(complaint), stderr);
  });

test('the bundle of the API serves pages, models, a database and tools, with the files of its image', async () => {
  const server = await startAppsServer();
  const [port, workersPort, appsPort] = [await findFreePort(), await findFreePort(), await findFreePort()];
  const workers = program({
    file: 'api/tools/engine/workers/remote/server-main.ts',
    internalPort: await findFreePort(),
    variables: { MOORAGE_PORT: String(workersPort) },
  });
  const api = program({
    file: 'api/main.ts',
    folder: moorage(),
    internalPort: await findFreePort(),
    variables: {
      KUBECONFIG: server.kubeconfig,
      DATABASE_URL: 'pglite:',
      MOORAGE_PORT: String(port),
      MOORAGE_WORKERS_URL: `http://127.0.0.1:${workersPort}`,
      MOORAGE_BASE_DOMAIN: 'moorage.test',
      MOORAGE_GIT_ALLOWED_HOSTS: 'git.test',
      MOORAGE_CALLER_SALT: 'x'.repeat(64),
      MOORAGE_APPS_PORT: String(appsPort),
    },
  });
  const read = async (path: string, init?: RequestInit): Promise<string> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return text;
  };
  const callTool = (name: string, input: object): Promise<string> =>
    read('/mcp', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: input } }),
    });
  try {
    await workers.start();
    await api.start();
    assert.match(await read('/', { headers: { accept: 'text/html' } }), /<main id="main"/);
    assert.match(await read('/api/models'), /"tier":"free"/);
    assert.match(await read('/api/agent-guides'), /"slug"/);
    // A worker finds its module by the path that the API sends.
    assert.match(await callTool('validate_json', { schema: { type: 'object' }, data: {} }), /\\"valid\\":true/);
    // It measures text with fonts of a package, and loads another chunk.
    assert.match(await callTool('make_slides', { outline: '# Harbours\n## Old\n- Ostia' }), /"isError":false|pptx/);
  } finally {
    await api.stop();
    await workers.stop();
    await server.stop();
  }
});
