// Inputs and trees that the pipeline's unit tests start from.
import { createHash } from 'node:crypto';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pipelineInput, type PipelineInput } from '../../../controller/pipeline/contract.ts';
import type { ReviewContext, Rule } from '../../../controller/pipeline/review/review.ts';
import type { Submodule } from '../../../controller/pipeline/handover.ts';
import { createMemoryTree } from '../../../controller/pipeline/tree.ts';

export const mit = readFileSync(join(import.meta.dirname, '..', '..', 'fixtures', 'static', 'LICENSE'), 'utf8');

export function sampleInput(
  changes: Partial<PipelineInput> & { strategy?: PipelineInput['build']['strategy']; dockerfile?: string } = {},
): PipelineInput {
  const { strategy = 'auto', dockerfile = 'Dockerfile', ...rest } = changes;
  return pipelineInput.parse({
    app: 'sample',
    repo: 'https://example.org/a/b',
    commit: 'a'.repeat(40),
    path: '.',
    build: { strategy, dockerfile, args: [], env: [] },
    image: 'registry.example:5000/apps/sample',
    push: 'proxy.example:5000/apps/sample',
    limits: { repositoryBytes: 1000, files: 10, fileBytes: 500 },
    ...rest,
  });
}

export function sampleContext(
  files: Parameters<typeof createMemoryTree>[0],
  changes: Parameters<typeof sampleInput>[0] = {},
  submodules: readonly Submodule[] = [],
): ReviewContext {
  return {
    tree: createMemoryTree(files),
    source: '/nowhere/source',
    notes: '/nowhere/notes',
    input: sampleInput(changes),
    submodules,
  };
}

/** What a rule finds, as `severity rule file:line`. Each finding says what is wrong and what to do, by its own name. */
export async function listFoundRules(rule: Rule, context: ReviewContext): Promise<string[]> {
  const findings = await rule.check(context);
  for (const each of findings) {
    assert.ok(each.message.length > 10 && each.fix.length > 10, JSON.stringify(each));
    assert.ok(each.rule.startsWith(`${rule.name}/`), each.rule);
  }
  return findings.map(
    (each) =>
      `${each.severity} ${each.rule}${each.file === undefined ? '' : ` ${each.file}`}${each.line === undefined ? '' : `:${each.line}`}`,
  );
}

/** A text that cannot be compressed, other for each seed. */
export function makeNoise(length: number, seed = 0): string {
  const blocks = Array.from({ length: Math.ceil(length / 43) }, (_, index) =>
    createHash('sha256').update(`${seed} ${index}`).digest('base64url'),
  );
  return blocks.join('').slice(0, length);
}
