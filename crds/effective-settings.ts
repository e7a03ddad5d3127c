// Resolves the settings of an app and the contact of its author: the HostedApp wins, then the author's moorage.yaml, then
// the default.
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import {
  appManifest,
  manifestFile,
  reportedSettings,
  type AppManifest,
  type ReportedSettings,
} from './app-manifest.ts';
import {
  spec as specSchema,
  type HostedAppSpec,
  type HostedAppStatus,
  type StoredSpec,
  type StoredHostedApp,
} from './hosted-app.ts';
import { ownershipFile } from '../lib/ownership-file.ts';
import { applyControl } from './control.ts';
import { limitPreviewDisk, type Previews } from './previews.ts';

type Fields = Readonly<Record<string, unknown>>;
type EffectiveSetting = NonNullable<HostedAppStatus['effective']>[number];

/** An app whose settings are resolved, with its spec as it is stored or as it was parsed. */
export interface ResolvableApp {
  readonly spec: StoredSpec;
  /** Fields that are set to their default, where the spec was parsed; otherwise they are read from the spec. */
  readonly pinned?: readonly string[] | undefined;
}

/** Every default. The API server fills in only those of fields that an author cannot set. */
const defaults: Fields = specSchema.parse({ source: { repo: 'https://git.example/owner/name' } });

/** Lists that are merged by the names of their items; any other list replaces the one below it. */
const byName: ReadonlySet<string> = new Set(['env', 'args']);

/** Whether the items of a list in the HostedApp and in the file are merged by name. */
export function isMergedByName(path: readonly string[]): boolean {
  return byName.has(path.at(-1) ?? '');
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Paths of the fields of a JSON Schema, without sections. */
export function listFields(schema: unknown, path: readonly string[] = []): string[][] {
  const { properties } = schema as { properties?: Fields };
  if (properties === undefined) return [[...path]];
  return Object.entries(properties).flatMap(([name, inner]) => listFields(inner, [...path, name]));
}

/**
 * Fields that an author can set and that have a default. The CRD has no default for them: a stored default would look
 * the same as a value that the operator of the installation chose.
 */
export const layeredFields: readonly (readonly string[])[] = listFields(
  z.toJSONSchema(appManifest, { io: 'input', unrepresentable: 'any' }),
).filter((path) => readAt(defaults, path) !== undefined);

/** Fields that no CRD has ever filled in, since they are newer than that. */
const neverStored: ReadonlySet<string> = new Set([
  ...['components', 'tasks'],
  ...['previews.pullRequests', 'previews.branches', 'previews.limit'],
]);

/**
 * Whether a stored spec has every one of those fields. The CRD of earlier versions filled them all in, and people never
 * write them all, so such defaults count as not set.
 */
export function hasEveryDefault(spec: StoredSpec): boolean {
  return layeredFields.every((path) => neverStored.has(path.join('.')) || readAt(spec, path) !== undefined);
}

/** Fields that a stored spec sets to their default, such as `agents.enabled`: the author's file cannot change them. */
export function findPins(spec: StoredSpec): string[] {
  if (hasEveryDefault(spec)) return [];
  return layeredFields
    .filter((path) => isDeepStrictEqual(readAt(spec, path), readAt(defaults, path)))
    .map((path) => path.join('.'));
}

/** Whether the HostedApp itself sets a field. */
function isSet(app: ResolvableApp, pins: readonly string[], path: readonly string[]): boolean {
  const value = readAt(app.spec, path);
  return value !== undefined && (!isDeepStrictEqual(value, readAt(defaults, path)) || pins.includes(path.join('.')));
}

function toItems(list: unknown): readonly { readonly name?: unknown }[] {
  return Array.isArray(list) ? (list as readonly { readonly name?: unknown }[]) : [];
}

function mergeByName(ownItems: unknown, fileItems: unknown): unknown[] {
  const own = toItems(ownItems);
  return [...own, ...toItems(fileItems).filter((item) => !own.some(({ name }) => name === item.name))];
}

/** Lays the fields of `over` on those of `under`, section by section. */
function mergeFields(under: Fields, over: Fields): Fields {
  const merged = Object.entries(over)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]): [string, unknown] => {
      const below = under[name];
      return [name, isFields(value) && isFields(below) ? mergeFields(below, value) : value];
    });
  return { ...under, ...Object.fromEntries(merged) };
}

function setAt(fields: Fields, [name, ...rest]: readonly string[], value: unknown): Fields {
  if (name === undefined) return fields;
  const inner = fields[name];
  return { ...fields, [name]: rest.length === 0 ? value : setAt(isFields(inner) ? inner : {}, rest, value) };
}

/**
 * The whole spec of an app: what its HostedApp sets, otherwise what its author has set through the API, otherwise what the
 * author's file says, otherwise the default.
 */
export function resolveSpec(stored: ResolvableApp, reported: ReportedSettings | undefined): HostedAppSpec {
  // The commit of a preview may be a stranger's.
  const isLimited = stored.spec.previewOf !== undefined && reported !== undefined;
  const settings = isLimited ? limitPreviewSettings(reported) : reported;
  const app = { ...stored, spec: applyControl(stored.spec) };
  const spec = app.spec as Fields;
  const pins = settings === undefined ? [] : (app.pinned ?? findPins(app.spec));
  const filePaths = settings === undefined ? [] : listLeaves(dropPlatform(settings));
  const merged = filePaths.reduce<Fields>(
    (fields, { path, value }) => {
      if (isMergedByName(path)) return setAt(fields, path, mergeByName(readAt(spec, path), value));
      return isSet(app, pins, path) ? fields : setAt(fields, path, value);
    },
    mergeFields(defaults, spec),
  ) as unknown as HostedAppSpec;
  const { env } = merged.run;
  // The file cannot replace a variable that the installation or the author takes from a Secret.
  const secrets = [...merged.run.secrets, ...(merged.control?.secrets ?? [])];
  const isFree = ({ name }: { name: string }): boolean => !secrets.some((secret) => secret.name === name);
  return env.every(isFree) ? merged : { ...merged, run: { ...merged.run, env: env.filter(isFree) } };
}

/** The settings of a commit that count in its preview: how it is built and runs, without what is scheduled. */
function limitPreviewSettings(settings: ReportedSettings): ReportedSettings {
  const { source, build, run, components, mcp, platform } = settings;
  const limit = <Item extends { volumes?: { size: string }[] | undefined }>(item: Item): Item => ({
    ...item,
    volumes: item.volumes?.map((volume) => ({ ...volume, size: limitPreviewDisk(volume.size) })),
  });
  return {
    ...{ source, build, mcp, platform },
    run: run && limit(run),
    components: components?.filter(({ kind }) => kind !== 'cron').map(limit),
  };
}

/** Which previews an app asks for. A branch or commit that was submitted may be a stranger's, so its file does not count. */
export function readPreviews(
  app: ResolvableApp & { readonly status?: Pick<HostedAppStatus, 'settings'> | undefined },
): Previews {
  const isDefaultBranch = app.spec.source.revision === undefined;
  return resolveSpec(app, isDefaultBranch ? readSettings(app.status?.settings?.values) : undefined).previews;
}

/** The settings without the record of where they come from. */
function dropPlatform(settings: ReportedSettings): AppManifest {
  const { platform: _, ...manifest } = settings;
  return manifest;
}

/** Reads settings from their form in the status; undefined if they are absent or of another version. */
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
 * installation wrote itself, such as values of variables, and of variables that the author set through the API, only the
 * names are shown.
 */
export function listEffectiveSettings(app: ResolvableApp, settings: ReportedSettings): EffectiveSetting[] {
  const merged = resolveSpec(app, settings);
  const pins = app.pinned ?? findPins(app.spec);
  return listLeaves(dropPlatform(settings))
    .slice(0, 64)
    .map(({ path, value }) => {
      const { effective, origin } = path.some((name) => byName.has(name))
        ? showItems(listOwnItems(app, path), toItems(value), toItems(readAt(merged, path)))
        : { effective: readAt(merged, path), origin: findOrigin(app, pins, path) };
      const field = path.join('.');
      const text = origin !== 'HostedApp' || isMergedByName(path) || open.has(field) ? formatValue(effective) : hidden;
      return {
        field,
        value: text.length > 200 ? `${text.slice(0, 199)}…` : text,
        from: origin === 'file' ? findFile(settings, field) : origin,
      };
    });
}

/** Who has set an effective value: the installation, the author through the API, or a file of the repository. */
type Origin = 'HostedApp' | 'author' | 'file';

/** The stored spec and the one that the operator has applied `control` to give the same answer. */
function findOrigin(app: ResolvableApp, pins: readonly string[], path: readonly string[]): Origin {
  const [section, name = ''] = path;
  const own = section === 'run' ? readAt(app.spec.control, [name]) : undefined;
  const stored = readAt(app.spec, path);
  if (own !== undefined && (stored === undefined || isDeepStrictEqual(stored, own))) return 'author';
  return isSet(app, pins, path) ? 'HostedApp' : 'file';
}

function findFile({ platform }: ReportedSettings, field: string): string {
  return platform?.fields.includes(field) === true ? platform.file : manifestFile;
}

/** The same for an app, from the file as its status has it; undefined if there is none. */
export function listPublicSettings(
  app: ResolvableApp & { readonly status?: Pick<HostedAppStatus, 'settings'> | undefined },
): EffectiveSetting[] | undefined {
  const settings = readSettings(app.status?.settings?.values);
  return settings === undefined ? undefined : listEffectiveSettings(app, settings);
}

/**
 * Fields whose value may be shown where the installation set it: limits, times, choices, and what the catalog shows
 * anyway. Any other field may be confidential, so a new field is private until it is added here.
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
  'mcp.transport',
  'listing.title',
  'listing.description',
  'listing.category',
  'listing.upstream',
]);
const hidden = '(set by the operator of this installation)';

/** Items that are not from the file: those of the author by name, among them secrets, and those of the installation. */
interface OwnItems {
  readonly author: ReadonlySet<unknown>;
  readonly installation: ReadonlySet<unknown>;
}

function listOwnItems({ spec }: ResolvableApp, path: readonly string[]): OwnItems {
  const { env = [], secrets = [] } = path.join('.') === 'run.env' ? (spec.control ?? {}) : {};
  const author = new Set<unknown>([...env, ...secrets].map(({ name }) => name));
  const stored = toItems(readAt(spec, path)).map(({ name }) => name);
  return { author, installation: new Set(stored.filter((name) => !author.has(name))) };
}

/**
 * Items of the file with their values, and items of the installation or the author by name alone. This holds even if both
 * have the same value, so that a guess cannot be confirmed.
 */
function showItems(
  { author, installation }: OwnItems,
  fileItems: readonly { readonly name?: unknown }[],
  mergedItems: readonly { readonly name?: unknown }[],
): { effective: unknown; origin: Origin } {
  const isOwn = (name: unknown): boolean => author.has(name) || installation.has(name);
  const replaced = fileItems.filter(({ name }) => isOwn(name) || !mergedItems.some((item) => item.name === name));
  return {
    effective: mergedItems.map((item) => (isOwn(item.name) ? { name: item.name } : item)),
    origin: replaced.length === 0 ? 'file' : replaced.every(({ name }) => author.has(name)) ? 'author' : 'HostedApp',
  };
}

function readAt(fields: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((current, name) => (isFields(current) ? current[name] : undefined), fields);
}

function formatValue(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function listLeaves(value: Fields, path: readonly string[] = []): { path: string[]; value: unknown }[] {
  return Object.entries(value).flatMap(([name, inner]) => {
    if (inner === undefined) return [];
    return isFields(inner) ? listLeaves(inner, [...path, name]) : [{ path: [...path, name], value: inner }];
  });
}

export const contactSources = ['HostedApp', manifestFile, ownershipFile, 'submission'] as const;

export interface AuthorContact {
  readonly contact: string;
  readonly from: (typeof contactSources)[number];
  /** False for a claim of the submitter, who may be anyone. */
  readonly verified: boolean;
}

/**
 * The contact that counts, and who vouches for it; undefined if there is none. A submitter's claim counts only until the
 * author gives a contact.
 */
export function findAuthorContact({
  spec,
  status,
}: Pick<StoredHostedApp, 'spec' | 'status'>): AuthorContact | undefined {
  const { ownership } = status ?? {};
  const { author, submission } = resolveSpec({ spec }, undefined);
  const contacts = [
    ['HostedApp', author.contact],
    [manifestFile, readSettings(status?.settings?.values)?.author?.contact],
    [ownershipFile, ownership?.contact],
    // Once the author has given a contact, the claim never counts again, even if they remove theirs.
    ['submission', ownership === undefined ? submission.contact : undefined],
  ] as const;
  for (const [from, contact] of contacts)
    if (contact !== undefined) return { contact, from, verified: from !== 'submission' };
  return undefined;
}
