// POST /api/projects/{slug}/call: a request to a hosted app as JSON, and the response of the app with its cost.
import { z } from 'zod';
import {
  callAppPath,
  defineEndpoint,
  type Endpoint,
  createValidationProblem,
  createJsonResponse,
} from '../../http/index.ts';
import {
  formatMoney,
  ledgerUnavailable,
  ledgerUnconfigured,
  quotaExhausted,
  idempotencyInFlight,
  idempotencyMismatch,
  rateLimitHeaders,
  type Replays,
  replayHeaders,
} from '../../billing/index.ts';
import {
  keyChecksLimited,
  keyRefused,
  modelsUnconfigured,
  type PayerFor,
  routerUnavailable,
} from '../../models/index.ts';
import { toolBusy, tooManyCalls } from '../../tools/index.ts';
import { contentFields, maxBufferedBytes, receiptFields, readContent, contentView, receiptView } from './response.ts';
import type { AppCalls } from './app-calls.ts';
import { appPath, methods } from './app-path.ts';
import type { AppRequestContent } from './app-client.ts';
import type { Directory } from '../directory.ts';
import { forwardedHeaders, isForwarded } from './headers.ts';
import { maxRequestBytes, maxStreamedBytes } from './path-calls.ts';
import { appProblems } from '../problems.ts';

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
      .refine((path) => appPath(path) !== undefined, 'must be a path that begins with "/", optionally with a query')
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

/** A response as it is stored for an Idempotency-Key. */
const stored = z.object({ view: output, headers: z.record(z.string(), z.string()) });

export function appEndpoints({ directory, calls, payerFor, replays }: AppEndpointsOptions): Endpoint[] {
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
      problems: [
        ...appProblems,
        quotaExhausted,
        keyRefused,
        keyChecksLimited,
        modelsUnconfigured,
        routerUnavailable,
        ledgerUnavailable,
        ledgerUnconfigured,
        tooManyCalls,
        toolBusy,
        idempotencyInFlight,
        idempotencyMismatch,
      ],
      async handler({ params, body }, context) {
        const target = directory.get(params.slug);
        const request = appRequestOf(body);
        const payer = await payerFor(context);
        const { value, replayed } = await replays.once(context, {
          payer,
          body: { app: target.slug, body },
          answer: stored,
          // A server error of the app is free, and worth another try.
          isStored: ({ view }) => view.status < 500,
          async run(signal) {
            const call = { target, payer, via: 'json' as const, id: context.id, signal };
            const sent = await calls.send(call, request, (response) => readContent(target, response));
            const { value: content, ...receipt } = sent;
            const view: z.output<typeof output> = {
              app: target.slug,
              ...contentView(content),
              ...receiptView(receipt, context.id),
            };
            return { view, headers: rateLimitHeaders(receipt.quota, payer, Date.now()) };
          },
        });
        return createJsonResponse(value.view, {
          headers: { 'cache-control': 'no-store', ...value.headers, ...replayHeaders(replayed) },
        });
      },
    }),
  ];
}

type Body = Pick<AppRequestContent, 'body'> & { readonly type?: string };

function appRequestOf(given: CallBody): AppRequestContent {
  const names = Object.keys(given.headers ?? {}).filter((name) => !isForwarded(name));
  if (names.length > 0)
    throw createValidationProblem(
      names.map((name) => ({
        in: 'body' as const,
        field: `headers.${name}`,
        message: 'is not forwarded to apps',
        fix: 'Remove it.',
      })),
    );
  const { body, type } = bodyOf(given);
  const headers = forwardedHeaders(Object.entries(given.headers ?? {}));
  return {
    method: given.method,
    path: withQuery(given),
    headers: { ...(type === undefined ? {} : { 'content-type': type }), ...headers },
    body,
  };
}

function withQuery({ path, query }: CallBody): string {
  const [bare = '/', before = ''] = (appPath(path) ?? '/').split(/\?(.*)/s);
  const fields = new URLSearchParams(before);
  for (const [name, value] of Object.entries(query ?? {}))
    for (const one of [value].flat()) fields.append(name, String(one));
  // A query in the path stays as it was written unless something is added to it.
  const text = query === undefined ? before : fields.toString();
  return text === '' ? bare : `${bare}?${text}`;
}

function bodyOf({ method, headers = {}, body, base64 }: CallBody): Body {
  if (body === undefined && base64 === undefined) return {};
  const field = base64 === undefined ? 'body' : 'base64';
  if (method === 'GET' || method === 'HEAD')
    throw createValidationProblem([
      { in: 'body', field, message: `is not allowed with ${method}`, fix: 'Remove it, or set "method" to "POST".' },
    ]);
  if (base64 === undefined)
    return ofValue(body, Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1]);
  if (body !== undefined)
    throw createValidationProblem([
      { in: 'body', field, message: 'cannot be combined with body', fix: 'Send only one of them.' },
    ]);
  return { body: Buffer.from(base64, 'base64'), type: 'application/octet-stream' };
}

function ofValue(body: unknown, type: string | undefined): Body {
  if (typeof body === 'string' && type !== undefined && !/json/i.test(type)) return { body };
  return { body: JSON.stringify(body), type: 'application/json' };
}
