// Finds the port that a JavaScript or TypeScript file listens on regardless of $PORT, for Node, Bun and Deno.
import { isUsablePort, portsElsewhere } from '../port-literal.ts';
import {
  parseScript,
  readLiteralText,
  type ScriptCall,
  type ScriptModule,
  type ScriptValue,
} from '../syntax/javascript.ts';

/** Calls that listen, given a port or an object with one. */
const serving = /(?:^|\.)(?:listen|serve|start|WebSocketServer|Server)$/;
const environmentName = /(?:^|\.)env\.PORT$/;
const getters = /(?:^|\.)env\.get$|^(?:get_?env|env)$/i;
const conversions = /^(?:Number|parseInt|String|Number\.parseInt|normalizePort|toInt|toNumber)$/;
const maximumSteps = 8;

/** The literal port; `environment` if it follows $PORT; undefined if nothing shows it. */
type Port = number | 'environment' | undefined;

/** Finds the port in a start file; undefined if there is none, or it depends on the environment. */
export function findScriptPort(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const module = parseScript(text);
  const values = [
    ...module.calls.filter(({ callee }) => serving.test(callee)).flatMap(listPortValues),
    ...listExported(module),
  ];
  const ports = values.map((value) => resolvePort(value, module));
  if (ports.includes('environment')) return undefined;
  const port = ports.find((each) => typeof each === 'number' && isUsablePort(each));
  if (typeof port === 'number') return port;
  return hasPortVariable(text, module) ? undefined : findNamedPort(module, values.length > 0);
}

/** Lists the values of a call that can be its port: `listen(3000)`, `serve({ port: 3000 })`. */
function listPortValues({ callee, args }: ScriptCall): ScriptValue[] {
  const fields = args.flatMap((each) => (each.kind === 'object' ? (each.fields.get('port') ?? []) : []));
  const [first] = args;
  return fields.length > 0 || first === undefined || !/(?:^|\.)listen$/.test(callee) ? fields : [first];
}

/** Bun and Cloudflare-style servers export `{ port, fetch }`. */
function listExported({ exported }: ScriptModule): ScriptValue[] {
  const port = exported?.kind === 'object' && exported.fields.has('fetch') ? exported.fields.get('port') : undefined;
  return port === undefined ? [] : [port];
}

/** Follows names, conversions and defaults to a number. */
function resolvePort(value: ScriptValue | undefined, module: ScriptModule, steps = 0): Port {
  if (value === undefined || steps > maximumSteps) return undefined;
  const resolve = (each: ScriptValue | undefined): Port => resolvePort(each, module, steps + 1);
  switch (value.kind) {
    case 'literal':
      return toPort(value.value);
    case 'name':
      if (environmentName.test(value.name)) return 'environment';
      return resolve(module.variables.get(value.name.split('.').at(-1) ?? ''));
    case 'call':
      return resolveCall(value.call, resolve);
    case 'binary':
      return chooseFirst([value.left, value.right].map(resolve));
    case 'conditional':
      return chooseFirst([value.condition, value.then, value.otherwise].map(resolve));
    default:
      return undefined;
  }
}

function toPort(value: string | number | boolean | undefined): number | undefined {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /^\d{4,5}$/.test(value) ? Number(value) : undefined;
}

function resolveCall({ callee, args: [first] }: ScriptCall, resolve: (value: ScriptValue | undefined) => Port): Port {
  if (getters.test(callee)) return readLiteralText(first) === 'PORT' ? 'environment' : undefined;
  return conversions.test(callee) ? resolve(first) : undefined;
}

function chooseFirst(ports: readonly Port[]): Port {
  return ports.includes('environment') ? 'environment' : ports.find((each) => each !== undefined);
}

/** Returns whether any code reads the variable PORT. A wrong yes only leaves the port open. */
function hasPortVariable(text: string, module: ScriptModule): boolean {
  return (
    /\benv\W{1,6}(?:get\W{1,3})?PORT\b/.test(text) ||
    [...module.variables.values()].some((value) => resolvePort(value, module) === 'environment')
  );
}

/**
 * A variable with the name of a port counts if a call listens on something, even if the port is typical for another
 * service.
 */
function findNamedPort(module: ScriptModule, isListened: boolean): number | undefined {
  const ports = [...module.variables]
    .filter(([name]) => /^(?:server_?|http_?|web_?|app_?)?port$/i.test(name))
    .map(([, value]) => resolvePort(value, module));
  return ports.find(
    (port): port is number =>
      typeof port === 'number' && isUsablePort(port) && (isListened || !portsElsewhere.has(port)),
  );
}
