// Finds the port that a Python file listens on regardless of $PORT: the one that a call which serves is given.
import { isUsablePort, portsElsewhere } from '../port-literal.ts';
import { type PythonCall, type PythonModule, type PythonValue, hasImport } from '../syntax/python.ts';

/** Calls that listen. A `connect` names the port of another program, or of an address that does not exist. */
const serving =
  /(?:^|\.)(?:run|launch|serve|serve_app|run_app|run_simple|run_server|create_server|start_server|make_server|Config|Server|\w{0,30}HTTPServer|WSGIServer|\w{0,20}TCPServer|TCPSite|listen|bind|show|start_http_server)$/;
/** Of these, the ones whose port is the second or the third argument. */
const portSecond = /(?:^|\.)(?:make_server|run_simple)$/;
const portThird = /(?:^|\.)(?:create_server|start_server|TCPSite)$/;
/** Ports of frameworks that read none from the environment, by what a file imports and calls. */
const usualPorts: readonly (readonly [library: string, callee: RegExp, port: number])[] = [
  ['uvicorn', /^uvicorn\.run$/, 8000],
  ['flask', /^(?!uvicorn\b|asyncio\b|subprocess\b|anyio\b)\w+\.run$/, 5000],
  ['aiohttp', /^(?:web\.|aiohttp\.web\.)?run_app$/, 8080],
  ['bottle', /^(?:bottle\.)?run$/, 8080],
  ['cherrypy', /^cherrypy\.quickstart$/, 8080],
];
const getters = /(?:^|\.)(?:getenv|environ\.get|environ|config|env|env\.int|env\.str|get_env|pop)$/;
const conversions = /(?:^|\.)(?:int|str|float|max|min)$/;
const maximumSteps = 8;

/** The literal port; `environment` if it follows $PORT; undefined if nothing shows it. */
type Port = number | 'environment' | undefined;

/** Finds the port of a start file; undefined if there is none, or it depends on the environment. */
export function findPythonPort(module: PythonModule): number | undefined {
  const listened = module.calls.filter((call) => !call.isDecorator && serving.test(call.callee));
  const ports = listened.flatMap((call) => listPortValues(call).map((value) => resolvePort(value, module)));
  if (ports.includes('environment')) return undefined;
  const port = ports.find((each) => typeof each === 'number' && isUsablePort(each));
  if (typeof port === 'number') return port;
  if (hasPortVariable(module)) return undefined;
  return (
    findNamedPort(
      module,
      listened.some((call) => listPortValues(call).length > 0),
    ) ?? findUsualPort(module, listened)
  );
}

/** Lists the arguments of a call that can be its port. */
function listPortValues({ callee, args }: PythonCall): PythonValue[] {
  const named = args.filter(({ name }) => name === 'port' || name === 'server_port' || name === 'http_port');
  if (named.length > 0) return named.map(({ value }) => value);
  const positional = args.filter(({ name }) => name === undefined).map(({ value }) => value);
  const address = positional.find((value) => value.kind === 'tuple');
  if (address?.kind === 'tuple') return address.items.slice(1, 2);
  if (/(?:^|\.)listen$/.test(callee)) return positional.slice(0, 1);
  if (portSecond.test(callee)) return positional.slice(1, 2);
  return portThird.test(callee) ? positional.slice(2, 3) : [];
}

/** Follows names, conversions and defaults to a number. */
function resolvePort(value: PythonValue | undefined, module: PythonModule, steps = 0): Port {
  if (value === undefined || steps > maximumSteps) return undefined;
  switch (value.kind) {
    case 'number':
      return value.number;
    case 'text':
      return /^\d{4,5}$/.test(value.text) ? Number(value.text) : undefined;
    case 'name':
      return resolveName(value.name, module, steps + 1);
    case 'call':
      return resolveCall(value.call, module, steps + 1);
    case 'either':
      return chooseFirst(value.items.map((each) => resolvePort(each, module, steps + 1)));
    case 'other':
      return /\benviron\[\s*["']PORT["']\s*\]/.test(value.text) ? 'environment' : undefined;
    default:
      return undefined;
  }
}

function chooseFirst(ports: readonly Port[]): Port {
  return ports.includes('environment') ? 'environment' : ports.find((each) => each !== undefined);
}

function resolveCall({ callee, args }: PythonCall, module: PythonModule, steps: number): Port {
  const values = args.map(({ value }) => value);
  const [first] = values;
  if (getters.test(callee) && first?.kind === 'text') {
    if (first.text.toUpperCase() === 'PORT') return 'environment';
    // The platform sets no other variable, so the default decides.
    return values
      .slice(1)
      .map((each) => resolvePort(each, module, steps))
      .find((each) => each !== undefined);
  }
  return conversions.test(callee) ? resolvePort(first, module, steps) : undefined;
}

/** Resolves a variable, or the option that a parsed command line has: `args.port`. */
function resolveName(name: string, module: PythonModule, steps: number): Port {
  const last = name.split('.').at(-1) ?? name;
  if (name.includes('.')) {
    const option = findOption(module, last);
    if (option !== undefined) return resolvePort(option, module, steps);
  }
  const value = module.values.get(last) ?? findOption(module, last);
  return value === undefined || (value.kind === 'name' && value.name === name)
    ? undefined
    : resolvePort(value, module, steps);
}

/** Finds the default of `--port` of argparse or click. */
function findOption({ calls }: PythonModule, name: string): PythonValue | undefined {
  const option = calls.find(
    ({ callee, args }) =>
      /(?:^|\.)(?:add_argument|option|Option|add_option|define)$/.test(callee) &&
      args.some(
        ({ value }) => value.kind === 'text' && value.text.replace(/^-{1,2}/, '').replaceAll('-', '_') === name,
      ),
  );
  return option?.args.find((each) => each.name === 'default')?.value;
}

/** Returns whether any code reads the variable PORT, if only by a settings class. */
function hasPortVariable(module: PythonModule): boolean {
  const settings = [...module.classes.values()].some((bases) =>
    bases.some((base) => /(?:^|\.)BaseSettings$/.test(base)),
  );
  return (
    (settings && [...module.values.keys()].some((name) => name.toUpperCase() === 'PORT')) ||
    module.calls.some(({ callee, args }) => {
      const [first] = args;
      return getters.test(callee) && first?.value.kind === 'text' && first.value.text === 'PORT';
    }) ||
    [...module.values.values()].some((value) => resolvePort(value, module) === 'environment')
  );
}

/**
 * A variable or option with the name of a port counts if a call listens on something, even if the port is typical for
 * another service.
 */
function findNamedPort(module: PythonModule, isListened: boolean): number | undefined {
  const named = [...module.values].filter(([name]) => /^(?:server_|http_|web_)?port$/i.test(name));
  const ports = [...named.map(([, value]) => value), findOption(module, 'port')].map((value) =>
    resolvePort(value, module),
  );
  return ports.find(
    (port): port is number =>
      typeof port === 'number' && isUsablePort(port) && (isListened || !portsElsewhere.has(port)),
  );
}

function findUsualPort(module: PythonModule, listened: readonly PythonCall[]): number | undefined {
  return usualPorts.find(
    ([library, callee]) =>
      hasImport(module, library) &&
      listened.some(
        (call) => callee.test(call.callee) && !call.args.some(({ name }) => name === 'port' || name === 'uds'),
      ),
  )?.[2];
}
