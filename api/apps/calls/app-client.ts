// Carries one request to an app and brings back its answer, within limits of time and size.
import { pipeline, Transform, type Readable } from 'node:stream';
import { Agent, type Dispatcher, type FormData } from 'undici';
import { Problem } from '../../../lib/problem.ts';
import { bodyTooLarge } from '../../http/problems.ts';
import type { Target } from '../directory.ts';
import { appTimeout, appUnreachable } from '../problems.ts';

export const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type Method = (typeof methods)[number];

export interface Errand {
  readonly method: Method;
  /** Path and query, as `appPath` gives it. */
  readonly path: string;
  /** As `headersOn` gives them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string | FormData | Readable | undefined;
  readonly id: string;
  readonly signal: AbortSignal;
}

export interface Brought {
  readonly status: number;
  readonly headers: Dispatcher.ResponseData['headers'];
  /** Ends with an error when it takes too long. Closed or destroyed when the errand is over. */
  readonly body: Readable;
}

export interface CourierOptions {
  /** Until the last byte. Default 120 000. */
  readonly limitMs?: number;
}

const mostHeaderBytes = 16_384;

export class Courier {
  readonly limitMs: number;
  /** Connections are not kept: behind a Service, the pod at their other end may be gone at any time. */
  readonly #agent = new Agent({
    allowH2: false,
    pipelining: 0,
    connections: 64,
    maxHeaderSize: mostHeaderBytes,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: 5_000 },
  });

  constructor({ limitMs = 120_000 }: CourierOptions = {}) {
    this.limitMs = limitMs;
  }

  /** @throws Problem (app-unreachable, app-timeout, body-too-large), or the signal's reason */
  async carry(target: Target, { method, path, headers, body, id, signal }: Errand): Promise<Brought> {
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
        },
        signal: AbortSignal.any([signal, clock]),
      });
      // What breaks it off is told by whoever reads it; alone it would end the process.
      response.body.on('error', () => undefined);
      return { status: response.statusCode, headers: response.headers, body: response.body };
    } catch (error) {
      throw this.failure(error, target, signal, clock.aborted);
    }
  }

  /** What a failure is told as, also one in the midst of an answer. */
  failure(
    error: unknown,
    { slug }: Target,
    signal: AbortSignal,
    late = error instanceof Error && error.name === 'TimeoutError',
  ): unknown {
    if (error instanceof Problem || signal.aborted) return error;
    if (late)
      return new Problem(appTimeout, `${slug} did not answer within ${this.limitMs / 1000} s`, {
        members: { limit_ms: this.limitMs },
        cause: error,
      });
    return new Problem(appUnreachable, `${slug} did not answer: ${reasonOf(error)}; try again in 5 s`, {
      headers: { 'retry-after': '5' },
      cause: error,
    });
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens at its port',
  ENOTFOUND: 'it has no address',
  EAI_AGAIN: 'its address cannot be found now',
  ECONNRESET: 'it broke the connection off',
  UND_ERR_SOCKET: 'it broke the connection off',
  UND_ERR_CONNECT_TIMEOUT: 'it does not take a connection',
  UND_ERR_HEADERS_OVERFLOW: `its headers are longer than ${mostHeaderBytes} bytes`,
};

/** Without addresses of the inside, which the words of the errors have. */
function reasonOf(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
  if (Object.hasOwn(reasons, code)) return reasons[code] ?? '';
  return code.startsWith('HPE_') ? 'what it sent is no answer in HTTP' : 'the connection failed';
}

/**
 * Path and query to ask an app for; undefined where the text is none. The app's origin is not part of it, so nothing
 * can change that.
 */
export function appPath(text: string): string | undefined {
  if (!/^\/[\x21-\x7e\u00a1-\uffff]*$/.test(text) || text.length > 8_000) return undefined;
  // Every slash at the front belongs to the path; parsed with a host before it, none of it can be taken for one.
  if (!URL.canParse(`http://app${text}`)) return undefined;
  const { host, pathname, search } = new URL(`http://app${text}`);
  return host === 'app' ? `${pathname}${search}` : undefined;
}

/**
 * A body as it comes, up to so many bytes; `budget` may be shared by several. Who cancels what this gives ends the body
 * at once.
 */
export function limited(body: Readable, budget: { left: number }, over: () => Problem): Readable {
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
  return new Problem(bodyTooLarge, `the body is longer than ${limit} bytes; send a shorter one`, {
    members: { limit_bytes: limit },
  });
}
