// Builds the OpenAPI 3.1 document from the definitions of the endpoints.
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
import { quotaFields } from '../../billing/index.ts';

type Json = Record<string, unknown>;

/** Builds the document for these endpoints. */
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
        Object.fromEntries(group.map((endpoint) => [endpoint.method.toLowerCase(), buildOperation(endpoint)])),
      ]),
    ),
    components: {
      securitySchemes: {
        key: {
          type: 'http',
          scheme: 'bearer',
          description: 'Optional. Your own API key for the model router, which begins with sk-.',
        },
        authorKey: {
          type: 'http',
          scheme: 'bearer',
          description: 'The key of an author, which begins with mak-. Its line is in the repository of the app.',
        },
        appToken: {
          type: 'http',
          scheme: 'bearer',
          description:
            'A token that an author made for their app, which begins with mat-, with the scopes that are named.',
        },
      },
      headers: headerComponents,
      schemas: { Problem: problemSchema },
    },
  };
}

/** Adds a path for each live app, described as that app. */
export function addAppPaths(document: Json, { endpoints, listApps }: Pick<Site, 'endpoints' | 'listApps'>): Json {
  const call = endpoints.find(({ path }) => path === callAppPath);
  const live = listApps();
  if (call === undefined || live.length === 0) return document;
  const described = buildOperation(call);
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

function buildOperation(endpoint: Endpoint): Json {
  return {
    operationId: endpoint.operation,
    summary: endpoint.summary,
    description: endpoint.description,
    tags: [endpoint.tag],
    ...buildSecurity(endpoint),
    parameters: [...buildParameters(endpoint.params, 'path'), ...buildParameters(endpoint.query, 'query')],
    ...(endpoint.body === undefined
      ? {}
      : {
          requestBody: {
            required: endpoint.bodyForm !== 'raw',
            content:
              endpoint.bodyForm === 'raw'
                ? { '*/*': {} }
                : { 'application/json': { schema: toJsonSchema(endpoint.body, 'input') } },
          },
        }),
    responses: {
      [endpoint.successStatus ?? 200]: buildSuccessResponse(endpoint),
      ...buildUnchangedResponse(endpoint),
      ...buildProblemResponses(endpoint),
    },
  };
}

/** What authors' endpoints require, instead of the optional key of all others. */
function buildSecurity({ authorScope }: Endpoint): Json {
  if (authorScope === undefined) return {};
  const token = ['owner', 'key'].includes(authorScope) ? [] : [{ appToken: [authorScope] }];
  return { security: [{ authorKey: [] }, ...token] };
}

function buildParameters(schema: z.ZodObject | undefined, location: 'path' | 'query'): Json[] {
  return Object.entries(schema?.shape ?? {}).map(([name, field]) => {
    const { description, ...form } = toJsonSchema(field as z.ZodType, 'input');
    return {
      name,
      in: location,
      required: location === 'path' || !(field as z.ZodType).safeParse(undefined).success,
      description,
      ...(isJson(form) ? { content: { 'application/json': { schema: form } } } : { schema: form }),
    };
  });
}

/** Returns whether a query parameter is sent as JSON text: objects, lists of objects and arbitrary JSON. */
function isJson(form: Json): boolean {
  const alternatives = [form['anyOf'], form['oneOf']].flat().filter((one) => typeof one === 'object');
  if (alternatives.length > 0) return alternatives.some((one) => isJson(one as Json));
  if (form['type'] === 'array') return isJson((form['items'] ?? {}) as Json);
  return form['type'] === 'object' || !['type', 'enum', 'const'].some((keyword) => keyword in form);
}

function buildSuccessResponse(endpoint: Endpoint): Json {
  const json = toJsonSchema(endpoint.output, 'output');
  return {
    description: endpoint.outputDescription,
    headers: buildSuccessHeaders(endpoint),
    content: Object.fromEntries(endpoint.produces.map((type) => [type, buildContent(type, json)])),
  };
}

function buildUnchangedResponse({ maxAgeSeconds }: Endpoint): Json {
  return maxAgeSeconds === undefined
    ? {}
    : {
        304: {
          description: 'The content that If-None-Match names has not changed.',
          headers: buildUnchangedHeaders(),
        },
      };
}

/** Describes the JSON response with the output schema. Binary and event responses have only a media type. */
function buildContent(type: string, json: Json): Json {
  if (/^application\/(.+\+)?json$/.test(type)) return { schema: json };
  return type.startsWith('text/') && type !== eventStreamType ? { schema: { type: 'string' } } : {};
}

/** Describes the problems by status code. Problems with the same status share one entry. */
function buildProblemResponses(endpoint: Endpoint): Json {
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
        headers: buildProblemHeaders(endpoint, status),
        content: { [problemMediaType]: { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    ]),
  );
}

function toJsonSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  const described: Json = z.toJSONSchema(schema, {
    io,
    target: 'draft-2020-12',
    override: ({ jsonSchema }) => {
      rewriteTupleAsList(jsonSchema);
      moveFieldsIntoAlternatives(jsonSchema);
      // Responses may gain members within 1.x (docs/versioning.md), so no object is closed.
      if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    },
  });
  // The document declares the dialect of every schema.
  delete described['$schema'];
  return replaceTypeLists(described) as Json;
}

/** Replaces type lists with alternatives: few OpenAPI tools support more than one type per field. */
function replaceTypeLists(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(replaceTypeLists);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { type, ...rest } = schema as Json;
  const inside = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, replaceTypeLists(value)]));
  if (type === undefined) return inside;
  if (!Array.isArray(type) || type.filter((one) => one !== 'null').length < 2)
    return { type: typeof type === 'object' ? replaceTypeLists(type) : type, ...inside };
  return { anyOf: type.map((one: unknown) => ({ type: one })), ...inside };
}

/** Describes a homogeneous tuple as an array of fixed length: few OpenAPI tools support prefixItems. */
function rewriteTupleAsList(schema: z.core.JSONSchema.BaseSchema): void {
  const { prefixItems } = schema;
  const [first] = prefixItems ?? [];
  if (prefixItems === undefined || first === undefined) return;
  if (!prefixItems.every((item) => isDeepStrictEqual(item, first))) return;
  delete schema.prefixItems;
  Object.assign(schema, { items: first, minItems: prefixItems.length, maxItems: prefixItems.length });
}

/**
 * If an object requires one of several fields, repeats the other fields in each alternative. Some client generators
 * treat an alternative as a complete type, and one with only `required` as any value. Others (Go) use the fields around
 * the alternatives, so those stay too.
 */
function moveFieldsIntoAlternatives(schema: z.core.JSONSchema.BaseSchema): void {
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

/** Response headers as shared components: those of every response, and those that depend on the kind of endpoint. */
const descriptions = {
  'X-Request-Id': 'Id of the request, as in problems and in the log.',
  'X-Quota-Hint': 'Sent when less than a fifth of the free quota is left: how much, and how to continue.',
  RateLimit: 'What is left of the daily quota: `r` in millionths of a dollar, `t` in seconds until it resets.',
  'RateLimit-Policy': 'The daily quota: `q` in millionths of a dollar, `w` in seconds.',
  'Idempotent-Replayed': '`true` if this is the stored response to an earlier request with the same Idempotency-Key.',
  'Retry-After': 'After how many seconds to try again.',
  'WWW-Authenticate': 'Which credentials are accepted.',
  ETag: 'Names this content; send it as If-None-Match to learn whether it has changed.',
  'Cache-Control': 'For how long the response may be kept.',
} as const;
type HeaderName = keyof typeof descriptions;

const headerComponents: Json = Object.fromEntries(
  Object.entries(descriptions).map(([name, description]) => [name, { description, schema: { type: 'string' } }]),
);

/** Lists the headers of a successful response. */
function buildSuccessHeaders(endpoint: Endpoint): Json {
  return {
    ...buildHeaderReferences(['X-Request-Id', ...listProblemHeaders(endpoint), ...listCacheHeaders(endpoint)]),
    ...describeOwnHeaders(endpoint.responseHeaders),
  };
}

/** Lists the headers of a 304 response. */
function buildUnchangedHeaders(): Json {
  return buildHeaderReferences(['X-Request-Id', 'ETag', 'Cache-Control']);
}

/** Lists the headers of the endpoint's problems with this status. */
function buildProblemHeaders(endpoint: Endpoint, status: number): Json {
  return {
    ...buildHeaderReferences([
      'X-Request-Id',
      'Cache-Control',
      ...(status === 401 ? (['WWW-Authenticate'] as const) : []),
      ...(status === 402 ? (['RateLimit', 'RateLimit-Policy'] as const) : []),
      ...([402, 409, 422, 429].includes(status) || status >= 500 ? (['Retry-After'] as const) : []),
    ]),
    ...describeOwnHeaders(endpoint.problemHeaders),
  };
}

/** Calls that spend quota report the remaining quota. Calls that can be replayed report whether they were. */
function listProblemHeaders({ problems }: Endpoint): HeaderName[] {
  const slugs = new Set(problems.map(({ slug }) => slug));
  return [
    ...(slugs.has('quota-exhausted') ? (['RateLimit', 'RateLimit-Policy', 'X-Quota-Hint'] as const) : []),
    ...(slugs.has('idempotency-mismatch') ? (['Idempotent-Replayed'] as const) : []),
  ];
}

function listCacheHeaders({ maxAgeSeconds }: Endpoint): HeaderName[] {
  return maxAgeSeconds === undefined ? ['Cache-Control'] : ['ETag', 'Cache-Control'];
}

/** Describes the headers that an endpoint defines itself. */
function describeOwnHeaders(headers: Readonly<Record<string, string>> = {}): Json {
  return Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, schema: { type: 'string' } }]),
  );
}

function buildHeaderReferences(names: readonly HeaderName[]): Json {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

const text = { type: 'string' };
const count = { type: 'integer' };
const texts = { type: 'array', items: text };
const addDescription = (schema: Json, description: string): Json => ({ ...schema, description });

const { $schema: _, ...quota } = z.toJSONSchema(quotaFields, { io: 'input' });

/** Members that our problem types add to those of RFC 9457. Each problem has only those that apply to it. */
const addedMembers: Readonly<Record<string, Json>> = {
  actions: {
    type: 'array',
    description: 'Ways to continue.',
    items: {
      type: 'object',
      required: ['action', 'description'],
      properties: {
        action: text,
        description: text,
        header: addDescription(text, 'A header to send.'),
        until: addDescription(text, 'When it can be done.'),
        models: texts,
      },
    },
  },
  quota: addDescription(quota, 'The quota that does not cover the call. Amounts are decimal strings.'),
  nearest: addDescription(texts, 'The most similar names there are.'),
  offers: addDescription(texts, 'The media types that the endpoint answers with.'),
  models: addDescription(texts, 'The models that need a key.'),
  model: addDescription(text, 'The model that was asked.'),
  cost_usd: addDescription(
    { type: 'number' },
    'What the call cost: 0, or what its model calls before the failure cost. Every problem at /t has it, unless the cost is pending.',
  ),
  charged_usd: addDescription({ type: 'number' }, 'What of it you are charged.'),
  cost_source: addDescription(text, 'Where the cost comes from; `pending` while it is not known.'),
  latency_ms: count,
  limit: addDescription({ anyOf: [text, count] }, 'Which limit was reached, or how high it is.'),
  used: addDescription(count, 'How much of the limit is used.'),
  limit_bytes: count,
  limit_entries: count,
  limit_ms: count,
  limit_mb: count,
  line: addDescription(count, 'Line of the source that is wrong.'),
  job: addDescription(text, 'Id of the job that failed.'),
  service: addDescription(text, 'The backing service that is off or failed.'),
  media_type: addDescription(text, 'The type that was found. It is not one of those accepted.'),
  target_status: addDescription(count, 'Status with which the other server answered.'),
  failed_engines: texts,
  status: count,
  status_url: addDescription(text, 'Where the status of the app is.'),
  first: addDescription(text, 'The first day there is.'),
  last: addDescription(text, 'The last day there is.'),
};

const problemSchema: Json = {
  type: 'object',
  description: 'RFC 9457 problem.',
  required: ['type', 'title', 'status', 'detail', 'instance', 'request_id'],
  properties: {
    ...addedMembers,
    type: { type: 'string', format: 'uri' },
    title: text,
    status: count,
    detail: text,
    instance: text,
    request_id: text,
    errors: {
      type: 'array',
      items: {
        type: 'object',
        required: ['in', 'field', 'message', 'fix'],
        properties: {
          in: { enum: ['body', 'path', 'query', 'header', 'argument'] },
          field: text,
          message: text,
          fix: text,
        },
      },
    },
  },
};
