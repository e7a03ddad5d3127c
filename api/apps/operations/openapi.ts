// Reads the operations out of an OpenAPI 3.1 document that a stranger wrote.
import { isForwarded } from '../calls/headers.ts';
import { bodyArgument, type Argument, type Operation, readWithinLimits } from './operation.ts';
import { isJson, SchemaReader, SchemaTooLarge, type Json } from './schema.ts';
import { Names, plainText } from './text.ts';

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
type Method = (typeof methods)[number];

const maxArguments = 40;
/** Bytes of one schema as JSON. */
const maxSchemaBytes = 16_384;
/** Operations that are looked at, of which up to `maxOperations` are offered. */
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
  const found = [...operationsIn(document)];
  const names = new Names(slug);
  const base = basePath(document);
  const candidates = found
    .slice(0, maxCandidates)
    .filter(({ definition }) => definition['deprecated'] !== true && !needsCredentials(definition, document));
  const operations = readWithinLimits(candidates, (one) => operationOf(one, document, names, base));
  return { operations, leftOut: found.length - operations.length };
}

function* operationsIn({ paths }: Json): Generator<OperationEntry> {
  for (const [path, item] of Object.entries(isJson(paths) ? paths : {})) {
    if (!isJson(item) || !/^\/[\x21-\x7e]{0,500}$/.test(path) || /[?#]/.test(path)) continue;
    for (const method of methods) {
      const definition = item[method.toLowerCase()];
      if (isJson(definition))
        yield {
          method,
          path,
          definition,
          parameters: [...listOf(item['parameters']), ...listOf(definition['parameters'])],
        };
    }
  }
}

/** Undefined for one that cannot be called as it is described. */
function operationOf(
  { method, path, definition, parameters }: OperationEntry,
  document: Json,
  names: Names,
  base: string,
): Operation | undefined {
  const reader = new SchemaReader(group(document, 'schemas'));
  const bodyGiven = resolved(definition['requestBody'], document);
  try {
    const read = parametersOf(parameters, document, reader);
    if (read === undefined || !fillsPath(path, read)) return undefined;
    const body = method === 'GET' ? undefined : bodyOf(bodyGiven, reader);
    const inputSchema = { ...schemaOf(read, body), ...reader.definitions() };
    if (JSON.stringify(inputSchema).length > maxSchemaBytes) return undefined;
    return {
      ...names.next(
        plainText(definition['operationId'], 200) ||
          `${method.toLowerCase()}${path.replaceAll(/[^A-Za-z0-9-]+/g, '_')}`,
      ),
      title: plainText(definition['summary'], 100) || `${method} ${path}`.slice(0, 100),
      description: plainText(definition['description'], 1_000),
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

function schemaOf(read: readonly Parameter[], body: Body | undefined): Operation['inputSchema'] {
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

/** Undefined when one that is required cannot be given. */
function parametersOf(given: readonly unknown[], document: Json, reader: SchemaReader): Parameter[] | undefined {
  const byLocation = new Map<string, Json>();
  for (const one of given.slice(0, 200)) {
    const parameter = resolved(one, document);
    // Those of the operation come after those of the path, and replace them.
    if (parameter !== undefined) byLocation.set(`${String(parameter['in'])} ${String(parameter['name'])}`, parameter);
  }
  const taken = new Set<string>([bodyArgument]);
  const read: Parameter[] = [];
  for (const parameter of byLocation.values()) {
    const made = read.length >= maxArguments ? undefined : parameterOf(parameter, reader, taken);
    if (made !== undefined) read.push(made);
    else if (parameter['required'] === true) return undefined;
  }
  return read;
}

function parameterOf(given: Json, reader: SchemaReader, taken: Set<string>): Parameter | undefined {
  const { name: field } = given;
  const location = typeof field === 'string' ? locationOf(given['in'], field) : undefined;
  if (typeof field !== 'string' || location === undefined) return undefined;
  const name = argumentName(field, location, taken);
  if (name === undefined) return undefined;
  taken.add(name);
  const description = plainText(given['description'], 500);
  const schema = reader.read(given['schema'] ?? firstContent(given['content'])?.schema ?? { type: 'string' });
  return {
    argument: {
      name,
      field,
      in: location,
      required: location === 'path' || given['required'] === true,
      style: styleOf(given, location),
    },
    schema: { ...schema, ...(description === '' ? {} : { description }) },
  };
}

/** Cookies and what identifies the caller are not given to apps. */
function locationOf(location: unknown, field: string): Argument['in'] | undefined {
  if (field === '' || field.length > 100) return undefined;
  if (location === 'path' || location === 'query') return location;
  return location === 'header' && isForwarded(field) ? location : undefined;
}

/** In characters that every client takes; of two with the same name, the second is prefixed with its location. */
function argumentName(field: string, location: string, taken: ReadonlySet<string>): string | undefined {
  const plain = field
    .replaceAll(/[^A-Za-z0-9_.-]+/g, '_')
    .replaceAll(/^_+|_+$/g, '')
    .slice(0, 50);
  return [plain, `${location}_${plain}`].find((name) => plain !== '' && name !== '__proto__' && !taken.has(name));
}

function styleOf({ style, explode }: Json, location: string): Argument['style'] {
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

function bodyOf(given: Json | undefined, reader: SchemaReader): Body | undefined {
  const content = firstContent(given?.['content']);
  if (content === undefined) return undefined;
  const known = bodyTypes.slice(0, 3).some((pattern) => pattern.test(content.type));
  const description = plainText(given?.['description'], 300);
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

/** Of several media types the one that an agent writes best. */
function firstContent(content: unknown): { type: string; schema: unknown } | undefined {
  const entries = Object.entries(isJson(content) ? content : {})
    .map(([type, one]) => ({
      type: type.toLowerCase().split(';')[0]?.trim() ?? '',
      schema: isJson(one) ? one['schema'] : undefined,
    }))
    .filter(({ type }) => /^[a-z0-9.+-]{1,60}\/[a-z0-9.+-]{1,60}$/.test(type));
  return bodyTypes.map((pattern) => entries.find(({ type }) => pattern.test(type))).find((one) => one !== undefined);
}

function fillsPath(path: string, read: readonly Parameter[]): boolean {
  const known = new Set(read.filter(({ argument }) => argument.in === 'path').map(({ argument }) => argument.field));
  return [...path.matchAll(/\{([^}]*)\}/g)].every(([, field = '']) => known.has(field));
}

/** Keys of callers are not passed on to apps, so what asks for credentials cannot be called. */
function needsCredentials({ security: own }: Json, { security: all }: Json): boolean {
  const asked = listOf(own ?? all);
  return asked.length > 0 && !asked.some((one) => isJson(one) && Object.keys(one).length === 0);
}

/** The path before all paths. Whatever server the document names, it is this app that is called. */
function basePath({ servers }: Json): string {
  const [server] = listOf(servers);
  const url = isJson(server) ? server['url'] : undefined;
  if (typeof url !== 'string' || url.length > 500 || !URL.canParse(url, 'http://app')) return '';
  const { pathname } = new URL(url, 'http://app');
  return /^(\/[A-Za-z0-9._~-]+)*\/?$/.test(pathname) ? pathname.replace(/\/+$/, '') : '';
}

/** What a reference within the document stands for. */
function resolved(given: unknown, document: Json): Json | undefined {
  let current = given;
  for (let hop = 0; hop < 8 && isJson(current) && typeof current['$ref'] === 'string'; hop += 1) {
    const [, kind = '', name = ''] = /^#\/components\/([A-Za-z]+)\/([^/]+)$/.exec(current['$ref']) ?? [];
    const named = group(document, kind);
    current = Object.hasOwn(named, name) ? named[name] : undefined;
  }
  return isJson(current) && current['$ref'] === undefined ? current : undefined;
}

function group({ components }: Json, kind: string): Json {
  const found: unknown = isJson(components) && Object.hasOwn(components, kind) ? components[kind] : undefined;
  return isJson(found) ? found : {};
}

function listOf(given: unknown): readonly unknown[] {
  return Array.isArray(given) ? given : [];
}
