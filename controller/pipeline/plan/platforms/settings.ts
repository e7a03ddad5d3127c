// Merges the settings from files for other platforms, at a lower priority than moorage.yaml and the HostedApp.
import { posix } from 'node:path';
import { type AppManifest, authorLimits, type ReportedSettings } from '../../../../crds/app-manifest.ts';
import { type DeclaredComponent, hasProcessFields } from '../../../../crds/components.ts';
import { resolveSpec } from '../../../../crds/effective-settings.ts';
import type { Finding, HostedAppSpec } from '../../../../crds/hosted-app.ts';
import { listOwnProcessFields } from '../../components.ts';
import { type PipelineInput, toResolvableApp } from '../../contract.ts';
import { parseJson, readField } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import { findDockerfile } from '../dockerfile/find.ts';
import { planners } from '../plan.ts';
import { completeComponents, type Completion, mergeComponents } from './complete.ts';
import { declareCompose } from './compose/compose.ts';
import { readDockerfileVolumes } from './compose/volumes.ts';
import {
  createWarning,
  type Declaration,
  type DeclaredBuild,
  type DeclaredVariable,
  type DeclaredVolume,
} from './declaration.ts';
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
import { declareFolders } from './folders.ts';
import { readGemfile } from './gemfile.ts';
import { type CombinedDeclaration, limitSettings, mergeSettings } from './layers.ts';
import { declareProcesses } from './processes.ts';
import { readOwnSecrets } from './own-secrets.ts';
import { linkDatabases } from './sample-databases.ts';

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
  // Files for other platforms deploy the repository that a package was built from.
  if (tree.registry !== undefined) return { settings: ownSettings, findings: findNotLasting(ownSettings) };
  const choice = findChoice(ownSettings, baseInput);
  const declarations = readDeclarations(tree, { ...choice, repository: toRepositoryName(baseInput.repo) });
  const several = findComponents(tree, declarations, choice, baseInput);
  const ownNames = new Set((ownSettings?.run?.env ?? []).map(({ name }) => name));
  const found = [...declarations, ...several.declarations];
  const databases = linkDatabases(tree, {
    folders: [choice.base, ...several.components.map(({ path = '.' }) => posix.join(choice.base, path))],
    services: ownSettings?.services ?? found.find(({ services = [] }) => services.length > 0)?.services ?? [],
    isSet: createSetTest(ownNames, found, several.components),
  });
  const merged = combine([...found, databases], ownNames);
  const single = several.components.length === 0 ? completeProcess(tree, choice.build, merged) : emptyProcess;
  const files = listSources([...found, databases], single.files);
  const platformSettings = limitSettings(
    { ...merged, ...single.fields, components: several.components },
    ownSettings,
    files,
  );
  const settings = mergeSettings(ownSettings, platformSettings.settings, files);
  return {
    settings,
    findings: [
      ...[...declarations.flatMap(({ findings = [] }) => findings), ...several.findings].filter((each) =>
        isRelevant(each, choice, several.components.length > 0),
      ),
      ...(databases.findings ?? []),
      ...merged.findings,
      ...single.findings,
      ...platformSettings.findings,
      ...findNotLasting(settings),
    ],
  };
}

/** Returns whether moorage.yaml, a file or a component sets a variable. */
function createSetTest(
  ownNames: ReadonlySet<string>,
  declarations: readonly Declaration[],
  components: readonly DeclaredComponent[],
): (variable: string) => boolean {
  const names = [...declarations, ...components].flatMap(({ env = [] }) => env.map(({ name }) => name));
  const all = new Set([...ownNames, ...names]);
  return (variable) => all.has(variable);
}

/**
 * What a Procfile leaves out of one process says nothing about components, and what other files cannot have says nothing
 * about those that the author lists.
 */
function isRelevant({ rule, severity }: Finding, { own }: Choice, hasComponents: boolean): boolean {
  if (rule === 'procfile/not-run') return !hasComponents;
  return own.length === 0 || (severity !== 'error' && rule !== 'components/found');
}

interface ProcessFields {
  readonly fields: Pick<CombinedDeclaration, 'build' | 'command' | 'port' | 'healthPath' | 'volumes'>;
  /** Files that only these fields come from. */
  readonly files: readonly string[];
  readonly findings: readonly Finding[];
}

/** An app with components sets these in each. */
const emptyProcess: ProcessFields = {
  fields: { build: undefined, command: undefined, port: undefined, healthPath: undefined, volumes: [] },
  files: [],
  findings: [],
};

/** Adds what the Dockerfile that is built says to the fields of an app's only process. */
function completeProcess(tree: Tree, chosen: ChosenBuild | undefined, merged: CombinedDeclaration): ProcessFields {
  const { command, healthPath } = merged;
  const { build, dockerfile } = resolveBuild(tree, chosen, merged.build);
  const { disks, findings } = limitDisks(merged.volumes, readDockerfileVolumes(tree.readFile(dockerfile)));
  const hint = merged.port === undefined ? findHintedPort(tree, dockerfile) : undefined;
  const ofImage = merged.volumes.length === 0 && disks.length > 0 ? [dockerfile] : [];
  return {
    fields: { build, command, healthPath, volumes: disks, port: hint?.port ?? merged.port },
    files: [...ofImage, ...(hint === undefined ? [] : [hint.file])],
    findings,
  };
}

/** Finds the components, and completes them from the files of their folders. */
function findComponents(
  tree: Tree,
  declarations: readonly Declaration[],
  { own, base, isOneProcess }: Choice,
  input: PipelineInput,
): Completion {
  const { components: declared = [], findings = [], file } = findDeclaredComponents(tree, declarations, input) ?? {};
  const components = own.length > 0 ? mergeComponents(tree, own, declared) : isOneProcess ? [] : declared;
  if (components.length === 0) return { components, declarations: [], findings: isOneProcess ? [] : findings };
  const completion = completeComponents(tree, base, components);
  return {
    ...completion,
    declarations: [...(file === undefined ? [] : [{ file, components }]), ...completion.declarations],
    findings: [...findings, ...completion.findings],
  };
}

/**
 * Finds the first file, or else the folders, that say of which processes the app consists. Findings of files whose
 * declaration counts anyway are reported with it.
 */
function findDeclaredComponents(
  tree: Tree,
  declarations: readonly Declaration[],
  input: PipelineInput,
): (Pick<Declaration, 'components' | 'findings'> & { readonly file?: string }) | undefined {
  const declared = declarations.find(({ components = [] }) => components.length > 0);
  if (declared !== undefined) return { components: declared.components ?? [] };
  // A compose file or another platform has chosen the image of the app.
  if (declarations.some(({ build, findings = [] }) => build !== undefined || findings.some(isError))) return undefined;
  const services = declarations.find(({ services: each = [] }) => each.length > 0)?.services ?? [];
  const hasServer = services.some(({ type }) => ['postgres', 'mysql', 'mongo'].includes(type));
  return declareProcesses(tree, hasServer) ?? declareFolders(tree, input);
}

function isError({ severity }: Finding): boolean {
  return severity === 'error';
}

function findNotLasting(settings: ReportedSettings | undefined): Finding[] {
  const { run: { env = [], volumes = [] } = {}, components = [] } = settings ?? {};
  if (components.length === 0) return checkDatabaseFiles(env, volumes);
  return components
    .filter(({ kind }) => kind !== 'task')
    .flatMap((each) => checkDatabaseFiles([...env, ...(each.env ?? [])], each.volumes ?? []))
    .filter(({ message }, index, list) => list.findIndex((each) => each.message === message) === index);
}

/** Resolves the declared build settings, and the Dockerfile that is finally built. */
function resolveBuild(
  tree: Tree,
  chosen: ChosenBuild | undefined,
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
    .filter(({ env = [], volumes = [], services = [], components = [], ...rest }) => {
      const { build, port, command, healthPath } = rest;
      return (
        env.length + volumes.length + services.length + components.length > 0 ||
        [build, port, command, healthPath].some((value) => value !== undefined)
      );
    })
    .map(({ file }) => file);
  return [...new Set([...files, ...more])].join(', ').slice(0, 200);
}

interface ChosenBuild {
  readonly path: string;
  readonly dockerfile: string;
}

/** What moorage.yaml or the HostedApp says about the processes of the app. */
interface Choice {
  /** Folder and Dockerfile, if they specify them. */
  readonly build: ChosenBuild | undefined;
  /** Whether they describe one process: then other files add none. */
  readonly isOneProcess: boolean;
  /** Their components. */
  readonly own: readonly DeclaredComponent[];
  /** Folder to which the paths of components are relative. */
  readonly base: string;
}

function findChoice(ownSettings: AppManifest | undefined, baseInput: PipelineInput): Choice {
  const spec = resolveSpec(toResolvableApp(baseInput), ownSettings);
  const base = posix.normalize(spec.source.path);
  const isUsual = !isBuildChosen(spec, ownSettings, baseInput);
  const build = isUsual ? undefined : { path: base, dockerfile: spec.build.dockerfile };
  const own = ownSettings?.components ?? [];
  const isOne =
    !isUsual ||
    baseInput.pinned.includes('components') ||
    listOwnProcessFields(baseInput).length > 0 ||
    hasProcessFields(spec);
  return { build, own, base, isOneProcess: own.length === 0 && isOne };
}

function isBuildChosen(
  { source, build: { dockerfile, strategy, target } }: HostedAppSpec,
  ownSettings: AppManifest | undefined,
  { pinned }: PipelineInput,
): boolean {
  return (
    posix.normalize(source.path) !== '.' ||
    ownSettings?.source?.path !== undefined ||
    dockerfile !== 'Dockerfile' ||
    strategy !== 'auto' ||
    target !== undefined ||
    pinned.some((field) => ['source.path', 'build.dockerfile', 'build.strategy'].includes(field))
  );
}

function toRepositoryName(repo: string): string {
  return posix.basename(repo).replace(/\.git$/, '');
}

/** In order of priority. */
function readDeclarations(
  tree: Tree,
  { build, isOneProcess, repository }: Pick<Choice, 'build' | 'isOneProcess'> & { readonly repository: string },
): Declaration[] {
  return [
    declareCompose(tree, { path: build?.path, isOneProcess, repository }),
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
    ...Object.values(planners).map((planner) => planner.declareSettings?.(tree.getSubtree(build?.path ?? '.'))),
  ].filter((each) => each !== undefined);
}

/** The app's own address at another platform. */
const otherPlatform =
  /[\w-]{0,63}\.(?:onrender\.com|fly\.dev|herokuapp\.com|railway\.app|vercel\.app|netlify\.app|hf\.space)\b/i;

function combine(declarations: readonly Declaration[], ownNames: ReadonlySet<string>): CombinedDeclaration {
  const findFirst = <Value>(of: (declaration: Declaration) => Value | undefined): Value | undefined =>
    declarations.map(of).find((value) => value !== undefined && !(Array.isArray(value) && value.length === 0));
  const services = findFirst((each) => each.services) ?? [];
  return {
    build: findFirst((each) => each.build),
    command: findFirst((each) => each.command),
    port: findFirst((each) => each.port),
    healthPath: findFirst((each) => each.healthPath),
    volumes: findFirst((each) => each.volumes) ?? [],
    ...combineVariables(
      declarations.map((each) => renameServices(each, services)),
      new Set(services.map(({ name }) => name)),
      ownNames,
    ),
    services,
    components: [],
  };
}

/** A file that names a service otherwise than the one that counts, such as a compose file, means its only one of that type. */
function renameServices(declaration: Declaration, services: NonNullable<Declaration['services']>): Declaration {
  const { env = [], services: ownServices = [] } = declaration;
  const names = ownServices.flatMap(({ name, type }): [string, string][] => {
    const [only, ...more] = services.filter((each) => each.type === type);
    return only === undefined || more.length > 0 || services.some((each) => each.name === name)
      ? []
      : [[name, only.name]];
  });
  if (names.length === 0) return declaration;
  const rename = (value: string): string =>
    names.reduce((text, [from, to]) => text.replaceAll(`\${{services.${from}.`, `\${{services.${to}.`), value);
  return { ...declaration, env: env.map(({ name, value }) => ({ name, value: rename(value) })) };
}

/** Combines the variables of all files; the first file that sets a variable wins. Reports the ones that are left out. */
function combineVariables(
  declarations: readonly Declaration[],
  services: ReadonlySet<string>,
  ownNames: ReadonlySet<string>,
): { env: DeclaredVariable[]; findings: Finding[] } {
  const env = new Map<string, DeclaredVariable>();
  const foreign = new Map<string, { readonly file: string; readonly host: string }>();
  const unknown = new Map<string, string>();
  for (const { file, env: variables = [] } of declarations)
    for (const each of variables) {
      const host = otherPlatform.exec(each.value)?.[0];
      if (env.has(each.name) || ownNames.has(each.name)) continue;
      if (host !== undefined) foreign.set(each.name, { file, host });
      else if (!hasOnlyKnownServices(each.value, services)) unknown.set(each.name, file);
      else env.set(each.name, each);
    }
  return {
    env: [...env.values()],
    findings: [
      ...[...foreign].flatMap(([name, { file, host }]) => (env.has(name) ? [] : [reportForeignHost(name, file, host)])),
      ...[...unknown].flatMap(([name, file]) =>
        env.has(name) || foreign.has(name) ? [] : [reportUnknownService(name, file)],
      ),
    ],
  };
}

function reportForeignHost(name: string, file: string, host: string): Finding {
  return createWarning(
    'platform/foreign-host',
    file,
    `${name} is not set: its value names ${host.slice(0, 120)}, a host of another platform.`,
    `If this is the app's own address, set ${name} to \${{app.url}} or \${{app.host}} in moorage.yaml (run.env), which stand for its address here; otherwise set the value there.`,
  );
}

function reportUnknownService(name: string, file: string): Finding {
  return createWarning(
    'platform/unknown-service',
    file,
    `${name} is not set: its value belongs to a service that the app does not have here.`,
    `Add the service to moorage.yaml (services), or set ${name} there (run.env).`,
  );
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
