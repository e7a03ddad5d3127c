// Inputs and trees that the pipeline's unit tests start from.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pipelineInput, type PipelineInput } from '../../../controller/pipeline/contract.ts';
import type { ReviewContext } from '../../../controller/pipeline/review/rule.ts';
import type { Submodule } from '../../../controller/pipeline/notes.ts';
import { memoryTree } from '../../../controller/pipeline/tree.ts';

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
  files: Parameters<typeof memoryTree>[0],
  changes: Parameters<typeof sampleInput>[0] = {},
  submodules: readonly Submodule[] = [],
): ReviewContext {
  return {
    tree: memoryTree(files),
    source: '/nowhere/source',
    notes: '/nowhere/notes',
    input: sampleInput(changes),
    submodules,
  };
}
