// Merges the HostedApp's settings with the author's moorage.yaml, and rejects services that this installation does not
// offer.
import { posix } from 'node:path';
import { manifestFile, type ReportedSettings } from '../../../crds/app-manifest.ts';
import { resolveSpec } from '../../../crds/effective-settings.ts';
import type { Finding } from '../../../crds/hosted-app.ts';
import { type PipelineInput, toResolvableApp } from '../contract.ts';
import { mergePlatforms } from '../plan/platforms/settings.ts';
import type { Rule } from '../review/rule.ts';
import type { Tree } from '../tree.ts';
import { readManifest } from './read.ts';

export interface MergedInput {
  readonly input: PipelineInput;
  /** Settings from moorage.yaml and, below them, from files for other platforms; reported to the operator. */
  readonly settings: ReportedSettings | undefined;
  /** Findings about files for other platforms, and about services that this installation does not offer. */
  readonly findings: readonly Finding[];
}

/** Builds the input of a stage for this tree. A rejected file changes nothing. */
export function mergeManifest(baseInput: PipelineInput, tree: Tree): MergedInput {
  const { settings: ownSettings } = readManifest(tree);
  const { settings, findings: platformFindings } = mergePlatforms(tree, ownSettings, baseInput);
  const findings = [...platformFindings, ...checkOfferedServices(baseInput, settings)];
  if (settings === undefined) return { input: baseInput, settings, findings };
  const { source, build, run } = resolveSpec(toResolvableApp(baseInput), settings);
  const path = posix.normalize(source.path).replace(/(?!^)\/$/, '');
  const { strategy, dockerfile, target, args, env } = build;
  return {
    input: {
      ...baseInput,
      path,
      build: { strategy, dockerfile, ...(target === undefined ? {} : { target }), args, env },
      ...(run.port === undefined ? {} : { port: run.port }),
      hasCommand:
        baseInput.hasCommand || (!baseInput.pinned.includes('run.command') && (settings.run?.command ?? []).length > 0),
    },
    settings,
    findings,
  };
}

/** Describes in the log which settings came from the file. */
export function describeManifest(settings: ReportedSettings | undefined): string[] {
  if (settings === undefined) return [];
  const { platform, ...values } = settings;
  const file = platform === undefined ? manifestFile : `${manifestFile} and of ${platform.file}`;
  return [`settings of ${file}: ${JSON.stringify(values)}`];
}

/** Rule: moorage.yaml, if present, contains only settings that authors may set. */
export const manifestRule: Rule = {
  name: 'settings',
  check: ({ tree }) => readManifest(tree).findings,
};

/** Reports services that are not offered, from the HostedApp or else from the repository. */
function checkOfferedServices(
  { services, offered, pinned }: Pick<PipelineInput, 'services' | 'offered' | 'pinned'>,
  settings: ReportedSettings | undefined,
): Finding[] {
  if (offered === undefined) return [];
  const isSet = services.length > 0 || pinned.includes('services');
  const needed = isSet ? services : (settings?.services ?? []);
  const where = isSet ? {} : { file: nameSettingsFile(settings) };
  const types = [...new Set(offered.types.map((type) => type.split('-')[0] ?? type))].sort();
  const missing = needed.filter(({ type }) => !types.includes(type));
  if (missing.length > 0) return [{ ...where, ...toUnavailable(missing, types) }];
  if (needed.length <= offered.count) return [];
  return [
    {
      rule: 'services/too-many',
      severity: 'error',
      ...where,
      message: `The app needs ${needed.length} services; this installation runs at most ${offered.count} for an app.`,
      fix: 'Set services in moorage.yaml to those that the app cannot do without.',
    },
  ];
}

function nameSettingsFile(settings: ReportedSettings | undefined): string {
  const { platform } = settings ?? {};
  return platform?.fields.includes('services') === true ? platform.file : manifestFile;
}

function toUnavailable(missing: readonly { name: string; type: string }[], types: readonly string[]): Finding {
  const offered = types.length === 0 ? 'are none' : `is: ${types.join(', ')}`;
  return {
    rule: 'services/unavailable',
    severity: 'error',
    message: `The app needs ${missing.map(({ name, type }) => `${name} (${type})`).join(', ')}, for which this installation has no image.`,
    fix: `Set services in moorage.yaml to those that the app cannot do without; here there ${offered}. Or ask the operator of this installation to set services.images.`,
  };
}
