// The bundles of the images, made by the Dockerfile's own commands, in folders that have only what the images have.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, test } from 'vitest';
import { buildResult } from '../../controller/pipeline/contract.ts';
import { startLab } from '../support/pipeline/lab.ts';

const root = join(import.meta.dirname, '..', '..');
const { NODE_COMPILE_CACHE } = process.env;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'moorage-bundles-'));
  const dockerfile = await readFile(join(root, 'Dockerfile'), 'utf8');
  const commands = [...dockerfile.matchAll(/node (bundle\.ts [^\\\n]+)/g)].map(([, command = '']) => command);
  assert.ok(commands.length > 0);
  for (const command of commands)
    await execa('node', command.trim().replace('/bundles/', `${folder}/`).split(' '), { cwd: root });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const pipeline = (): string => join(folder, 'moorage-pipeline');

for (const stage of ['clone', 'review', 'build'])
  test(`the bundle of the stage ${stage} loads and reads its configuration`, async () => {
    const log = join(folder, `${stage}.json`);
    const { exitCode, stderr } = await execa('node', ['controller/pipeline/main.ts', stage], {
      cwd: pipeline(),
      env: { MOORAGE_PIPELINE: '{"app":1}', MOORAGE_TERMINATION_LOG: log, NODE_COMPILE_CACHE },
      reject: false,
    });
    assert.equal(exitCode, 1, stderr);
    assert.match(await readFile(log, 'utf8'), /"fault":".*MOORAGE_PIPELINE/);
    // The line of a source in the bundle, which is not minified.
    assert.match(stderr, /at readPipelineConfig \(file:.*\/bundle\/\w+-[\w-]+\.js:\d+:\d+\)/);
  });

test('the bundle of the pipeline clones, reviews and builds an app', async () => {
  const lab = await startLab(join(pipeline(), 'controller', 'pipeline', 'main.ts'));
  try {
    const ended = await lab.through('bundled', { fixture: 'static' });
    assert.equal(ended.code, 0, ended.log.slice(-3000));
    assert.equal(buildResult.parse(ended.message).port, 8080);
    const rejected = await lab.through('unlicensed', { fixture: 'no-license' });
    assert.equal(rejected.code, 42, rejected.log.slice(-3000));
  } finally {
    await lab.stop();
  }
});

test('the image of the pipeline has the licences of the packages in its bundle', async () => {
  const licenses = await readFile(join(pipeline(), 'bundle', 'LICENSES'), 'utf8');
  assert.match(licenses, /^yaml\n\nCopyright Eemeli Aro/m);
  assert.match(licenses, /^zod\n\nMIT License/m);
});
