// Finds MCP servers in JavaScript and TypeScript: what starts a package, and the transports that its code imports and makes.
import { posix } from 'node:path';
import { parseJson, readKeys, readText } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import { findScriptPort } from '../node/port.ts';
import { readProject, type NodeProject } from '../node/project.ts';
import { listAppPackages } from '../node/workspace.ts';
import { quoteShellWord } from '../recipe.ts';
import {
  parseScript,
  readLiteralText,
  type ScriptCall,
  type ScriptModule,
  type ScriptValue,
} from '../syntax/javascript.ts';
import {
  decideSpeech,
  type McpListening,
  type McpProgram,
  type McpTransport,
  parseTransport,
  type Speech,
  type TransportChoice,
  findSpellings,
  parseSwitch,
} from './transports.ts';

/** Packages of which one is among the dependencies of a server. */
export const libraries = [
  '@modelcontextprotocol/sdk',
  '@modelcontextprotocol/server',
  '@modelcontextprotocol/node',
  '@modelcontextprotocol/express',
  'fastmcp',
  'mcp-framework',
  '@hono/mcp',
];

/** Lists the servers that a package starts: by its start script, its bins and its main file. */
export function findNodeServers(tree: Tree): McpProgram[] {
  const project = readProject(tree);
  if (project === undefined) return [];
  const own = hasServerLibrary(project) ? listOwnServers(tree, project) : [];
  if (own.length > 0 || !project.isWorkspace) return own;
  return listAppPackages(tree).flatMap(({ folder, tree: below }) =>
    findNodeServers(below)
      .slice(0, 1)
      .map((each) => ({ ...each, folder, file: posix.join(folder, each.file) })),
  );
}

function listOwnServers(tree: Tree, project: NodeProject): McpProgram[] {
  const entries = listEntries(tree, project);
  // A start script and a bin often start the same file. That with HTTP is what a host starts.
  const first = entries.filter((each, index) => entries.findIndex(({ file }) => file === each.file) === index);
  return first.flatMap(({ name, command, file }): McpProgram[] => {
    const program = describeProgram(tree, file);
    return program === undefined
      ? []
      : [{ ...program, speaks: narrowSpeech(program.speaks, command), name, command, file }];
  });
}

/** Describes what words of a command start; `other` if that is a file of the package which is no MCP server. */
export function findStartedScript(tree: Tree, words: readonly string[]): McpProgram | 'other' | undefined {
  const path = words.flatMap((each) => each.split(/\s+/)).find((each) => /\.[cm]?[jt]s$/.test(each));
  const file = findSource(tree, path?.replace(/^\/(?:usr\/src\/)?app\//, ''));
  if (path === undefined || file === undefined) return undefined;
  const program = describeProgram(tree, file);
  return program === undefined
    ? 'other'
    : { ...program, name: path, file, command: `exec ${words.map(quoteShellWord).join(' ')}` };
}

function hasServerLibrary({ dependencies }: NodeProject): boolean {
  return libraries.some((each) => dependencies.has(each));
}

/** A start script may ask for a transport itself: `node dist/index.js --transport http`. */
function narrowSpeech(speaks: Speech, command: string): Speech {
  const words = command
    .split(/[\s=]+/)
    .slice(2)
    .map((each) => each.replace(/^--?/, ''));
  const asked = words.map(parseTransport).find((each) => each !== undefined);
  if (asked === undefined) return speaks;
  return {
    transports: [asked],
    byDefault: asked,
    certainty: 'likely',
    because: `is started over ${asked} by package.json`,
  };
}

interface Entry {
  readonly name: string;
  readonly command: string;
  /** Source of what it starts. */
  readonly file: string;
}

function listEntries(tree: Tree, project: NodeProject): Entry[] {
  const manifest = parseJson(tree.readFile('package.json'));
  const own = readText(manifest, 'bin');
  const bins =
    own === undefined
      ? readKeys(manifest, 'bin').map((name) => [name, readText(manifest, 'bin', name)] as const)
      : [[(project.name ?? 'bin').replace(/^@[^/]{1,100}\//, ''), own] as const];
  const files = [...bins, ...(project.main === undefined ? [] : [['main', project.main] as const])];
  const started = files.flatMap(([name, path]): Entry[] => {
    // A bundler may give what it makes any name.
    const file = findSource(tree, path) ?? (name === 'main' ? undefined : findOnlyMaker(tree));
    if (path === undefined || file === undefined) return [];
    return [{ name, file, command: `exec ${chooseProgram(path, project)} ${quoteShellWord(posix.normalize(path))}` }];
  });
  const script = findScript(tree, project);
  return script === undefined ? started : [script, ...started];
}

const testFile =
  /(?:^|\/)(?:tests?|__tests__|examples?|node_modules|dist|build|\.[^/]+)\/|\.(?:test|spec|d)\.[cm]?[jt]sx?$/;

/** Finds the only source, at most three folders deep, that makes a transport over stdio. */
function findOnlyMaker(tree: Tree): string | undefined {
  const makers = tree.entries.filter(
    ({ kind, path }) =>
      kind === 'file' &&
      /\.[cm]?[jt]s$/.test(path) &&
      path.split('/').length <= 4 &&
      !testFile.test(path) &&
      tree.readFile(path, sourceBytes)?.includes('StdioServerTransport') === true,
  );
  return makers.length === 1 ? makers[0]?.path : undefined;
}

/** Node strips types since version 22.18, but runs no syntax that has to be compiled; tsx and Bun do. */
function chooseProgram(path: string, { dependencies, manager }: NodeProject): string {
  if (!/\.[cm]?tsx?$/.test(path)) return 'node';
  if (manager === 'bun') return 'bun';
  return dependencies.has('tsx') ? 'node_modules/.bin/tsx' : 'node';
}

function findScript(tree: Tree, { scripts }: NodeProject): Entry | undefined {
  for (const name of ['start', 'start:stdio', 'serve']) {
    const script = scripts[name]?.replace(/^(?:npm|pnpm|yarn|bun)(?: run)? build && /, '');
    const words =
      /^(?:node|tsx|bun(?: run)?|ts-node|npx tsx)((?: --?[\w=:./-]{1,80})*) (?:\.\/)?([\w./-]{1,120})( [\w=:./-]{1,80})*$/.exec(
        script ?? '',
      );
    const file = findSource(tree, words?.[2]);
    if (script === undefined || file === undefined) continue;
    // npm prints the name of the script to standard output, which is the protocol's.
    const command = /^node /.test(script) ? `exec ${script}` : `exec npm run --silent ${name}`;
    return { name, command, file };
  }
  return undefined;
}

/** Finds the source of a file that a build may only make: `dist/index.js` of `src/index.ts`. */
function findSource(tree: Tree, path: string | undefined): string | undefined {
  if (path === undefined || !/^[\w./@-]{1,200}$/.test(path) || path.includes('..')) return undefined;
  const plain = posix.normalize(path);
  const [, built] = /^(?:dist|build|out|lib|bin|\.build)\/(.{1,150})$/.exec(plain) ?? [];
  const stems = [plain, ...(built === undefined ? [] : [`src/${built}`, built])].map((each) =>
    each.replace(/\.[cm]?[jt]sx?$/, ''),
  );
  return [plain, ...stems.flatMap(addExtensions)].find((each) => tree.has(each));
}

function addExtensions(stem: string): string[] {
  return [
    ...['.ts', '.mts', '.js', '.mjs', '.cjs', '.tsx'].map((each) => `${stem}${each}`),
    `${stem}/index.ts`,
    `${stem}/index.js`,
  ];
}

const maximumReached = 60;
const sourceBytes = 200 * 1024;

interface ReachedSource {
  readonly text: string;
  readonly module: ScriptModule;
}

/** Lists a source, and after it those that it imports, directly or not. */
function listReached(tree: Tree, entry: string): ReachedSource[] {
  const paths = [entry];
  const found: ReachedSource[] = [];
  for (const path of paths) {
    if (found.length >= maximumReached) break;
    const text = tree.readFile(path, sourceBytes) ?? '';
    const module = parseScript(text);
    found.push({ text, module });
    for (const source of module.sources.filter((each) => each.startsWith('.'))) {
      const stem = posix.join(posix.dirname(path), source);
      const next = [stem, ...addExtensions(stem.replace(/\.[cm]?[jt]sx?$/, ''))].find((each) => tree.has(each));
      if (next !== undefined && !paths.includes(next)) paths.push(next);
    }
  }
  return found;
}

/** Classes and functions that speak a transport. All are names of the SDK; `start` of fastmcp has an option instead. */
const makers: Readonly<Record<string, McpTransport>> = {
  StdioServerTransport: 'stdio',
  serveStdio: 'stdio',
  SSEServerTransport: 'sse',
  StreamableHTTPServerTransport: 'streamable-http',
  NodeStreamableHTTPServerTransport: 'streamable-http',
  WebStandardStreamableHTTPServerTransport: 'streamable-http',
  StreamableHTTPTransport: 'streamable-http',
  createMcpHandler: 'streamable-http',
};

/** Describes the server that a file starts, by its code and what it imports; undefined if that shows no transport. */
export function describeProgram(tree: Tree, file: string): Omit<McpProgram, 'name' | 'command' | 'file'> | undefined {
  const reached = listReached(tree, file);
  const modules = reached.map(({ module }) => module);
  const speaks = readSpeech(modules);
  if (speaks === undefined) return undefined;
  const path = findPath(modules, speaks.byDefault);
  return {
    language: 'node',
    speaks,
    listening: findListening(reached),
    ...(path === undefined ? {} : { path }),
  };
}

function readSpeech(modules: readonly ScriptModule[]): Speech | undefined {
  const used = new Map<McpTransport, string>();
  const calls = modules.flatMap((module) => module.calls.map((call) => ({ call, module })));
  for (const { call, module } of calls) {
    const name = call.callee.split('.').at(-1) ?? '';
    const transport = Object.hasOwn(makers, name) ? makers[name] : readFrameworkTransport(call, module);
    if (transport !== undefined && !used.has(transport)) used.set(transport, `${name}()`);
  }
  const texts = modules.flatMap(listChoiceTexts);
  return decideSpeech({
    used,
    defaults: modules.flatMap(listDefaults),
    choice: findChoice(modules, [...used.keys()], texts),
    switches: texts.flatMap(parseSwitch),
  });
}

/** `server.start({ transportType: 'httpStream' })` of fastmcp, `new MCPServer({ transport: { type: 'sse' } })` of mcp-framework. */
function readFrameworkTransport(
  { callee, args: [first] }: ScriptCall,
  { imports, sources }: ScriptModule,
): McpTransport | undefined {
  const fields = first?.kind === 'object' ? first.fields : new Map<string, ScriptValue>();
  if (/\.start$/.test(callee) && sources.includes('fastmcp')) {
    const type = fields.get('transportType');
    return type === undefined ? 'stdio' : parseTransport(readLiteralText(type));
  }
  if (callee !== 'MCPServer' || imports.get('MCPServer') !== 'mcp-framework') return undefined;
  const transport = fields.get('transport');
  return transport?.kind === 'object' ? parseTransport(readLiteralText(transport.fields.get('type'))) : 'stdio';
}

const optionName = /^(?:-[a-z], )?(--(?:mcp-)?(?:transport(?:-type)?|mode))(?:[ =].{0,60})?$/;
const variableName = /(?:^|\.)env\.(\w{0,40}(?:TRANSPORT(?:_TYPE|_MODE)?|MCP_MODE|SERVER_MODE))$/;
const choiceName = /^(?:mcp)?_?(?:transport(?:Type|Mode|_type)?|mode|serverType)$/i;

/** Texts that a command line is compared with, or that options are named by. */
function listChoiceTexts({ calls, variables }: ScriptModule): string[] {
  const values = [...calls.flatMap(({ args }) => args), ...variables.values()];
  return values.flatMap((value) => listTexts(value));
}

/** Defaults: `transport || 'stdio'`, `.default('stdio')`, `{ default: 'stdio' }` next to the name of an option. */
function listDefaults({ calls, variables, initial }: ScriptModule): string[] {
  const named = [...variables].flatMap(([name, value]) =>
    choiceName.test(name.split('.').at(-1) ?? '') || hasChoiceName(value) ? listFallbacks(value) : [],
  );
  const chosen = calls.flatMap(({ callee, args }) => {
    const isOption = args.some(
      (each) => optionName.test(readLiteralText(each) ?? '') || choiceName.test(readLiteralText(each) ?? ''),
    );
    if (isOption) return args.slice(1).flatMap(listOptionDefaults);
    const fields = args.flatMap((each) => (each.kind === 'object' ? [...each.fields] : []));
    const options = fields.filter(([name]) => choiceName.test(name)).flatMap(([, value]) => listOptionDefaults(value));
    return /\.default$/.test(callee) ? [...options, ...args.flatMap((each) => listTexts(each))] : options;
  });
  // `let transport = 'stdio'`, which an option of the command line changes.
  const declared = [...initial].flatMap(([name, value]) =>
    choiceName.test(name) && value.kind === 'literal' ? listTexts(value) : [],
  );
  return [...declared, ...named, ...chosen].filter((each) => parseTransport(each) !== undefined);
}

/** `process.argv[2] || 'stdio'` names its choice by position. */
function hasChoiceName(value: ScriptValue): boolean {
  if (value.kind === 'name') return variableName.test(value.name);
  if (value.kind === 'other') return /\bargv\b|\bargs\[/.test(value.text) || /TRANSPORT\b/.test(value.text);
  if (value.kind === 'binary') return hasChoiceName(value.left);
  return value.kind === 'call' && (/argv/.test(value.call.callee) || value.call.args.some(hasChoiceName));
}

/** Right sides of `||` and `??`, and both branches of a condition. */
function listFallbacks(value: ScriptValue): string[] {
  if (value.kind === 'binary' && ['||', '??'].includes(value.operator)) return listTexts(value.right);
  if (value.kind === 'conditional') return listTexts(value.otherwise);
  return value.kind === 'call' ? value.call.args.flatMap(listFallbacks) : [];
}

function listOptionDefaults(value: ScriptValue): string[] {
  if (value.kind === 'object')
    return [...value.fields].flatMap(([name, field]) => (name === 'default' ? listTexts(field) : []));
  if (value.kind === 'call' && /\.default$/.test(value.call.callee))
    return value.call.args.flatMap((each) => listTexts(each));
  return value.kind === 'literal' ? listTexts(value) : listFallbacks(value);
}

const maximumDepth = 5;

function listTexts(value: ScriptValue, depth = 0): string[] {
  if (depth > maximumDepth) return [];
  const next = (each: ScriptValue): string[] => listTexts(each, depth + 1);
  switch (value.kind) {
    case 'literal':
      return typeof value.value === 'string' ? [value.value] : [];
    case 'binary':
      return [...next(value.left), ...next(value.right)];
    case 'conditional':
      return [value.condition, value.then, value.otherwise].flatMap(next);
    case 'list':
      return value.items.flatMap(next);
    case 'object':
      return [...value.fields].flatMap(([name, field]) => [name, ...next(field)]);
    case 'call':
      return value.call.args.flatMap(next);
    default:
      return [];
  }
}

function findChoice(
  modules: readonly ScriptModule[],
  used: readonly McpTransport[],
  texts: readonly string[],
): TransportChoice | undefined {
  const spellings = findSpellings(used, texts);
  const option = texts.map((each) => optionName.exec(each)?.[1]).find((each) => each !== undefined);
  if (option !== undefined) return { kind: 'option', name: option, spellings };
  const variable = modules
    .flatMap(({ variables }) => [...variables.values()].flatMap(listNames))
    .map((each) => variableName.exec(each)?.[1])
    .find((each) => each !== undefined);
  return variable === undefined ? undefined : { kind: 'variable', name: variable, spellings };
}

function listNames(value: ScriptValue): string[] {
  if (value.kind === 'name') return [value.name];
  if (value.kind === 'binary') return [...listNames(value.left), ...listNames(value.right)];
  if (value.kind === 'conditional') return [value.condition, value.then, value.otherwise].flatMap(listNames);
  return value.kind === 'call'
    ? [...value.call.callee.split(/(?=\.to\w+$)/).slice(0, 1), ...value.call.args.flatMap(listNames)]
    : [];
}

/** Path of the route that a server of Express, Fastify or Hono answers MCP at. */
function findPath(modules: readonly ScriptModule[], transport: McpTransport): string | undefined {
  const wanted = transport === 'sse' ? /\.get$/ : /\.(?:post|all)$/;
  const routes = modules.flatMap(({ calls }) =>
    calls.filter(({ callee }) => wanted.test(callee)).flatMap(({ args: [first] }) => readLiteralText(first) ?? []),
  );
  const likely = transport === 'sse' ? /sse|mcp/i : /mcp/i;
  const plain = routes.filter((each) => /^\/[\w./-]{0,90}$/.test(each));
  return plain.find((each) => likely.test(each)) ?? (plain.length === 1 ? plain[0] : undefined);
}

/** Helpers of the SDK listen on 127.0.0.1 and reject other host names, unless they are given a host. */
const guarded = /(?:^|\.)create(?:McpExpress|McpHono|McpFastify)App$/;
const localHosts: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '::1']);

function findListening(reached: readonly ReachedSource[]): McpListening {
  const calls = reached.flatMap(({ module }) => module.calls);
  const isGuarded = calls.some(({ callee, args: [first] }) => guarded.test(callee) && !isOpenHost(first));
  const isLocal = calls.some(
    ({ callee, args }) =>
      /(?:^|\.)listen$/.test(callee) && args.some((each) => localHosts.has(readLiteralText(each) ?? '')),
  );
  const port = reached.map(({ text }) => findScriptPort(text)).find((each) => each !== undefined);
  return { isLocal: isGuarded || isLocal, ...(port === undefined ? {} : { port }) };
}

function isOpenHost(options: ScriptValue | undefined): boolean {
  return options?.kind === 'object' && readLiteralText(options.fields.get('host')) === '0.0.0.0';
}
