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

const header = '# Planned by Moorage.';

test("excludes what the plan excludes, and nothing that the author's .dockerignore excludes", async () => {
  const ignore = ['.git', '**/node_modules'];
  assert.deepEqual(await ignored({ ignore }), [header, ...ignore]);
  // For a Dockerfile that copies a release built elsewhere, for one that leaves out pages, and for one of .NET.
  for (const authored of ['*\n!_build/prod/rel\n', '/web/\nmix.exs\n*.lock\n', '**/*.csproj\nDirectory.Build.props\n'])
    assert.deepEqual(await ignored({ ignore, builds: ['.', 'web'] }, authored), [header, ...ignore], authored);
});

test("leaves BuildKit no empty file, for which it would read the author's", async () => {
  assert.deepEqual(await ignored({}, '*\n'), [header]);
});
