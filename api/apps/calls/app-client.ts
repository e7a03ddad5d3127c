// The HTTP client for hosted apps: sends one request, within limits of time and size.
import { pipeline, Transform, type Readable } from 'node:stream';
import { Agent, type Dispatcher, type FormData } from 'undici';
import { probeHeader } from '../../../crds/names.ts';
import { Problem } from '../../../lib/problem.ts';
import { bodyTooLarge } from '../../http/index.ts';
import type { Target } from '../directory.ts';
import type { Method } from './app-path.ts';
import { appTimeout, appUnreachable } from '../problems.ts';

export interface AppRequest {
  readonly method: Method;
  /** Path and query, as `appPath` gives it. */
  readonly path: string;
  /** As `forwardedHeaders` gives them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string | FormData | Readable | undefined;
  /** Of the platform itself: it wakes no app and is no use of one. */
  readonly isLook?: boolean | undefined;
  readonly id: string;
  readonly signal: AbortSignal;
}

/** What a caller decides of a request. */
export type AppRequestContent = Pick<AppRequest, 'method' | 'path' | 'headers' | 'body'>;

export interface AppResponse {
  readonly status: number;
  readonly headers: Dispatcher.ResponseData['headers'];
  /** Ends with an error when it takes too long. Closed or destroyed when the request is over. */
  readonly body: Readable;
}

export interface AppClientOptions {
  /** Until the last byte. Default 120 000. */
  readonly limitMs?: number;
  /** Shown to the activator by looks. */
  readonly probeToken?: string | undefined;
}

const maxHeaderBytes = 16_384;

export class AppClient {
  readonly limitMs: number;
  readonly #probeToken: string | undefined;
  /** Connections are not kept: behind a Service, the pod at their other end may be gone at any time. */
  readonly #agent = new Agent({
    allowH2: false,
    pipelining: 0,
    connections: 64,
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: 5_000 },
  });

  constructor({ limitMs = 120_000, probeToken }: AppClientOptions = {}) {
    this.limitMs = limitMs;
    this.#probeToken = probeToken;
  }

  /** @throws Problem (app-unreachable, app-timeout, body-too-large), or the signal's reason */
  async send(target: Target, { method, path, headers, body, isLook, id, signal }: AppRequest): Promise<AppResponse> {
    const clock = AbortSignal.timeout(this.limitMs);
    const { host, protocol } = new URL(target.publicOrigin);
    try {
      const response = await this.#agent.request({
        origin: target.origin,
        path,
        method,
        body: body ?? null,
        // Redirects are the caller's to follow, at the app as well: nothing here goes anywhere else.
        headers: {
          ...headers,
          host,
          'accept-encoding': 'identity',
          'x-forwarded-proto': protocol.slice(0, -1),
          'x-forwarded-host': host,
          'x-request-id': id,
          ...this.#lookHeaders(target, isLook),
        },
        signal: AbortSignal.any([signal, clock]),
      });
      // An error is reported by the reader of the body; without a listener it would end the process.
      response.body.on('error', () => undefined);
      // AbortSignal.any holds the clock weakly, and without it a body could take for ever.
      response.body.once('close', () => clock);
      return { status: response.statusCode, headers: response.headers, body: response.body };
    } catch (error) {
      throw this.failure(error, target, signal, clock.aborted);
    }
  }

  /** Only the activator may read the token; an app that is reached directly has nothing to wake. */
  #lookHeaders({ isActivated }: Target, isLook = false): Record<string, string> {
    const token = this.#probeToken;
    return isLook && isActivated === true && token !== undefined ? { [probeHeader]: token } : {};
  }

  /** The problem that a failure is reported as, also one in the middle of a response. */
  failure(
    error: unknown,
    { slug }: Target,
    signal: AbortSignal,
    late = error instanceof Error && error.name === 'TimeoutError',
  ): unknown {
    if (error instanceof Problem || signal.aborted) return error;
    if (late)
      return new Problem(appTimeout, `${slug} did not respond within ${this.limitMs / 1000} seconds.`, {
        members: { limit_ms: this.limitMs },
        cause: error,
      });
    return new Problem(appUnreachable, `${slug} could not be reached: ${reasonOf(error)}. Try again in 5 seconds.`, {
      headers: { 'retry-after': '5' },
      cause: error,
    });
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'name resolution failed',
  ECONNRESET: 'the connection was reset',
  UND_ERR_SOCKET: 'the connection was closed',
  UND_ERR_CONNECT_TIMEOUT: 'connecting timed out',
  UND_ERR_HEADERS_OVERFLOW: `its response headers are larger than ${maxHeaderBytes} bytes`,
};

/** Without the internal addresses that messages of errors contain. */
function reasonOf(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
  if (Object.hasOwn(reasons, code)) return reasons[code] ?? '';
  return code.startsWith('HPE_') ? 'its response is not valid HTTP' : 'the connection failed';
}

/**
 * A body as it comes, up to so many bytes; `budget` may be shared by several. Who cancels what this gives ends the body
 * at once.
 */
export function limitBytes(body: Readable, budget: { left: number }, over: () => Problem): Readable {
  const counter = new Transform({
    transform(chunk: Uint8Array, _encoding, callback) {
      budget.left -= chunk.length;
      if (budget.left < 0) callback(over());
      else callback(null, chunk);
    },
  });
  pipeline(body, counter, () => undefined);
  return counter;
}

/** Of the body of a request. */
export function tooLong(limit: number): Problem {
  return new Problem(bodyTooLarge, `The body is larger than the limit of ${limit} bytes. Send a smaller body.`, {
    members: { limit_bytes: limit },
  });
}
