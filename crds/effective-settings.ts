// The effective settings of an app: the HostedApp wins, then the author's moorage.yaml, then the default.
import { isDeepStrictEqual } from 'node:util';
import { appManifest, manifestFile, type AppManifest } from './app-manifest.ts';
import { spec as specSchema, type HostedAppSpec, type HostedAppStatus } from './hosted-app.ts';

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
  settings: AppManifest | undefined,
): Spec {
  if (settings === undefined) return spec;
  const merged = merge(spec, usual, settings);
  const { run } = merged as { run?: { env?: { name: string }[]; secrets?: { name: string }[] } };
  if (run?.env === undefined) return merged as Spec;
  // The file cannot replace a variable that the installation takes from a Secret.
  const env = run.env.filter(({ name }) => run.secrets?.some((secret) => secret.name === name) !== true);
  return { ...merged, run: { ...run, env } } as Spec;
}

/** Reads settings as status keeps them; nothing where they are absent or of another version. */
export function readSettings(text: string | undefined): AppManifest | undefined {
  if (text === undefined) return undefined;
  try {
    return appManifest.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** Each field that the file sets, its effective value, and where that comes from. */
export function effectiveSettings(spec: HostedAppSpec, settings: AppManifest): Effective[] {
  const merged = withSettings(spec, settings);
  return leaves(settings)
    .slice(0, 64)
    .map(({ path, value }) => {
      const held = path.reduce<unknown>((current, name) => (isFields(current) ? current[name] : undefined), merged);
      const shown = typeof held === 'string' ? held : JSON.stringify(held);
      const isOwn = path.some((name) => byName.has(name))
        ? (value as { name: string }[]).every((item) => (held as unknown[]).some((one) => isDeepStrictEqual(one, item)))
        : isDeepStrictEqual(held, value);
      return {
        field: path.join('.'),
        value: shown.length > 200 ? `${shown.slice(0, 199)}…` : shown,
        from: isOwn ? manifestFile : 'HostedApp',
      };
    });
}

function leaves(value: Fields, path: readonly string[] = []): { path: string[]; value: unknown }[] {
  return Object.entries(value).flatMap(([name, inner]) => {
    if (inner === undefined) return [];
    return isFields(inner) ? leaves(inner, [...path, name]) : [{ path: [...path, name], value: inner }];
  });
}
