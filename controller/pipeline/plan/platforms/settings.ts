// Merges the settings from files for other platforms, at a lower priority than moorage.yaml and the HostedApp, within the limits
// for authors and for the size of a report.
import { posix } from 'node:path';
import {
  type AppManifest,
  authorLimits,
  type ReportedSettings,
  appManifest,
  maximumManifestBytes,
} from '../../../../crds/app-manifest.ts';
import { resolveSpec } from '../../../../crds/effective-settings.ts';
import type { Finding } from '../../../../crds/hosted-app.ts';
import { type PipelineInput, toResolvableApp } from '../../contract.ts';
import { parseJson, readField } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import { findDockerfile } from '../dockerfile/find.ts';
import { planners } from '../plan.ts';
import { declareCompose } from './compose/compose.ts';
import { isDataFolder, toVolumeName } from './compose/volumes.ts';
import type { Declaration, DeclaredBuild, DeclaredVariable, DeclaredVolume } from './declaration.ts';
import {
  readFly,
  readAppJson,
  readHuggingFace,
  readNetlify,
  readProcfile,
  readRailway,
  readVercel,
  readRender,
} from './hosts.ts';
import { readGemfile } from './gemfile.ts';
import { readOwnSecrets } from './own-secrets.ts';
import { omitUndefined } from '../../../../lib/values.ts';

interface PlatformSettings {
  /** Settings of moorage.yaml plus what the other files add; undefined if there are none. */
  readonly settings: ReportedSettings | undefined;
  readonly findings: readonly Finding[];
}

/** Merges the settings of a repository's tree; `own` is the content of moorage.yaml. */
export function mergePlatforms(
  tree: Tree,
  ownSettings: AppManifest | undefined,
  baseInput: PipelineInput,
): PlatformSettings {
  const chosen = findChoice(ownSettings, baseInput);
  const declarations = readDeclarations(tree, { path: chosen?.path, repository: toRepositoryName(baseInput.repo) });
  const merged = combine(declarations);
  const { build, dockerfile } = resolveBuild(tree, chosen, merged.build);
  const volumes = limitDisks(merged.volumes, readDockerfileVolumes(tree.readFile(dockerfile)));
  const hint = merged.port === undefined ? findHintedPort(tree, dockerfile) : undefined;
  const platformSettings = limitSettings(
    { ...merged, build, volumes: volumes.disks, port: hint?.port ?? merged.port },
    ownSettings,
  );
  const ofImage = merged.volumes.length === 0 && volumes.disks.length > 0 ? [dockerfile] : [];
  const files = listSources(declarations, [...ofImage, ...(hint === undefined ? [] : [hint.file])]);
  const settings = mergeSettings(ownSettings, platformSettings.settings, files);
  return {
    settings,
    findings: [
      ...declarations.flatMap(({ findings = [] }) => findings),
      ...volumes.findings,
      ...platformSettings.findings,
      ...findNotLasting(settings),
    ],
  };
}

function findNotLasting(settings: ReportedSettings | undefined): Finding[] {
  const { env = [], volumes = [] } = settings?.run ?? {};
  return checkDatabaseFiles(env, volumes);
}

/** Resolves the declared build settings, and the Dockerfile that is finally built. */
function resolveBuild(
  tree: Tree,
  chosen: { readonly path: string; readonly dockerfile: string } | undefined,
  declared: DeclaredBuild | undefined,
): { build: DeclaredBuild | undefined; dockerfile: string } {
  const build = chosen === undefined ? declared : undefined;
  const { path, dockerfile } = chosen ?? build ?? { path: '.', dockerfile: 'Dockerfile' };
  const dockerfilePath = posix.join(path, dockerfile);
  const foundDockerfile =
    dockerfilePath === 'Dockerfile' && !tree.has(dockerfilePath) ? findDockerfile(tree) : undefined;
  return { build, dockerfile: foundDockerfile?.certain === true ? foundDockerfile.path : dockerfilePath };
}

/** A devcontainer shows the port on which its developer opens the app. Used only if no Dockerfile exposes one. */
function findHintedPort(tree: Tree, dockerfile: string): ReturnType<typeof readForwardedPort> {
  return tree.has(dockerfile) ? undefined : readForwardedPort(tree);
}

/** Lists the files that contributed settings, as the status shows them. */
function listSources(declarations: readonly Declaration[], more: readonly string[]): string {
  const files = declarations
    .filter(({ env = [], volumes = [], services = [], ...rest }) => {
      const { build, port, command, healthPath } = rest;
      return (
        env.length + volumes.length + services.length > 0 ||
        [build, port, command, healthPath].some((value) => value !== undefined)
      );
    })
    .map(({ file }) => file);
  return [...files, ...more].join(', ').slice(0, 200);
}

/** Returns the folder and Dockerfile if moorage.yaml or the HostedApp specifies them. */
function findChoice(
  ownSettings: AppManifest | undefined,
  baseInput: PipelineInput,
): { path: string; dockerfile: string } | undefined {
  const { source, build } = resolveSpec(toResolvableApp(baseInput), ownSettings);
  const { dockerfile, strategy, target } = build;
  const folder = posix.normalize(source.path);
  const isUsual =
    folder === '.' &&
    dockerfile === 'Dockerfile' &&
    strategy === 'auto' &&
    target === undefined &&
    !baseInput.pinned.some((field) => ['source.path', 'build.dockerfile', 'build.strategy'].includes(field));
  return isUsual ? undefined : { path: folder, dockerfile };
}

function toRepositoryName(repo: string): string {
  return posix.basename(repo).replace(/\.git$/, '');
}

/** In order of priority. */
function readDeclarations(tree: Tree, options: { path: string | undefined; repository: string }): Declaration[] {
  return [
    declareCompose(tree, options),
    ...[
      readProcfile,
      readRailway,
      readRender,
      readFly,
      readHuggingFace,
      readAppJson,
      readVercel,
      readNetlify,
      readOwnSecrets,
      readGemfile,
    ].map((read) => read(tree)),
    // Packages are the weakest evidence: they count only if no file declares more.
    ...Object.values(planners).map((planner) => planner.declareSettings?.(tree.getSubtree(options.path ?? '.'))),
  ].filter((each) => each !== undefined);
}

interface CombinedDeclaration {
  readonly build: Declaration['build'] | undefined;
  readonly command: readonly string[] | undefined;
  readonly port: number | undefined;
  readonly healthPath: string | undefined;
  readonly env: readonly DeclaredVariable[];
  readonly volumes: readonly DeclaredVolume[];
  readonly services: NonNullable<Declaration['services']>;
}

/** The app's own address at another platform. */
const otherPlatform = /\.(?:onrender\.com|fly\.dev|herokuapp\.com|railway\.app|vercel\.app|netlify\.app|hf\.space)\b/i;

function combine(declarations: readonly Declaration[]): CombinedDeclaration {
  const findFirst = <Value>(of: (declaration: Declaration) => Value | undefined): Value | undefined =>
    declarations.map(of).find((value) => value !== undefined && !(Array.isArray(value) && value.length === 0));
  const services = findFirst((each) => each.services) ?? [];
  return {
    build: findFirst((each) => each.build),
    command: findFirst((each) => each.command),
    port: findFirst((each) => each.port),
    healthPath: findFirst((each) => each.healthPath),
    volumes: findFirst((each) => each.volumes) ?? [],
    env: combineVariables(declarations, new Set(services.map(({ name }) => name))),
    services,
  };
}

/** Combines the variables of all files; the first file that sets a variable wins. */
function combineVariables(declarations: readonly Declaration[], services: ReadonlySet<string>): DeclaredVariable[] {
  const env = new Map<string, DeclaredVariable>();
  for (const each of declarations.flatMap((declaration) => declaration.env ?? []))
    if (!env.has(each.name) && hasOnlyKnownServices(each.value, services) && !otherPlatform.test(each.value))
      env.set(each.name, each);
  return [...env.values()];
}

/** Returns whether every service that a value refers to exists. */
function hasOnlyKnownServices(value: string, names: ReadonlySet<string>): boolean {
  return [...value.matchAll(/\$\{\{services\.([-a-z0-9]{1,30})\./g)].every(([, name = '']) => names.has(name));
}

/** Keeps as many disks as an author may have: first those in a platform file, then those of the image. */
function limitDisks(
  declared: readonly DeclaredVolume[],
  ofImage: readonly DeclaredVolume[],
): { disks: DeclaredVolume[]; findings: Finding[] } {
  const declaredDisks = [...declared, ...ofImage].filter(
    ({ name, path }, index, list) =>
      list.findIndex((each) => each.path === path || each.name === name) === index &&
      !list.some((each) => each.path !== path && path.startsWith(`${each.path}/`)),
  );
  const disks = declaredDisks.slice(0, authorLimits.volumes.count);
  const droppedPaths = declaredDisks.slice(authorLimits.volumes.count).map(({ path }) => path);
  if (droppedPaths.length === 0) return { disks, findings: [] };
  const message = `The app declares ${declaredDisks.length} volumes; ${disks.length} get a disk. What is written to ${droppedPaths.slice(0, 5).join(', ')} does not last.`;
  return {
    disks,
    findings: [
      {
        rule: 'data/too-many-volumes',
        severity: 'warning',
        message,
        fix: 'Choose the folders that have to last with run.volumes in moorage.yaml.',
      },
    ],
  };
}

const databaseUrl = /^(?:sqlite(?:\+[a-z]{1,20})?:\/\/\/|file:)(\/?[^?\s]{1,300})/i;
const databaseFile = /(?:^|\/)[^/\s]{1,100}\.(?:db|sqlite3?|sqlite-journal)$/i;

/** Warns about each variable that names an SQLite file outside all volumes. */
function checkDatabaseFiles(
  env: readonly DeclaredVariable[],
  volumes: readonly { readonly path: string }[],
): Finding[] {
  return env.flatMap(({ name, value }) => {
    const path = readDatabasePath(value);
    if (path === undefined || volumes.some((volume) => isBelow(path, volume.path))) return [];
    return [
      {
        rule: 'data/not-lasting',
        severity: 'warning',
        message: `${name} keeps a database in ${path.slice(0, 150)}, which is on no volume: it is lost whenever the app is restarted or a new commit comes.`,
        fix: 'Add a volume at its folder (run.volumes in moorage.yaml), or a database (services in moorage.yaml, like type: postgres).',
      },
    ];
  });
}

function readDatabasePath(value: string): string | undefined {
  const path =
    databaseUrl.exec(value)?.[1] ?? (databaseFile.test(value) && !/\s|:\/\//.test(value) ? value : undefined);
  return path === undefined || path.startsWith(':memory:') ? undefined : posix.normalize(path);
}

/**
 * A relative path is relative to the working folder, which is unknown. A volume whose path ends in the same folder is
 * assumed to contain it.
 */
function isBelow(path: string, folder: string): boolean {
  if (path.startsWith('/')) return path.startsWith(`${folder}/`);
  const first = path.replace(/^\.\//, '').split('/')[0] ?? '';
  return path.includes('/') && folder.endsWith(`/${first}`);
}

/** Returns the only forwarded port. */
function readForwardedPort(tree: Tree): { file: string; port: number } | undefined {
  const file = ['.devcontainer/devcontainer.json', '.devcontainer.json'].find((name) => tree.has(name));
  if (file === undefined) return undefined;
  // These files often contain comments. A // inside a text may be misread as one, which only loses the hint.
  const plain = (tree.readFile(file, 64 * 1024) ?? '')
    .replaceAll(/^[ \t]{0,40}\/\/.*$/gm, '')
    .replaceAll(/,(\s{0,100}[}\]])/g, '$1');
  const ports = readField(parseJson(plain), 'forwardPorts');
  const port: unknown = Array.isArray(ports) && ports.length === 1 ? ports[0] : undefined;
  return typeof port === 'number' && port > 0 && port <= 65_535 ? { file, port } : undefined;
}

const maximumVolumes = 20;

function readDockerfileVolumes(text: string | undefined): DeclaredVolume[] {
  const joined = (text ?? '').slice(0, 256 * 1024).replaceAll(/\\\r?\n/g, ' ');
  const stage = joined.split(/^[ \t]{0,20}FROM[ \t]/im).at(-1) ?? '';
  const paths = [...stage.matchAll(/^[ \t]{0,20}VOLUME[ \t]{1,20}([^\n#]{1,500})/gim)]
    .flatMap(([, list = '']) => splitVolumes(list.trim()))
    .map((path) => posix.normalize(path).replace(/(?!^)\/+$/, ''))
    .filter((path) => isDataFolder(path) && !/[$\s:]/.test(path));
  return [...new Set(paths)].slice(0, maximumVolumes).map((path) => ({ name: toVolumeName(path), path }));
}

function splitVolumes(list: string): string[] {
  if (!list.startsWith('[')) return list.split(/\s{1,20}/);
  return [...list.matchAll(/"([^"]{1,200})"/g)].map(([, path = '']) => path);
}

// Limits: only declared settings that are valid are added to those of moorage.yaml, and only as many as a report has room for.

/** Space in a report for everything other than the settings. */
const noteBytes = 300;

/** Keeps the declared settings that are valid, and reports variables that had to be left out. */
function limitSettings(
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
function mergeSettings(
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
