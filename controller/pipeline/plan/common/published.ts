// Reads a published package: its name, the programs that it installs, and which of them npx or uvx would start.
import { posix } from 'node:path';
import type { Finding } from '../../../../crds/hosted-app.ts';
import { parseJson, parseToml, readField, readKeys, readText, readTexts } from '../../manifest.ts';
import type { PackageRegistry } from '../../../../lib/repository.ts';
import type { Tree } from '../../tree.ts';
import { normalizePackageName, parseRequirementName } from '../python/packages/names.ts';
import { type PlanInput, quoteShellWord } from '../recipe.ts';

export interface PublishedPackage {
  readonly name: string;
  /** With its registry and version, such as "npm package @acme/sample 1.2.0". */
  readonly title: string;
  readonly version: string | undefined;
  readonly programs: readonly PublishedProgram[];
  /** The one that npx or uvx starts by the name of the package; absent: they start none. */
  readonly main?: PublishedProgram | undefined;
  /** Names of its dependencies, and of those that it was built with. */
  readonly dependencies: ReadonlySet<string>;
  /** Its name or keywords are those of an MCP server. */
  readonly isNamedMcp: boolean;
}

/** A program that the package installs. */
export interface PublishedProgram {
  readonly name: string;
  /** npm: its file. PyPI: the module and function of its entry point. */
  readonly entry: string;
  /** Start command, as shell text. */
  readonly command: string;
}

const runners: Readonly<Record<PackageRegistry, string>> = { npm: 'npx', pypi: 'uvx' };

/** Returns undefined if the files are those of a repository. */
export function readPublishedPackage(tree: Tree): PublishedPackage | undefined {
  if (tree.registry === undefined) return undefined;
  return tree.registry === 'npm' ? readNpmPackage(tree) : readPypiPackage(tree);
}

function readNpmPackage(tree: Tree): PublishedPackage {
  const manifest = parseJson(tree.readFile('package.json'));
  const name = readText(manifest, 'name') ?? '';
  const version = readText(manifest, 'version');
  const plainName = name.replace(/^@[^/]{1,100}\//, '');
  const only = readText(manifest, 'bin');
  const bins =
    only === undefined
      ? readKeys(manifest, 'bin').map((each) => [each, readText(manifest, 'bin', each) ?? ''] as const)
      : [[plainName, only] as const];
  const programs = bins.flatMap(([bin, path]) => {
    const entry = posix.normalize(path);
    return path === '' || entry.startsWith('..') ? [] : [{ name: bin, entry, command: buildBinCommand(tree, entry) }];
  });
  const isSameFile = new Set(programs.map(({ entry }) => entry)).size === 1;
  return {
    name,
    version,
    title: formatTitle('npm package', name, version),
    programs,
    main: programs.find((each) => each.name === plainName) ?? (isSameFile ? programs[0] : undefined),
    dependencies: new Set(
      ['dependencies', 'devDependencies', 'peerDependencies'].flatMap((section) => readKeys(manifest, section)),
    ),
    isNamedMcp:
      readField(manifest, 'mcpName') !== undefined || [name, ...readTexts(manifest, 'keywords')].some(isMcpWord),
  };
}

/** npm runs a bin with the program of its first line. */
function buildBinCommand(tree: Tree, path: string): string {
  const file = quoteShellWord(path);
  const [, program = 'node', options = ''] =
    /^#!(?:\/usr\/bin\/env (?:-S )?|\/(?:usr\/)?(?:local\/)?bin\/)(node|bun|sh|bash)((?: --?[\w=:./-]{1,80})*)\s*$/m.exec(
      /^.{0,300}/.exec(tree.readFile(path, 400) ?? '')?.[0] ?? '',
    ) ?? [];
  return `exec ${program}${options} ${file}`;
}

/** A source distribution has its metadata in PKG-INFO, and that of setuptools also its commands. */
function readPypiPackage(tree: Tree): PublishedPackage {
  const project = parseToml(tree.readFile('pyproject.toml'));
  const metadata = (tree.readFile('PKG-INFO') ?? '').split(/\r?\n\r?\n/, 1)[0] ?? '';
  const readHeaders = (header: string): string[] =>
    [...metadata.matchAll(new RegExp(`^${header}: ([^\\n\\r]{1,300})`, 'gim'))].map((match) => match[1] ?? '');
  const name =
    readHeaders('Name')[0] ?? readText(project, 'project', 'name') ?? readText(project, 'tool', 'poetry', 'name') ?? '';
  const version = readHeaders('Version')[0];
  const tables = [['project', 'scripts'] as const, ['tool', 'poetry', 'scripts'] as const].flatMap((table) =>
    readKeys(project, ...table).map((each) => [each, readText(project, ...table, each) ?? ''] as const),
  );
  const entries = new Map([...readEntryPoints(tree), ...tables]);
  const programs = [...entries]
    .filter(([each]) => /^[\w.-]{1,80}$/.test(each))
    .map(([each, entry]) => ({ name: each, entry, command: `exec ${each}` }));
  const required = readHeaders('Requires-Dist').filter((each) => !/;.{0,200}\bextra\b/.test(each));
  const own = normalizePackageName(name);
  return {
    name,
    version,
    title: formatTitle('PyPI package', name, version),
    programs,
    main:
      programs.find((each) => normalizePackageName(each.name) === own) ??
      (programs.length === 1 ? programs[0] : undefined),
    dependencies: new Set(
      [...required, ...readTexts(project, 'project', 'dependencies')]
        .flatMap(parseRequirementName)
        .concat(readKeys(project, 'tool', 'poetry', 'dependencies').map(normalizePackageName)),
    ),
    isNamedMcp: [name, ...readHeaders('Keywords'), ...readHeaders('Summary')].some(isMcpWord),
  };
}

/** Reads the commands of `NAME.egg-info/entry_points.txt`, which setuptools writes for setup.py and setup.cfg, too. */
function readEntryPoints(tree: Tree): [string, string][] {
  const file = tree.entries.find(({ path }) => /^(?:src\/)?[^/]{1,100}\.egg-info\/entry_points\.txt$/.test(path));
  const text = file === undefined ? '' : (tree.readFile(file.path, 64 * 1024) ?? '');
  const section = /^\[console_scripts\]\n((?:(?!\[)[^\n]{0,300}\n?){0,200})/m.exec(text)?.[1] ?? '';
  return [...section.matchAll(/^([\w.-]{1,80})\s{0,9}=\s{0,9}([\w.:]{1,200})/gm)].map((match) => [
    match[1] ?? '',
    match[2] ?? '',
  ]);
}

function isMcpWord(text: string): boolean {
  return /(?:^|[^a-z])mcp(?:[^a-z]|$)|model.?context.?protocol/i.test(text);
}

function formatTitle(kind: string, name: string, version: string | undefined): string {
  return `${kind} ${name}${version === undefined ? '' : ` ${version}`}`;
}

const maximumNamed = 5;

/** Rejects a package of which npx or uvx would start no program, because it has none or several; undefined for others. */
export function findUnstartedPackage(tree: Tree, { start, hasCommand }: PlanInput): Finding | undefined {
  const published = readPublishedPackage(tree);
  const isStarted = published === undefined || published.main !== undefined || start !== undefined || hasCommand;
  return isStarted ? undefined : createNoProgramFinding(published, tree.registry ?? 'npm');
}

function createNoProgramFinding({ title, programs }: PublishedPackage, registry: PackageRegistry): Finding {
  const names = programs.slice(0, maximumNamed).map(({ name }) => name);
  const [first] = programs;
  const example = first?.command.replace(/^exec /, '').split(' ') ?? ['node', 'server.js'];
  return {
    rule: 'plan/no-start',
    severity: 'error',
    file: registry === 'npm' ? 'package.json' : 'pyproject.toml',
    message:
      first === undefined
        ? `The ${title} installs no program, so there is nothing to start.`
        : `The ${title} installs several programs, none of them with its own name, so ${runners[registry]} would start none: ${names.join(', ')}.`,
    fix: `Set what starts it in moorage.yaml: mcp: { command: [${example.join(', ')}] } for an MCP server, or run: { command: [${example.join(', ')}] } for an app that answers HTTP.`,
  };
}
