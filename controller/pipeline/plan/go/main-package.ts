// Finds the main package of a Go module, how it serves, and what it embeds.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';
import { findExposedPort } from '../common/frontend.ts';

export interface MainPackage {
  /** Folder, "." for the top. */
  readonly folder: string;
  /** Others that could have been meant. */
  readonly others: readonly string[];
}

const maximumFiles = 400;
const aside =
  /(?:^|\/)(?:vendor|testdata|tests?|e2e|examples?|_examples|hack|scripts?|tools?|docs?|internal\/tools?|bench(?:mark)?s?|node_modules|\.[^/]+)(?:\/|$)/;
const likeServer = /^(?:server|web|api|app|main|httpd?|service|backend)$/;

/** The packages that have a main function; the one that is called like the module or like a server is taken. */
export function findMain(tree: Tree, module: string): MainPackage | undefined {
  const folders = [
    ...new Set(
      listGoFiles(tree)
        .filter((path) => isMain(tree.text(path, 64 * 1024) ?? ''))
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

/** Go files of the app itself, the shallowest first. */
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

/** The environment has a say: os.Getenv("PORT"), a tag of a configuration, a binding of viper. */
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
  /** Arguments after the program's name, as a shell reads them. */
  readonly arguments: string;
  readonly port: number | undefined;
}

export function findServing(tree: Tree, goMod: string): Serving {
  if (goMod.includes('github.com/pocketbase/pocketbase '))
    return { arguments: ' serve --http=0.0.0.0:$PORT', port: undefined };
  const files = listGoFiles(tree).map((path) => tree.text(path, 64 * 1024) ?? '');
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

/** Ports of databases, mail and models. */
const elsewhere: ReadonlySet<number> = new Set([
  1025, 1110, 1433, 1521, 2222, 2525, 3306, 4317, 5432, 5672, 6333, 6379, 9092, 9200, 11_211, 11_434, 27_017,
]);

/** A program of several commands serves by one of them, where it does nothing by itself. */
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

/** Files that stand in for what a build makes. */
const placeholder = /^(?:\.git(?:keep|ignore)|\.keep|\.placeholder|README\.md|dist\.txt|empty.{0,20})$/i;

/** Folders below the top, such as web/dist, from `//go:embed` lines whose files are not there. */
export function listMissingEmbeds(tree: Tree): string[] {
  const found = listGoFiles(tree).flatMap((path) =>
    [...(tree.text(path, 64 * 1024) ?? '').matchAll(/^[ \t]{0,9}\/\/go:embed[ \t]{1,9}([^\n]{1,300})$/gm)]
      .flatMap((match) => (match[1] ?? '').split(/\s+/))
      .map((pattern) => toEmbeddedFolder(posix.dirname(path), pattern)),
  );
  const folders = [...new Set(found)].filter((folder) => folder !== undefined);
  return [...folders.filter((folder) => isMissing(tree, folder)), ...listIgnoredBelow(tree, folders)];
}

/** Folders within an embedded one that .gitignore keeps out of the repository. */
function listIgnoredBelow(tree: Tree, folders: readonly string[]): string[] {
  return (tree.text('.gitignore', 64 * 1024) ?? '')
    .split('\n')
    .map((line) => line.trim().replace(/^\/|\/\*{0,2}$/g, ''))
    .filter((line) => /^[\w./-]{3,200}$/.test(line) && folders.some((folder) => line.startsWith(`${folder}/`)))
    .filter((line) => tree.entry(line) === undefined && posix.extname(line) === '');
}

/** The part of a pattern before its first wildcard, as a folder of the tree. */
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
  const inside = tree.below(folder).entries.filter((each) => each.kind === 'file');
  const built = /(?:^|\/)(?:dist|build|out|public|static)$/.test(folder);
  return inside.every((each) => placeholder.test(posix.basename(each.path))) || (built && hasOnlyStandIn(tree, folder));
}

/** A page of a few bytes, so that the program compiles without the real one. */
function hasOnlyStandIn(tree: Tree, folder: string): boolean {
  const inside = tree.below(folder).entries.filter((each) => each.kind === 'file' && !placeholder.test(each.path));
  const [only] = inside;
  return (
    inside.length === 1 &&
    only?.path === 'index.html' &&
    only.bytes < 600 &&
    !/<script/.test(tree.text(`${folder}/index.html`) ?? '')
  );
}
