// Adds what other files declare to the settings of moorage.yaml: only what is valid, below what the author set, and only as much as
// a report has room for.
import { type AppManifest, appManifest, type ReportedSettings } from '../../../../crds/app-manifest.ts';
import type { DeclaredComponent } from '../../../../crds/components.ts';
import type { Finding } from '../../../../crds/hosted-app.ts';
import { omitUndefined } from '../../../../lib/values.ts';
import { isReportable } from '../../settings-report.ts';
import type { Declaration, DeclaredBuild, DeclaredVariable, DeclaredVolume } from './declaration.ts';

/** What all files declare together. */
export interface CombinedDeclaration {
  readonly build: Declaration['build'] | undefined;
  readonly command: readonly string[] | undefined;
  readonly port: number | undefined;
  readonly healthPath: string | undefined;
  readonly env: readonly DeclaredVariable[];
  readonly volumes: readonly DeclaredVolume[];
  readonly services: NonNullable<Declaration['services']>;
  readonly components: readonly DeclaredComponent[];
  readonly findings: readonly Finding[];
}

/** Keeps the declared settings that are valid, and reports variables that had to be left out. */
export function limitSettings(
  declared: CombinedDeclaration,
  ownSettings: AppManifest | undefined,
  files: string,
): { settings: AppManifest; findings: Finding[] } {
  const isFitting: Fit = (settings) => isReportable(mergeSections(ownSettings ?? {}, settings, files));
  const parts = toParts(declared, ownSettings).reduce<AppManifest>((settings, part) => addPart(settings, part), {});
  const { settings: base, findings } = addComponents(parts, declared.components, isFitting);
  const takenNames = new Set(['PORT', ...(ownSettings?.run?.env ?? []).map(({ name }) => name)]);
  const variables = declared.env
    .filter(({ name }) => !takenNames.has(name))
    .toSorted((one, other) => weighVariable(one.value) - weighVariable(other.value));
  // Each accepted variable adds one step, from no variable to all that are valid.
  const steps = variables.reduce<AppManifest[]>(
    (reached, variable) => {
      const current = reached.at(-1) ?? base;
      const next = addPart(current, { run: { env: [...(current.run?.env ?? []), variable] } });
      return next === current ? reached : [...reached, next];
    },
    [base],
  );
  const settings = findLastFitting(steps, isFitting);
  const kept = new Set((settings.run?.env ?? []).map(({ name }) => name));
  const omitted = variables.map(({ name }) => name).filter((name) => !kept.has(name));
  return { settings, findings: [...findings, ...(omitted.length === 0 ? [] : [reportTooMany(omitted)])] };
}

/** Whether settings fit in a report. */
type Fit = (settings: AppManifest) => boolean;

/** Finds the last step that fits, by bisection, since packing takes some 30 ms. The first is taken in any case. */
function findLastFitting<Step>(steps: readonly Step[], fits: (step: Step) => boolean): Step {
  let [low, high] = [0, steps.length - 1];
  while (low < high) {
    // All of them fit nearly always.
    const middle = high === steps.length - 1 && low === 0 ? high : Math.ceil((low + high) / 2);
    if (fits(steps[middle] as Step)) low = middle;
    else high = middle - 1;
  }
  return steps[low] as Step;
}

/** Components are valid as a whole or not at all, and a part of an app would not work. */
function addComponents(
  settings: AppManifest,
  components: readonly DeclaredComponent[],
  isFitting: Fit,
): { settings: AppManifest; findings: Finding[] } {
  if (components.length === 0) return { settings, findings: [] };
  const read = parseComponents(settings, components);
  if (read.success) return shortenComponents(settings, read.data, isFitting);
  const [issue] = read.error.issues;
  const [, index, ...field] = issue?.path ?? [];
  const name = typeof index === 'number' ? components[index]?.name : undefined;
  const where = name === undefined ? 'The components' : `${field.join('.')} of the component ${name}`;
  return {
    settings,
    findings: [
      {
        rule: 'components/invalid',
        severity: 'error',
        message: `${where}, as the files of the repository have it, is not possible here: ${issue?.message ?? ''}.`,
        fix: 'List the components in moorage.yaml (components) as they are to be here; what the list leaves out of a component stays as the other files have it.',
      },
    ],
  };
}

function parseComponents(settings: AppManifest, components: AppManifest['components'] | readonly DeclaredComponent[]) {
  return appManifest.safeParse(JSON.parse(JSON.stringify({ ...settings, components })));
}

/** Leaves out the longest values of variables that there is no room for. */
function shortenComponents(
  base: AppManifest,
  whole: AppManifest,
  isFitting: Fit,
): { settings: AppManifest; findings: Finding[] } {
  const longest = [...(whole.components ?? []).flatMap(({ env = [] }) => env)]
    .toSorted((one, two) => weighVariable(two.value) - weighVariable(one.value))
    .map(({ name }) => name);
  const names = [...new Set(longest)];
  // From all variables to none.
  const steps = names.map((_, index) => names.slice(0, names.length - index));
  const remove = (omitted: readonly string[]): AppManifest => {
    const list = whole.components?.map((each) =>
      omitUndefined({ ...each, env: each.env?.filter(({ name }) => !omitted.includes(name)) }),
    );
    return parseComponents(base, list).data ?? base;
  };
  const omitted = findLastFitting([...steps, []], (each) => isFitting(remove(each)));
  return { settings: remove(omitted), findings: omitted.length === 0 ? [] : [reportTooMany(omitted)] };
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
    // Those of moorage.yaml, with what the other files add to them.
    ...omitUndefined({ components: platformSettings.components ?? ownSettings.components }),
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
