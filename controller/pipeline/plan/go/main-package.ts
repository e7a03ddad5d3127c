// Finds a Go module's main package, how it serves, and which files it embeds.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';
import { findExposedPort } from '../common/frontend.ts';

export interface MainPackage {
  /** Folder, "." for the root. */
  readonly folder: string;
  /** Other possible main packages. */
  readonly others: readonly string[];
}

const maximumFiles = 400;
const aside =
  /(?:^|\/)(?:vendor|testdata|tests?|e2e|examples?|_examples|hack|scripts?|tools?|docs?|internal\/tools?|bench(?:mark)?s?|node_modules|\.[^/]+)(?:\/|$)/;
const likeServer = /^(?:server|web|api|app|main|httpd?|service|backend)$/;

/** Chooses among packages with a main function: prefers one named like the module or like a server. */
export function findMain(tree: Tree, module: string): MainPackage | undefined {
  const folders = [
    ...new Set(
      listGoFiles(tree)
        .filter((path) => isMain(tree.readFile(path, 64 * 1024) ?? ''))
        .map((path) => posix.dirname(path)),
    ),
  ];
  const name = posix.basename(module.replace(/\/v\d{1,3}$/, ''));
  const chosen =
    folders.find((each) => each === '.') ??
    folders.find((each) => posix.basename(each) === name) ??
    folders.find((each) => likeServer.test(posix.basename(each))) ??
    folders.find((each) => /server|web|api/.test(posix.basename(each))) ??
    folders[0];
  return chosen === undefined ? undefined : { folder: chosen, others: folders.filter((each) => each !== chosen) };
}

/** Lists the app's own Go files, shallowest first. */
function listGoFiles(tree: Tree): string[] {
  return tree.entries
    .filter(
      (each) =>
        each.kind === 'file' && each.path.endsWith('.go') && !each.path.endsWith('_test.go') && !aside.test(each.path),
    )
    .map((each) => each.path)
    .toSorted((one, other) => one.split('/').length - other.split('/').length || (one < other ? -1 : 1))
    .slice(0, maximumFiles);
}

function isMain(text: string): boolean {
  return /^package main\b/m.test(text) && /^func main\(\)/m.test(text) && !/^\/\/go:build ignore\b/m.test(text);
}

/** The port depends on the environment: os.Getenv("PORT"), a struct tag, a viper binding. */
const asks =
  /(?:Getenv|LookupEnv|BindEnv|GetEnv\w{0,10}|getEnv\w{0,10}|env\w{0,10})\(\s{0,9}(?:"port",\s{0,9})?"PORT"|\b(?:env|envconfig):"PORT\b/;
const literals: readonly RegExp[] = [
  /\.(?:Run|Listen|Start|ListenAndServe)\(\s{0,9}(?:ctx,\s{0,9})?"[\w.[\]:-]{0,30}?:(\d{4,5})"/,
  /\bAddr(?:ess)?:\s{0,9}"[\w.[\]-]{0,30}:(\d{4,5})"/,
  /(?:Int|String|Uint\d{0,2})(?:Var)?P?\([^\n]{0,60}"(?:[\w-]{0,20}port|[\w-]{0,10}addr(?:ess)?|listen|bind)"[^\n]{0,60}?\b(\d{4,5})\b/i,
  /SetDefault\(\s{0,9}"[\w.-]{0,40}(?:port|addr(?:ess)?|listen)"\s{0,9},\s{0,9}"?[\w.[\]:-]{0,30}?(\d{4,5})\b/i,
  /\b(?:default|env-default|envDefault):"[\w.[\]-]{0,30}:?(\d{4,5})"/,
  /\b\w{0,30}(?:port|listen\w{0,10}|addr(?:ess)?)"?\s{0,9}(?::=|=|:|,)\s{0,9}"[\w.[\]:-]{0,30}?(\d{4,5})"/i,
  /\b\w{0,30}port"?\s{0,9}(?::=|=|:)\s{0,9}(?:u?int\d{0,2}\()?(\d{4,5})\b/i,
];

export interface Serving {
  /** Arguments after the program's name, as shell text. */
  readonly arguments: string;
  readonly port: number | undefined;
}

export function findServing(tree: Tree, goMod: string): Serving {
  if (goMod.includes('github.com/pocketbase/pocketbase '))
    return { arguments: ' serve --http=0.0.0.0:$PORT', port: undefined };
  const files = listGoFiles(tree).map((path) => tree.readFile(path, 64 * 1024) ?? '');
  return {
    arguments: findSubcommand(files),
    port: files.some((text) => asks.test(text)) ? undefined : findPort(tree, files),
  };
}

function findPort(tree: Tree, files: readonly string[]): number | undefined {
  for (const pattern of literals)
    for (const text of files) {
      const ports = [...removeComments(text).matchAll(new RegExp(pattern, `${pattern.flags}g`))];
      const port = ports.map((match) => Number(match[1])).find(isAppPort);
      if (port !== undefined) return port;
    }
  return findExposedPort(tree);
}

function removeComments(text: string): string {
  return text.replace(/^[ \t]*\/\/.*$/gm, '');
}

function isAppPort(port: number): boolean {
  return port >= 1024 && port <= 65_535 && !elsewhere.has(port);
}

/** Ports of databases, mail servers and models. */
const elsewhere: ReadonlySet<number> = new Set([
  1025, 1110, 1433, 1521, 2222, 2525, 3306, 4317, 5432, 5672, 6333, 6379, 9092, 9200, 11_211, 11_434, 27_017,
]);

/** Finds the subcommand that serves, if the program does nothing without one. */
function findSubcommand(files: readonly string[]): string {
  const commands = files.flatMap((text) =>
    [...text.matchAll(/&cobra\.Command\{([^}]{0,600})/g)].map((match) => match[1] ?? ''),
  );
  const serving = commands.map((text) => /\bUse:\s{0,9}"(serve|server|web|start|run)\b/.exec(text)?.[1]).find(Boolean);
  const rootRuns = commands.some(
    (text) =>
      !/\bUse:\s{0,9}"(?:serve|server|web|start|run)\b/.test(text) &&
      /\bRunE?:/.test(text) &&
      !/\bUse:\s{0,9}"(?:version|completion)/.test(text),
  );
  return serving === undefined || (rootRuns && commands.length < 3) ? '' : ` ${serving}`;
}

/** Placeholder files that stand for build output. */
const placeholder = /^(?:\.git(?:keep|ignore)|\.keep|\.placeholder|README\.md|dist\.txt|empty.{0,20})$/i;

/** Lists folders such as web/dist from `//go:embed` lines whose files do not exist. */
export function listMissingEmbeds(tree: Tree): string[] {
  const missingEmbeds = listGoFiles(tree).flatMap((path) =>
    [...(tree.readFile(path, 64 * 1024) ?? '').matchAll(/^[ \t]{0,9}\/\/go:embed[ \t]{1,9}([^\n]{1,300})$/gm)]
      .flatMap((match) => (match[1] ?? '').split(/\s+/))
      .map((pattern) => toEmbeddedFolder(posix.dirname(path), pattern)),
  );
  const folders = [...new Set(missingEmbeds)].filter((folder) => folder !== undefined);
  return [...folders.filter((folder) => isMissing(tree, folder)), ...listIgnoredBelow(tree, folders)];
}

/** Lists folders inside an embedded one that .gitignore excludes. */
function listIgnoredBelow(tree: Tree, folders: readonly string[]): string[] {
  return (tree.readFile('.gitignore', 64 * 1024) ?? '')
    .split('\n')
    .map((line) => line.trim().replace(/^\/|\/\*{0,2}$/g, ''))
    .filter((line) => /^[\w./-]{3,200}$/.test(line) && folders.some((folder) => line.startsWith(`${folder}/`)))
    .filter((line) => tree.getEntry(line) === undefined && posix.extname(line) === '');
}

/** Returns the part of a pattern before its first wildcard, as a folder of the tree. */
function toEmbeddedFolder(at: string, pattern: string): string | undefined {
  const fixed =
    pattern
      .replace(/^["'`]|["'`]$/g, '')
      .replace(/^all:/, '')
      .split('*')[0] ?? '';
  const folder = fixed.endsWith('/') ? fixed.slice(0, -1) : posix.extname(fixed) === '' ? fixed : posix.dirname(fixed);
  return folder === '' || folder === '.' ? undefined : posix.join(at, folder);
}

function isMissing(tree: Tree, folder: string): boolean {
  const files = tree.getSubtree(folder).entries.filter((each) => each.kind === 'file');
  const built = /(?:^|\/)(?:dist|build|out|public|static)$/.test(folder);
  return files.every((each) => placeholder.test(posix.basename(each.path))) || (built && hasOnlyStandIn(tree, folder));
}

/** Detects a page of a few bytes that only makes the program compile without the real one. */
function hasOnlyStandIn(tree: Tree, folder: string): boolean {
  const files = tree.getSubtree(folder).entries.filter((each) => each.kind === 'file' && !placeholder.test(each.path));
  const [only] = files;
  return (
    files.length === 1 &&
    only?.path === 'index.html' &&
    only.bytes < 600 &&
    !/<script/.test(tree.readFile(`${folder}/index.html`) ?? '')
  );
}
