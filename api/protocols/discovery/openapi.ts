// The OpenAPI 3.1 document, derived from the definitions of the endpoints.
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { problemMediaType, type ProblemType } from '../../../lib/problem.ts';
import {
  bodyTooLarge,
  callAppPath,
  type Endpoint,
  eventStreamType,
  internalFault,
  invalidRequest,
  keyInQuery,
  notAcceptable,
  requestTooLong,
  unsupportedMediaType,
} from '../../http/index.ts';
import type { Site } from '../../apps/index.ts';
import { headerComponents, problemHeaders, successHeaders, unchangedHeaders } from './openapi-headers.ts';
import { problemSchema } from './openapi-problem.ts';

type Json = Record<string, unknown>;

/** The document that describes these endpoints. */
export function buildOpenApi(endpoints: readonly Endpoint[], baseUrl: string): Json {
  const byPath = Map.groupBy(endpoints, (endpoint) => endpoint.path);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Moorage',
      version: '1.1.0',
      description: 'Hosts open-source AI applications from their git repositories. Authentication is optional.',
    },
    servers: [{ url: baseUrl }],
    security: [{}, { key: [] }],
    paths: Object.fromEntries(
      [...byPath].map(([path, group]) => [
        path,
        Object.fromEntries(group.map((endpoint) => [endpoint.method.toLowerCase(), operation(endpoint)])),
      ]),
    ),
    components: {
      securitySchemes: {
        key: {
          type: 'http',
          scheme: 'bearer',
          description: 'Optional. Your own API key for the model router, which begins with sk-.',
        },
      },
      headers: headerComponents,
      schemas: { Problem: problemSchema },
    },
  };
}

/** The document with a path for each app that is live now, described as that app. */
export function addAppPaths(document: Json, { endpoints, apps }: Pick<Site, 'endpoints' | 'apps'>): Json {
  const call = endpoints.find(({ path }) => path === callAppPath);
  const live = apps();
  if (call === undefined || live.length === 0) return document;
  const described = operation(call);
  const own = live.map(({ slug, title, description }): [string, Json] => [
    callAppPath.replace('{slug}', slug),
    {
      post: {
        ...described,
        operationId: `${call.operation}_${slug}`,
        summary: `${call.summary}: ${title}`,
        description: `${description === '' ? '' : `${description}\n\n`}${call.description}`,
        parameters: [],
      },
    },
  ]);
  return { ...document, paths: { ...(document['paths'] as Json), ...Object.fromEntries(own) } };
}

function operation(endpoint: Endpoint): Json {
  return {
    operationId: endpoint.operation,
    summary: endpoint.summary,
    description: endpoint.description,
    tags: [endpoint.tag],
    parameters: [...parameters(endpoint.params, 'path'), ...parameters(endpoint.query, 'query')],
    ...(endpoint.body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { 'application/json': { schema: schemaOf(endpoint.body, 'input') } },
          },
        }),
    responses: { 200: success(endpoint), ...unchanged(endpoint), ...problems(endpoint) },
  };
}

function parameters(schema: z.ZodObject | undefined, location: 'path' | 'query'): Json[] {
  return Object.entries(schema?.shape ?? {}).map(([name, field]) => {
    const { description, ...form } = schemaOf(field as z.ZodType, 'input');
    return {
      name,
      in: location,
      required: location === 'path' || !(field as z.ZodType).safeParse(undefined).success,
      description,
      ...(isJson(form) ? { content: { 'application/json': { schema: form } } } : { schema: form }),
    };
  });
}

/** Objects, lists of objects and any JSON stand in a query as JSON text; all else as it is. */
function isJson(form: Json): boolean {
  const alternatives = [form['anyOf'], form['oneOf']].flat().filter((one) => typeof one === 'object');
  if (alternatives.length > 0) return alternatives.some((one) => isJson(one as Json));
  if (form['type'] === 'array') return isJson((form['items'] ?? {}) as Json);
  return form['type'] === 'object' || !['type', 'enum', 'const'].some((keyword) => keyword in form);
}

function success(endpoint: Endpoint): Json {
  const json = schemaOf(endpoint.output, 'output');
  return {
    description: endpoint.outputDescription,
    headers: successHeaders(endpoint),
    content: Object.fromEntries(endpoint.produces.map((type) => [type, contentOf(type, json)])),
  };
}

function unchanged({ maxAgeSeconds }: Endpoint): Json {
  return maxAgeSeconds === undefined
    ? {}
    : {
        304: {
          description: 'The content that If-None-Match names has not changed.',
          headers: unchangedHeaders(),
        },
      };
}

/**
 * The output schema is that of the JSON response; bytes and events have only a media type.
 */
function contentOf(type: string, json: Json): Json {
  if (/^application\/(.+\+)?json$/.test(type)) return { schema: json };
  return type.startsWith('text/') && type !== eventStreamType ? { schema: { type: 'string' } } : {};
}

/** Problems by status; several of one status share its entry. */
function problems(endpoint: Endpoint): Json {
  const always =
    endpoint.body === undefined
      ? [invalidRequest, keyInQuery, notAcceptable, requestTooLong, internalFault]
      : [invalidRequest, keyInQuery, notAcceptable, bodyTooLarge, unsupportedMediaType, requestTooLong, internalFault];
  const byStatus = Map.groupBy<number, ProblemType>([...always, ...endpoint.problems], (type) => type.status);
  return Object.fromEntries(
    [...byStatus].map(([status, types]) => [
      status,
      {
        description: types.map((type) => `${type.title} (\`${type.slug}\`).`).join(' '),
        headers: problemHeaders(endpoint, status),
        content: { [problemMediaType]: { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    ]),
  );
}

function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Json {
  const described: Json = z.toJSONSchema(schema, {
    io,
    target: 'draft-2020-12',
    override: ({ jsonSchema }) => {
      asList(jsonSchema);
      asForms(jsonSchema);
      // A response may get members within 1.x (docs/versioning.md), so none of its objects is closed.
      if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    },
  });
  // The dialect of every schema is that of the document.
  delete described['$schema'];
  return withoutTypeLists(described) as Json;
}

/** A list of types becomes alternatives: few programs that read the document know more than one type of a field. */
function withoutTypeLists(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutTypeLists);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { type, ...rest } = schema as Json;
  const inside = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, withoutTypeLists(value)]));
  if (type === undefined) return inside;
  if (!Array.isArray(type) || type.filter((one) => one !== 'null').length < 2)
    return { type: typeof type === 'object' ? withoutTypeLists(type) : type, ...inside };
  return { anyOf: type.map((one: unknown) => ({ type: one })), ...inside };
}

/** A tuple of one type is described as a list of its length: few programs that read the document know prefixItems. */
function asList(schema: z.core.JSONSchema.BaseSchema): void {
  const { prefixItems } = schema;
  const [first] = prefixItems ?? [];
  if (prefixItems === undefined || first === undefined) return;
  if (!prefixItems.every((item) => isDeepStrictEqual(item, first))) return;
  delete schema.prefixItems;
  Object.assign(schema, { items: first, minItems: prefixItems.length, maxItems: prefixItems.length });
}

/**
 * Of an object of which one of some fields is required, each alternative becomes a whole object. Some generators of
 * clients take an alternative for a type by itself, and one that only says `required` for any value; others (Go) send the
 * fields of the object around the alternatives, which therefore keeps them.
 */
function asForms(schema: z.core.JSONSchema.BaseSchema): void {
  const { type, properties, required = [], additionalProperties, oneOf } = schema;
  const choices = oneOf?.map((choice) => choice.required ?? []);
  if (properties === undefined || choices === undefined || choices.some((names) => names.length === 0)) return;
  const chosen = choices.flat();
  schema.oneOf = choices.map((names) => ({
    type,
    properties: Object.fromEntries(
      Object.entries(properties).filter(([name]) => names.includes(name) || !chosen.includes(name)),
    ),
    required: [...required, ...names],
    additionalProperties,
  })) as z.core.JSONSchema.BaseSchema[];
}
