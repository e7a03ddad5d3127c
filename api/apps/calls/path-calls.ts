// /api/projects/{slug}/call/{path}: a hosted app as it is, for any HTTP client, but metered. Bodies are streamed both
// ways.
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { createValidationProblem, methodNotAllowed, notFound, type ProtocolMount } from '../../http/index.ts';
import {
  formatMoney,
  idempotencyKey,
  lowQuotaHeaders,
  rateLimitHeaders,
  type Replays,
  replayHeaders,
} from '../../billing/index.ts';
import type { PayerFor } from '../../models/index.ts';
import { maxBufferedBytes, tooLarge } from './response.ts';
import type { AppCalls, CallReceipt } from './app-calls.ts';
import { appPath, methods, type Method } from './app-path.ts';
import { limitBytes, tooLong, type AppResponse } from './app-client.ts';
import type { Directory, Target } from '../directory.ts';
import { forwardedHeaders, returnedHeaders } from './headers.ts';
import { locationWithin } from './location.ts';

export interface PathCallsOptions {
  readonly directory: Directory;
  readonly calls: AppCalls;
  readonly payerFor: PayerFor;
  readonly replays: Replays;
  readonly baseUrl: string;
}

export const maxRequestBytes = 16 * 1_048_576;
export const maxStreamedBytes = 64 * 1_048_576;

/** Slug and path as they were sent, before anything decodes them. */
const addressed = /^\/api\/projects\/([^/]+)\/call(\/.*)$/s;

/** A response as it is stored for an Idempotency-Key. */
const stored = z.object({ status: z.int(), headers: z.record(z.string(), z.string()), base64: z.string().nullable() });

export function pathCalls({ directory, calls, payerFor, replays, baseUrl }: PathCallsOptions): ProtocolMount {
  return {
    path: '/api/projects/{slug}/call/{path}',
    pattern: '/api/projects/{slug}/call/*',
    // Without a path it is the JSON form.
    accepts: (request) => addressed.test(new URL(request.url).pathname),
    async handle(request, context) {
      const { pathname, search } = new URL(request.url);
      const [, slug = '', rest = ''] = addressed.exec(pathname) ?? [];
      const method = methodOf(request);
      const target = directory.get(slug);
      const path = appPath(`${rest}${search}`);
      if (path === undefined)
        throw new Problem(
          notFound,
          'The path after /call is longer than 8,000 characters, or contains characters that are not allowed in a URL.',
        );
      const body = bodyOf(request);
      const payer = await payerFor(context);
      const call = { target, payer, via: 'path' as const, id: context.id, signal: context.signal };
      const headers = forwardedHeaders(request.headers);
      const createHeaders = (response: AppResponse, receipt: CallReceipt): Record<string, string> => ({
        ...returnedHeaders(response.headers),
        ...returnedLocation(response, target, path, baseUrl),
        ...ours(target, receipt),
        ...rateLimitHeaders(receipt.quota, payer, Date.now()),
        ...lowQuotaHeaders(receipt.quota),
      });
      if (writing.has(method) && idempotencyKey(context.headers) !== undefined) {
        const sent = body === undefined ? undefined : await buffer(body);
        const { value, replayed } = await replays.once(context, {
          payer,
          body: { app: target.slug, method, path, headers, body: hash(sent) },
          answer: stored,
          isStored: ({ status }) => status < 500,
          async run(signal) {
            const { value: got, ...receipt } = await calls.send(
              { ...call, signal },
              { method, path, headers, body: sent },
              async (response) => ({ response, bytes: await wholeBody(response, method, target) }),
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
        Promise.resolve(sized(target, response)),
      );
      return new Response(hasNoBody(method, value.status) ? drained(value) : streamed(value, target), {
        status: value.status,
        headers: createHeaders(value, receipt),
      });
    },
  };
}

/** Stands for a body that is too large to be part of a request's record. */
function hash(bytes: Uint8Array | undefined): string | undefined {
  return bytes === undefined ? undefined : createHash('sha256').update(bytes).digest('hex');
}

/** Methods that may change something in an app, so that a retry matters. */
const writing: ReadonlySet<Method> = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

/** A body in memory, as the app encoded it; undefined where the response has none. */
async function wholeBody(response: AppResponse, method: Method, { slug }: Target): Promise<Buffer | undefined> {
  if (hasNoBody(method, response.status)) {
    drained(response);
    return undefined;
  }
  return buffer(limitBytes(response.body, { left: maxBufferedBytes }, () => tooLarge(slug, maxBufferedBytes)));
}

function methodOf({ method }: Request): Method {
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

function bodyOf({ headers, body, method }: Request): Readable | undefined {
  if (Number(headers.get('content-length') ?? 0) > maxRequestBytes) throw tooLong(maxRequestBytes);
  if (body === null) return undefined;
  if (method === 'GET' || method === 'HEAD')
    throw createValidationProblem([
      { in: 'body', field: '', message: `is not allowed with ${method}`, fix: 'Remove it, or use POST.' },
    ]);
  return limitBytes(Readable.fromWeb(body), { left: maxRequestBytes }, () => tooLong(maxRequestBytes));
}

function sized(target: Target, response: AppResponse): AppResponse {
  if (Number(response.headers['content-length'] ?? 0) > maxStreamedBytes) throw tooLarge(target.slug, maxStreamedBytes);
  return response;
}

function hasNoBody(method: Method, status: number): boolean {
  return method === 'HEAD' || status === 204 || status === 205 || status === 304;
}

function drained({ body }: AppResponse): null {
  body.resume();
  return null;
}

/** Ends the stream at the limit: it is too late for a problem, as the response has begun. */
function streamed({ body }: AppResponse, target: Target): ReadableStream {
  return Readable.toWeb(
    limitBytes(body, { left: maxStreamedBytes }, () => tooLarge(target.slug, maxStreamedBytes)),
  ) as ReadableStream;
}

/**
 * Headers of our own. What a stranger wrote may be opened from here in a browser, so it gets an origin of its own.
 */
function ours({ slug }: Target, { cost, latencyMs }: CallReceipt): Record<string, string> {
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

/** A redirect within the app leads through here; one that leaves it is dropped. */
function returnedLocation(
  { headers: { location } }: AppResponse,
  target: Target,
  path: string,
  baseUrl: string,
): { location?: string } {
  const within = locationWithin(location, target, path);
  return within === undefined ? {} : { location: `${baseUrl}/api/projects/${target.slug}/call${within}` };
}
