// The HTTP client for hosted apps: sends one request within limits of time and size, and reads its response.
import { pipeline, Transform, type Readable } from 'node:stream';
import { Agent, type Dispatcher, type FormData } from 'undici';
import { z } from 'zod';
import { probeHeader } from '../../../crds/names.ts';
import { Problem } from '../../../lib/problem.ts';
import { bodyTooLarge } from '../../http/index.ts';
import { resolveDestination, type Target } from '../directory.ts';
import { type Method, formatLocation } from './forwarding.ts';
import { appTimeout, appUnreachable, appAnswerTooLarge } from '../problems.ts';
import { BadEncoding, readBody, TooLarge } from '../../tools/index.ts';

export interface AppRequest {
  readonly method: Method;
  /** Path and query, from `parseAppPath`. */
  readonly path: string;
  /** From `selectForwardedHeaders`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string | FormData | Readable | undefined;
  /** A request by the platform itself: it wakes no app and is not counted as a use. */
  readonly isLook?: boolean | undefined;
  readonly id: string;
  readonly signal: AbortSignal;
}

/** The part of a request that the caller chooses. */
export type AppRequestContent = Pick<AppRequest, 'method' | 'path' | 'headers' | 'body'>;

export interface AppResponse {
  readonly status: number;
  readonly headers: Dispatcher.ResponseData['headers'];
  /** Fails when it takes too long. Closed or destroyed when the request is over. */
  readonly body: Readable;
}

export interface AppClientOptions {
  /** Time limit until the last byte of the response. Default 120 000. */
  readonly limitMs?: number;
  /** Sent to the activator with requests of the platform itself. */
  readonly probeToken?: string | undefined;
}

const maxHeaderBytes = 16_384;

export class AppClient {
  readonly limitMs: number;
  readonly #probeToken: string | undefined;
  /** Keeps no connections: behind a Service, the pod at the other end may disappear at any time. */
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
        ...resolveDestination(target, path),
        method,
        body: body ?? null,
        // Redirects are left to the caller, even within the app: this client contacts no other address.
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
      // The reader of the body reports the error; without a listener it would end the process.
      response.body.on('error', () => undefined);
      // AbortSignal.any holds the clock only weakly; without this reference a body could take forever.
      response.body.once('close', () => clock);
      return { status: response.statusCode, headers: response.headers, body: response.body };
    } catch (error) {
      throw this.toProblem(error, target, signal, clock.aborted);
    }
  }

  /** Only the activator may read the token. An app that is reached directly cannot be asleep. */
  #lookHeaders({ isActivated }: Target, isLook = false): Record<string, string> {
    const token = this.#probeToken;
    return isLook && isActivated === true && token !== undefined ? { [probeHeader]: token } : {};
  }

  /** Converts a failure to the problem that is reported, even in the middle of a response. */
  toProblem(
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
    return new Problem(
      appUnreachable,
      `${slug} could not be reached: ${describeFailure(error)}. Try again in 5 seconds.`,
      {
        headers: { 'retry-after': '5' },
        cause: error,
      },
    );
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

/** Describes a failure without the internal addresses that error messages contain. */
function describeFailure(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
  if (Object.hasOwn(reasons, code)) return reasons[code] ?? '';
  return code.startsWith('HPE_') ? 'its response is not valid HTTP' : 'the connection failed';
}

/** Passes a body on until `budget` is used up, which several bodies may share. Cancelling the result destroys the body. */
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

/** The request body exceeds the limit. */
export function createBodyTooLarge(limit: number): Problem {
  return new Problem(bodyTooLarge, `The body is larger than the limit of ${limit} bytes. Send a smaller body.`, {
    members: { limit_bytes: limit },
  });
}

/** Size limit of a response that is read into memory. */
export const maxBufferedBytes = 2 * 1_048_576;

/** A response with its body in memory. */
export interface ResponseContent {
  readonly status: number;
  readonly mediaType: string;
  readonly location: string | undefined;
  readonly bytes: Uint8Array;
}

/** @throws Problem (app-answer-too-large, app-unreachable) */
export async function readContent(target: Target, { status, headers, body }: AppResponse): Promise<ResponseContent> {
  const { slug } = target;
  const [type = ''] = getFirst(headers['content-type']).split(';');
  if (Number(getFirst(headers['content-length'])) > maxBufferedBytes) throw createTooLarge(slug, maxBufferedBytes);
  try {
    const bytes = await readBody(body, getFirst(headers['content-encoding']), maxBufferedBytes);
    return {
      status,
      bytes,
      mediaType: type.trim().toLowerCase() || 'application/octet-stream',
      location: formatLocation(headers['location'], target),
    };
  } catch (error) {
    if (error instanceof TooLarge) throw createTooLarge(slug, maxBufferedBytes);
    if (error instanceof BadEncoding)
      throw new Problem(appUnreachable, `The response of ${slug} could not be decoded: ${error.message}.`, {
        cause: error,
      });
    throw error;
  }
}

export function createTooLarge(slug: string, limit: number): Problem {
  return new Problem(
    appAnswerTooLarge,
    `The response of ${slug} is larger than the limit of ${limit} bytes. Request less data.`,
    {
      members: { limit_bytes: limit },
    },
  );
}

/** A response as JSON: its body is parsed if it is JSON, a string if it is text, and base64 otherwise. */
export const contentFields = {
  status: z.int().describe('HTTP status of the response of the app.'),
  media_type: z.string().describe('Media type of its body.'),
  location: z
    .string()
    .optional()
    .describe(
      'Location header of a redirect, as the app wrote it; absent if it is not an http or https URL. Not followed.',
    ),
  bytes: z.int().describe('Size of its body in bytes.'),
  body: z.unknown().optional().describe('Its body: parsed if it is JSON, a string if it is text, absent otherwise.'),
  base64: z.string().optional().describe('Its body as base64, if it is neither JSON nor text.'),
};
type ContentView = z.output<z.ZodObject<typeof contentFields>>;

export function toContentView({ status, mediaType, location, bytes }: ResponseContent): ContentView {
  return {
    status,
    media_type: mediaType,
    ...(location === undefined ? {} : { location }),
    bytes: bytes.length,
    ...toBodyView(mediaType, bytes),
  };
}

const json = /^application\/(json|[a-z0-9.+-]+\+json)$/;
const texts =
  /^(text\/|application\/(xml|javascript|x-ndjson|yaml|x-yaml|x-www-form-urlencoded)$|[a-z]+\/[a-z0-9.-]+\+xml$)/;

function toBodyView(mediaType: string, bytes: Uint8Array): { body?: unknown; base64?: string } {
  if (bytes.length === 0) return {};
  if (!json.test(mediaType) && !texts.test(mediaType))
    return { base64: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64') };
  const text = new TextDecoder().decode(bytes);
  return { body: json.test(mediaType) ? parseJson(text) : text };
}

/** Returns text if the body is not the JSON that it claims to be, or is nested too deeply to be serialised. */
function parseJson(text: string): unknown {
  try {
    const value = JSON.parse(text) as unknown;
    JSON.stringify(value);
    return value;
  } catch {
    return text;
  }
}

function getFirst(value: string | string[] | undefined): string {
  return (Array.isArray(value) ? value[0] : value) ?? '';
}
