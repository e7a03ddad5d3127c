// Finds a Go module's main package, how it serves, and which files it embeds.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';
import { findListening, type Listening, listensAnywhere } from '../common/listen.ts';
import type { SourceFile } from '../syntax/follow.ts';
import { type GoCommand, type GoSource, parseGo } from '../syntax/go.ts';
import type { Leaf, SourceCall } from '../syntax/leaves.ts';

export interface MainPackage {
  /** Folder, "." for the root. */
  readonly folder: string;
  /** Other possible main packages. */
  readonly others: readonly string[];
}

const maximumFiles = 400;
const maximumBytes = 64 * 1024;
const aside =
  /(?:^|\/)(?:vendor|testdata|tests?|e2e|examples?|_examples|hack|scripts?|tools?|docs?|internal\/tools?|bench(?:mark)?s?|node_modules|\.[^/]+)(?:\/|$)/;
const likeServer = /^(?:server|web|api|app|main|httpd?|service|backend)$/;

/** Chooses among packages with a main function: prefers one named like the module or like a server. */
export function findMain(tree: Tree, goMod: string): MainPackage | undefined {
  const module = /^module\s{1,9}"?(\S{1,300}?)"?\s*$/m.exec(goMod)?.[1] ?? '';
  const folders = [
    ...new Set(
      listGoFiles(tree)
        .filter((path) => isMain(tree.readFile(path, maximumBytes) ?? ''))
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
  return text.includes('package main') && parseGo(text).isMain;
}

export interface Serving {
  /** Arguments after the program's name, as shell text. */
  readonly arguments: string;
  readonly listening: Listening;
  /** It ends if there is no file `.env`. Viper takes its settings from the file alone. */
  readonly envFile: 'unused' | 'empty' | 'written';
}

export function findServing(tree: Tree, goMod: string, main: MainPackage): Serving {
  if (goMod.includes('github.com/pocketbase/pocketbase '))
    return { arguments: ' serve --http=0.0.0.0:$PORT', listening: listensAnywhere, envFile: 'unused' };
  const files = listProgramFiles(tree, main);
  const listening = findListening(tree, files, findAddress);
  return {
    arguments: `${findSubcommand(files)}${listening.options.map((each) => ` ${each}`).join('')}`,
    listening,
    envFile: tree.has('.env') ? 'unused' : findEnvFile(files),
  };
}

interface GoFile extends SourceFile {
  readonly facts: GoSource;
}

/** Returns whether the program looks for files next to its own binary. */
export function isBoundToBinary(tree: Tree, main: MainPackage): boolean {
  return listProgramFiles(tree, main).some(({ facts }) => facts.calls.some(({ name }) => name === 'os.Executable'));
}

/** Parsing takes a second for one or two megabytes. */
const maximumTotalBytes = 1024 * 1024;
const generated = /(?:\.pb(?:\.gw)?|_gen|_generated|_templ|bindata)\.go$/;

/** Lists the sources of the chosen program, the shallowest first, without those of other programs. */
export function listProgramFiles(tree: Tree, { others }: MainPackage): GoFile[] {
  let total = 0;
  return listGoFiles(tree)
    .filter((path) => !others.includes(posix.dirname(path)) && !generated.test(path))
    .flatMap((path) => {
      const text = tree.readFile(path, maximumBytes) ?? '';
      total += text.length;
      return total > maximumTotalBytes ? [] : [{ path, facts: parseGo(text) }];
    });
}

const listens =
  /(?:^|\.)(?:ListenAndServe(?:TLS)?|ListenTLS|RunTLS|StartTLS|Listen|Run|Start|Serve|StartServer|ListenAndServeWithContext)$/;

/** Returns the address that a call of net/http or a framework is given. */
function findAddress({ name, args }: SourceCall): readonly Leaf[] | undefined {
  const [first, second] = args;
  if (/(?:^|\.)Server$/.test(name)) return first;
  if (!listens.test(name)) return undefined;
  const [network] = first ?? [];
  const isNetwork = network?.kind === 'text' && /^(?:tcp|udp|unix)/.test(network.text);
  if (!isNetwork && !/^(?:net|tls)\.Listen$/.test(name)) return first;
  return isNetwork && !network.text.startsWith('tcp') ? undefined : second;
}

/** `godotenv.Load()` returns an error, for which programs of this kind end. */
function findEnvFile(files: readonly GoFile[]): Serving['envFile'] {
  const calls = files.flatMap(({ facts }) => facts.calls);
  const namesFile = (leaves: readonly Leaf[] = []): boolean =>
    leaves.some((leaf) => leaf.kind === 'text' && /^(?:\.\/)?\.env$/.test(leaf.text));
  if (calls.some(({ name, args }) => name.endsWith('.SetConfigFile') && namesFile(args[0]))) return 'written';
  const isRead = ({ name, args: [first] }: SourceCall): boolean =>
    /^godotenv\.(?:Load|Read|Overload)$/.test(name) && (first === undefined || namesFile(first));
  return calls.some(isRead) ? 'empty' : 'unused';
}

const likeServing = /^(?:serve|server|web|start|run)$/;

/** Finds the subcommand that serves, if the program does nothing without one. */
function findSubcommand(files: readonly GoFile[]): string {
  const commands = files.flatMap(({ facts }) => facts.commands);
  const serving = commands.find(({ use, runs }) => runs && likeServing.test(use));
  if (serving === undefined) return '';
  const added = new Set(
    files.flatMap(({ facts }) =>
      facts.calls
        .filter(({ name }) => name.endsWith('.AddCommand'))
        .flatMap(({ args }) => args.flat().map((leaf) => ('name' in leaf ? leaf.name.split('.').at(-1) : undefined))),
    ),
  );
  const isRoot = (command: GoCommand): boolean => !added.has(command.holder) && !likeServing.test(command.use);
  return added.size > 0 && commands.some((each) => isRoot(each) && each.runs) ? '' : ` ${serving.use}`;
}

const windows =
  /^\s{0,9}(?:require )?(fyne\.io\/fyne|github\.com\/(?:wailsapp\/wails|hajimehoshi\/ebiten|webview\/webview_go|lxn\/walk)|gioui\.org)(?:\/v\d{1,3})? v\S{1,80}(?! \/\/ indirect)/m;

/** Finds the module that opens a window, of a program that does not listen. */
export function findWindowModule(tree: Tree, goMod: string, main: MainPackage): string | undefined {
  const [, module] = windows.exec(goMod) ?? [];
  const listens = (call: SourceCall): boolean => /(?:^|\.)(?:ListenAndServe\w{0,20}|Listen|Server)$/.test(call.name);
  if (module === undefined || listProgramFiles(tree, main).some(({ facts }) => facts.calls.some(listens)))
    return undefined;
  return module;
}

const servesTls = /(?:^|\.)(?:ListenAndServeTLS|ListenTLS|RunTLS|StartTLS)$/;

/** Finds a file whose program serves HTTPS with its own certificate, and nothing else but a redirect to it. */
export function findOwnTls(tree: Tree, main: MainPackage): string | undefined {
  const files = listProgramFiles(tree, main);
  const calls = files.flatMap(({ facts, path }) =>
    facts.calls.filter(({ name }) => listens.test(name)).map((call) => ({ ...call, path })),
  );
  const isPlain = ({ name, args }: SourceCall): boolean =>
    !servesTls.test(name) &&
    (/ListenAndServe$/.test(name) || args.length > 0) &&
    !args.flat().some((leaf) => leaf.kind === 'text' && /:(?:80|http)$/.test(leaf.text));
  return calls.some(isPlain) ? undefined : calls.find(({ name }) => servesTls.test(name))?.path;
}

/** Placeholder files that stand for build output. */
const placeholder = /^(?:\.git(?:keep|ignore)|\.keep|\.placeholder|README\.md|dist\.txt|empty.{0,20})$/i;

/** Lists folders such as web/dist from `//go:embed` lines whose files do not exist. */
export function listMissingEmbeds(tree: Tree): string[] {
  const missingEmbeds = listGoFiles(tree).flatMap((path) =>
    listEmbeds(tree.readFile(path, maximumBytes) ?? '').map((pattern) =>
      toEmbeddedFolder(posix.dirname(path), pattern),
    ),
  );
  const folders = [...new Set(missingEmbeds)].filter((folder) => folder !== undefined);
  return [...folders.filter((folder) => isMissing(tree, folder)), ...listIgnoredBelow(tree, folders)];
}

function listEmbeds(text: string): readonly string[] {
  return text.includes('//go:embed') ? parseGo(text).embeds : [];
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
