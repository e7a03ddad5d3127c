// The guarded fetch: every hop checked, every limit counted, nothing kept between two fetches.
import { Agent, request as send, type Dispatcher } from 'undici';
import { Problem } from '../../../lib/problem.ts';
import { acceptedEncodings, readBody, TooLarge } from './body.ts';
import { failure } from './failure.ts';
import type { FetchResult, Fetcher, FetchRequest } from './fetcher.ts';
import { Guard, Refusal, type GuardOptions } from './guard.ts';
import { fetchFailed } from './problems.ts';

export interface FetcherOptions extends GuardOptions {
  /** Who asks, for the servers that are asked. */
  readonly userAgent?: string;
}

type Response = Dispatcher.ResponseData;
/** A step on the way to the answer. */
type Hop = Pick<FetchRequest, 'url' | 'method' | 'headers' | 'body'> & { readonly httpsOnly?: boolean | undefined };

const maxRedirects = 5;
const maxHeaderBytes = 16_384;
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

export class GuardedFetcher implements Fetcher {
  readonly #guard: Guard;
  readonly #userAgent: string;

  constructor(options: FetcherOptions = {}) {
    this.#guard = new Guard(options);
    this.#userAgent = options.userAgent ?? 'Moorage/1.1 (fetches on behalf of a caller)';
  }

  async fetch(request: FetchRequest): Promise<FetchResult> {
    // Of all hops together, from the first question to DNS to the last byte.
    const clock = AbortSignal.timeout(request.timeoutMs ?? 20_000);
    const signal = AbortSignal.any([request.signal, clock]);
    let hop: Hop = request;
    try {
      for (let count = 0; count <= maxRedirects; count++) {
        signal.throwIfAborted();
        const next = await this.#hop(hop, request, signal);
        if ('bytes' in next) return next;
        hop = next;
      }
    } catch (error) {
      throw failure(error, hop.url, request, clock.aborted);
    }
    throw new Problem(fetchFailed, `The address redirects more than ${maxRedirects} times.`);
  }

  async get(request: FetchRequest): Promise<FetchResult> {
    const fetched = await this.fetch(request);
    if (fetched.status >= 200 && fetched.status < 300) return fetched;
    throw new Problem(fetchFailed, `${new URL(fetched.url).origin} returned status ${fetched.status}.`, {
      members: { target_status: fetched.status },
    });
  }

  async check(request: Pick<FetchRequest, 'url' | 'field' | 'httpsOnly' | 'signal'>): Promise<void> {
    const { url, httpsOnly } = request;
    try {
      await this.#guard.addresses(this.#guard.target(url, httpsOnly));
    } catch (error) {
      throw failure(error, url, { ...request, maxBytes: 0 }, false);
    }
  }

  /** One request: gives its answer, or the next hop. Its connection ends with it, so that none is ever shared. */
  async #hop(
    hop: Hop,
    { maxBytes, stayHere = false }: Pick<FetchRequest, 'maxBytes' | 'stayHere'>,
    signal: AbortSignal,
  ): Promise<FetchResult | Hop> {
    const target = this.#guard.target(hop.url, hop.httpsOnly);
    const { url } = target;
    const agent = new Agent({
      allowH2: false,
      connections: 1,
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: { lookup: this.#guard.lookup(target), timeout: 10_000 },
    });
    try {
      const response = await send(`${url.protocol}//${authority(url, target.host)}${url.pathname}${url.search}`, {
        dispatcher: agent,
        method: hop.method ?? 'GET',
        headers: { 'user-agent': this.#userAgent, accept: '*/*', ...hop.headers, 'accept-encoding': acceptedEncodings },
        body: hop.body ?? null,
        signal,
      });
      // The reader reports what interrupts it; unhandled, the event would end the process.
      response.body.on('error', () => undefined);
      return (stayHere ? undefined : nextHop(hop, url, response)) ?? (await answer(url, response, maxBytes));
    } finally {
      await agent.destroy();
    }
  }
}

/** Host and port without the dots that may end a name, since certificates do not have them. */
function authority(url: URL, host: string): string {
  const name = url.hostname.startsWith('[') ? url.hostname : host;
  return url.port === '' ? name : `${name}:${url.port}`;
}

/** Where an answer sends on to; undefined when it is the last. */
function nextHop(hop: Hop, from: URL, { statusCode, headers }: Response): Hop | undefined {
  if (!redirects.has(statusCode) || typeof headers.location !== 'string') return undefined;
  // Header bytes come as Latin-1; those that are more than ASCII are UTF-8.
  const location = Buffer.from(headers.location, 'latin1').toString('utf8');
  if (!URL.canParse(location, from.href)) throw new Refusal('redirects to something that is not a URL');
  const to = new URL(location, from);
  const kept = to.origin === from.origin ? hop.headers : publicHeaders(hop.headers);
  const repeats = statusCode >= 307 || hop.method !== 'POST';
  const same = {
    url: to.href,
    httpsOnly: hop.httpsOnly,
    ...(kept === undefined ? {} : { headers: kept }),
  };
  if (!repeats) return { ...same, method: 'GET' };
  return {
    ...same,
    ...(hop.method === undefined ? {} : { method: hop.method }),
    ...(hop.body === undefined ? {} : { body: hop.body }),
  };
}

/** Headers that another server may see as well. */
function publicHeaders(headers: FetchRequest['headers']): FetchRequest['headers'] {
  if (headers === undefined) return undefined;
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => /^(?:accept|accept-language|content-type)$/i.test(name)),
  );
}

async function answer(url: URL, response: Response, maxBytes: number): Promise<FetchResult> {
  const headers = headersOf(response);
  if (Number(headers.get('content-length') ?? 0) > maxBytes) throw new TooLarge();
  const [type = ''] = (headers.get('content-type') ?? '').split(';');
  return {
    url: url.href,
    status: response.statusCode,
    headers,
    mediaType: type.trim().toLowerCase() || 'application/octet-stream',
    bytes: await readBody(response.body, headers.get('content-encoding') ?? '', maxBytes),
  };
}

function headersOf(response: Response): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(response.headers)) {
    for (const one of Array.isArray(value) ? value : [value ?? '']) headers.append(name, one);
  }
  return headers;
}
