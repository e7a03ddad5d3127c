// The effective settings of an app: the HostedApp wins, then the author's moorage.yaml, then the default.
import { isDeepStrictEqual } from 'node:util';
import { manifestFile, reportedSettings, type AppManifest, type ReportedSettings } from './app-manifest.ts';
import { spec as specSchema, type HostedApp, type HostedAppSpec, type HostedAppStatus } from './hosted-app.ts';

type Fields = Readonly<Record<string, unknown>>;
type Effective = NonNullable<HostedAppStatus['effective']>[number];

/** The API server fills in defaults, so a field counts as set in the HostedApp when it is not at its default. */
const usual: Fields = specSchema.parse({ source: { repo: 'https://git.example/owner/name' } });

/** Lists that are merged by the names of their items; any other list is taken whole. */
const byName: ReadonlySet<string> = new Set(['env', 'args']);

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isSet(given: unknown, standard: unknown): boolean {
  return given !== undefined && !isDeepStrictEqual(given, standard);
}

function items(list: unknown): readonly { readonly name?: unknown }[] {
  return Array.isArray(list) ? (list as readonly { readonly name?: unknown }[]) : [];
}

function named(given: unknown, filed: unknown): unknown[] {
  const own = items(given);
  return [...own, ...items(filed).filter((item) => !own.some(({ name }) => name === item.name))];
}

function merge(given: Fields, standard: Fields, filed: Fields): Fields {
  const merged = Object.entries(filed)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]): [string, unknown] => {
      const [own, plain] = [given[name], standard[name]];
      if (isFields(value)) return [name, merge(isFields(own) ? own : {}, isFields(plain) ? plain : {}, value)];
      if (byName.has(name)) return [name, named(own, value)];
      return [name, isSet(own, plain) ? own : value];
    });
  return { ...given, ...Object.fromEntries(merged) };
}

/** Any part of a spec, with the settings of the file where it says nothing itself. */
export function withSettings<Spec extends { readonly run?: object }>(
  spec: Spec,
  settings: ReportedSettings | undefined,
): Spec {
  if (settings === undefined) return spec;
  const merged = merge(spec, usual, manifestOf(settings));
  const { run } = merged as { run?: { env?: { name: string }[]; secrets?: { name: string }[] } };
  if (run?.env === undefined) return merged as Spec;
  // The file cannot replace a variable that the installation takes from a Secret.
  const env = run.env.filter(({ name }) => run.secrets?.some((secret) => secret.name === name) !== true);
  return { ...merged, run: { ...run, env } } as Spec;
}

/** The settings without the note of where they come from. */
function manifestOf(settings: ReportedSettings): AppManifest {
  const { platform: _, ...manifest } = settings;
  return manifest;
}

/** Reads settings as status keeps them; nothing where they are absent or of another version. */
export function readSettings(text: string | undefined): ReportedSettings | undefined {
  if (text === undefined) return undefined;
  try {
    return reportedSettings.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/**
 * Each field that the file sets, its effective value, and where that comes from. It is public, so of what the
 * installation wrote itself, such as values of variables, only the names are shown.
 */
export function effectiveSettings(spec: HostedAppSpec, settings: ReportedSettings): Effective[] {
  const merged = withSettings(spec, settings);
  const { platform } = settings;
  return leaves(manifestOf(settings))
    .slice(0, 64)
    .map(({ path, value }) => {
      const { held, isOwn } = path.some((name) => byName.has(name))
        ? shownItems(items(at(spec, path)), items(value), items(at(merged, path)))
        : { held: at(merged, path), isOwn: isDeepStrictEqual(at(merged, path), value) };
      const field = path.join('.');
      const shown = isOwn || byName.has(path.at(-1) ?? '') || open.has(field) ? text(held) : hidden;
      return {
        field,
        value: shown.length > 200 ? `${shown.slice(0, 199)}…` : shown,
        from: isOwn ? (platform?.fields.includes(field) === true ? platform.file : manifestFile) : 'HostedApp',
      };
    });
}

/** The same of an app, by what its status knows of the file; undefined where there is none. */
export function publicSettings({ spec, status }: Pick<HostedApp, 'spec' | 'status'>): Effective[] | undefined {
  const settings = readSettings(status?.settings?.values);
  return settings === undefined ? undefined : effectiveSettings(spec, settings);
}

/**
 * Fields whose value may be shown where the installation set it: limits, times, choices, and what the catalog shows
 * anyway. Any other may hold what nobody else is to read, so that a new field is private until it is added here.
 */
const open: ReadonlySet<string> = new Set([
  'build.strategy',
  'build.timeout',
  'build.resources.cpu',
  'build.resources.memory',
  'build.resources.disk',
  'run.port',
  'run.startupTime',
  'run.idle',
  'run.idleAfter',
  'run.resources.cpu',
  'run.resources.memory',
  'run.resources.disk',
  'agents.enabled',
  'listing.title',
  'listing.description',
  'listing.category',
  'listing.upstream',
]);
const hidden = '(set by the operator of this installation)';

/**
 * Items of the file with their values, those of the installation by name alone: also where both say the same, so that
 * nobody can guess a value and see whether he was right.
 */
function shownItems(
  given: readonly { readonly name?: unknown }[],
  filed: readonly { readonly name?: unknown }[],
  held: readonly { readonly name?: unknown }[],
): { held: unknown; isOwn: boolean } {
  const ofInstallation = new Set(given.map(({ name }) => name));
  return {
    held: held.map((item) => (ofInstallation.has(item.name) ? { name: item.name } : item)),
    isOwn: filed.every(({ name }) => !ofInstallation.has(name) && held.some((item) => item.name === name)),
  };
}

function at(fields: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((current, name) => (isFields(current) ? current[name] : undefined), fields);
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function leaves(value: Fields, path: readonly string[] = []): { path: string[]; value: unknown }[] {
  return Object.entries(value).flatMap(([name, inner]) => {
    if (inner === undefined) return [];
    return isFields(inner) ? leaves(inner, [...path, name]) : [{ path: [...path, name], value: inner }];
  });
}
