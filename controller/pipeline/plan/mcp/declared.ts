// Reads what files for MCP registries and clients say of a repository's server: transport, command, and the variables that it
// asks for.
import { maximumMcpVariables, type Plan } from '../../../../crds/status.ts';
import { parseYaml, parseJson, readField, readKeys, readText, readTexts } from '../../manifest.ts';
import { keepHead, toOneLine } from '../../text.ts';
import type { Tree } from '../../tree.ts';
import { parseScript, readLiteralText, type ScriptValue } from '../syntax/javascript.ts';
import { resolveValues } from '../syntax/resolve.ts';
import { type McpTransport, parseTransport } from './transports.ts';

export type McpVariable = NonNullable<NonNullable<Plan['mcp']>['environment']>[number];

/** What one file says of the server. */
export interface McpDeclaration {
  readonly file: string;
  readonly transport?: McpTransport | undefined;
  /** Program and arguments, as the file lists them. */
  readonly command?: readonly string[];
  /** Names of the packages that it is published as. */
  readonly packages: readonly string[];
  readonly environment: readonly McpVariable[];
}

/** Reads every such file, the most precise one first. */
export function readMcpDeclarations(tree: Tree): McpDeclaration[] {
  return [readRegistryFile, readSmithery, readBundle, readClientFile].flatMap((read) => read(tree) ?? []);
}

/** Joins the variables of all files; the first file that lists a name describes it. */
export function joinVariables(declarations: readonly McpDeclaration[]): McpVariable[] {
  const found = new Map<string, McpVariable>();
  for (const each of declarations.flatMap(({ environment }) => environment))
    if (!found.has(each.name)) found.set(each.name, each);
  return [...found.values()]
    .toSorted((one, other) => Number(other.required) - Number(one.required))
    .slice(0, maximumMcpVariables);
}

const variableName = /^[A-Za-z_]\w{0,79}$/;
const secretName = /(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|PAT|DSN|CONNECTION_STRING)$/i;

function toVariable(
  name: string,
  {
    description,
    secret,
    required,
  }: { description?: string | undefined; secret?: boolean | undefined; required: boolean },
): McpVariable[] {
  if (!variableName.test(name)) return [];
  const text = description === undefined ? '' : keepHead(toOneLine(description), 95);
  return [{ name, ...(text === '' ? {} : { description: text }), secret: secret ?? secretName.test(name), required }];
}

/** `server.json` of the MCP registry; earlier versions of its schema have names with underscores. */
function readRegistryFile(tree: Tree): McpDeclaration | undefined {
  const file = 'server.json';
  const parsed = parseJson(tree.readFile(file));
  const isServer =
    /modelcontextprotocol/.test(readText(parsed, '$schema') ?? '') || readField(parsed, 'packages') !== undefined;
  const remotes = readField(parsed, 'remotes');
  if (!isServer || typeof parsed !== 'object') return undefined;
  const listed = readField(parsed, 'packages');
  const packages: readonly unknown[] = Array.isArray(listed) ? listed : [];
  const transports = packages.map((each) =>
    parseTransport(
      readText(each, 'transport', 'type') ?? readText(each, 'transport_type') ?? readText(each, 'transport'),
    ),
  );
  // A server without a package runs at its author's only.
  if (packages.length === 0 && Array.isArray(remotes)) return undefined;
  return {
    file,
    transport: transports.find((each) => each !== undefined),
    packages: packages.flatMap((each) => readText(each, 'identifier') ?? readText(each, 'name') ?? []),
    environment: packages.flatMap((each) => {
      const variables = readField(each, 'environmentVariables') ?? readField(each, 'environment_variables');
      return (Array.isArray(variables) ? (variables as readonly unknown[]) : []).flatMap(readRegistryVariable);
    }),
  };
}

function readRegistryVariable(variable: unknown): McpVariable[] {
  const readFlag = (...names: readonly string[]): boolean | undefined => {
    const value = names.map((each) => readField(variable, each)).find((each) => each !== undefined);
    return typeof value === 'boolean' ? value : undefined;
  };
  return toVariable(readText(variable, 'name') ?? '', {
    description: readText(variable, 'description'),
    secret: readFlag('isSecret', 'is_secret'),
    required: readFlag('isRequired', 'is_required') === true,
  });
}

/** `smithery.yaml`: a function of JavaScript makes the command of the settings that a user is asked for. */
function readSmithery(tree: Tree): McpDeclaration | undefined {
  const file = ['smithery.yaml', 'smithery.yml'].find((each) => tree.has(each));
  const start = readField(parseYaml(tree.readFile(file ?? '', 64 * 1024)), 'startCommand');
  if (file === undefined || start === undefined) return undefined;
  const schema = readField(start, 'configSchema');
  const made = readCommandFunction(readText(start, 'commandFunction') ?? '');
  const required = readTexts(schema, 'required');
  return {
    file,
    transport: parseTransport(readText(start, 'type')),
    ...(made === undefined ? {} : { command: made.command }),
    packages: [],
    environment: (made?.environment ?? []).flatMap(({ name, settings }) => {
      const setting = settings.find((each) => readKeys(schema, 'properties').includes(each));
      return toVariable(name, {
        description: setting === undefined ? undefined : readText(schema, 'properties', setting, 'description'),
        // A value that the function itself gives is no question.
        required: setting !== undefined && required.includes(setting),
      });
    }),
  };
}

interface MadeCommand {
  readonly command: readonly string[];
  /** Names of variables, and the settings that their values are made of. */
  readonly environment: readonly { readonly name: string; readonly settings: readonly string[] }[];
}

/** Reads `(config) => ({ command: 'node', args: ['dist/index.js'], env: { KEY: config.key } })`. */
function readCommandFunction(text: string): MadeCommand | undefined {
  if (text.trim() === '') return undefined;
  const module = parseScript(`export default ${text.trim().replace(/;$/, '')}`);
  const { exported } = module;
  const made = exported === undefined ? [] : resolveValues(exported, module, true);
  const object = made.find((each) => each.kind === 'object' && each.fields.has('command'));
  if (object?.kind !== 'object') return undefined;
  const args = object.fields.get('args');
  const words = args?.kind === 'list' ? args.items.map(readLiteralText) : [];
  const env = object.fields.get('env');
  return {
    command: [readLiteralText(object.fields.get('command')), ...words].filter((each) => each !== undefined),
    environment:
      env?.kind === 'object'
        ? [...env.fields].flatMap(([name, value]) => {
            const settings = listSettings(value);
            return settings.length === 0 ? [] : [{ name, settings }];
          })
        : [],
  };
}

function listSettings(value: ScriptValue): string[] {
  if (value.kind === 'name') return [value.name.split('.').at(-1) ?? ''];
  if (value.kind === 'other')
    return [...value.text.matchAll(/\bconfig\??\.(\w{1,60})/g)].map((match) => match[1] ?? '');
  if (value.kind === 'call')
    return [...value.call.callee.split('.').slice(1, 2), ...value.call.args.flatMap(listSettings)];
  if (value.kind === 'binary') return [value.left, value.right].flatMap(listSettings);
  return value.kind === 'conditional' ? [value.then, value.otherwise].flatMap(listSettings) : [];
}

/** `manifest.json` of a bundle for desktop clients (MCPB, earlier DXT). */
function readBundle(tree: Tree): McpDeclaration | undefined {
  const file = 'manifest.json';
  const parsed = parseJson(tree.readFile(file));
  const server = readField(parsed, 'server');
  const config = readField(server, 'mcp_config');
  if (config === undefined || readText(server, 'type') === undefined) return undefined;
  const settings = readField(parsed, 'user_config');
  const words = [readText(config, 'command'), ...readTexts(config, 'args')].filter((each) => each !== undefined);
  return {
    file,
    transport: 'stdio',
    command: words.map((each) => each.replace(/^\$\{__dirname\}\/?/, '')),
    packages: [],
    environment: readKeys(config, 'env').flatMap((name) => {
      const [, setting] = /^\$\{user_config\.([\w-]{1,60})\}$/.exec(readText(config, 'env', name) ?? '') ?? [];
      if (setting === undefined) return [];
      const secret = readField(settings, setting, 'sensitive');
      return toVariable(name, {
        description: readText(settings, setting, 'description') ?? readText(settings, setting, 'title'),
        ...(typeof secret === 'boolean' ? { secret } : {}),
        required: readField(settings, setting, 'required') === true,
      });
    }),
  };
}

/**
 * `mcp.json` and `.mcp.json` list servers for a client. Those of other projects help to develop this one, so only a server
 * that starts a file of this repository counts.
 */
function readClientFile(tree: Tree): McpDeclaration | undefined {
  const file = ['mcp.json', '.mcp.json'].find((each) => tree.has(each));
  const parsed = parseJson(tree.readFile(file ?? ''));
  const table = readKeys(parsed, 'mcpServers').length > 0 ? 'mcpServers' : 'servers';
  for (const name of file === undefined ? [] : readKeys(parsed, table)) {
    const words = [readText(parsed, table, name, 'command'), ...readTexts(parsed, table, name, 'args')].filter(
      (each) => each !== undefined,
    );
    if (!words.some((word) => hasOwnFile(tree, word))) continue;
    return {
      file: file ?? '',
      transport: 'stdio',
      command: words,
      packages: [],
      environment: readKeys(parsed, table, name, 'env').flatMap((variable) =>
        toVariable(variable, { required: false }),
      ),
    };
  }
  return undefined;
}

function hasOwnFile(tree: Tree, word: string): boolean {
  const path = word.replace(/^\.\//, '');
  return (
    /\.(?:[cm]?[jt]s|py)$/.test(path) &&
    (tree.has(path) || tree.has(path.replace(/^(?:dist|build)\//, 'src/').replace(/\.[cm]?js$/, '.ts')))
  );
}
