// One call of each operation of the OpenAPI document: the example of a tool, and for all else what a first-time caller
// would send.
import { z } from 'zod';

const header = z.looseObject({});
const operation = z.looseObject({
  operationId: z.string(),
  parameters: z.array(z.looseObject({ name: z.string(), in: z.string(), content: z.looseObject({}).optional() })),
  requestBody: z.looseObject({}).optional(),
  responses: z.record(z.string(), z.looseObject({ headers: z.record(z.string(), header).optional() })),
});
export const openApiDocument = z.looseObject({ paths: z.record(z.string(), z.record(z.string(), operation)) });
export type OpenApiDocument = z.output<typeof openApiDocument>;

export interface ClientCall {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** Values of the query: what the document describes as JSON, as JSON text. */
  readonly query: Readonly<Record<string, unknown>>;
  /** The same, as they are: for clients that write the JSON themselves. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly body: unknown;
  /** Names of declared headers by status, in lower case. */
  readonly headers: Readonly<Record<string, readonly string[]>>;
}

const day = '2026-01-01';
const inPaths: Readonly<Record<string, string>> = {
  slug: 'pdf-translate',
  model: 'alpha-v4-flash',
  request: '00000000-0000-4000-8000-000000000000',
  day,
  handle: 'octo',
  line: '1',
  owner: 'octo',
  name: 'chat',
  id: 'AAAAAAAAAAAAAAAAAAAAAA',
  tool: 'render-diagram',
};
const queries: Readonly<Record<string, Readonly<Record<string, unknown>>>> = { listCharges: { day } };
const question = { model: 'alpha-v4-flash', messages: [{ role: 'user', content: 'Hello' }] };
const bodies: Readonly<Record<string, unknown>> = {
  ask: { prompt: 'Hello', max_tokens: 5 },
  compare: { prompt: 'Hello' },
  createChatCompletion: question,
  createEmbeddings: { model: 'alpha-v4-flash', input: 'Hello' },
  callAgent: { jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id: '1' } },
  callApp: { method: 'GET', path: '/' },
  callAppTool: { arguments: {} },
  openDispute: { month: '2026-01', message: 'A visit is missing.' },
  submitRepository: { repo: 'https://git.test/octo/chat' },
};

/** @param examples of tools by name */
export function clientCalls(
  { paths }: OpenApiDocument,
  examples: ReadonlyMap<string, Readonly<Record<string, unknown>>>,
): ClientCall[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId: id, parameters, requestBody, responses }]) => {
      const example = examples.get(path.replace('/t/', ''));
      const named = parameters
        .filter((one) => one.in === 'path')
        .map(({ name }) => [name, id === 'getGuide' ? 'best-model-for-research-agent' : inPaths[name]]);
      const json = new Set(parameters.filter(({ content }) => content !== undefined).map(({ name }) => name));
      const query = Object.entries((method === 'get' ? example : undefined) ?? queries[id] ?? {});
      return {
        id,
        method: method.toUpperCase(),
        path,
        params: Object.fromEntries(named) as Record<string, unknown>,
        fields: Object.fromEntries(query),
        query: Object.fromEntries(query.map(([name, value]) => [name, json.has(name) ? JSON.stringify(value) : value])),
        body: requestBody === undefined ? undefined : (example ?? bodies[id]),
        headers: Object.fromEntries(
          Object.entries(responses).map(([status, response]) => [
            status,
            Object.keys(response.headers ?? {}).map((name) => name.toLowerCase()),
          ]),
        ),
      };
    }),
  );
}
