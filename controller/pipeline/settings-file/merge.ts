// What a stage works with: what the operator gave it, and beneath that what the author's moorage.yaml says.
import { posix } from 'node:path';
import { settingsFile, type AuthorSettings } from '../../../crds/author-settings.ts';
import { withSettings } from '../../../crds/effective-settings.ts';
import type { PipelineInput } from '../contract.ts';
import type { Rule } from '../review/rule.ts';
import type { Tree } from '../tree.ts';
import { readSettingsFile } from './read.ts';

export interface Settled {
  readonly input: PipelineInput;
  /** What the file says, for the operator. */
  readonly settings: AuthorSettings | undefined;
}

/** The input of a stage that looks at this tree. A file that is refused changes nothing. */
export function settle(asked: PipelineInput, tree: Tree): Settled {
  const { settings } = readSettingsFile(tree);
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
export function describeSettings(settings: AuthorSettings | undefined): string[] {
  return settings === undefined ? [] : [`settings of ${settingsFile}: ${JSON.stringify(settings)}`];
}

/** Rule: moorage.yaml, where there is one, says only what an author may set. */
export const settingsRule: Rule = {
  name: 'settings',
  check: ({ tree }) => readSettingsFile(tree).findings,
};
