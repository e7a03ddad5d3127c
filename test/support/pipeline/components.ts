// Reads the components that a repository's files declare, for tests.
import assert from 'node:assert/strict';
import type { DeclaredComponent } from '../../../crds/components.ts';
import { type MergedInput, mergeManifest } from '../../../controller/pipeline/app-manifest.ts';
import type { PipelineInput } from '../../../controller/pipeline/contract.ts';
import { createMemoryTree } from '../../../controller/pipeline/tree.ts';
import { sampleInput } from './sample.ts';

export type Files = Parameters<typeof createMemoryTree>[0];

/** The settings and findings of a repository with these files. */
export const mergeFiles = (files: Files, changes: Partial<PipelineInput> = {}): MergedInput =>
  mergeManifest({ ...sampleInput(), repo: 'https://example.org/a/shop', ...changes }, createMemoryTree(files));

export const listComponents = ({ settings }: MergedInput): readonly DeclaredComponent[] => settings?.components ?? [];

export const findComponent = (merged: MergedInput, name: string): DeclaredComponent => {
  const components = listComponents(merged);
  const found = components.find((each) => each.name === name);
  assert.ok(found, `${name} is one of ${components.map((each) => each.name).join(', ')}`);
  return found;
};

export const readEnv = (component: DeclaredComponent): Record<string, string> =>
  Object.fromEntries((component.env ?? []).map(({ name, value }) => [name, value]));

export const listRules = ({ findings }: MergedInput): string[] =>
  findings.map(({ rule, severity }) => `${severity} ${rule}`);

/** Message and fix of the findings of a rule. */
export const readFinding = ({ findings }: MergedInput, rule: string): string =>
  findings
    .filter((each) => each.rule === rule)
    .map((each) => `${each.message} ${each.fix}`)
    .join('\n');
