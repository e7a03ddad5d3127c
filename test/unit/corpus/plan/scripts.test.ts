// What the scripts of package.json come to.
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, test } from 'vitest';
import { expand } from '../../../corpus/plan/scripts.ts';

async function folderOf(manifests: Readonly<Record<string, object>>): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'moorage-scripts-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  for (const [path, manifest] of Object.entries(manifests)) {
    await mkdir(join(root, path), { recursive: true });
    await writeFile(join(root, path, 'package.json'), JSON.stringify(manifest));
  }
  return root;
}

test('a script is written out, and what it runs', async () => {
  const scripts = { build: 'run-p types "bundle {@}" --', types: 'tsc', bundle: 'vite build', loop: 'npm run loop' };
  const root = await folderOf({ '.': { scripts } });
  assert.equal(expand('pnpm run build', root, '.'), 'pnpm run build\nrun-p types "bundle {@}" --\ntsc\nvite build');
  assert.equal(expand('npm run loop', root, '.'), 'npm run loop');
});

test('only a package manager runs scripts', async () => {
  const root = await folderOf({ '.': { scripts: { build: 'vite build' } } });
  assert.equal(expand('make build', root, '.'), 'make build');
});

test('those of a folder that the command names', async () => {
  const root = await folderOf({
    '.': { scripts: { build: 'yarn --cwd ./web build' } },
    web: { scripts: { build: 'vite build' } },
  });
  assert.match(expand('yarn build', root, '.'), /\nvite build$/);
});

test('without a start script, the main file is started', async () => {
  const root = await folderOf({ '.': { main: 'server.js', scripts: {} } });
  assert.equal(expand('npm start', root, '.'), 'npm start\nnode server.js');
});
