// What a stage works with: what the operator gave it, and beneath that what the author's moorage.yaml says.
import { posix } from 'node:path';
import { manifestFile, type AppManifest } from '../../../crds/app-manifest.ts';
import { withSettings } from '../../../crds/effective-settings.ts';
import type { PipelineInput } from '../contract.ts';
import type { Rule } from '../review/rule.ts';
import type { Tree } from '../tree.ts';
import { readManifest } from './read.ts';

export interface MergedInput {
  readonly input: PipelineInput;
  /** What the file says, for the operator. */
  readonly settings: AppManifest | undefined;
}

/** The input of a stage that looks at this tree. A file that is refused changes nothing. */
export function mergeManifest(asked: PipelineInput, tree: Tree): MergedInput {
  const { settings } = readManifest(tree);
  if (settings === undefined) return { input: asked, settings };
  const { source, build, run } = withSettings(
    { source: { path: asked.path }, build: asked.build, run: { port: asked.port } },
    settings,
  );
  const path = posix.normalize(source.path).replace(/(?!^)\/$/, '');
  const { strategy, dockerfile, args, env } = build;
  return {
    input: {
      ...asked,
      path,
      build: { strategy, dockerfile, args, env },
      ...(run.port === undefined ? {} : { port: run.port }),
      hasCommand: asked.hasCommand || (settings.run?.command ?? []).length > 0,
    },
    settings,
  };
}

/** Says in the log what was taken from the file. */
export function describeManifest(settings: AppManifest | undefined): string[] {
  return settings === undefined ? [] : [`settings of ${manifestFile}: ${JSON.stringify(settings)}`];
}

/** Rule: moorage.yaml, where there is one, says only what an author may set. */
export const manifestRule: Rule = {
  name: 'settings',
  check: ({ tree }) => readManifest(tree).findings,
};
