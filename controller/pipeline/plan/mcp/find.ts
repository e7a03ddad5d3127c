// Recognizes a repository that is an MCP server, and decides what it speaks and how it starts. Code decides what a server can
// speak; files for MCP registries and moorage.yaml choose among that.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';
import { findApp, isPageServer } from '../node/start.ts';
import { readProject } from '../node/project.ts';
import { findWorkspaceApp } from '../node/workspace.ts';
import { findPackages } from '../python/packages/find.ts';
import { findStart } from '../python/start/find.ts';
import { type Certainty, type PlanInput, type Problem, quoteShellWord } from '../recipe.ts';
import { findGoServers, findRustServers } from './compiled.ts';
import { joinVariables, type McpDeclaration, type McpVariable, readMcpDeclarations } from './declared.ts';
import { findNodeServers } from './node.ts';
import { findPublishedServers } from './published.ts';
import { findPythonServers } from './python.ts';
import {
  chooseTransport,
  type McpListening,
  type McpProgram,
  type McpTransport,
  parseTransport,
} from './transports.ts';

/** An MCP server, as it is hosted. */
export interface McpServer {
  /** Absent: the author's Dockerfile alone shows how it starts. */
  readonly program?: McpProgram;
  /** The file that shows it. */
  readonly file: string;
  readonly transport: McpTransport;
  /** Shell text, as the start of a planned image. */
  readonly command: string;
  /** Path at which the program itself answers; for stdio, that of the bridge. */
  readonly path: string;
  readonly listening: McpListening;
  readonly environment: readonly McpVariable[];
  readonly certainty: Certainty;
  /** A sentence that names the file and the evidence. */
  readonly because: string;
  /** A sentence about another reading. */
  readonly otherwise?: string;
}

export type McpFinding =
  | { readonly kind: 'server'; readonly server: McpServer }
  /** The repository is a web app with an MCP server next to it. */
  | { readonly kind: 'aside'; readonly program: McpProgram }
  | { readonly kind: 'refused'; readonly problem: Problem['problem'] };

/** Recognizes an MCP server; undefined if the repository is none, or moorage.yaml says so. */
export function findMcpServer(tree: Tree, input: PlanInput): McpFinding | undefined {
  const { transport, command } = input.mcp ?? { command: [] };
  if (transport === 'none') return undefined;
  const declarations = readMcpDeclarations(tree);
  const programs = listMcpPrograms(tree, input);
  if (command.length > 0)
    return { kind: 'server', server: toServer(input, declarations, toCommandedProgram(command, programs)) };
  if (programs.length === 0)
    return transport === undefined ? undefined : { kind: 'refused', problem: createNoStartProblem(transport) };
  const program = chooseProgram(programs, declarations, readProject(tree)?.name);
  if (program === undefined) return { kind: 'refused', problem: createSeveralProblem(tree, programs) };
  const own = input.package === undefined ? tree : tree.getSubtree(input.package);
  const isAside = transport === undefined && declarations.length === 0 && isWebApp(own, program);
  return isAside ? { kind: 'aside', program } : { kind: 'server', server: toServer(input, declarations, program) };
}

/** Lists them in the order of their likelihood. Those of a package of a workspace are in its folder. */
export function listMcpPrograms(tree: Tree, { build: { strategy }, package: own }: PlanInput): McpProgram[] {
  if (tree.registry !== undefined) return findPublishedServers(tree);
  const isAllowed = (language: McpProgram['language']): boolean => strategy === 'auto' || strategy === language;
  const programs = [
    ...(isAllowed('python') ? findPythonServers(tree, findPackages(tree)?.names ?? new Set()) : []),
    ...(isAllowed('node') ? findNodeServers(tree) : []),
    ...(isAllowed('go') ? findGoServers(tree) : []),
    ...(isAllowed('rust') ? findRustServers(tree) : []),
  ];
  return programs.filter(({ folder }) => own === undefined || folder === own);
}

/** Chooses the program that a file names, the only one, or one with the name of the package; undefined if several are as likely. */
function chooseProgram(
  programs: readonly McpProgram[],
  declarations: readonly McpDeclaration[],
  packageName: string | undefined,
): McpProgram | undefined {
  const [first, ...more] = programs;
  if (first === undefined || more.length === 0) return first;
  const commands = declarations.flatMap(({ command = [] }) => (command.length === 0 ? [] : [command]));
  const declared = programs.filter((each) => commands.some((words) => isStartedBy(each, words)));
  if (declared.length === 1) return declared[0];
  // What a host starts, if it listens.
  const hosted = programs.find(({ name, speaks }) => name === 'start' && speaks.byDefault !== 'stdio');
  if (hosted !== undefined) return hosted;
  const names = [packageName, ...declarations.flatMap(({ packages }) => packages)].flatMap((each) =>
    each === undefined ? [] : [each.split('/').at(-1) ?? ''],
  );
  const named = programs.filter(({ name }) => names.includes(name));
  if (named.length === 1) return named[0];
  const usual = programs.filter(({ file }) =>
    /^(?:src\/)?(?:(?:mcp_)?server|main|app|__main__|index)\.[a-z]{1,3}$/.test(file),
  );
  if (usual.length === 1) return usual[0];
  // Scripts of one package that start the same file differ in their arguments only.
  return new Set(programs.map(({ file }) => file)).size === 1 ? first : undefined;
}

/** Returns whether words of a command name the program: its command, its file, what its build makes of it, or its module. */
export function isStartedBy({ name, file, command }: McpProgram, words: readonly string[]): boolean {
  const all = words
    .flatMap((each) => each.split(/\s+/))
    .map((each) => posix.normalize(each.replace(/^\/app\//, '').replace(/^\.\//, '')));
  const own = command
    .split(' ')
    .filter((each) => /[./]/.test(each) && !each.startsWith('/usr/') && !each.startsWith('node_modules/'));
  const module = file
    .replace(/^src\//, '')
    .replace(/(?:\/__(?:main|init)__)?\.py$/, '')
    .replaceAll('/', '.');
  return all.some(
    (each) =>
      each === name ||
      each === file ||
      own.includes(each) ||
      each === module ||
      posix.basename(each) === posix.basename(name),
  );
}

/** Returns whether the repository is rather a web app, with the server next to it. */
export function isWebApp(tree: Tree, program: McpProgram): boolean {
  if (tree.registry !== undefined) return false;
  return hasNodePages(tree, program) || hasPythonFramework(tree, program);
}

function hasNodePages(tree: Tree, { folder }: McpProgram): boolean {
  const project = readProject(tree);
  if (project === undefined) return false;
  const workspace = findWorkspaceApp(tree, project);
  if (workspace !== undefined && 'folder' in workspace && workspace.folder !== folder) return true;
  const app = findApp(tree, project);
  return app !== undefined && (app.kind !== 'server' || isPageServer(app.framework ?? ''));
}

function hasPythonFramework(tree: Tree, { file, speaks }: McpProgram): boolean {
  const packages = findPackages(tree);
  const start = packages === undefined ? undefined : findStart(tree, packages.names);
  // The low-level server of the SDK is mounted into an application of Starlette.
  if (start?.framework === undefined || start.framework === 'Starlette') return false;
  const isSame = start.because.startsWith(`${file} `) && start.certainty === 'guessed';
  return !isSame || speaks.byDefault !== 'stdio';
}

function toCommandedProgram(command: readonly string[], programs: readonly McpProgram[]): McpProgram {
  const known = programs.find((each) => isStartedBy(each, command)) ?? programs[0];
  const text = `exec ${command.map(quoteShellWord).join(' ')}`;
  const byDefault =
    command.map(parseTransport).find((each) => each !== undefined) ?? known?.speaks.byDefault ?? 'stdio';
  return {
    ...(known ?? { language: guessLanguage(command[0] ?? '') }),
    name: command.join(' '),
    file: 'moorage.yaml',
    command: text,
    speaks: { transports: [byDefault], byDefault, certainty: 'certain', because: 'says how the MCP server starts' },
  };
}

function guessLanguage(word: string): McpProgram['language'] {
  if (/^(?:python3?|uv|uvx|fastmcp|mcp)$/.test(word)) return 'python';
  if (/^(?:go|\/usr\/local\/bin\/server)$/.test(word)) return 'go';
  return /^(?:node|npm|npx|bun|tsx|deno)$/.test(word) ? 'node' : 'python';
}

function toServer(input: PlanInput, declarations: readonly McpDeclaration[], program: McpProgram): McpServer {
  const { speaks } = program;
  const { transport, certainty, because } = decideTransport(input, declarations, program);
  return {
    program,
    file: program.file,
    transport,
    command: chooseTransport(program.command, speaks, transport) ?? program.command,
    path: chooseMcpPath(transport, program),
    listening: program.listening ?? { isLocal: false },
    environment: joinVariables(declarations),
    certainty,
    because: [`This is an MCP server: ${program.file} ${speaks.because}.`, ...because].join(' '),
    ...describeOthers(program, transport),
  };
}

interface Decision {
  readonly transport: McpTransport;
  readonly certainty: Certainty;
  /** Sentences. */
  readonly because: readonly string[];
}

/** moorage.yaml decides, then a file for registries if the start can choose what it says, then the code. */
function decideTransport(
  { mcp }: PlanInput,
  declarations: readonly McpDeclaration[],
  { command, speaks }: McpProgram,
): Decision {
  const asked = mcp?.transport;
  if (asked !== undefined && asked !== 'none')
    return { transport: asked, certainty: 'certain', because: [`moorage.yaml asks for ${asked}.`] };
  for (const { transport, file } of declarations) {
    if (transport === undefined) continue;
    const canSpeak = speaks.certainty === 'guessed' || chooseTransport(command, speaks, transport) !== undefined;
    if (canSpeak) return { transport, certainty: 'certain', because: [`${file} says ${transport}.`] };
  }
  return { transport: speaks.byDefault, certainty: speaks.certainty, because: [] };
}

export function chooseMcpPath(transport: McpTransport, program: McpProgram | undefined): string {
  if (transport === 'stdio') return '/mcp';
  return program?.path ?? (transport === 'sse' ? '/sse' : '/mcp');
}

export function describeOthers(program: McpProgram | undefined, transport: McpTransport): { otherwise?: string } {
  const others = (program?.speaks.transports ?? []).filter((each) => each !== transport);
  if (others.length === 0) return {};
  return {
    otherwise: `Its code can also speak ${others.join(' and ')}: set mcp: { transport: ${others[0] ?? ''} } in moorage.yaml.`,
  };
}

function createNoStartProblem(transport: string): Problem['problem'] {
  return {
    rule: 'plan/no-start',
    severity: 'error',
    file: 'moorage.yaml',
    message: `mcp.transport asks for an MCP server over ${transport}, but no code here shows how one starts.`,
    fix: 'Set mcp.command in moorage.yaml to what starts it, such as mcp: { transport: stdio, command: [python, server.py] }.',
  };
}

const maximumNamed = 5;

function createSeveralProblem({ registry }: Tree, programs: readonly McpProgram[]): Problem['problem'] {
  const list = programs
    .slice(0, maximumNamed)
    .map(({ name, folder, speaks }) => `${folder ?? name} (${speaks.byDefault})`);
  const others = registry === undefined ? 'from another repository or branch' : 'as other apps';
  const more = programs.length > maximumNamed ? `, and ${programs.length - maximumNamed} more` : '';
  const folder = programs.find(({ language }) => language === 'node')?.folder;
  const example = (programs[0]?.command ?? '').replace(/^exec /, '').split(' ');
  return {
    rule: 'plan/several-servers',
    severity: 'error',
    message: `The ${registry === undefined ? 'repository' : 'package'} has several MCP servers, and nothing says which of them to host: ${list.join(', ')}${more}.`,
    fix:
      folder !== undefined
        ? `Set source.path in moorage.yaml to the folder of one of them: source: { path: ${folder} }. Others can be hosted ${others}.`
        : `Set mcp.command in moorage.yaml to what starts one of them: mcp: { command: [${example.join(', ')}] }. Others can be hosted ${others}.`,
  };
}
