// The plan as it is left for the build stage.
import assert from 'node:assert/strict';
import { mkdtemp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, test } from 'vitest';
import type { Recipe } from '../../../../../controller/pipeline/plan/recipe.ts';
import { readNotes } from '../../../../../controller/pipeline/handover.ts';
import { type AppPlan, offerTools, writePlan } from '../../../../../controller/pipeline/plan/repository.ts';
import type { Plan } from '../../../../../crds/hosted-app.ts';
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
  await writePlan([{ input: sampleInput(), recipe: plan }], paths);
  const text = await readFile(join(paths.notes, 'Dockerfile.dockerignore'), 'utf8');
  return text.split('\n').filter((line) => line !== '');
}

test("keeps what belongs to an author's Dockerfile that is extended", async () => {
  const root = await mkdtemp(join(tmpdir(), 'moorage-plan-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const paths = toWorkspacePaths(root, join(root, 'builder'));
  await mkdir(paths.source, { recursive: true });
  await writeFile(join(paths.source, 'Dockerfile'), 'FROM a\n');
  const recipe: Recipe = {
    plan: { strategy: 'dockerfile', reason: '' },
    dockerfile: 'FROM a\nENTRYPOINT ["b"]\n',
    extendsAuthored: true,
    usesBridge: true,
    findings: [],
  };
  await writePlan([{ input: sampleInput(), recipe }], paths);
  const [image] = (await readNotes(paths.notes, 'plan')).images;
  assert.deepEqual([image?.authored, image?.extended, image?.bridge], [true, join(paths.source, 'Dockerfile'), true]);
  // BuildKit reads the one of the context.
  await assert.rejects(readFile(join(paths.notes, 'Dockerfile.dockerignore')), { code: 'ENOENT' });
  await writeFile(join(paths.source, 'Dockerfile.dockerignore'), 'dist\n');
  await writePlan([{ input: sampleInput(), recipe }], paths);
  assert.equal(await readFile(join(paths.notes, 'Dockerfile.dockerignore'), 'utf8'), 'dist\n');
});

test('offers the tools of an MCP server to agents, unless the author has decided', () => {
  const mcp = {
    file: 'a.py',
    transport: 'streamable-http',
    command: 'python a.py',
    path: '/x',
    bridged: false,
  } as const;
  const toPlan = (plan: Plan): Pick<AppPlan, 'images'> => ({
    images: [{ input: sampleInput(), recipe: { plan, findings: [] } }],
  });
  const plan = toPlan({ strategy: 'python', reason: '', mcp });
  assert.deepEqual(offerTools(undefined, plan), {
    agents: { enabled: true, mcp: '/x' },
    platform: { file: 'a.py', fields: ['agents.enabled', 'agents.mcp'] },
  });
  const decided = { agents: { enabled: false } };
  assert.equal(offerTools(decided, plan), decided);
  assert.equal(offerTools(undefined, toPlan({ strategy: 'python', reason: '' })), undefined);
});

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
