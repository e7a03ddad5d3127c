// Reads what package.json and its neighbours say about a Node project.
import semver from 'semver';
import { field, keys, parseJson, text } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';

export type Manager = 'npm' | 'pnpm' | 'yarn' | 'berry';

export interface NodeProject {
  readonly manager: Manager;
  /** Version of pnpm or Yarn to install; npm comes with the image. */
  readonly managerVersion: string;
  /** Lock file, or package.json where there is none. */
  readonly file: string;
  readonly locked: boolean;
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: ReadonlySet<string>;
  readonly main: string | undefined;
  readonly engines: string | undefined;
  /** Installing needs more of the tree than the manifest and the lock file. */
  readonly needsTree: boolean;
  /** A package compiles native code where no ready binary fits. */
  readonly compiles: boolean;
}

const lockFiles: readonly (readonly [string, Manager])[] = [
  ['pnpm-lock.yaml', 'pnpm'],
  ['yarn.lock', 'yarn'],
  ['package-lock.json', 'npm'],
  ['npm-shrinkwrap.json', 'npm'],
];
const defaults: Readonly<Record<Manager, string>> = { npm: '', pnpm: '10.34.8', yarn: '1.22.22', berry: '4.18.1' };
const lockBytes = 16 * 1024 * 1024;
/** Helpers of packages that fetch a binary, and compile one where none fits this version of Node. */
const compilers = /(?:^|["'\s/@])(?:node-pre-gyp|prebuild-install|node-gyp|nan)["'@:]/m;
const native = [
  'sqlite3',
  'better-sqlite3',
  'bcrypt',
  'canvas',
  'argon2',
  'node-pty',
  'usb',
  'serialport',
  'leveldown',
  'hnswlib-node',
  'faiss-node',
];
const installScripts = ['preinstall', 'install', 'postinstall', 'prepare'];

/** undefined when there is no package.json that can be read. */
export function readProject(tree: Tree): NodeProject | undefined {
  const manifest = parseJson(tree.text('package.json'));
  if (typeof manifest !== 'object' || manifest === null) return undefined;
  const lock = lockFiles.find(([file]) => tree.has(file));
  const { manager, version } = chooseManager(tree, text(manifest, 'packageManager'), lock?.[1]);
  const scripts = Object.fromEntries(
    keys(manifest, 'scripts').flatMap((name) => {
      const script = text(manifest, 'scripts', name);
      return script === undefined ? [] : [[name, script] as const];
    }),
  );
  const own = lock !== undefined && (lock[1] === manager || (lock[1] === 'yarn' && manager === 'berry'));
  const dependencies = new Set([...keys(manifest, 'dependencies'), ...keys(manifest, 'devDependencies')]);
  return {
    manager,
    managerVersion: version,
    scripts,
    dependencies,
    locked: own,
    file: own ? lock[0] : 'package.json',
    main: text(manifest, 'main'),
    engines: text(manifest, 'engines', 'node'),
    needsTree: needsTree(tree, manifest, scripts),
    compiles: compiles(own ? tree.text(lock[0], lockBytes) : undefined, dependencies),
  };
}

/** The packageManager field speaks first, then the lock file. */
function chooseManager(
  tree: Tree,
  declared: string | undefined,
  locked: Manager | undefined,
): { manager: Manager; version: string } {
  const named = /^(npm|pnpm|yarn)@(\d+\.\d+\.\d+)/.exec(declared ?? '');
  if (named !== null) return namedManager(named[1], named[2] ?? '');
  if (locked === 'yarn' && (tree.has('.yarnrc.yml') || /^__metadata:/m.test(tree.text('yarn.lock', 4096) ?? '')))
    return { manager: 'berry', version: defaults.berry };
  if (locked === 'pnpm') return { manager: 'pnpm', version: pnpmVersion(tree) };
  const manager = locked ?? 'npm';
  return { manager, version: defaults[manager] };
}

function namedManager(name: string | undefined, version: string): { manager: Manager; version: string } {
  if (name === 'yarn') return { manager: version.startsWith('1.') ? 'yarn' : 'berry', version };
  return { manager: name === 'pnpm' ? 'pnpm' : 'npm', version };
}

/** Older lock files need the pnpm of their time. */
function pnpmVersion(tree: Tree): string {
  const format = Number(/^lockfileVersion:\s*'?(\d+)/m.exec(tree.text('pnpm-lock.yaml', 4096) ?? '')?.[1] ?? '9');
  if (format <= 5) return '7.33.7';
  return format === 6 ? '8.15.9' : defaults.pnpm;
}

function needsTree(tree: Tree, manifest: unknown, scripts: Readonly<Record<string, string>>): boolean {
  const local = ['dependencies', 'devDependencies'].some((kind) =>
    keys(manifest, kind).some((name) =>
      /^(?:file|link|workspace|portal|patch):/.test(text(manifest, kind, name) ?? ''),
    ),
  );
  return (
    local ||
    field(manifest, 'workspaces') !== undefined ||
    installScripts.some((name) => name in scripts) ||
    tree.has('pnpm-workspace.yaml') ||
    ['patches', '.yarn'].some((folder) => tree.entry(folder)?.kind === 'directory')
  );
}

function compiles(lock: string | undefined, dependencies: ReadonlySet<string>): boolean {
  return native.some((name) => dependencies.has(name)) || (lock !== undefined && compilers.test(lock));
}

/** Does the range of engines.node leave room for a major version? A range that cannot be read does. */
export function runsOn(engines: string | undefined, major: number): boolean {
  if (engines === undefined || engines.length > 200 || semver.validRange(engines) === null) return true;
  return semver.intersects(engines, `${major}.x`);
}
