// The plan as it is left for the build stage.
import assert from 'node:assert/strict';
import { mkdtemp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, test } from 'vitest';
import type { Recipe } from '../../../../../controller/pipeline/plan/recipe.ts';
import { writePlan } from '../../../../../controller/pipeline/plan/repository.ts';
import { toWorkspacePaths } from '../../../../../controller/pipeline/contract.ts';
import { sampleInput } from '../../../../support/pipeline/sample.ts';

async function ignored(recipe: Partial<Recipe>, authored?: string): Promise<string[]> {
  const root = await mkdtemp(join(tmpdir(), 'moorage-plan-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const paths = toWorkspacePaths(root, join(root, 'builder'));
  await mkdir(paths.source, { recursive: true });
  if (authored !== undefined) await writeFile(join(paths.source, '.dockerignore'), authored);
  const plan: Recipe = {
    plan: { strategy: 'go', reason: '', port: 1 },
    dockerfile: 'FROM a\n',
    findings: [],
    ...recipe,
  };
  await writePlan(plan, sampleInput(), paths);
  const text = await readFile(join(paths.notes, 'Dockerfile.dockerignore'), 'utf8');
  return text.split('\n').filter((line) => line !== '');
}

test("puts the author's ignore patterns after those of the plan", async () => {
  assert.deepEqual(await ignored({ ignore: ['.git'] }), ['.git']);
  const [first, second, ...kept] = await ignored({ ignore: ['.git'] }, 'data\n*.lock\n');
  assert.deepEqual([first, second, kept[0]], ['.git', 'data', '*.lock']);
  for (const file of ['composer.json', 'yarn.lock', 'requirements*.txt', 'README*'])
    assert.ok(kept.includes(`!${file}`));
});

test('keeps a folder that the plan builds, without its unwanted contents', async () => {
  const lines = await ignored({ ignore: ['**/node_modules'], builds: ['.', 'web'] }, '/web/\n');
  assert.deepEqual(lines.slice(0, 3), ['**/node_modules', '/web/', '!web']);
  assert.deepEqual(lines.slice(-2), ['!README*', '**/node_modules']);
});
