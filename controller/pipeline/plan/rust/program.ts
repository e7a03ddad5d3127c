// Finds the program of a Cargo package or workspace, its port, and what its build script needs.
import { posix } from 'node:path';
import { defaultNode } from '../../../../crds/languages.ts';
import { parseToml, readField, readKeys, readText, readTexts } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import { findListening, type Listening, listensAnywhere } from '../common/listen.ts';
import type { SourceFile } from '../syntax/follow.ts';
import { renderStep } from '../recipe.ts';
import { buildInstallCommand, getManagerPackage } from '../node/manager.ts';
import { readProject } from '../node/project.ts';
import type { Leaf, SourceCall } from '../syntax/leaves.ts';
import { parseRust, type RustSource } from '../syntax/rust.ts';

export interface Program {
  readonly name: string;
  /** Folder of its package, "." for the root. */
  readonly folder: string;
  readonly others: readonly string[];
  /** Sources that belong to other programs alone. */
  readonly otherFiles: readonly string[];
  /** Options that select features, with a leading space. */
  readonly features: string;
}

const plainName = /^[A-Za-z0-9_-]{1,80}$/;

/** Finds the default program, or the one named like the package or like a server, or the first. */
export function findProgram(tree: Tree): Program | undefined {
  const manifest = parseToml(tree.readFile('Cargo.toml'));
  const found = [
    ...listPrograms(tree, '.', manifest),
    ...listMembers(tree, manifest).flatMap((folder) => listPrograms(tree, folder)),
  ].filter(({ name }) => plainName.test(name));
  const find = (matches: (name: string) => boolean): FoundProgram | undefined =>
    found.find(({ name }) => matches(name));
  const chosen =
    find((each) => each === readText(manifest, 'package', 'default-run')) ??
    find((each) => each === readText(manifest, 'package', 'name')) ??
    find((each) => /(?:^|[-_])(?:server|web|api|app|backend)$/.test(each)) ??
    found[0];
  if (chosen === undefined) return undefined;
  const others = found.filter(({ name }) => name !== chosen.name);
  return {
    name: chosen.name,
    folder: chosen.folder,
    others: [...new Set(others.map(({ name }) => name))],
    otherFiles: others.map(({ file }) => file).filter((file) => file !== chosen.file),
    features: selectDatabaseFeature(manifest),
  };
}

interface FoundProgram {
  readonly name: string;
  readonly folder: string;
  /** Its first source, or the folder of it. */
  readonly file: string;
}

function listPrograms(
  tree: Tree,
  folder: string,
  manifest: unknown = parseToml(tree.readFile(posix.join(folder, 'Cargo.toml'))),
): FoundProgram[] {
  const name = readText(manifest, 'package', 'name');
  const mainFile = posix.join(folder, 'src/main.rs');
  const listed = readField(manifest, 'bin');
  const standard = readTexts(manifest, 'features', 'default');
  // Cargo does not build a program whose features are off.
  const named = (Array.isArray(listed) ? listed : [])
    .filter((each) => readTexts(each, 'required-features').every((feature) => standard.includes(feature)))
    .flatMap((each): FoundProgram[] => {
      const own = readText(each, 'name');
      const path = readText(each, 'path');
      const usual = own === name ? mainFile : posix.join(folder, `src/bin/${own ?? ''}.rs`);
      return own === undefined
        ? []
        : [{ name: own, folder, file: path === undefined ? usual : posix.join(folder, path) }];
    });
  const prefix = folder === '.' ? '' : `${folder}/`;
  const files = tree.entries.flatMap(({ path }): FoundProgram[] => {
    if (!path.startsWith(prefix)) return [];
    const own = /^src\/bin\/([\w-]{1,80})(?:\.rs|\/main\.rs)$/.exec(path.slice(prefix.length))?.[1];
    return own === undefined ? [] : [{ name: own, folder, file: path.replace(/\/main\.rs$/, '') }];
  });
  const isMain = name !== undefined && tree.has(mainFile) && named.length === 0;
  return [...named, ...(isMain ? [{ name, folder, file: mainFile }] : []), ...files];
}

/** Lists the member folders of a workspace; the last part may be "*". */
function listMembers(tree: Tree, manifest: unknown): string[] {
  return readTexts(manifest, 'workspace', 'members')
    .slice(0, 50)
    .flatMap((member) =>
      member.endsWith('/*')
        ? tree.entries
            .filter((each) => each.kind === 'directory' && posix.dirname(each.path) === member.slice(0, -2))
            .map((each) => each.path)
        : [member],
    );
}

/** A program that supports several databases is built for the one that needs no server. */
function selectDatabaseFeature(manifest: unknown): string {
  const features = readField(manifest, 'features');
  const has = (name: string): boolean => readField(features, name) !== undefined;
  const standard = readTexts(features, 'default');
  return has('sqlite') && has('postgresql') && standard.length === 0 ? ' --features sqlite' : '';
}

const aside = /(?:^|\/)(?:tests?|benches|examples|target)\//;
const maximumFiles = 300;
const maximumBytes = 64 * 1024;
/** Parsing takes a second for one or two megabytes. */
const maximumTotalBytes = 1024 * 1024;

export interface RustFile extends SourceFile {
  readonly facts: RustSource;
}

/**
 * Lists the sources of the chosen program, the shallowest first: of its package and those that it depends on, without
 * tests and other programs.
 */
export function listProgramFiles(tree: Tree, { folder, otherFiles }: Program): RustFile[] {
  const packages = listPackages(tree, folder);
  let total = 0;
  return tree.entries
    .filter((each) => each.kind === 'file' && each.path.endsWith('.rs') && !aside.test(each.path))
    .filter(({ path }) => packages.has(findPackageFolder(tree, path)))
    .filter(({ path }) => !otherFiles.some((other) => path === other || path.startsWith(`${other}/`)))
    .toSorted((one, other) => one.path.split('/').length - other.path.split('/').length)
    .slice(0, maximumFiles)
    .filter(({ bytes }) => (total += Math.min(bytes, maximumBytes)) <= maximumTotalBytes)
    .map(({ path }) => ({ path, facts: parseRust(tree.readFile(path, maximumBytes) ?? '') }));
}

/** Folder of the package that a file belongs to. */
export function findPackageFolder(tree: Tree, path: string): string {
  for (let folder = posix.dirname(path); folder !== '.'; folder = posix.dirname(folder))
    if (tree.has(posix.join(folder, 'Cargo.toml'))) return folder;
  return '.';
}

/** Lists the folders of a package and of those that it depends on by their path. */
function listPackages(tree: Tree, first: string): ReadonlySet<string> {
  const shared = readField(parseToml(tree.readFile('Cargo.toml')), 'workspace', 'dependencies');
  const found = new Set([first]);
  // A set is visited with what is added on the way.
  for (const folder of found) {
    const manifest = parseToml(tree.readFile(posix.join(folder, 'Cargo.toml')));
    for (const kind of ['dependencies', 'build-dependencies'])
      for (const name of readKeys(manifest, kind)) {
        const own = readText(manifest, kind, name, 'path');
        const path = own === undefined ? readText(shared, name, 'path') : posix.join(folder, own);
        if (path !== undefined) found.add(posix.normalize(path).replace(/(?!^)\/$/, ''));
      }
  }
  return found;
}

/** Finds where it listens. Rocket reads ROCKET_PORT and ROCKET_ADDRESS, unless the code chooses a port. */
export function findRustListening(tree: Tree, files: readonly RustFile[]): Listening {
  const isRocket = files.some(
    ({ facts }) =>
      facts.attributes.some((each) => /(?:^|\.)launch$/.test(each)) ||
      facts.calls.some(({ name }) => /^rocket\.(?:build|ignite|custom)$/.test(name)),
  );
  if (!isRocket) return findListening(tree, files, findAddress);
  const chosen = files
    .flatMap(({ facts }) => facts.calls.filter(({ name }) => name.endsWith('.port')))
    .flatMap(({ args }) => args[0] ?? [])
    .find((leaf) => leaf.kind === 'number');
  return chosen?.kind === 'number' ? { ...listensAnywhere, port: chosen.number } : listensAnywhere;
}

const listens =
  /(?:^|\.)(?:(?:TcpListener|Server|HttpServer|UnixListener)\.(?:bind|try_bind|http)|TcpListener\.new|start_server|listen|bind_rustls\w{0,8}|bind_auto_h2c)$/;

/** Returns the address that a call of a server's crate is given. `bind` and `run` are methods of other types too. */
function findAddress({ name, args }: SourceCall, { facts }: SourceFile): readonly Leaf[] | undefined {
  const [first] = args;
  if (listens.test(name)) return first;
  const method = /\.(bind|run|serve)$/.exec(name)?.[1];
  if (method === undefined) return name === 'bind' ? first : undefined;
  const owner = method === 'bind' ? /(?:^|\.)HttpServer\.new$/ : /(?:^|\.)(?:warp\.serve|Server\.new)$/;
  return facts.calls.some((each) => owner.test(each.name)) ? first : undefined;
}

/** Returns whether any source opens a socket for others to connect to. */
export function hasListeningCall(files: readonly RustFile[]): boolean {
  return files.some((file) => file.facts.calls.some((call) => findAddress(call, file) !== undefined));
}

const calls = /Command::new\(\s{0,20}"(bunx?|npm|npx|node|yarn|pnpm)"/;

/** Finds the first Node or Bun program that build.rs calls; undefined if it calls none. */
export function findBuildScriptTool(tree: Tree): string | undefined {
  return calls.exec(tree.readFile('build.rs') ?? '')?.[1];
}

/** Renders the lines before the compiler, with the repository in place: Node, the package manager, and the packages. */
export function buildScriptTools(tree: Tree, buildScriptTool: string): string[] {
  const project = readProject(tree);
  // Bun also works with another manager's lock file.
  const managers = [
    project === undefined ? undefined : getManagerPackage(project),
    buildScriptTool.startsWith('bun') && project?.manager !== 'bun' ? 'bun@1' : undefined,
  ].filter((each) => each !== undefined);
  const commands = [
    ...(managers.length === 0 ? [] : [`npm install --global --force ${managers.join(' ')}`]),
    ...(project === undefined
      ? []
      : [`{ ${buildInstallCommand(project.manager, project.locked ? project.file : undefined)}; }`]),
  ];
  return [
    `COPY --from=${defaultNode} /usr/local/bin/ /usr/local/bin/`,
    `COPY --from=${defaultNode} /usr/local/lib/node_modules/ /usr/local/lib/node_modules/`,
    ...(commands.length === 0
      ? []
      : renderStep(
          'build.rs',
          `installing what it calls (${buildScriptTool})`,
          // Node has its own list of certificate authorities; the image's list also has those of the installation's
          // mirror.
          `RUN --mount=type=cache,target=/root/.npm export NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt; ${commands.join(' && ')}`,
        )),
  ];
}
