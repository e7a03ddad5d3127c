// Reads a Node project from package.json and related files.
import { readField, readKeys, parseJson, readText } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import { readPublishedPackage } from '../common/published.ts';
import { chooseManager, type ChosenManager, findLock, type Manager, hasMirrorUrl } from './manager.ts';

export interface NodeProject extends ChosenManager {
  /** The lock file, or package.json if there is none. */
  readonly file: string;
  readonly locked: boolean;
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: ReadonlySet<string>;
  /** Those that are not only for development. */
  readonly runtime: ReadonlySet<string>;
  /** All of them, with the requested versions. */
  readonly ranges: Readonly<Record<string, string>>;
  readonly name: string | undefined;
  readonly main: string | undefined;
  /** Installation needs more files than the manifest and the lock file. */
  readonly needsTree: boolean;
  /** A package compiles native code if no prebuilt binary fits. */
  readonly compiles: boolean;
  /** A package is fetched with git. */
  readonly fetchesByGit: boolean;
  /** The lock file refers to mirrors of the npm registry. */
  readonly mirrored: boolean;
  /** It has its own packages in subfolders. */
  readonly isWorkspace: boolean;
}

const lockBytes = 16 * 1024 * 1024;
/** Helpers that fetch a prebuilt binary, or compile one if none fits this Node version. */
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
/** Addresses that npm takes for repositories: of git, of its hosts, `git@github.com:OWNER/NAME.git`, `OWNER/NAME`. */
const byGit =
  /^(?:git[+:@]|ssh:|github:|gitlab:|bitbucket:|gist:|[\w-]{1,60}\/[\w.-]{1,100}(?:#|$)|https?:\/\/\S{1,300}\.git(?:#|$)|https?:\/\/(?:www\.)?github\.com\/[\w-]{1,60}\/[\w.-]{1,100}(?:#|$))/;
const lockedByGit = /["' ](?:git\+ssh|git\+https|git):\/\//;
const installScripts = ['preinstall', 'install', 'postinstall', 'prepare'];

/** Returns undefined if there is no readable package.json. */
export function readProject(tree: Tree): NodeProject | undefined {
  const manifest = parseJson(tree.readFile('package.json'));
  if (typeof manifest !== 'object' || manifest === null) return undefined;
  if (tree.registry !== undefined) return readPublishedProject(tree, manifest);
  const scripts = readTextFields(manifest, 'scripts');
  const lock = findLock(tree, scripts);
  const chosen = chooseManager(tree, readText(manifest, 'packageManager'), lock, scripts);
  const lockFile = lock?.manager === chosen.manager ? lock.file : undefined;
  const locked = lockFile === undefined ? undefined : tree.readFile(lockFile, lockBytes);
  const ranges = { ...readTextFields(manifest, 'devDependencies'), ...readTextFields(manifest, 'dependencies') };
  const dependencies = new Set([...readKeys(manifest, 'dependencies'), ...readKeys(manifest, 'devDependencies')]);
  return {
    ...chosen,
    scripts,
    dependencies,
    runtime: new Set(readKeys(manifest, 'dependencies')),
    ranges,
    locked: lockFile !== undefined,
    file: lockFile ?? 'package.json',
    name: readText(manifest, 'name'),
    main: readMain(manifest, chosen.manager),
    needsTree: isTreeNeeded(tree, manifest, scripts),
    compiles: hasNativePackage(locked, dependencies),
    fetchesByGit: [...Object.values(ranges), locked ?? ''].some((each) => byGit.test(each) || lockedByGit.test(each)),
    mirrored: hasMirrorUrl(locked ?? ''),
    isWorkspace: readField(manifest, 'workspaces') !== undefined || hasPackages(tree),
  };
}

/**
 * A published package is built. npm installs it for its users with neither its lock file nor its development packages, and
 * runs none of its scripts but those of an installation.
 */
function readPublishedProject(tree: Tree, manifest: object): NodeProject {
  const ranges = readTextFields(manifest, 'dependencies');
  const dependencies = new Set(Object.keys(ranges));
  const isBun = readPublishedPackage(tree)?.main?.command.startsWith('exec bun ') === true;
  return {
    ...chooseManager(tree, undefined, isBun ? { file: 'bun.lock', manager: 'bun' } : undefined, {}),
    scripts: {},
    dependencies,
    runtime: dependencies,
    ranges,
    locked: false,
    file: 'package.json',
    name: readText(manifest, 'name'),
    main: readText(manifest, 'main'),
    needsTree: true,
    compiles: hasNativePackage(undefined, dependencies),
    fetchesByGit: Object.values(ranges).some((each) => byGit.test(each)),
    mirrored: false,
    isWorkspace: false,
  };
}

/** A new Bun project names its main file only as `module`. */
function readMain(manifest: unknown, manager: Manager): string | undefined {
  return readText(manifest, 'main') ?? (manager === 'bun' ? readText(manifest, 'module') : undefined);
}

function readTextFields(manifest: unknown, section: string): Record<string, string> {
  return Object.fromEntries(
    readKeys(manifest, section).flatMap((name) => {
      const value = readText(manifest, section, name);
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
}

/** pnpm also stores settings in this file for projects with a single package. */
function hasPackages(tree: Tree): boolean {
  return /^packages:/m.test(tree.readFile('pnpm-workspace.yaml', 64 * 1024) ?? '');
}

function isTreeNeeded(tree: Tree, manifest: unknown, scripts: Readonly<Record<string, string>>): boolean {
  const local = ['dependencies', 'devDependencies'].some((kind) =>
    readKeys(manifest, kind).some((name) =>
      /^(?:file|link|workspace|portal|patch):/.test(readText(manifest, kind, name) ?? ''),
    ),
  );
  return (
    local ||
    // The package's own install script generates the client from the schema.
    readKeys(manifest, 'dependencies').includes('@prisma/client') ||
    readField(manifest, 'workspaces') !== undefined ||
    installScripts.some((name) => name in scripts) ||
    tree.has('pnpm-workspace.yaml') ||
    ['patches', '.yarn'].some((folder) => tree.getEntry(folder)?.kind === 'directory')
  );
}

function hasNativePackage(lock: string | undefined, dependencies: ReadonlySet<string>): boolean {
  return native.some((name) => dependencies.has(name)) || (lock !== undefined && compilers.test(lock));
}
