// HTTP to a router: sends requests with their credentials, and makes a failure of every way in which that can go wrong.
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request, type Dispatcher } from 'undici';
import type { RouterSettings } from '../config.ts';
import {
  cancelledMessage,
  toRefusal,
  RouterFailure,
  readErrorMessage,
  parseBody,
  readReference,
  readText,
} from './responses.ts';
import { readHeader, type LimitRequest, type RouterHeaders } from './shapes.ts';

/** A request that may cost money. */
export interface RouterRequest {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  /** The caller's own key; undefined: the platform's. */
  readonly key: string | undefined;
  readonly signal: AbortSignal;
}

/** A response to a GET: its body as exact JSON where the status is 200, and what it says of an error. */
export interface RouterRecord {
  readonly status: number;
  readonly body: unknown;
  readonly said: string | undefined;
}

/** Failures in which no byte of the request left. */
const notSent: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'ERR_SSL_PACKET_LENGTH_TOO_LONG',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'CERT_HAS_EXPIRED',
]);

export class RouterTransport {
  readonly #settings: RouterSettings;
  readonly #agent: Agent;

  /** @param connectMs longest wait for a connection */
  constructor(settings: RouterSettings, connectMs: number) {
    this.#settings = settings;
    // Idle connections go before usual servers close theirs (5 s), since a request on a closing one cannot be sent
    // again.
    this.#agent = new Agent({
      connect: { timeout: connectMs },
      keepAliveTimeout: 3_000,
      keepAliveMaxTimeout: 60_000,
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /** Sends a request; once more when no connection was made. @throws RouterFailure for any status but 2xx */
  async post({ path, body, headers, key, signal }: RouterRequest): Promise<Dispatcher.ResponseData> {
    const send = (): Promise<Dispatcher.ResponseData> =>
      request(`${this.#settings.url}/${path}`, {
        method: 'POST',
        dispatcher: this.#agent,
        headers: { 'content-type': 'application/json', ...this.#credentials(key), ...headers },
        body: JSON.stringify(body),
        signal,
      });
    const response = await send().catch(async (error: unknown) => {
      if (!notSent.has(readErrorCode(error)) || signal.aborted) throw error;
      await sleep(100);
      return send();
    });
    if (response.statusCode >= 200 && response.statusCode < 300) return response;
    const text = await readText(response.body);
    throw toRefusal(response.statusCode, readErrorMessage(text), {
      reference: readReference(response.headers),
      retryAfterSeconds: readRetryAfter(response.headers),
    });
  }

  /** Changes what the router keeps, such as the limit of a key. @returns the status @throws RouterFailure when it cannot be reached */
  async change({ method, address, body }: LimitRequest, key: string): Promise<number> {
    const deadline = startDeadline(new AbortController().signal, 10_000);
    try {
      const response = await request(address, {
        method,
        dispatcher: this.#agent,
        headers: { 'content-type': 'application/json', ...this.#credentials(key) },
        body: JSON.stringify(body),
        signal: deadline.signal,
      });
      await response.body.dump();
      return response.statusCode;
    } catch (error) {
      throw toFailure(error, deadline, undefined);
    } finally {
      deadline.clear();
    }
  }

  /** Asks for one of the router's records. @throws RouterFailure when it cannot be reached */
  async get(address: string, key?: string): Promise<RouterRecord> {
    const deadline = startDeadline(new AbortController().signal, 10_000);
    try {
      const response = await request(address, {
        dispatcher: this.#agent,
        headers: this.#credentials(key),
        signal: deadline.signal,
      });
      const text = await readText(response.body);
      return {
        status: response.statusCode,
        body: response.statusCode === 200 ? parseBody(text, response.headers) : undefined,
        said: readErrorMessage(text),
      };
    } catch (error) {
      throw toFailure(error, deadline, undefined);
    } finally {
      deadline.clear();
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  #credentials(key: string | undefined): Record<string, string> {
    const used = key ?? this.#settings.key;
    return used === undefined ? {} : { authorization: `Bearer ${used}` };
  }
}

function readRetryAfter(headers: RouterHeaders): number | undefined {
  const seconds = Number(readHeader(headers, 'retry-after') ?? Number.NaN);
  return Number.isInteger(seconds) && seconds > 0 && seconds < 86_400 ? seconds : undefined;
}

/** What an error in a call means for it. */
export function toFailure(error: unknown, deadline: Deadline, reference: string | undefined): RouterFailure {
  if (error instanceof RouterFailure) return error;
  const reason = deadline.reason();
  if (reason === 'timeout')
    return new RouterFailure('timeout', 'the router did not respond in time', { reference, cause: error });
  if (reason === 'cancelled') return new RouterFailure('cancelled', cancelledMessage, { reference, cause: error });
  const code = readErrorCode(error);
  if (notSent.has(code))
    return new RouterFailure('unreachable', `the router is unreachable (${code})`, { cause: error });
  return new RouterFailure('interrupted', `the connection to the router was lost${code === '' ? '' : ` (${code})`}`, {
    reference,
    cause: error,
  });
}

function readErrorCode(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if ('code' in error && typeof error.code === 'string') return error.code;
  return readErrorCode(error.cause);
}

/** One signal for the two ways in which a call is cut short: the caller disconnects, or the time limit is reached. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** Why the signal was aborted. */
  readonly reason: () => 'cancelled' | 'timeout' | undefined;
  /** Lets go of the caller's signal and the timer. */
  readonly clear: () => void;
}

/** By hand instead of AbortSignal.any, which keeps what it made alive for as long as the caller's signal lives. */
export function startDeadline(caller: AbortSignal, ms: number): Deadline {
  const controller = new AbortController();
  let reason: 'cancelled' | 'timeout' | undefined;
  const end = (why: 'cancelled' | 'timeout'): void => {
    reason ??= why;
    controller.abort();
  };
  const leave = (): void => {
    end('cancelled');
  };
  if (caller.aborted) leave();
  caller.addEventListener('abort', leave, { once: true });
  const timer = setTimeout(end, ms, 'timeout');
  return {
    signal: controller.signal,
    reason: () => reason,
    clear: () => {
      clearTimeout(timer);
      caller.removeEventListener('abort', leave);
    },
  };
}
