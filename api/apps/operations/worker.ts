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
  const toolList = Array.isArray(tools) ? tools : [];
  const names = new OperationNames(slug);
  const operations = readWithinLimits(toolList.slice(0, 1_000), (tool) => toMcpOperation(tool, names));
  return { operations, leftOut: toolList.length - operations.length };
}

function toMcpOperation(tool: unknown, names: OperationNames): Operation | undefined {
  if (!isJson(tool) || typeof tool['name'] !== 'string' || tool['name'].length > 200) return undefined;
  const inputSchema = readInputSchema(tool['inputSchema']);
  if (inputSchema === undefined) return undefined;
  const annotations = isJson(tool['annotations']) ? tool['annotations'] : {};
  const title = toPlainText(tool['title'] ?? annotations['title'], 100);
  const operationName = names.createName(tool['name']);
  return {
    ...operationName,
    title,
    description: toPlainText(tool['description'], 1_000),
    inputSchema,
    way: { kind: 'mcp', tool: tool['name'] },
  };
}

function readInputSchema(schema: unknown): Operation['inputSchema'] | undefined {
  const root = isJson(schema) ? schema : {};
  const reader = new SchemaReader(root['$defs'] ?? root['definitions']);
  try {
    const inputSchema = { ...reader.read(root), type: 'object' as const, ...reader.buildDefinitions() };
    return JSON.stringify(inputSchema).length > maxSchemaBytes ? undefined : inputSchema;
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
  const entries = [...listOperations(document)];
  const names = new OperationNames(slug);
  const base = readBasePath(document);
  const candidates = entries
    .slice(0, maxCandidates)
    .filter(({ definition }) => definition['deprecated'] !== true && !isCredentialRequired(definition, document));
  const operations = readWithinLimits(candidates, (one) => toHttpOperation(one, document, names, base));
  return { operations, leftOut: entries.length - operations.length };
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
  const bodyDefinition = resolveReference(definition['requestBody'], document);
  try {
    const usableParameters = readParameters(parameters, document, reader);
    if (usableParameters === undefined || !hasAllPathArguments(path, usableParameters)) return undefined;
    const body = method === 'GET' ? undefined : readBody(bodyDefinition, reader);
    const inputSchema = { ...buildInputSchema(usableParameters, body), ...reader.buildDefinitions() };
    if (JSON.stringify(inputSchema).length > maxSchemaBytes) return undefined;
    return {
      ...names.createName(
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
        arguments: usableParameters.map(({ argument }) => argument),
        ...(body === undefined ? {} : { body: { type: body.type, required: body.required } }),
      },
    };
  } catch (error) {
    if (error instanceof SchemaTooLarge) return undefined;
    throw error;
  }
}

function buildInputSchema(parameters: readonly Parameter[], body: Body | undefined): Operation['inputSchema'] {
  const properties = Object.fromEntries(parameters.map(({ argument, schema }) => [argument.name, schema]));
  const required = parameters.filter(({ argument }) => argument.required).map(({ argument }) => argument.name);
  if (body !== undefined) properties[bodyArgument] = body.schema;
  if (body?.required === true) required.push(bodyArgument);
  return { type: 'object', properties, ...(required.length === 0 ? {} : { required }), additionalProperties: false };
}

interface Parameter {
  readonly argument: Argument;
  readonly schema: Json;
}

/** Undefined if a required parameter cannot be sent. */
function readParameters(
  definitions: readonly unknown[],
  document: Json,
  reader: SchemaReader,
): Parameter[] | undefined {
  const byLocation = new Map<string, Json>();
  for (const one of definitions.slice(0, 200)) {
    const parameter = resolveReference(one, document);
    // Those of the operation come after those of the path, and replace them.
    if (parameter !== undefined) byLocation.set(`${String(parameter['in'])} ${String(parameter['name'])}`, parameter);
  }
  const taken = new Set<string>([bodyArgument]);
  const parameters: Parameter[] = [];
  for (const parameter of byLocation.values()) {
    const usable = parameters.length >= maxArguments ? undefined : readParameter(parameter, reader, taken);
    if (usable !== undefined) parameters.push(usable);
    else if (parameter['required'] === true) return undefined;
  }
  return parameters;
}

function readParameter(definition: Json, reader: SchemaReader, taken: Set<string>): Parameter | undefined {
  const { name: field } = definition;
  const location = typeof field === 'string' ? readLocation(definition['in'], field) : undefined;
  if (typeof field !== 'string' || location === undefined) return undefined;
  const name = chooseArgumentName(field, location, taken);
  if (name === undefined) return undefined;
  taken.add(name);
  const description = toPlainText(definition['description'], 500);
  const schema = reader.read(
    definition['schema'] ?? selectContent(definition['content'])?.schema ?? { type: 'string' },
  );
  return {
    argument: {
      name,
      field,
      in: location,
      required: location === 'path' || definition['required'] === true,
      style: readStyle(definition, location),
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

function readBody(definition: Json | undefined, reader: SchemaReader): Body | undefined {
  const content = selectContent(definition?.['content']);
  if (content === undefined) return undefined;
  const isStructured = bodyTypes.slice(0, 3).some((pattern) => pattern.test(content.type));
  const description = toPlainText(definition?.['description'], 300);
  const schema = isStructured
    ? reader.read(content.schema)
    : {
        type: 'string',
        description: content.type.startsWith('text/') ? `${content.type}, as text` : `${content.type}, as base64`,
      };
  return {
    type: content.type,
    required: definition?.['required'] === true,
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

function hasAllPathArguments(path: string, parameters: readonly Parameter[]): boolean {
  const pathFields = new Set(
    parameters.filter(({ argument }) => argument.in === 'path').map(({ argument }) => argument.field),
  );
  return [...path.matchAll(/\{([^}]*)\}/g)].every(([, field = '']) => pathFields.has(field));
}

/** The keys of callers are not passed on to apps, so operations that require credentials cannot be called. */
function isCredentialRequired({ security: operationSecurity }: Json, { security: documentSecurity }: Json): boolean {
  const requirements = toList(operationSecurity ?? documentSecurity);
  return requirements.length > 0 && !requirements.some((one) => isJson(one) && Object.keys(one).length === 0);
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
function resolveReference(value: unknown, document: Json): Json | undefined {
  let current = value;
  for (let hop = 0; hop < 8 && isJson(current) && typeof current['$ref'] === 'string'; hop += 1) {
    const [, kind = '', name = ''] = /^#\/components\/([A-Za-z]+)\/([^/]+)$/.exec(current['$ref']) ?? [];
    const components = getComponents(document, kind);
    current = Object.hasOwn(components, name) ? components[name] : undefined;
  }
  return isJson(current) && current['$ref'] === undefined ? current : undefined;
}

function getComponents({ components }: Json, kind: string): Json {
  const section: unknown = isJson(components) && Object.hasOwn(components, kind) ? components[kind] : undefined;
  return isJson(section) ? section : {};
}

function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
