// What a stage works with: what the operator gave it, and beneath that what the author's moorage.yaml says.
import { posix } from 'node:path';
import { manifestFile, type ReportedSettings } from '../../../crds/app-manifest.ts';
import { resolveSpec } from '../../../crds/effective-settings.ts';
import type { Finding } from '../../../crds/hosted-app.ts';
import { toConfigured, type PipelineInput } from '../contract.ts';
import { withPlatforms } from '../plan/platforms/settings.ts';
import type { Rule } from '../review/rule.ts';
import type { Tree } from '../tree.ts';
import { offeredFindings } from './offered.ts';
import { readManifest } from './read.ts';

export interface MergedInput {
  readonly input: PipelineInput;
  /** What the file says, and beneath it what files for other platforms say, for the operator. */
  readonly settings: ReportedSettings | undefined;
  /** About the latter, and about services that this installation does not offer. */
  readonly findings: readonly Finding[];
}

/** The input of a stage that looks at this tree. A file that is refused changes nothing. */
export function mergeManifest(asked: PipelineInput, tree: Tree): MergedInput {
  const { settings: own } = readManifest(tree);
  const { settings, findings: said } = withPlatforms(tree, own, asked);
  const findings = [...said, ...offeredFindings(asked, settings)];
  if (settings === undefined) return { input: asked, settings, findings };
  const { source, build, run } = resolveSpec(toConfigured(asked), settings);
  const path = posix.normalize(source.path).replace(/(?!^)\/$/, '');
  const { strategy, dockerfile, target, args, env } = build;
  return {
    input: {
      ...asked,
      path,
      build: { strategy, dockerfile, ...(target === undefined ? {} : { target }), args, env },
      ...(run.port === undefined ? {} : { port: run.port }),
      hasCommand:
        asked.hasCommand || (!asked.pinned.includes('run.command') && (settings.run?.command ?? []).length > 0),
    },
    settings,
    findings,
  };
}

/** Says in the log what was taken from the file. */
export function describeManifest(settings: ReportedSettings | undefined): string[] {
  if (settings === undefined) return [];
  const { platform, ...values } = settings;
  const file = platform === undefined ? manifestFile : `${manifestFile} and of ${platform.file}`;
  return [`settings of ${file}: ${JSON.stringify(values)}`];
}

/** Rule: moorage.yaml, where there is one, says only what an author may set. */
export const manifestRule: Rule = {
  name: 'settings',
  check: ({ tree }) => readManifest(tree).findings,
};
