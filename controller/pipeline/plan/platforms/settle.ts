// Adds settings from platform files to those of moorage.yaml, within the limits for authors and for the size of a
// report.
import {
  appManifest,
  maximumManifestBytes,
  type AppManifest,
  type ReportedSettings,
} from '../../../../crds/app-manifest.ts';
import type { Finding } from '../../../../crds/hosted-app.ts';
import { omitUndefined } from '../../../../lib/values.ts';
import type { CombinedDeclaration } from './settings.ts';
import type { DeclaredBuild } from './declaration.ts';

/** Space in a report for everything other than the settings. */
const noteBytes = 300;

/** Keeps the declared settings that are valid, and reports variables that had to be left out. */
export function limitSettings(
  declared: CombinedDeclaration,
  ownSettings: AppManifest | undefined,
): { settings: AppManifest; findings: Finding[] } {
  const base = toParts(declared, ownSettings).reduce<AppManifest>((settings, part) => addPart(settings, part), {});
  const room = maximumManifestBytes - countBytes(ownSettings ?? {}) - noteBytes;
  const takenNames = new Set(['PORT', ...(ownSettings?.run?.env ?? []).map(({ name }) => name)]);
  const omitted: string[] = [];
  const settings = declared.env
    .filter(({ name }) => !takenNames.has(name))
    .toSorted((one, other) => weighVariable(one.value) - weighVariable(other.value))
    .reduce<AppManifest>((current, variable) => {
      const next = addPart(current, { run: { env: [...(current.run?.env ?? []), variable] } });
      if (next !== current && countBytes(next) <= room) return next;
      omitted.push(variable.name);
      return current;
    }, base);
  return { settings, findings: omitted.length === 0 ? [] : [reportTooMany(omitted)] };
}

type Part = { readonly run?: object; readonly [name: string]: unknown };

/** Splits everything except variables into parts, each of which is validated separately. */
function toParts(declared: CombinedDeclaration, ownSettings: AppManifest | undefined): Part[] {
  const { port, healthPath, command, services, volumes } = declared;
  const run = { port, healthPath, command, volumes: volumes.length === 0 ? undefined : volumes };
  return [
    ...toBuildParts(declared.build),
    ...(ownSettings?.services === undefined && services.length > 0 ? [{ services }] : []),
    ...Object.entries(run).flatMap(([name, value]) => (value === undefined ? [] : [{ run: { [name]: value } }])),
  ];
}

/** Converts path, Dockerfile and build options to parts; defaults are omitted. */
function toBuildParts(build: DeclaredBuild | undefined): Part[] {
  if (build === undefined) return [];
  const { path, dockerfile, target, args } = build;
  const buildFields = {
    ...(dockerfile === 'Dockerfile' ? {} : { dockerfile }),
    ...(target === undefined ? {} : { target }),
    ...(args === undefined ? {} : { args }),
  };
  return [
    ...(path === '.' ? [] : [{ source: { path } }]),
    ...(Object.keys(buildFields).length === 0 ? [] : [{ build: buildFields }]),
  ];
}

/** Adds a part to the settings if the result is still valid. */
function addPart(settings: AppManifest, part: Part): AppManifest {
  const together = {
    ...settings,
    ...part,
    ...(part.run === undefined ? {} : { run: { ...settings.run, ...part.run } }),
  };
  const read = appManifest.safeParse(JSON.parse(JSON.stringify(together)));
  return read.success ? read.data : settings;
}

/** Sorts service addresses first and long texts last. */
function weighVariable(value: string): number {
  return /:\/\/|\$\{\{services\./.test(value) ? 0 : value.length;
}

function countBytes(settings: AppManifest): number {
  return Buffer.byteLength(JSON.stringify(settings));
}

function reportTooMany(names: readonly string[]): Finding {
  return {
    rule: 'platform/variables',
    severity: 'warning',
    message: `Variables of other platforms' files that do not fit in the settings are not set: ${names.slice(0, 10).join(', ')}${names.length > 10 ? `, and ${names.length - 10} more` : ''}.`,
    fix: 'Give those that the app needs in moorage.yaml (run.env), or as defaults in the code.',
  };
}

/** Layers moorage.yaml over the other settings. */
export function mergeSettings(
  ownSettings: AppManifest | undefined,
  platformSettings: AppManifest,
  file: string,
): ReportedSettings | undefined {
  if (file === '' || Object.keys(platformSettings).length === 0) return ownSettings;
  return mergeSections(ownSettings ?? {}, platformSettings, file);
}

function mergeSections(ownSettings: AppManifest, platformSettings: AppManifest, file: string): ReportedSettings {
  const ownFields = new Set(listLeaves(ownSettings));
  const env = mergeVariables(ownSettings, platformSettings);
  return {
    ...platformSettings,
    ...ownSettings,
    ...toSection('build', { ...platformSettings.build, ...ownSettings.build }),
    ...toSection('run', {
      ...platformSettings.run,
      ...ownSettings.run,
      ...omitUndefined({ env: env.length === 0 ? undefined : env }),
    }),
    platform: {
      file,
      fields: listLeaves(platformSettings)
        .filter((field) => !ownFields.has(field))
        .slice(0, 32),
    },
  };
}

function toSection<Name extends 'build' | 'run'>(
  name: Name,
  fields: NonNullable<AppManifest[Name]>,
): Pick<AppManifest, Name> | object {
  return Object.keys(fields).length === 0 ? {} : { [name]: fields };
}

function mergeVariables(
  ownSettings: AppManifest | undefined,
  platformSettings: AppManifest,
): { name: string; value: string }[] {
  const ownVariables = ownSettings?.run?.env ?? [];
  return [
    ...ownVariables,
    ...(platformSettings.run?.env ?? []).filter((each) => !ownVariables.some(({ name }) => name === each.name)),
  ];
}

function listLeaves(value: object, path = ''): string[] {
  return Object.entries(value).flatMap(([name, inner]: [string, unknown]) => {
    if (inner === undefined) return [];
    const field = path === '' ? name : `${path}.${name}`;
    return typeof inner === 'object' && inner !== null && !Array.isArray(inner) ? listLeaves(inner, field) : [field];
  });
}
