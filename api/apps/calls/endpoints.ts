// POST /api/projects/{slug}/call: a request to a hosted app as JSON, and its answer with what it cost.
import { z } from 'zod';
import { callPath } from '../../http/paths.ts';
import { defineEndpoint, type Endpoint } from '../../http/endpoint.ts';
import { formatMoney } from '../../billing/ledger/money.ts';
import * as billing from '../../billing/problems.ts';
import * as models from '../../models/problems.ts';
import { rateLimitHeaders } from '../../billing/quota.ts';
import type { PayerFor } from '../../models/callers/payers.ts';
import { tooManyCalls, toolBusy } from '../../tools/problems.ts';
import { invalid } from '../../http/validation.ts';
import { answerFields, mostAnswerBytes, paidFields, readWhole, toldAnswer, toldPaid } from './response.ts';
import type { AppCalls } from './app-calls.ts';
import { appPath, methods, type Errand } from './app-client.ts';
import type { Directory } from '../directory.ts';
import { headersOn, mayGoOn } from './headers.ts';
import { mostRequestBytes, mostStreamedBytes } from './path-calls.ts';
import { appProblems } from '../problems.ts';

export interface AppEndpointsOptions {
  readonly directory: Directory;
  readonly calls: AppCalls;
  readonly payerFor: PayerFor;
}

const scalar = z.union([z.string(), z.number(), z.boolean()]);
const wanted = z
  .strictObject({
    method: z
      .enum(methods)
      .default('GET')
      .describe(`One of ${methods.join(', ')}; default GET`),
    path: z
      .string()
      .max(8_000)
      .refine((path) => appPath(path) !== undefined, 'must be a path that begins with "/", and may have a query')
      .default('/')
      .describe('Path at the app, which may have a query, like /search?q=a; default /'),
    query: z
      .record(z.string().max(200), z.union([scalar, z.array(scalar).max(100)]))
      .optional()
      .describe('Fields of the query, added to those of path; of a list, each item'),
    headers: z
      .record(z.string().max(100), z.string().max(4_000))
      .optional()
      .describe(
        'Headers for the app, like {"accept": "text/csv"}. Not Authorization, cookies, nor those that tell of a connection or of proxies',
      ),
    body: z
      .unknown()
      .optional()
      .describe('Body: sent as JSON, unless it is a text and headers has a Content-Type that is not JSON'),
    base64: z.base64().max(1_400_000).optional().describe('Body as base64, instead of body'),
  })
  .describe('{"method": "POST", "path": "/predict", "body": {…}}');
type Wanted = z.output<typeof wanted>;

const output = z.object({ app: z.string().describe('Slug of the app'), ...answerFields, ...paidFields });

export function appEndpoints({ directory, calls, payerFor }: AppEndpointsOptions): Endpoint[] {
  return [
    defineEndpoint({
      method: 'POST',
      path: callPath,
      operation: 'callApp',
      tag: 'apps',
      summary: 'Call a hosted app',
      description:
        `Sends a request to a live app, and answers with what the app answered, up to ${mostAnswerBytes} bytes, whatever its status is. Each call costs ${formatMoney(calls.price)} USD; a call that the app does not answer, or answers with a fault of its own (5xx), costs nothing. ` +
        'Without a key it draws on the free quota of the day. ' +
        `Any HTTP client can call an app as it is, too: any of ${methods.join(', ')} at ${callPath}/{path} passes method, query, headers and body on, and streams the answer back (up to ${mostRequestBytes} bytes there and ${mostStreamedBytes} back), with x-cost-usd, x-cost-source and x-latency-ms among its headers. ` +
        'The app hears neither the key nor the cookies nor the address of the caller.',
      bodyLimit: 1_500_000,
      params: z.strictObject({ slug: z.string().max(100).describe('Slug of a live app') }),
      body: wanted,
      output,
      outputDescription: 'What the app answered, and what the call cost.',
      problems: [
        ...appProblems,
        billing.quotaExhausted,
        models.keyRefused,
        models.modelsUnconfigured,
        models.routerUnavailable,
        billing.ledgerUnavailable,
        billing.ledgerUnconfigured,
        tooManyCalls,
        toolBusy,
      ],
      async handler({ params, body }, context) {
        const target = directory.get(params.slug);
        const errand = errandOf(body);
        const payer = await payerFor(context);
        const call = { target, payer, via: 'json' as const, id: context.id, signal: context.signal };
        const { value, ...paid } = await calls.send(call, errand, (brought) => readWhole(target, brought));
        const told: z.output<typeof output> = { app: target.slug, ...toldAnswer(value), ...toldPaid(paid, context.id) };
        return Response.json(told, {
          headers: { 'cache-control': 'no-store', ...rateLimitHeaders(paid.quota, payer, Date.now()) },
        });
      },
    }),
  ];
}

type Body = Pick<Errand, 'body'> & { readonly type?: string };

function errandOf(given: Wanted): Pick<Errand, 'method' | 'path' | 'headers' | 'body'> {
  const names = Object.keys(given.headers ?? {}).filter((name) => !mayGoOn(name));
  if (names.length > 0)
    throw invalid(
      names.map((name) => ({
        in: 'body' as const,
        field: `headers.${name}`,
        message: 'is not passed on to apps',
        fix: 'leave it out',
      })),
    );
  const { body, type } = bodyOf(given);
  const headers = headersOn(Object.entries(given.headers ?? {}));
  return {
    method: given.method,
    path: withQuery(given),
    headers: { ...(type === undefined ? {} : { 'content-type': type }), ...headers },
    body,
  };
}

function withQuery({ path, query }: Wanted): string {
  const [bare = '/', before = ''] = (appPath(path) ?? '/').split(/\?(.*)/s);
  const fields = new URLSearchParams(before);
  for (const [name, value] of Object.entries(query ?? {}))
    for (const one of [value].flat()) fields.append(name, String(one));
  // A query that was written in the path stays as it was written, where nothing is added.
  const text = query === undefined ? before : fields.toString();
  return text === '' ? bare : `${bare}?${text}`;
}

function bodyOf({ method, headers = {}, body, base64 }: Wanted): Body {
  if (body === undefined && base64 === undefined) return {};
  const field = base64 === undefined ? 'body' : 'base64';
  if (method === 'GET' || method === 'HEAD')
    throw invalid([
      { in: 'body', field, message: `${method} takes no body`, fix: 'leave it out, or send "method": "POST"' },
    ]);
  if (base64 === undefined)
    return ofValue(body, Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1]);
  if (body !== undefined)
    throw invalid([{ in: 'body', field, message: 'stands beside body', fix: 'send one of them' }]);
  return { body: Buffer.from(base64, 'base64'), type: 'application/octet-stream' };
}

function ofValue(body: unknown, type: string | undefined): Body {
  if (typeof body === 'string' && type !== undefined && !/json/i.test(type)) return { body };
  return { body: JSON.stringify(body), type: 'application/json' };
}
