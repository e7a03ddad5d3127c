// Reads the description of an app in a separate process, since it may be huge, deeply nested or designed to take long: the
// tools of an MCP server, or an OpenAPI 3.1 document.
import { upgrade } from '@scalar/openapi-upgrader';
import { parse } from 'yaml';
import {
  type OperationList,
  bodyArgument,
  type Argument,
  type Operation,
  readWithinLimits,
  OperationNames,
  toPlainText,
} from './operation.ts';
import { isJson, SchemaReader, SchemaTooLarge, type Json } from './schema.ts';
import { isForwarded } from '../calls/forwarding.ts';

export type AppDescription = { readonly slug: string } & (
  { readonly kind: 'openapi'; readonly text: string } | { readonly kind: 'mcp'; readonly tools: unknown }
);

export default function readDescription(description: AppDescription): OperationList & { readonly fault?: string } {
  if (description.kind === 'mcp') return readMcpTools(description.tools, description.slug);
  const document = parseDocument(description.text);
  if (!isJson(document) || (document['openapi'] === undefined && document['swagger'] === undefined))
    return { operations: [], leftOut: 0, fault: 'is not an OpenAPI document.' };
  try {
    return readOpenApi(
      typeof document['openapi'] === 'string' && /^3\.[12]/.test(document['openapi'])
        ? document
        : upgrade(document, '3.1'),
      description.slug,
    );
  } catch {
    return { operations: [], leftOut: 0, fault: 'could not be read as OpenAPI.' };
  }
}

function parseDocument(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    try {
      return parse(text, { maxAliasCount: 50, logLevel: 'silent' }) as unknown;
    } catch {
      return undefined;
    }
  }
}

/** Maximum size of one schema as JSON, in bytes. */
const maxSchemaBytes = 16_384;

export function readMcpTools(tools: unknown, slug: string): { operations: Operation[]; leftOut: number } {
  const listed = Array.isArray(tools) ? tools : [];
  const names = new OperationNames(slug);
  const operations = readWithinLimits(listed.slice(0, 1_000), (tool) => toMcpOperation(tool, names));
  return { operations, leftOut: listed.length - operations.length };
}

function toMcpOperation(tool: unknown, names: OperationNames): Operation | undefined {
  if (!isJson(tool) || typeof tool['name'] !== 'string' || tool['name'].length > 200) return undefined;
  const inputSchema = readInputSchema(tool['inputSchema']);
  if (inputSchema === undefined) return undefined;
  const annotations = isJson(tool['annotations']) ? tool['annotations'] : {};
  const title = toPlainText(tool['title'] ?? annotations['title'], 100);
  const named = names.next(tool['name']);
  return {
    ...named,
    title,
    description: toPlainText(tool['description'], 1_000),
    inputSchema,
    way: { kind: 'mcp', tool: tool['name'] },
  };
}

function readInputSchema(given: unknown): Operation['inputSchema'] | undefined {
  const own = isJson(given) ? given : {};
  const reader = new SchemaReader(own['$defs'] ?? own['definitions']);
  try {
    const made = { ...reader.read(own), type: 'object' as const, ...reader.definitions() };
    return JSON.stringify(made).length > maxSchemaBytes ? undefined : made;
  } catch (error) {
    if (error instanceof SchemaTooLarge) return undefined;
    throw error;
  }
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
type Method = (typeof methods)[number];

const maxArguments = 40;
/** Maximum number of operations that are read; up to `maxOperations` of them are offered. */
const maxCandidates = 2_000;

interface OperationEntry {
  readonly method: Method;
  readonly path: string;
  readonly definition: Json;
  /** Parameters of the path and of the operation. */
  readonly parameters: readonly unknown[];
}

export function readOpenApi(document: unknown, slug: string): { operations: Operation[]; leftOut: number } {
  if (!isJson(document)) return { operations: [], leftOut: 0 };
  const found = [...listOperations(document)];
  const names = new OperationNames(slug);
  const base = readBasePath(document);
  const candidates = found
    .slice(0, maxCandidates)
    .filter(({ definition }) => definition['deprecated'] !== true && !isCredentialRequired(definition, document));
  const operations = readWithinLimits(candidates, (one) => toHttpOperation(one, document, names, base));
  return { operations, leftOut: found.length - operations.length };
}

function* listOperations({ paths }: Json): Generator<OperationEntry> {
  for (const [path, item] of Object.entries(isJson(paths) ? paths : {})) {
    if (!isJson(item) || !/^\/[\x21-\x7e]{0,500}$/.test(path) || /[?#]/.test(path)) continue;
    for (const method of methods) {
      const definition = item[method.toLowerCase()];
      if (isJson(definition))
        yield {
          method,
          path,
          definition,
          parameters: [...toList(item['parameters']), ...toList(definition['parameters'])],
        };
    }
  }
}

/** Undefined if it cannot be called as described. */
function toHttpOperation(
  { method, path, definition, parameters }: OperationEntry,
  document: Json,
  names: OperationNames,
  base: string,
): Operation | undefined {
  const reader = new SchemaReader(getComponents(document, 'schemas'));
  const bodyGiven = resolveReference(definition['requestBody'], document);
  try {
    const read = readParameters(parameters, document, reader);
    if (read === undefined || !hasAllPathArguments(path, read)) return undefined;
    const body = method === 'GET' ? undefined : readBody(bodyGiven, reader);
    const inputSchema = { ...buildInputSchema(read, body), ...reader.definitions() };
    if (JSON.stringify(inputSchema).length > maxSchemaBytes) return undefined;
    return {
      ...names.next(
        toPlainText(definition['operationId'], 200) ||
          `${method.toLowerCase()}${path.replaceAll(/[^A-Za-z0-9-]+/g, '_')}`,
      ),
      title: toPlainText(definition['summary'], 100) || `${method} ${path}`.slice(0, 100),
      description: toPlainText(definition['description'], 1_000),
      inputSchema,
      way: {
        kind: 'http',
        method,
        path: `${base}${path}`,
        arguments: read.map(({ argument }) => argument),
        ...(body === undefined ? {} : { body: { type: body.type, required: body.required } }),
      },
    };
  } catch (error) {
    if (error instanceof SchemaTooLarge) return undefined;
    throw error;
  }
}

function buildInputSchema(read: readonly Parameter[], body: Body | undefined): Operation['inputSchema'] {
  const properties = Object.fromEntries(read.map(({ argument, schema }) => [argument.name, schema]));
  const required = read.filter(({ argument }) => argument.required).map(({ argument }) => argument.name);
  if (body !== undefined) properties[bodyArgument] = body.schema;
  if (body?.required === true) required.push(bodyArgument);
  return { type: 'object', properties, ...(required.length === 0 ? {} : { required }), additionalProperties: false };
}

interface Parameter {
  readonly argument: Argument;
  readonly schema: Json;
}

/** Undefined if a required parameter cannot be sent. */
function readParameters(given: readonly unknown[], document: Json, reader: SchemaReader): Parameter[] | undefined {
  const byLocation = new Map<string, Json>();
  for (const one of given.slice(0, 200)) {
    const parameter = resolveReference(one, document);
    // Those of the operation come after those of the path, and replace them.
    if (parameter !== undefined) byLocation.set(`${String(parameter['in'])} ${String(parameter['name'])}`, parameter);
  }
  const taken = new Set<string>([bodyArgument]);
  const read: Parameter[] = [];
  for (const parameter of byLocation.values()) {
    const made = read.length >= maxArguments ? undefined : readParameter(parameter, reader, taken);
    if (made !== undefined) read.push(made);
    else if (parameter['required'] === true) return undefined;
  }
  return read;
}

function readParameter(given: Json, reader: SchemaReader, taken: Set<string>): Parameter | undefined {
  const { name: field } = given;
  const location = typeof field === 'string' ? readLocation(given['in'], field) : undefined;
  if (typeof field !== 'string' || location === undefined) return undefined;
  const name = chooseArgumentName(field, location, taken);
  if (name === undefined) return undefined;
  taken.add(name);
  const description = toPlainText(given['description'], 500);
  const schema = reader.read(given['schema'] ?? selectContent(given['content'])?.schema ?? { type: 'string' });
  return {
    argument: {
      name,
      field,
      in: location,
      required: location === 'path' || given['required'] === true,
      style: readStyle(given, location),
    },
    schema: { ...schema, ...(description === '' ? {} : { description }) },
  };
}

/** Apps receive no cookies, and nothing that identifies the caller. */
function readLocation(location: unknown, field: string): Argument['in'] | undefined {
  if (field === '' || field.length > 100) return undefined;
  if (location === 'path' || location === 'query') return location;
  return location === 'header' && isForwarded(field) ? location : undefined;
}

/** Uses only characters that every client accepts. A second parameter of the same name is prefixed with its location. */
function chooseArgumentName(field: string, location: string, taken: ReadonlySet<string>): string | undefined {
  const plain = field
    .replaceAll(/[^A-Za-z0-9_.-]+/g, '_')
    .replaceAll(/^_+|_+$/g, '')
    .slice(0, 50);
  return [plain, `${location}_${plain}`].find((name) => plain !== '' && name !== '__proto__' && !taken.has(name));
}

function readStyle({ style, explode }: Json, location: string): Argument['style'] {
  if (style === 'deepObject') return 'deep';
  return (explode ?? location === 'query') === true ? 'explode' : 'commas';
}

interface Body {
  readonly type: string;
  readonly required: boolean;
  readonly schema: Json;
}

const bodyTypes = [
  /^application\/([a-z0-9.+-]+\+)?json$/,
  /^application\/x-www-form-urlencoded$/,
  /^multipart\/form-data$/,
  /^text\//,
  /./,
];

function readBody(given: Json | undefined, reader: SchemaReader): Body | undefined {
  const content = selectContent(given?.['content']);
  if (content === undefined) return undefined;
  const known = bodyTypes.slice(0, 3).some((pattern) => pattern.test(content.type));
  const description = toPlainText(given?.['description'], 300);
  const schema = known
    ? reader.read(content.schema)
    : {
        type: 'string',
        description: content.type.startsWith('text/') ? `${content.type}, as text` : `${content.type}, as base64`,
      };
  return {
    type: content.type,
    required: given?.['required'] === true,
    schema: description === '' ? schema : { description, ...schema },
  };
}

/** Selects the media type that an agent can write best. */
function selectContent(content: unknown): { type: string; schema: unknown } | undefined {
  const entries = Object.entries(isJson(content) ? content : {})
    .map(([type, one]) => ({
      type: type.toLowerCase().split(';')[0]?.trim() ?? '',
      schema: isJson(one) ? one['schema'] : undefined,
    }))
    .filter(({ type }) => /^[a-z0-9.+-]{1,60}\/[a-z0-9.+-]{1,60}$/.test(type));
  return bodyTypes.map((pattern) => entries.find(({ type }) => pattern.test(type))).find((one) => one !== undefined);
}

function hasAllPathArguments(path: string, read: readonly Parameter[]): boolean {
  const known = new Set(read.filter(({ argument }) => argument.in === 'path').map(({ argument }) => argument.field));
  return [...path.matchAll(/\{([^}]*)\}/g)].every(([, field = '']) => known.has(field));
}

/** The keys of callers are not passed on to apps, so operations that require credentials cannot be called. */
function isCredentialRequired({ security: own }: Json, { security: all }: Json): boolean {
  const asked = toList(own ?? all);
  return asked.length > 0 && !asked.some((one) => isJson(one) && Object.keys(one).length === 0);
}

/** Reads the common path prefix. Whichever server the document names, the app itself is called. */
function readBasePath({ servers }: Json): string {
  const [server] = toList(servers);
  const url = isJson(server) ? server['url'] : undefined;
  if (typeof url !== 'string' || url.length > 500 || !URL.canParse(url, 'http://app')) return '';
  const { pathname } = new URL(url, 'http://app');
  return /^(\/[A-Za-z0-9._~-]+)*\/?$/.test(pathname) ? pathname.replace(/\/+$/, '') : '';
}

/** Follows a reference within the document. */
function resolveReference(given: unknown, document: Json): Json | undefined {
  let current = given;
  for (let hop = 0; hop < 8 && isJson(current) && typeof current['$ref'] === 'string'; hop += 1) {
    const [, kind = '', name = ''] = /^#\/components\/([A-Za-z]+)\/([^/]+)$/.exec(current['$ref']) ?? [];
    const named = getComponents(document, kind);
    current = Object.hasOwn(named, name) ? named[name] : undefined;
  }
  return isJson(current) && current['$ref'] === undefined ? current : undefined;
}

function getComponents({ components }: Json, kind: string): Json {
  const found: unknown = isJson(components) && Object.hasOwn(components, kind) ? components[kind] : undefined;
  return isJson(found) ? found : {};
}

function toList(given: unknown): readonly unknown[] {
  return Array.isArray(given) ? given : [];
}
