// Chooses the package manager of a Node project and its version, and builds its commands.
import { parseJson, readTexts } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import { formatReport } from '../build-warnings.ts';
import { renderStep } from '../recipe.ts';

export type Manager = 'npm' | 'pnpm' | 'yarn' | 'berry' | 'bun';

export interface ChosenManager {
  readonly manager: Manager;
  /** Version to install; npm comes with the image. */
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

/** The lock file that is used. Where scripts call bun, its own comes first. */
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

/** The packageManager field speaks first, then the lock file, then the scripts. */
export function chooseManager(
  tree: Tree,
  declared: string | undefined,
  lock: Lock | undefined,
  scripts: Readonly<Record<string, string>>,
): ChosenManager {
  const named = /^(npm|pnpm|yarn|bun)@(\d+\.\d+\.\d+)/.exec(declared ?? '');
  if (named !== null) return chooseByField(tree, named, lock?.manager);
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

/** The version that wrote the lock file, as far as it shows. */
function chooseByLock(tree: Tree, manager: Manager): ChosenManager {
  if (manager === 'berry') return { manager, version: resolveBerryVersion(tree) };
  return { manager, version: manager === 'pnpm' ? resolvePnpmVersion(tree) : versions[manager] };
}

/** A lock of another Yarn than the field names was written by that one. */
function chooseYarn(tree: Tree, version: string, lock: Manager | undefined): ChosenManager {
  const manager = version.startsWith('1.') ? 'yarn' : 'berry';
  const isOtherYarn = (lock === 'yarn' || lock === 'berry') && lock !== manager;
  return isOtherYarn ? chooseByLock(tree, lock) : { manager, version };
}

function isBerryLock(tree: Tree): boolean {
  return /^__metadata:/m.test(tree.text('yarn.lock', 4096) ?? '');
}

/** Each major of Yarn writes another version into its lock, and refuses to read others as they are. */
function resolveBerryVersion(tree: Tree): string {
  const released = /^yarnPath:\s{0,9}["']?\.yarn\/releases\/yarn-(\d+\.\d+\.\d+)\.c?js/m.exec(
    tree.text('.yarnrc.yml', 64 * 1024) ?? '',
  )?.[1];
  if (released !== undefined) return released;
  const format = Number(/^__metadata:\n\s{1,9}version:\s?(\d+)/m.exec(tree.text('yarn.lock', 4096) ?? '')?.[1] ?? '8');
  if (format <= 4) return '2.4.2';
  return format <= 6 ? '3.8.7' : versions.berry;
}

/** Version of the format, such as 6.1. */
function parsePnpmLockVersion(tree: Tree): number {
  return Number(/^lockfileVersion:\s*'?(\d+(?:\.\d+)?)/m.exec(tree.text('pnpm-lock.yaml', 4096) ?? '')?.[1] ?? '9');
}

/** The first major of pnpm that wrote this format; older ones read it and fail. */
function resolveLockWriter(format: number): number {
  if (format >= 9) return 9;
  return format > 6 ? 8 : 0;
}

/** Older lock files need the pnpm of their time; those of 9 and 10 look alike, and only 10 asks which packages may build. */
function resolvePnpmVersion(tree: Tree): string {
  const format = Math.floor(parsePnpmLockVersion(tree));
  if (format <= 5) return '7.33.7';
  if (format === 6) return '8.15.9';
  const workspace = tree.text('pnpm-workspace.yaml', 64 * 1024);
  const settings =
    workspace !== undefined && (!/^packages:/m.test(workspace) || /^\w*[bB]uil[dt]\w*:/m.test(workspace));
  const listed = readTexts(parseJson(tree.text('package.json')), 'pnpm', 'onlyBuiltDependencies').length > 0;
  return settings || listed ? versions.pnpm : '9.15.9';
}

/** The package that brings the manager, with its version; undefined for npm, which is there. */
export function getManagerPackage({ manager, version }: ChosenManager): string | undefined {
  if (manager === 'npm') return undefined;
  return manager === 'berry' ? `@yarnpkg/cli-dist@${version}` : `${manager}@${version}`;
}

/** Variables that the manager is called with. */
export function getManagerEnvironment(manager: Manager): readonly string[] {
  // A folder node_modules is all that the other programs of a build know.
  return manager === 'berry'
    ? [
        'YARN_NODE_LINKER=node-modules',
        'YARN_IGNORE_PATH=1',
        'YARN_ENABLE_GLOBAL_CACHE=true',
        'YARN_ENABLE_TELEMETRY=0',
      ]
    : [];
}

/** Installs by the lock file, and where that fails without it: the app may well work, and its author gets a warning. */
export function buildInstallCommand(manager: Manager, lock: string | undefined): string {
  const [exact, free] = installs[manager];
  const without = manager === 'npm' ? addLegacyPeersRetry(free) : free;
  if (lock === undefined) return without;
  // pnpm reads a lock file that lacks some of its own entries only when it is asked to fix it.
  const corrected = manager === 'pnpm' ? `${without} || pnpm install --fix-lockfile` : without;
  return `${exact} || { ${formatReport('lockfile', lock)}; ${corrected}; }`;
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

/** Runs a script of package.json. */
export function runScript(manager: Manager, script: string): string {
  return `${manager === 'berry' ? 'yarn' : manager} run ${script}`;
}

/** Removes the development packages; undefined where the manager cannot. */
export function getPruneCommand(manager: Manager): string | undefined {
  switch (manager) {
    case 'npm':
      return 'npm prune --omit=dev';
    // Not --ignore-scripts, which the pnpm of older lock files does not know for prune.
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

/** Mirrors with the paths of the registry, by host and folder. Builders may not reach them, and one of them is gone. */
const mirrors = [
  'registry.npmmirror.com',
  'registry.npm.taobao.org',
  'mirrors.huaweicloud.com/repository/npm',
  'mirrors.cloud.tencent.com/npm',
  'mirrors.tencent.com/npm',
];
const name = '[A-Za-z0-9._~-]{1,214}';
/** As JavaScript and sed read it; the path in the registry is the second group. */
const mirrored = `https?://(${mirrors.join('|').replaceAll('.', '[.]')})/((@${name}/)?${name}/-/)`;
const inLock = new RegExp(mirrored);

/** Whether a lock file names one. */
export function hasMirrorUrl(lock: string): boolean {
  return inLock.test(lock);
}

/** The command that rewrites a lock file. Its checksums stay, so what is installed is what was locked. */
export function buildRewriteCommand(file: string): string {
  return `sed -E -i 's#${mirrored}#https://registry.npmjs.org/\\2#g' ${file}`;
}

/** Lines that run it in the image. */
export function renderMirrorRemoval(file: string): string[] {
  return renderStep(
    file,
    'reading packages from the npm registry, not from its mirrors',
    `RUN ${buildRewriteCommand(file)}`,
  );
}
