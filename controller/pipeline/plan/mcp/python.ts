// Finds MCP servers in Python sources: FastMCP and MCPServer objects with what runs them, and low-level servers.
import { parseToml, readKeys, readText } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import { findPythonPort } from '../python/port.ts';
import { findModule, listReachable } from '../python/start/find.ts';
import { createSourceLookup, listPythonSources, type Source, toPythonArguments } from '../python/start/sources.ts';
import { quoteShellWord } from '../recipe.ts';
import { hasImport, type PythonCall, type PythonModule, type PythonValue } from '../syntax/python.ts';
import {
  decideCommandSpeech,
  decideSpeech,
  type McpListening,
  type McpProgram,
  type McpTransport,
  parseTransport,
  type Speech,
  type TransportChoice,
  findSpellings,
  parseSwitch,
  transportVariable,
} from './transports.ts';

/** Lists the servers of a Python project, by their commands or else by their files, the likeliest first. */
export function findPythonServers(tree: Tree, names: ReadonlySet<string>): McpProgram[] {
  const sources = listPythonSources(tree);
  const related = sources.filter(({ text }) => /mcp/i.test(text) && isRelated(text));
  if (related.length === 0) return [];
  const servers = listServers(related);
  const runs = new Map(sources.map((each) => [each, listRuns(each, servers)]));
  const commands = findCommands(tree, sources, runs, servers);
  if (commands.length > 0) return commands;
  const files = findFiles(tree, sources, runs);
  return files.length > 0 ? files : findUnstarted(related, servers, names);
}

/** A source without any of these words parses for nothing. */
function isRelated(text: string): boolean {
  return /FastMCP|MCPServer|stdio_server|mcp\.server|SseServerTransport|StreamableHTTP|\.run\b|streamable_http_app|sse_app/.test(
    text,
  );
}

const serverClasses: ReadonlySet<string> = new Set(['FastMCP', 'MCPServer']);

function listServers(sources: readonly Source[]): Servers {
  const classes = listServerClasses(sources);
  const isMaking = (call: PythonCall): boolean => isServerCall(call, classes);
  const makers = new Set(
    sources.flatMap(({ module }) =>
      module.functions.filter(({ calls }) => calls.some(isMaking)).map(({ name }) => name),
    ),
  );
  const isMade = (value: PythonValue): boolean =>
    value.kind === 'call' && (isMaking(value.call) || makers.has(value.call.callee.split('.').at(-1) ?? ''));
  const names = sources.flatMap(({ module }) => [
    ...[...module.values].filter(([, value]) => isMade(value)).map(([name]) => name),
    // `self.mcp = FastMCP(…)` has no name of its own, so its usual ones count if the class is called at all.
    ...(module.calls.some(isMaking) ? ['mcp', 'server', 'mcp_server', '_mcp', 'app'] : []),
  ]);
  return { classes, names: new Set(names) };
}

/** Classes of the sources that are based on a server's, by name: `class AtlassianMCP(FastMCP[Context])`. */
function listServerClasses(sources: readonly Source[]): ReadonlySet<string> {
  const known = new Set(serverClasses);
  const classes = sources.flatMap(({ module }) => [...module.classes]);
  // A class may come before its base.
  for (let count = -1; count < known.size;) {
    count = known.size;
    for (const [name, bases] of classes)
      if (bases.some((base) => known.has(/(\w+)(?:\[.*)?$/s.exec(base)?.[1] ?? ''))) known.add(name);
  }
  return known;
}

/** What a plan knows of the servers of a project before it looks at what runs them. */
interface Servers {
  readonly classes: ReadonlySet<string>;
  /** Names of variables and fields that hold one. */
  readonly names: ReadonlySet<string>;
}

function isServerCall({ callee, isDecorator }: PythonCall, classes: ReadonlySet<string> = serverClasses): boolean {
  return !isDecorator && classes.has(callee.split('.').at(-1) ?? '');
}

/** One call that serves, and what it speaks; undefined if a value decides. */
interface Run {
  readonly transport: McpTransport | undefined;
  readonly call: PythonCall;
  readonly value?: PythonValue | undefined;
}

const runMethods: Readonly<Record<string, McpTransport | undefined>> = {
  run: undefined,
  run_async: undefined,
  run_stdio_async: 'stdio',
  run_sse_async: 'sse',
  run_http_async: 'streamable-http',
  run_streamable_http_async: 'streamable-http',
  streamable_http_app: 'streamable-http',
  http_app: undefined,
  sse_app: 'sse',
};

/** Classes and functions of low-level servers, each with the module that they are imported from. */
const lowLevel: readonly (readonly [name: string, module: string, transport: McpTransport])[] = [
  ['stdio_server', 'mcp.server.stdio', 'stdio'],
  ['SseServerTransport', 'mcp.server.sse', 'sse'],
  ['StreamableHTTPSessionManager', 'mcp.server.streamable_http_manager', 'streamable-http'],
  ['StreamableHTTPServerTransport', 'mcp.server.streamable_http', 'streamable-http'],
];

function listRuns({ text, module }: Pick<Source, 'text' | 'module'>, servers: Servers): Run[] {
  if (!isRelated(text)) return [];
  const aliases = new Map(module.imports.flatMap(({ names }) => names.map(({ name, as }) => [as, name] as const)));
  return module.calls.flatMap((call) => (call.isDecorator ? [] : (readRun(call, module, aliases, servers) ?? [])));
}

function readRun(
  call: PythonCall,
  module: PythonModule,
  aliases: ReadonlyMap<string, string>,
  servers: Servers,
): Run | undefined {
  const [method = '', owner] = call.callee.split('.').toReversed();
  const low = lowLevel.find(([name, from]) => name === method && hasImport(module, from));
  if (low !== undefined) return { transport: low[2], call };
  if (owner === undefined || !Object.hasOwn(runMethods, method) || !isServerName(owner, module, aliases, servers))
    return undefined;
  const fixed = runMethods[method];
  if (fixed !== undefined) return { transport: fixed, call };
  const value = call.args.find(({ name }) => name === 'transport')?.value ?? pickPositional(call);
  if (value === undefined) return { transport: method === 'http_app' ? 'streamable-http' : 'stdio', call };
  return { transport: value.kind === 'text' ? parseTransport(value.text) : undefined, call, value };
}

function isServerName(
  owner: string,
  module: PythonModule,
  aliases: ReadonlyMap<string, string>,
  servers: Servers,
): boolean {
  // `FastMCP("x").run()` has no name.
  if (owner === '') return module.calls.some((call) => isServerCall(call, servers.classes));
  return servers.names.has(aliases.get(owner) ?? owner) && (owner !== 'app' || isOwnApp(module, servers));
}

function pickPositional({ args }: PythonCall): PythonValue | undefined {
  const value = args.find(({ name }) => name === undefined)?.value;
  return value?.kind === 'number' ? undefined : value;
}

/** `app.run()` is a server's only if `app` is one here: Flask has the same call. */
function isOwnApp(module: PythonModule, { classes }: Servers): boolean {
  const value = module.values.get('app');
  return value === undefined ? !hasImport(module, 'flask') : value.kind === 'call' && isServerCall(value.call, classes);
}

type Runs = ReadonlyMap<Source, readonly Run[]>;

function findCommands(tree: Tree, sources: readonly Source[], runs: Runs, servers: Servers): McpProgram[] {
  const parsed = parseToml(tree.readFile('pyproject.toml'));
  const findSource = createSourceLookup(sources);
  return [['project', 'scripts'] as const, ['tool', 'poetry', 'scripts'] as const].flatMap((table) =>
    readKeys(parsed, ...table)
      .filter((name) => /^[\w.-]{1,80}$/.test(name))
      .flatMap((name): McpProgram[] => {
        const entry = readText(parsed, ...table, name) ?? '';
        const first = findModule(findSource, entry.split(':')[0] ?? '');
        const reached = first === undefined ? [] : listReachable(findSource, first);
        const program = describeProgram(reached, addEntryRun(reached[0], entry, runs, servers));
        return program === undefined ? [] : [{ ...program, name, command: `exec ${name}`, ofProject: true }];
      }),
  );
}

/** `sample = "package.module:mcp.run"` runs the server itself. */
function addEntryRun(source: Source | undefined, entry: string, runs: Runs, servers: Servers): Runs {
  const [, name = '', method = ''] = /:(\w{1,60})\.(\w{1,60})$/.exec(entry) ?? [];
  if (source === undefined || !servers.names.has(name) || !Object.hasOwn(runMethods, method)) return runs;
  const call: PythonCall = { callee: `${name}.${method}`, args: [], isDecorator: false, scope: [] };
  return new Map([
    ...runs,
    [source, [...(runs.get(source) ?? []), { transport: runMethods[method] ?? 'stdio', call }]],
  ]);
}

/** Files that run a server when python starts them. One that another imports is a part of that one. */
function findFiles(tree: Tree, sources: readonly Source[], runs: Runs): McpProgram[] {
  const starting = sources.filter((each) => isStarted(each, runs.get(each) ?? []));
  const findSource = createSourceLookup(sources);
  const reached = new Map(starting.map((each) => [each, listReachable(findSource, each)]));
  const includes = (source: Source, other: Source): boolean => reached.get(source)?.includes(other) === true;
  // Of two that import each other, the likelier one counts.
  const isPart = (source: Source): boolean =>
    starting.some(
      (other) =>
        other !== source && includes(other, source) && !(includes(source, other) && source.weight >= other.weight),
    );
  return starting
    .filter((each) => !isPart(each))
    .flatMap((source): McpProgram[] => {
      const program = describeProgram(reached.get(source) ?? [source], runs);
      const words = toPythonArguments(tree, source);
      return program === undefined
        ? []
        : [
            {
              ...program,
              name: source.path,
              file: source.path,
              command: `exec python ${words.map(quoteShellWord).join(' ')}`,
            },
          ];
    });
}

/** It runs the server itself, or its main guard starts what does. */
function isStarted({ module, path }: Source, runs: readonly Run[]): boolean {
  if (runs.some(({ call }) => call.scope.length === 0)) return true;
  return runs.length > 0 && (module.isScript || path.endsWith('__main__.py'));
}

/** A server that nothing runs is started by the command of its library. */
function findUnstarted(sources: readonly Source[], servers: Servers, names: ReadonlySet<string>): McpProgram[] {
  return sources.flatMap(({ path, module }): McpProgram[] => {
    const found = [...module.variables].find(
      ([name, { value }]) => servers.names.has(name) && value.kind === 'call' && isServerCall(value.call),
    );
    if (found === undefined) return [];
    const own = hasImport(module, 'fastmcp') && names.has('fastmcp');
    const target = quoteShellWord(`${path}:${found[0]}`);
    const command = own ? `exec fastmcp run ${target} --transport stdio` : `exec mcp run ${target} --transport stdio`;
    const because = `holds the server "${found[0]}", which nothing runs, so that ${own ? 'fastmcp run' : 'mcp run'} starts it over stdio`;
    return [
      {
        language: 'python',
        name: path,
        file: path,
        command,
        speaks: { transports: ['stdio'], byDefault: 'stdio', certainty: 'likely', because },
        needs: own ? [] : ['mcp[cli]'],
      },
    ];
  });
}

function describeProgram(reached: readonly Source[], runs: Runs): Omit<McpProgram, 'name' | 'command'> | undefined {
  const found = reached.flatMap((source) => (runs.get(source) ?? []).map((run) => ({ source, run })));
  const speaks = readSpeech(
    reached.map(({ module }) => module),
    found.map(({ run }) => run),
  );
  const [first] = found;
  if (speaks === undefined || first === undefined) return undefined;
  const served = found.find(({ run }) => run.transport !== 'stdio') ?? first;
  const constructors = reached.flatMap(({ module }) => module.calls.filter((call) => isServerCall(call)));
  const path = findPath([...found.map(({ run }) => run.call), ...constructors], speaks.byDefault);
  return {
    language: 'python',
    file: first.source.path,
    speaks,
    listening: findListening(served.source.module, [...found.map(({ run }) => run.call), ...constructors], reached),
    ...(path === undefined ? {} : { path }),
  };
}

function readSpeech(modules: readonly PythonModule[], runs: readonly Run[]): Speech | undefined {
  const used = new Map<McpTransport, string>();
  const open = runs.filter(({ transport }) => transport === undefined);
  for (const { transport, call } of runs) if (transport !== undefined) used.set(transport, `${call.callee}()`);
  const options = modules.flatMap(listOptions);
  const spelled = [...options, ...open.flatMap(({ value }) => (value === undefined ? [] : listTexts(value, modules)))];
  // What an option offers is spoken only if a call takes it.
  if (open.length > 0) for (const text of spelled) addSpelled(used, text);
  if (open.length > 0 && used.size === 0) used.set('stdio', `${open[0]?.call.callee ?? 'run'}()`);
  const commands = new Map(modules.flatMap(listCommands));
  if (commands.size > 1) return decideCommandSpeech(commands);
  const defaults = [
    ...modules.flatMap(listDefaults),
    ...open.flatMap(({ value }) => (value === undefined ? [] : listTexts(value, modules).slice(-1))),
  ];
  return decideSpeech({
    used,
    defaults,
    choice: findChoice(modules, [...used.keys()], spelled),
    switches: modules.flatMap(listSwitches),
  });
}

/** Commands of typer, click and argparse that are named after a transport, as the command line spells them. */
function listCommands(module: PythonModule): (readonly [McpTransport, string])[] {
  const decorators = module.calls.filter(({ callee, isDecorator }) => isDecorator && /(?:^|\.)command$/.test(callee));
  const parsers = module.calls.filter(({ callee, isDecorator }) => !isDecorator && /\.add_parser$/.test(callee));
  if (decorators.length === 0) return parsers.flatMap(({ args: [first] }) => readCommandNames(first));
  const functions = module.functions.map(({ name }) => name.replaceAll('_', '-'));
  return [...decorators.flatMap(({ args: [first] }) => readCommandNames(first)), ...functions.flatMap(toCommand)];
}

function readCommandNames(argument: PythonCall['args'][number] | undefined): (readonly [McpTransport, string])[] {
  return argument === undefined ? [] : readTexts(argument.value).flatMap(toCommand);
}

function toCommand(name: string): (readonly [McpTransport, string])[] {
  const transport = parseTransport(name);
  return transport === undefined ? [] : [[transport, name]];
}

function addSpelled(used: Map<McpTransport, string>, text: string): void {
  const transport = parseTransport(text);
  if (transport !== undefined && !used.has(transport)) used.set(transport, `"${text}"`);
}

const optionName = /^--(?:mcp[-_])?(?:transport(?:[-_]type)?|mode|server[-_]type|protocol)$/;
const getters = /(?:^|\.)(?:getenv|environ\.get|env|config|get_env|env\.str)$/;

/** Texts that an option or parameter for the transport can have. */
function listOptions(module: PythonModule): string[] {
  return listOptionCalls(module).flatMap(({ args }) => args.flatMap(({ value }) => readTexts(value)));
}

function listOptionCalls({ calls }: PythonModule): PythonCall[] {
  return calls.filter(({ args }) => args.some(({ value }) => value.kind === 'text' && optionName.test(value.text)));
}

/** Defaults of options, variables, parameters and fields that choose the transport. */
function listDefaults(module: PythonModule): string[] {
  const ofOptions = listOptionCalls(module).flatMap(({ args }) =>
    args
      .filter(({ name }) => name === 'default')
      .flatMap(({ value }) => [...readTexts(value), ...readVariableDefault(value)]),
  );
  const ofVariables = module.calls.flatMap((call) => readVariableDefault({ kind: 'call', call }));
  const named = ['transport', 'transport_type', 'mode'].flatMap((name) => {
    const value = module.values.get(name);
    if (value?.kind === 'text') return [value.text];
    // `transport: str = typer.Option("stdio")`, `Field(default="stdio")`.
    return value?.kind === 'call' && /(?:^|\.)(?:Option|Argument|Field)$/.test(value.call.callee)
      ? value.call.args
          .filter(({ name: key }) => key === undefined || key === 'default')
          .slice(0, 1)
          .flatMap((each) => readTexts(each.value))
      : [];
  });
  return [...ofOptions, ...ofVariables, ...named].filter((each) => parseTransport(each) !== undefined);
}

function readVariableDefault(value: PythonValue): string[] {
  if (value.kind === 'either') return value.items.flatMap(readVariableDefault);
  if (value.kind !== 'call') return [];
  const { callee, args } = value.call;
  const [first, second] = args.map((each) => each.value);
  if (/\.(?:lower|upper|strip)$/.test(callee)) return [];
  const isTransport = getters.test(callee) && first?.kind === 'text' && transportVariable.test(first.text);
  return isTransport && second !== undefined ? readTexts(second) : [];
}

/** Switches such as `--http`, which turn another transport on. */
function listSwitches({ calls }: PythonModule): McpTransport[] {
  return calls.flatMap(({ args }) =>
    args.flatMap(({ value }) => (value.kind === 'text' ? parseSwitch(value.text) : [])),
  );
}

function findChoice(
  modules: readonly PythonModule[],
  used: readonly McpTransport[],
  spelled: readonly string[],
): TransportChoice | undefined {
  const written = [
    ...spelled,
    ...modules.flatMap(({ calls }) => calls.flatMap(({ args }) => args.flatMap(({ value }) => readTexts(value)))),
  ];
  const spellings = findSpellings(used, written);
  const [option] = modules.flatMap((module) =>
    listOptionCalls(module).flatMap(({ args }) =>
      args.flatMap(({ value }) => (value.kind === 'text' && optionName.test(value.text) ? [value.text] : [])),
    ),
  );
  if (option !== undefined) return { kind: 'option', name: option, spellings };
  const [variable] = modules.flatMap(({ calls }) =>
    calls.flatMap(({ callee, args: [first] }) =>
      getters.test(callee) && first?.value.kind === 'text' && transportVariable.test(first.value.text)
        ? [first.value.text]
        : [],
    ),
  );
  return variable === undefined ? undefined : { kind: 'variable', name: variable, spellings };
}

/** Texts of a value: itself, the items of a list, and the branches of a condition. */
function readTexts(value: PythonValue): string[] {
  if (value.kind === 'text') return [value.text];
  if (value.kind === 'tuple' || value.kind === 'either') return value.items.flatMap(readTexts);
  // click.Choice(["stdio", "sse"])
  return value.kind === 'call' && /(?:^|\.)Choice$/.test(value.call.callee)
    ? value.call.args.flatMap((each) => readTexts(each.value))
    : [];
}

const maximumSteps = 6;

/** Follows a name to the texts that it can have. */
function listTexts(value: PythonValue, modules: readonly PythonModule[], steps = 0): string[] {
  if (steps > maximumSteps) return [];
  if (value.kind === 'either') return value.items.flatMap((each) => listTexts(each, modules, steps + 1));
  if (value.kind === 'call') {
    const inner = value.call.callee.replace(/\.(?:lower|upper|strip)$/, '');
    return inner === value.call.callee ? readVariableDefault(value) : [];
  }
  if (value.kind !== 'name') return readTexts(value);
  const last = value.name.split('.').at(-1) ?? '';
  return modules.flatMap(({ values }) => {
    const found = values.get(last);
    return found === undefined || found === value ? [] : listTexts(found, modules, steps + 1);
  });
}

/** Path of the endpoint that a call or constructor names. */
function findPath(calls: readonly PythonCall[], transport: McpTransport): string | undefined {
  const wanted = transport === 'sse' ? /^(?:sse_)?path$/ : /^(?:streamable_http_)?path$/;
  const texts = calls.flatMap(({ args }) =>
    args.flatMap(({ name = '', value }) => (wanted.test(name) && value.kind === 'text' ? [value.text] : [])),
  );
  return texts.find((each) => /^\/[\w./-]{0,90}$/.test(each));
}

/** FastMCP and uvicorn listen on 127.0.0.1 unless the code says otherwise. */
function findListening(module: PythonModule, calls: readonly PythonCall[], reached: readonly Source[]): McpListening {
  const uvicorn = reached.flatMap((each) =>
    each.module.calls.filter(({ callee }) => /(?:^|\.)(?:uvicorn\.run|Config)$/.test(callee)),
  );
  const args = [...calls, ...uvicorn].flatMap((call) => call.args);
  const isOpen = args.some(({ name, value }) => name === 'host' && value.kind === 'text' && value.text === '0.0.0.0');
  const literal = args.find(({ name, value }) => name === 'port' && value.kind === 'number')?.value;
  const port = literal?.kind === 'number' ? literal.number : findPythonPort(module);
  return { isLocal: !isOpen, ...(port === undefined ? {} : { port }) };
}
