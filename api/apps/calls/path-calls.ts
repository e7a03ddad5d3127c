// /api/projects/{slug}/call/{path}: a hosted app as it is, for any HTTP client, but metered. Bodies are streamed both
// ways.
import { Readable } from 'node:stream';
import { Problem } from '../../../lib/problem.ts';
import type { ProtocolMount, RequestContext } from '../../http/endpoint.ts';
import { formatMoney } from '../../billing/ledger/money.ts';
import { rateLimitHeaders } from '../../billing/quota.ts';
import { methodNotAllowed, notFound } from '../../http/problems.ts';
import { invalid } from '../../http/validation.ts';
import type { PayerFor } from '../../models/callers/payers.ts';
import { tooLarge } from './response.ts';
import type { AppCalls, Paid } from './app-calls.ts';
import { appPath, limited, methods, tooLong, type Brought, type Method } from './app-client.ts';
import type { Directory, Target } from '../directory.ts';
import { headersBack, headersOn } from './headers.ts';

export interface PathCallsOptions {
  readonly directory: Directory;
  readonly calls: AppCalls;
  readonly payerFor: PayerFor;
  readonly baseUrl: string;
}

export const mostRequestBytes = 16 * 1_048_576;
export const mostStreamedBytes = 64 * 1_048_576;

/** Slug and path as they were sent, before anything decodes them. */
const addressed = /^\/api\/projects\/([^/]+)\/call(\/.*)$/s;

export function pathCalls({ directory, calls, payerFor, baseUrl }: PathCallsOptions): ProtocolMount {
  return {
    path: '/api/projects/{slug}/call/{path}',
    pattern: '/api/projects/:slug/call/*',
    // Without a path it is the JSON form.
    takes: (request) => addressed.test(new URL(request.url).pathname),
    async answer(request, context) {
      const { pathname, search } = new URL(request.url);
      const [, slug = '', rest = ''] = addressed.exec(pathname) ?? [];
      const method = methodOf(request);
      const target = directory.get(slug);
      const path = appPath(`${rest}${search}`);
      if (path === undefined)
        throw new Problem(
          notFound,
          'the path after /call is longer than 8000 characters, or has some that stand in no address',
        );
      const body = bodyOf(request);
      const payer = await payerFor(context);
      const call = { target, payer, via: 'path' as const, id: context.id, signal: context.signal };
      const { value, ...paid } = await calls.send(
        call,
        { method, path, headers: headersOn(request.headers), body },
        (brought) => Promise.resolve(sized(target, brought)),
      );
      return new Response(hasNoBody(method, value.status) ? drained(value) : streamed(value, target), {
        status: value.status,
        headers: {
          ...headersBack(value.headers),
          ...locationBack(value, target, path, baseUrl),
          ...ours(target, paid, context),
          ...rateLimitHeaders(paid.quota, payer, Date.now()),
        },
      });
    },
  };
}

function methodOf({ method }: Request): Method {
  const known = methods.find((one) => one === method);
  if (known === undefined)
    throw new Problem(methodNotAllowed, `an app is called with ${methods.join(', ')}, not ${method.slice(0, 20)}`, {
      headers: { allow: methods.join(', ') },
    });
  return known;
}

function bodyOf({ headers, body, method }: Request): Readable | undefined {
  if (Number(headers.get('content-length') ?? 0) > mostRequestBytes) throw tooLong(mostRequestBytes);
  if (body === null) return undefined;
  if (method === 'GET' || method === 'HEAD')
    throw invalid([{ in: 'body', field: '', message: `${method} takes no body`, fix: 'leave it out, or use POST' }]);
  return limited(Readable.fromWeb(body), { left: mostRequestBytes }, () => tooLong(mostRequestBytes));
}

function sized(target: Target, brought: Brought): Brought {
  if (Number(brought.headers['content-length'] ?? 0) > mostStreamedBytes)
    throw tooLarge(target.slug, mostStreamedBytes);
  return brought;
}

function hasNoBody(method: Method, status: number): boolean {
  return method === 'HEAD' || status === 204 || status === 205 || status === 304;
}

function drained({ body }: Brought): null {
  body.resume();
  return null;
}

/** Breaks off where there is more than may be: too late for a problem, as the answer has begun. */
function streamed({ body }: Brought, target: Target): ReadableStream {
  return Readable.toWeb(
    limited(body, { left: mostStreamedBytes }, () => tooLarge(target.slug, mostStreamedBytes)),
  ) as ReadableStream;
}

/**
 * What is ours to say of an answer. What strangers wrote may be opened from here in a browser: it gets an origin of its
 * own.
 */
function ours({ slug }: Target, { cost, latencyMs }: Paid, { id }: Pick<RequestContext, 'id'>): Record<string, string> {
  return {
    'content-security-policy': 'sandbox',
    'cache-control': 'no-store',
    'x-request-id': id,
    'x-app': slug,
    'x-cost-usd': formatMoney(cost.known),
    'x-cost-source': cost.source,
    'x-latency-ms': String(latencyMs),
  };
}

/** A redirect within the app goes on through here; any other is told as it is. */
function locationBack(
  { headers: { location } }: Brought,
  { slug, publicOrigin }: Target,
  path: string,
  baseUrl: string,
): { location?: string } {
  if (
    typeof location !== 'string' ||
    !/^[\x21-\x7e]{1,4000}$/.test(location) ||
    !URL.canParse(location, `${publicOrigin}${path}`)
  )
    return {};
  const to = new URL(location, `${publicOrigin}${path}`);
  if (to.hostname !== new URL(publicOrigin).hostname) return { location: to.href };
  return { location: `${baseUrl}/api/projects/${slug}/call${to.pathname}${to.search}${to.hash}` };
}
