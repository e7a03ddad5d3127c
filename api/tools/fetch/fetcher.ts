// Fetches public URLs that callers name, within limits and never inside the network: every hop is checked, and nothing is
// kept between two fetches.
import { Transform, Writable, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import { Agent, request as send, type Dispatcher } from 'undici';
import { Problem } from '../../../lib/problem.ts';
import { Guard, Refusal, type GuardOptions } from './guard.ts';
import { fetchFailed, fetchTooLarge, urlRefused } from '../problems.ts';

export interface FetchRequest {
  /** As sent by the caller. */
  readonly url: string;
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string;
  /** Rejects http, except for test hosts. */
  readonly httpsOnly?: boolean;
  /** Returns a redirect instead of following it. */
  readonly stayHere?: boolean;
  /** Maximum bytes to read, after decompression. */
  readonly maxBytes: number;
  /** Default 20 000. */
  readonly timeoutMs?: number;
  /** Name of the input field, for the problem; default `url`. */
  readonly field?: string;
  readonly signal: AbortSignal;
}

export interface FetchResult {
  /** The final URL after redirects. */
  readonly url: string;
  readonly status: number;
  readonly headers: Headers;
  /** In lower case without parameters; application/octet-stream if none was sent. */
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

export interface Fetcher {
  /** Returns the response whatever its status. @throws Problem (url-refused, fetch-failed, fetch-too-large) */
  fetch(request: FetchRequest): Promise<FetchResult>;
  /** Like `fetch`, but throws Problem (fetch-failed) for a status other than 2xx. */
  get(request: FetchRequest): Promise<FetchResult>;
  /**
   * Checks a URL as `fetch` does before its first request, and fetches nothing: for a URL that another program opens. That
   * program must still use the guarded proxy, because the name may resolve differently by then, and pages redirect.
   * @throws Problem (url-refused, fetch-failed)
   */
  check(request: Pick<FetchRequest, 'url' | 'field' | 'httpsOnly' | 'signal'>): Promise<void>;
}

export interface FetcherOptions extends GuardOptions {
  /** The User-Agent header. */
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
    // For all hops together, from the first DNS query to the last byte.
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
      throw toFetchProblem(error, hop.url, request, clock.aborted);
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
      await this.#guard.resolveAddresses(this.#guard.parseTarget(url, httpsOnly));
    } catch (error) {
      throw toFetchProblem(error, url, { ...request, maxBytes: 0 }, false);
    }
  }

  /** Sends one request and returns its result or the next hop. The connection is closed, so it is never shared. */
  async #hop(
    hop: Hop,
    { maxBytes, stayHere = false }: Pick<FetchRequest, 'maxBytes' | 'stayHere'>,
    signal: AbortSignal,
  ): Promise<FetchResult | Hop> {
    const target = this.#guard.parseTarget(hop.url, hop.httpsOnly);
    const { url } = target;
    const agent = new Agent({
      allowH2: false,
      connections: 1,
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: { lookup: this.#guard.createLookup(target), timeout: 10_000 },
    });
    try {
      const response = await send(`${url.protocol}//${formatAuthority(url, target.host)}${url.pathname}${url.search}`, {
        dispatcher: agent,
        method: hop.method ?? 'GET',
        headers: { 'user-agent': this.#userAgent, accept: '*/*', ...hop.headers, 'accept-encoding': acceptedEncodings },
        body: hop.body ?? null,
        signal,
      });
      // readBody reports errors; without a listener, the event would end the process.
      response.body.on('error', () => undefined);
      return (stayHere ? undefined : findNextHop(hop, url, response)) ?? (await toFetchResult(url, response, maxBytes));
    } finally {
      await agent.destroy();
    }
  }
}

/** Host and port without trailing dots in the name, which certificates do not have. */
function formatAuthority(url: URL, host: string): string {
  const name = url.hostname.startsWith('[') ? url.hostname : host;
  return url.port === '' ? name : `${name}:${url.port}`;
}

/** The target of a redirect; undefined for any other response. */
function findNextHop(hop: Hop, from: URL, { statusCode, headers }: Response): Hop | undefined {
  if (!redirects.has(statusCode) || typeof headers.location !== 'string') return undefined;
  // undici decodes header bytes as Latin-1, but non-ASCII ones are UTF-8.
  const location = Buffer.from(headers.location, 'latin1').toString('utf8');
  if (!URL.canParse(location, from.href)) throw new Refusal('redirects to something that is not a URL');
  const to = new URL(location, from);
  const kept = to.origin === from.origin ? hop.headers : filterPublicHeaders(hop.headers);
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

/** Only these headers are sent to another origin. */
function filterPublicHeaders(headers: FetchRequest['headers']): FetchRequest['headers'] {
  if (headers === undefined) return undefined;
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => /^(?:accept|accept-language|content-type)$/i.test(name)),
  );
}

async function toFetchResult(url: URL, response: Response, maxBytes: number): Promise<FetchResult> {
  const headers = toHeaders(response);
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

function toHeaders(response: Response): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(response.headers)) {
    for (const one of Array.isArray(value) ? value : [value ?? '']) headers.append(name, one);
  }
  return headers;
}

/** Thrown if a body exceeds its limit. */
export class TooLarge extends Error {
  override readonly name = 'TooLarge';
}

/** Thrown for a body that cannot be decompressed. */
export class BadEncoding extends Error {
  override readonly name = 'BadEncoding';
}

/** For Accept-Encoding. */
export const acceptedEncodings = 'gzip, br, zstd';

/** Maximum number of nested encodings. */
const maxEncodings = 2;
/** Overhead that compression may add to an incompressible body. */
const encodedExtra = 65_536;

const decoders: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  // RFC 9659 limits the window to 8 MiB on the web; a larger one only uses up memory.
  zstd: () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: 23 } }),
};

/** Reads and decompresses a body of at most `maxBytes`, counted before and after decompression. @throws TooLarge, BadEncoding */
export async function readBody(body: Readable, contentEncoding: string, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  const sink = new Writable({
    write(chunk: Uint8Array, _encoding, callback) {
      chunks.push(chunk);
      callback();
    },
  });
  await pipeline([
    body,
    createSizeLimit(maxBytes + encodedExtra),
    ...createDecoders(contentEncoding),
    createSizeLimit(maxBytes),
    sink,
  ]).catch((error: unknown) => {
    throw isZlibError(error)
      ? new BadEncoding('the body is not compressed as its Content-Encoding header says', { cause: error })
      : error;
  });
  return Buffer.concat(chunks);
}

function createDecoders(contentEncoding: string): Transform[] {
  const names = contentEncoding
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '' && name !== 'identity');
  if (names.length > maxEncodings) throw new BadEncoding('the body is compressed too many times');
  // Listed in the order in which they were applied.
  return names.reverse().map((name) => {
    const make = Object.hasOwn(decoders, name) ? decoders[name] : undefined;
    if (make === undefined) throw new BadEncoding('the body has an unsupported Content-Encoding');
    return make();
  });
}

function createSizeLimit(maximum: number): Transform {
  let size = 0;
  return new Transform({
    transform(chunk: Uint8Array, _encoding, callback) {
      size += chunk.length;
      if (size > maximum) callback(new TooLarge());
      else callback(null, chunk);
    },
  });
}

function isZlibError(error: unknown): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    typeof error.code === 'string' &&
    /^(?:Z_|ERR__ERROR|ERR_BROTLI|ERR_PADDING|ZSTD_|ERR_ZSTD|ERR_TRAILING)/.test(error.code)
  );
}

const reasons: readonly [pattern: RegExp, words: string][] = [
  [
    /^(?:ENOTFOUND|ENODATA|ESERVFAIL|EREFUSED|EBADNAME|EAI_|ETIMEOUT|EFORMERR|ENOTIMP|EBADRESP)/,
    'the host name cannot be resolved',
  ],
  [/^ECONNREFUSED$/, 'the server refused the connection'],
  [/^(?:EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, 'the server cannot be reached'],
  [/^(?:CERT_|ERR_TLS|ERR_SSL|EPROTO|UNABLE_TO|SELF_SIGNED|DEPTH_ZERO)/, 'the server has no valid TLS certificate'],
  [/^UND_ERR_HEADERS_OVERFLOW$/, 'the response headers are too long'],
  [/^(?:HPE_|HTTPParserError|UND_ERR_RES|ERR_INVALID)/, 'the server did not answer with valid HTTP'],
];

/** Converts a failure at the URL `at` to a problem that helps the caller and reveals nothing about the network. */
export function toFetchProblem(error: unknown, at: string, request: FetchRequest, timedOut: boolean): unknown {
  if (error instanceof Problem) return error;
  if (error instanceof Refusal)
    return createUrlRefusal(
      request.field ?? 'url',
      at === request.url ? error.message : `redirects to ${formatOrigin(at)}, which ${error.message}`,
      request.httpsOnly === true ? 'https' : 'http or https',
    );
  if (request.signal.aborted) return error;
  const where = formatOrigin(at);
  if (error instanceof TooLarge)
    return new Problem(fetchTooLarge, `${where} sent more than ${request.maxBytes} bytes, the maximum for this tool.`, {
      members: { limit_bytes: request.maxBytes },
    });
  return new Problem(
    fetchFailed,
    `Fetching from ${where} failed: ${timedOut ? 'the response did not arrive in time' : describeError(error)}.`,
    {
      cause: error,
    },
  );
}

export function createUrlRefusal(field: string, reason: string, schemes = 'http or https'): Problem {
  return new Problem(urlRefused, `The address in ${field} ${reason}.`, {
    errors: [
      {
        in: 'query',
        field,
        message: reason,
        fix: `Send a public ${schemes} URL, such as https://example.org/page.`,
      },
    ],
  });
}

function describeError(error: unknown): string {
  if (error instanceof BadEncoding) return error.message;
  const code = findErrorCode(error);
  return reasons.find(([pattern]) => pattern.test(code))?.[1] ?? 'the connection was interrupted';
}

function formatOrigin(address: string): string {
  return URL.canParse(address) ? new URL(address).origin : 'the address';
}

/** Finds the code of an error, its cause, or the first of several errors. */
function findErrorCode(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if (error instanceof AggregateError && error.errors.length > 0) return findErrorCode(error.errors[0]);
  if ('code' in error && typeof error.code === 'string') return error.code;
  return error.name === 'HTTPParserError' ? error.name : findErrorCode(error.cause);
}
