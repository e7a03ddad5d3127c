// Chooses a Node project's package manager and its version, and builds its commands.
import { parseJson, readText, readTexts } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import { formatReport } from '../build-warnings.ts';
import { renderStep } from '../recipe.ts';

export type Manager = 'npm' | 'pnpm' | 'yarn' | 'berry' | 'bun';

export interface ChosenManager {
  readonly manager: Manager;
  /** Version to install; npm is part of the image. */
  readonly version: string;
}

interface Lock {
  readonly file: string;
  readonly manager: Manager;
}

const lockFiles: readonly Lock[] = [
  { file: 'pnpm-lock.yaml', manager: 'pnpm' },
  { file: 'yarn.lock', manager: 'yarn' },
  { file: 'package-lock.json', manager: 'npm' },
  { file: 'npm-shrinkwrap.json', manager: 'npm' },
  { file: 'bun.lock', manager: 'bun' },
  { file: 'bun.lockb', manager: 'bun' },
];
const versions: Readonly<Record<Manager, string>> = {
  npm: '',
  pnpm: '10.34.8',
  yarn: '1.22.22',
  berry: '4.18.1',
  bun: '1.4.5',
};

/** Finds the lock file to use. If scripts call bun, bun's lock file takes precedence. */
export function findLock(tree: Tree, scripts: Readonly<Record<string, string>>): Lock | undefined {
  const locks = lockFiles.filter(({ file }) => tree.has(file));
  const first = locks[0];
  const manager = Object.values(scripts).some(isBunCalled) ? 'bun' : undefined;
  const found = locks.find((lock) => lock.manager === manager) ?? first;
  return found?.file === 'yarn.lock' && isBerryLock(tree) ? { ...found, manager: 'berry' } : found;
}

function isBunCalled(script: string): boolean {
  return /(?:^|[\s;&|])bunx?\s/.test(script);
}

/** The packageManager field takes precedence, then the lock file, then the scripts. */
export function chooseManager(
  tree: Tree,
  declared: string | undefined,
  lock: Lock | undefined,
  scripts: Readonly<Record<string, string>>,
): ChosenManager {
  const declaredVersion = /^(npm|pnpm|yarn|bun)@(\d+\.\d+\.\d+)/.exec(declared ?? '');
  if (declaredVersion !== null) return chooseByField(tree, declaredVersion, lock?.manager);
  return chooseByLock(tree, lock?.manager ?? (isBunCalled(scripts['start'] ?? '') ? 'bun' : 'npm'));
}

function chooseByField(
  tree: Tree,
  [, name, version = '']: readonly string[],
  lock: Manager | undefined,
): ChosenManager {
  if (name === 'yarn') return chooseYarn(tree, version, lock);
  if (
    name === 'pnpm' &&
    lock === 'pnpm' &&
    Number.parseInt(version, 10) < resolveLockWriter(parsePnpmLockVersion(tree))
  )
    return chooseByLock(tree, lock);
  return { manager: name === 'pnpm' || name === 'bun' ? name : 'npm', version };
}

/** Infers the version that wrote the lock file, if possible. */
function chooseByLock(tree: Tree, manager: Manager): ChosenManager {
  if (manager === 'berry') return { manager, version: resolveBerryVersion(tree) };
  return { manager, version: manager === 'pnpm' ? resolvePnpmVersion(tree) : versions[manager] };
}

/** If the lock file belongs to another major version of Yarn than the field names, that version wrote it. */
function chooseYarn(tree: Tree, version: string, lock: Manager | undefined): ChosenManager {
  const manager = version.startsWith('1.') ? 'yarn' : 'berry';
  const isOtherYarn = (lock === 'yarn' || lock === 'berry') && lock !== manager;
  return isOtherYarn ? chooseByLock(tree, lock) : { manager, version };
}

function isBerryLock(tree: Tree): boolean {
  return /^__metadata:/m.test(tree.readFile('yarn.lock', 4096) ?? '');
}

/** Each major version of Yarn uses another lock file version, and does not accept older ones unchanged. */
function resolveBerryVersion(tree: Tree): string {
  const released = /^yarnPath:\s{0,9}["']?\.yarn\/releases\/yarn-(\d+\.\d+\.\d+)\.c?js/m.exec(
    tree.readFile('.yarnrc.yml', 64 * 1024) ?? '',
  )?.[1];
  if (released !== undefined) return released;
  const format = Number(
    /^__metadata:\n\s{1,9}version:\s?(\d+)/m.exec(tree.readFile('yarn.lock', 4096) ?? '')?.[1] ?? '8',
  );
  if (format <= 4) return '2.4.2';
  return format <= 6 ? '3.8.7' : versions.berry;
}

/** Parses the lock file's format version, such as 6.1. */
function parsePnpmLockVersion(tree: Tree): number {
  return Number(/^lockfileVersion:\s*'?(\d+(?:\.\d+)?)/m.exec(tree.readFile('pnpm-lock.yaml', 4096) ?? '')?.[1] ?? '9');
}

/** Returns the first major version of pnpm that wrote this format; older ones read it and fail. */
function resolveLockWriter(format: number): number {
  if (format >= 9) return 9;
  return format > 6 ? 8 : 0;
}

/**
 * Older lock files need the pnpm of their time. Those of 9 and 10 look alike, and only 10 requires approval of packages
 * that build.
 */
function resolvePnpmVersion(tree: Tree): string {
  const format = Math.floor(parsePnpmLockVersion(tree));
  if (format <= 5) return '7.33.7';
  if (format === 6) return '8.15.9';
  const workspace = tree.readFile('pnpm-workspace.yaml', 64 * 1024);
  const settings =
    workspace !== undefined && (!/^packages:/m.test(workspace) || /^\w*[bB]uil[dt]\w*:/m.test(workspace));
  const listed = readTexts(parseJson(tree.readFile('package.json')), 'pnpm', 'onlyBuiltDependencies').length > 0;
  return settings || listed ? versions.pnpm : '9.15.9';
}

/** Returns the package and version that provide the manager; undefined for npm, which is in the image. */
export function getManagerPackage({ manager, version }: ChosenManager): string | undefined {
  if (manager === 'npm') return undefined;
  return manager === 'berry' ? `@yarnpkg/cli-dist@${version}` : `${manager}@${version}`;
}

/** Returns environment variables for the manager. */
function getManagerEnvironment(manager: Manager): readonly string[] {
  // The other programs of a build only understand node_modules.
  return manager === 'berry'
    ? [
        'YARN_NODE_LINKER=node-modules',
        'YARN_IGNORE_PATH=1',
        'YARN_ENABLE_GLOBAL_CACHE=true',
        'YARN_ENABLE_TELEMETRY=0',
      ]
    : [];
}

/** What a build needs besides the variables that every Node build has. */
interface MoreVariables {
  /** Of tools that packages bring. */
  readonly tools?: readonly string[];
  /** Of Debian packages. */
  readonly system?: readonly string[];
}

/** Renders the environment in which the packages of any Node build are installed, whatever the language of its server. */
export function renderNodeEnvironment(manager: Manager, { tools = [], system = [] }: MoreVariables = {}): string[] {
  const quiet = ['npm_config_update_notifier=false', 'npm_config_fund=false', 'npm_config_audit=false'];
  const variables = [...getManagerEnvironment(manager), ...system];
  return [
    `ENV ${['CI=true', ...tools, ...quiet].join(' ')}`,
    ...(variables.length === 0 ? [] : [`ENV ${variables.join(' ')}`]),
  ];
}

/**
 * Renders what the build of Create React App needs after its installation; nothing for others. It takes warnings for errors
 * where CI is true, and `homepage` for the address of its pages. A host there is usually another one, such as GitHub Pages.
 * It also refuses to start where it finds another version of babel-jest and the like, which only its tests use.
 *
 * @param tree of its folder
 * @param isServed whether a server of the app serves the pages, and may do so at the path of `homepage`
 */
export function renderReactEnvironment(tree: Tree, dependencies: ReadonlySet<string>, isServed: boolean): string[] {
  if (!dependencies.has('react-scripts')) return [];
  const homepage = readText(parseJson(tree.readFile('package.json')), 'homepage') ?? '/';
  const [whole, path = '/'] = /^[a-z]+:\/\/[^/]+(\/.*)?$/i.exec(homepage) ?? [undefined, homepage];
  const isAtTop = ['', '.', '/', './'].includes(path) || (isServed && whole === undefined);
  return [`ENV CI=false SKIP_PREFLIGHT_CHECK=true${isAtTop ? '' : ' PUBLIC_URL=/'}`];
}

/** Installs from the lock file. If that fails, installs without it and warns the author: the app may still work. */
export function buildInstallCommand(manager: Manager, lock: string | undefined): string {
  const [exact, free] = installs[manager];
  const without = manager === 'npm' ? addLegacyPeersRetry(free) : free;
  if (lock === undefined) return without;
  // pnpm completes a lock file with missing entries only if asked to.
  const corrected = manager === 'pnpm' ? `${without} || pnpm install --fix-lockfile` : without;
  return `${exact} || { ${formatReport('lockfile', lock)}; ${corrected}; }`;
}

/** What npm leaves out where it installs a package for its users. Some of it refers to files that are not published. */
const unpublished = [
  ...['devDependencies', 'overrides', 'workspaces'],
  ...['prepublish', 'preprepare', 'prepare', 'postprepare'].map((each) => `scripts.${each}`),
];

/** Installs a published package in its own folder, as npm does below another one's node_modules. */
export function buildPublishedInstall(): string {
  return `npm pkg delete ${unpublished.join(' ')} && ${addLegacyPeersRetry('npm install --omit=dev')}`;
}

function addLegacyPeersRetry(install: string): string {
  return `${install} || { ${formatReport('peer-dependencies', 'package.json')}; ${install} --legacy-peer-deps; }`;
}

const installs: Readonly<Record<Manager, readonly [string, string]>> = {
  npm: ['npm ci', 'npm install'],
  pnpm: ['pnpm install --frozen-lockfile', 'pnpm install --no-frozen-lockfile'],
  yarn: ['yarn install --non-interactive --frozen-lockfile', 'yarn install --non-interactive'],
  berry: ['yarn install --immutable', 'yarn install --no-immutable'],
  bun: ['bun install --frozen-lockfile', 'bun install --no-frozen-lockfile'],
};

/** Builds the command that runs a package.json script. */
export function runScript(manager: Manager, script: string): string {
  return `${manager === 'berry' ? 'yarn' : manager} run ${script}`;
}

/** Builds the command that removes development packages; undefined if the manager cannot. */
export function getPruneCommand(manager: Manager): string | undefined {
  switch (manager) {
    case 'npm':
      return 'npm prune --omit=dev';
    // Do not use --ignore-scripts: the pnpm of older lock files does not support it for prune.
    case 'pnpm':
      return 'pnpm prune --prod --config.ignore-scripts=true';
    case 'yarn':
      return 'yarn install --non-interactive --production --ignore-scripts --prefer-offline';
    case 'berry':
      return '(yarn workspaces focus --production || true)';
    case 'bun':
      return undefined;
  }
}

/** Mirrors of the npm registry, by host and folder. Builders may not reach them, and one no longer exists. */
const mirrors = [
  'registry.npmmirror.com',
  'registry.npm.taobao.org',
  'mirrors.huaweicloud.com/repository/npm',
  'mirrors.cloud.tencent.com/npm',
  'mirrors.tencent.com/npm',
];
const name = '[A-Za-z0-9._~-]{1,214}';
/** A pattern for JavaScript and sed; its second group is the path in the registry. */
const mirrored = `https?://(${mirrors.join('|').replaceAll('.', '[.]')})/((@${name}/)?${name}/-/)`;
const inLock = new RegExp(mirrored);

/** Returns whether a lock file refers to a mirror. */
export function hasMirrorUrl(lock: string): boolean {
  return inLock.test(lock);
}

/**
 * Builds the command that rewrites a lock file to the official registry. Its checksums stay, so the installed packages
 * are the locked ones.
 */
export function buildRewriteCommand(file: string): string {
  return `sed -E -i 's#${mirrored}#https://registry.npmjs.org/\\2#g' ${file}`;
}

/** Renders the lines that run it in the image. */
export function renderMirrorRemoval(file: string): string[] {
  return renderStep(
    file,
    'reading packages from the npm registry, not from its mirrors',
    `RUN ${buildRewriteCommand(file)}`,
  );
}
