// The two ways to call a hosted app over HTTP: POST /api/projects/{slug}/call takes the request as JSON and returns the
// response with its cost; /api/projects/{slug}/call/{path} forwards any request as it is and streams both bodies.
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { z } from 'zod';
import {
  callAppPath,
  defineEndpoint,
  type Endpoint,
  createValidationProblem,
  methodNotAllowed,
  notFound,
  type ProtocolMount,
  readIdempotencyKey,
} from '../../http/index.ts';
import { formatMoney, formatQuotaHeaders, type Replays, replayHeaders } from '../../billing/index.ts';
import type { PayerFor } from '../../models/index.ts';
import {
  contentFields,
  maxBufferedBytes,
  readContent,
  toContentView,
  type AppRequestContent,
  createTooLarge,
  limitBytes,
  createBodyTooLarge,
  type AppResponse,
} from './app-client.ts';
import {
  answerOnce,
  type AppCalls,
  callProblems,
  type CallReceipt,
  createStoredViewSchema,
  receiptFields,
  toReceiptView,
} from './app-calls.ts';
import {
  parseAppPath,
  methods,
  selectForwardedHeaders,
  isForwarded,
  type Method,
  selectReturnedHeaders,
  parseLocationWithin,
} from './forwarding.ts';
import type { Directory, Target } from '../directory.ts';
import { Problem } from '../../../lib/problem.ts';

export interface AppEndpointsOptions {
  readonly directory: Directory;
  readonly calls: AppCalls;
  readonly payerFor: PayerFor;
  readonly replays: Replays;
}

const scalar = z.union([z.string(), z.number(), z.boolean()]);
const callBody = z
  .strictObject({
    method: z
      .enum(methods)
      .default('GET')
      .describe(`One of ${methods.join(', ')}; default GET.`),
    path: z
      .string()
      .max(8_000)
      .refine(
        (path) => parseAppPath(path) !== undefined,
        'must be a path that begins with "/", optionally with a query',
      )
      .default('/')
      .describe('Path of the request to the app, optionally with a query, such as /search?q=a; default /.'),
    query: z
      .record(z.string().max(200), z.union([scalar, z.array(scalar).max(100)]))
      .optional()
      .describe('Query parameters, added to those in path. A list adds one parameter per item.'),
    headers: z
      .record(z.string().max(100), z.string().max(4_000))
      .optional()
      .describe(
        'Headers for the app, such as {"accept": "text/csv"}. Authorization, cookies and headers of connections and proxies are not accepted.',
      ),
    body: z
      .unknown()
      .optional()
      .describe('Request body. Sent as JSON, unless it is a string and headers has a Content-Type other than JSON.'),
    base64: z.base64().max(1_400_000).optional().describe('Request body as base64. Use instead of body.'),
  })
  .describe('{"method": "POST", "path": "/predict", "body": {…}}');
type CallBody = z.output<typeof callBody>;

const output = z.object({ app: z.string().describe('Slug of the app.'), ...contentFields, ...receiptFields });

const storedView = createStoredViewSchema(output);

export function createAppEndpoints(options: AppEndpointsOptions): Endpoint[] {
  const { directory, calls } = options;
  return [
    defineEndpoint({
      method: 'POST',
      path: callAppPath,
      operation: 'callApp',
      tag: 'apps',
      summary: 'Call a hosted app',
      description:
        `Sends a request to a live app and returns the response of the app, whatever its status, up to ${maxBufferedBytes} bytes. Each call costs ${formatMoney(calls.price)} USD. Calls that the app does not respond to, or responds to with a server error (5xx), are free. ` +
        'Calls without a key use the free daily quota. ' +
        `To call an app directly with any HTTP client, send ${methods.join(', ')} to ${callAppPath}/{path}. Method, query, headers and body are forwarded (up to ${maxRequestBytes} bytes), and the response is streamed back (up to ${maxStreamedBytes} bytes) with the headers x-cost-usd, x-charged-usd, x-cost-source and x-latency-ms. ` +
        'The key, cookies and IP address of the caller are not sent to the app. ' +
        `With an Idempotency-Key (forwarded too), a call that is sent again within 24 hours gets the same response and is charged once, unless the app responded with a server error; below ${callAppPath}/{path} this holds for POST, PUT, PATCH and DELETE, whose response is then limited to ${maxBufferedBytes} bytes.`,
      bodyLimit: 1_500_000,
      params: z.strictObject({ slug: z.string().max(100).describe('Slug of a live app.') }),
      body: callBody,
      output,
      outputDescription: 'The response of the app, and the cost of the call.',
      problems: callProblems,
      async handler({ params, body }, context) {
        const target = directory.get(params.slug);
        const request = toAppRequest(body);
        return answerOnce(options, context, {
          body: { app: target.id, body },
          stored: storedView,
          isStored: ({ status }) => status < 500,
          async run(payer, signal) {
            const call = { target, payer, via: 'json' as const, id: context.id, signal };
            const sent = await calls.send(call, request, (response) => readContent(target, response));
            const { value: content, ...receipt } = sent;
            const view = { app: target.slug, ...toContentView(content), ...toReceiptView(receipt, context.id) };
            return { view, quota: receipt.quota };
          },
        });
      },
    }),
  ];
}

type Body = Pick<AppRequestContent, 'body'> & { readonly type?: string };

function toAppRequest(call: CallBody): AppRequestContent {
  const names = Object.keys(call.headers ?? {}).filter((name) => !isForwarded(name));
  if (names.length > 0)
    throw createValidationProblem(
      names.map((name) => ({
        in: 'body' as const,
        field: `headers.${name}`,
        message: 'is not forwarded to apps',
        fix: 'Remove it.',
      })),
    );
  const { body, type } = toBody(call);
  const headers = selectForwardedHeaders(Object.entries(call.headers ?? {}));
  return {
    method: call.method,
    path: addQuery(call),
    headers: { ...(type === undefined ? {} : { 'content-type': type }), ...headers },
    body,
  };
}

function addQuery({ path, query }: CallBody): string {
  const [bare = '/', before = ''] = (parseAppPath(path) ?? '/').split(/\?(.*)/s);
  const fields = new URLSearchParams(before);
  for (const [name, value] of Object.entries(query ?? {}))
    for (const one of [value].flat()) fields.append(name, String(one));
  // Keep a query in the path exactly as written unless something is added to it.
  const text = query === undefined ? before : fields.toString();
  return text === '' ? bare : `${bare}?${text}`;
}

function toBody({ method, headers = {}, body, base64 }: CallBody): Body {
  if (body === undefined && base64 === undefined) return {};
  const field = base64 === undefined ? 'body' : 'base64';
  if (method === 'GET' || method === 'HEAD')
    throw createValidationProblem([
      { in: 'body', field, message: `is not allowed with ${method}`, fix: 'Remove it, or set "method" to "POST".' },
    ]);
  if (base64 === undefined)
    return encodeBody(body, Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1]);
  if (body !== undefined)
    throw createValidationProblem([
      { in: 'body', field, message: 'cannot be combined with body', fix: 'Send only one of them.' },
    ]);
  return { body: Buffer.from(base64, 'base64'), type: 'application/octet-stream' };
}

function encodeBody(body: unknown, type: string | undefined): Body {
  if (typeof body === 'string' && type !== undefined && !/json/i.test(type)) return { body };
  return { body: JSON.stringify(body), type: 'application/json' };
}

export const maxRequestBytes = 16 * 1_048_576;
export const maxStreamedBytes = 64 * 1_048_576;

/** Slug and path as they were sent, not decoded. */
const callAddress = /^\/api\/projects\/([^/]+)\/call(\/.*)$/s;

/** A response as it is stored for an Idempotency-Key. */
const storedResponse = z.object({
  status: z.int(),
  headers: z.record(z.string(), z.string()),
  base64: z.string().nullable(),
});

export function createPathCalls({
  directory,
  calls,
  payerFor,
  replays,
  baseUrl,
}: AppEndpointsOptions & { readonly baseUrl: string }): ProtocolMount {
  return {
    path: '/api/projects/{slug}/call/{path}',
    pattern: '/api/projects/{slug}/call/*',
    // Without a path, the JSON endpoint answers.
    accepts: (request) => callAddress.test(new URL(request.url).pathname),
    async handle(request, context) {
      const { pathname, search } = new URL(request.url);
      const [, slug = '', rest = ''] = callAddress.exec(pathname) ?? [];
      const method = readMethod(request);
      const target = directory.get(slug);
      const path = parseAppPath(`${rest}${search}`);
      if (path === undefined)
        throw new Problem(
          notFound,
          'The path after /call is longer than 8,000 characters, or contains characters that are not allowed in a URL.',
        );
      const body = readRequestBody(request);
      const payer = await payerFor(context);
      const call = { target, payer, via: 'path' as const, id: context.id, signal: context.signal };
      const headers = selectForwardedHeaders(request.headers);
      const createHeaders = (response: AppResponse, receipt: CallReceipt): Record<string, string> => ({
        ...selectReturnedHeaders(response.headers),
        ...rewriteLocation(response, target, path, baseUrl),
        ...createCallHeaders(target, receipt),
        ...formatQuotaHeaders(receipt.quota, payer, Date.now()),
      });
      if (changingMethods.has(method) && readIdempotencyKey(context.headers) !== undefined) {
        const sent = body === undefined ? undefined : await buffer(body);
        const { value, replayed } = await replays.once(context, {
          payer,
          body: { app: target.id, method, path, headers, body: hashBody(sent) },
          answer: storedResponse,
          isStored: ({ status }) => status < 500,
          async run(signal) {
            const { value: got, ...receipt } = await calls.send(
              { ...call, signal },
              { method, path, headers, body: sent },
              async (response) => ({ response, bytes: await bufferBody(response, method, target) }),
            );
            const base64 = got.bytes === undefined ? null : got.bytes.toString('base64');
            return { status: got.response.status, headers: createHeaders(got.response, receipt), base64 };
          },
        });
        return new Response(value.base64 === null ? null : Buffer.from(value.base64, 'base64'), {
          status: value.status,
          headers: { ...value.headers, ...replayHeaders(replayed) },
        });
      }
      const { value, ...receipt } = await calls.send(call, { method, path, headers, body }, (response) =>
        Promise.resolve(assertStreamable(target, response)),
      );
      return new Response(hasNoBody(method, value.status) ? drainBody(value) : toLimitedStream(value, target), {
        status: value.status,
        headers: createHeaders(value, receipt),
      });
    },
  };
}

/** Stands for the body in the idempotency record, for which the body itself may be too large. */
function hashBody(bytes: Uint8Array | undefined): string | undefined {
  return bytes === undefined ? undefined : createHash('sha256').update(bytes).digest('hex');
}

/** Methods that may change something in an app, so that a repeated request must not run twice. */
const changingMethods: ReadonlySet<Method> = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

/** Reads the body into memory, as the app encoded it; undefined if the response has none. */
async function bufferBody(response: AppResponse, method: Method, { slug }: Target): Promise<Buffer | undefined> {
  if (hasNoBody(method, response.status)) {
    drainBody(response);
    return undefined;
  }
  return buffer(limitBytes(response.body, { left: maxBufferedBytes }, () => createTooLarge(slug, maxBufferedBytes)));
}

function readMethod({ method }: Request): Method {
  const known = methods.find((one) => one === method);
  if (known === undefined)
    throw new Problem(
      methodNotAllowed,
      `Calls of apps do not support ${method.slice(0, 20)}. Use ${methods.join(', ')}.`,
      {
        headers: { allow: methods.join(', ') },
      },
    );
  return known;
}

function readRequestBody({ headers, body, method }: Request): Readable | undefined {
  if (Number(headers.get('content-length') ?? 0) > maxRequestBytes) throw createBodyTooLarge(maxRequestBytes);
  if (body === null) return undefined;
  if (method === 'GET' || method === 'HEAD')
    throw createValidationProblem([
      { in: 'body', field: '', message: `is not allowed with ${method}`, fix: 'Remove it, or use POST.' },
    ]);
  return limitBytes(Readable.fromWeb(body), { left: maxRequestBytes }, () => createBodyTooLarge(maxRequestBytes));
}

function assertStreamable(target: Target, response: AppResponse): AppResponse {
  if (Number(response.headers['content-length'] ?? 0) > maxStreamedBytes)
    throw createTooLarge(target.slug, maxStreamedBytes);
  return response;
}

function hasNoBody(method: Method, status: number): boolean {
  return method === 'HEAD' || status === 204 || status === 205 || status === 304;
}

function drainBody({ body }: AppResponse): null {
  body.resume();
  return null;
}

/** Ends the stream at the limit: the response has begun, so it is too late for a problem. */
function toLimitedStream({ body }: AppResponse, target: Target): ReadableStream {
  return Readable.toWeb(
    limitBytes(body, { left: maxStreamedBytes }, () => createTooLarge(target.slug, maxStreamedBytes)),
  ) as ReadableStream;
}

/** Headers that Moorage adds. A stranger's content may be opened in a browser from here, so `sandbox` isolates its origin. */
function createCallHeaders({ slug }: Target, { cost, latencyMs }: CallReceipt): Record<string, string> {
  return {
    'content-security-policy': 'sandbox',
    'cache-control': 'no-store',
    'x-app': slug,
    'x-cost-usd': formatMoney(cost.known),
    'x-cost-source': cost.source,
    'x-charged-usd': formatMoney(cost.charged),
    'x-latency-ms': String(latencyMs),
  };
}

/** Rewrites a redirect within the app to this path; a redirect that leaves the app is dropped. */
function rewriteLocation(
  { headers: { location } }: AppResponse,
  target: Target,
  path: string,
  baseUrl: string,
): { location?: string } {
  const within = parseLocationWithin(location, target, path);
  return within === undefined ? {} : { location: `${baseUrl}/api/projects/${target.slug}/call${within}` };
}
