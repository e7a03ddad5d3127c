// One HTTP exchange with the API server: credentials, time limit, one retry on a stale connection, errors as ApiError.
import type { IncomingMessage, RequestOptions } from 'node:http';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { z } from 'zod';
import type { Connection } from './connection.ts';
import { ApiError, messageOf } from '../errors.ts';

/** What to send. */
export interface Exchange {
  method: string;
  /** Path and query. */
  path: string;
  headers: Record<string, string>;
  body: string | undefined;
  signal: AbortSignal;
}

const Status = z.looseObject({
  code: z.number().optional(),
  reason: z.string().optional(),
  message: z.string().optional(),
  details: z.looseObject({ retryAfterSeconds: z.number().optional() }).nullish(),
});

/** Time after which a silent connection is probed by TCP, so that a vanished server is noticed within half a minute. */
const PROBE_MS = 15_000;

/** Sends a request and resolves with the answer once its head is in and is a success. Rejects with `ApiError`. */
export async function exchange(connection: Connection, wanted: Exchange): Promise<IncomingMessage> {
  const answer = await attempt(connection, wanted, true);
  const status = answer.statusCode ?? 0;
  if (status >= 200 && status < 300) return answer;
  throw statusError(status, await readText(answer), Number(answer.headers['retry-after']));
}

async function attempt(connection: Connection, wanted: Exchange, retry: boolean): Promise<IncomingMessage> {
  const sent = { reused: false };
  try {
    return await send(connection, wanted, sent);
  } catch (error) {
    if (wanted.signal.aborted) throw wanted.signal.reason;
    // The server may close an idle connection in the moment that we use it. What is not idempotent may have been done,
    // though.
    if (retry && sent.reused && wanted.method !== 'POST') return attempt(connection, wanted, false);
    throw unreachable(connection, error);
  }
}

async function send(connection: Connection, wanted: Exchange, sent: { reused: boolean }): Promise<IncomingMessage> {
  const { headers, agent } = await connection.credentials();
  const url = new URL(connection.server + wanted.path);
  const options: RequestOptions = {
    method: wanted.method,
    agent,
    signal: wanted.signal,
    headers: { ...wanted.headers, ...headers },
  };
  return new Promise((resolve, reject) => {
    const request = url.protocol === 'http:' ? httpRequest(url, options) : httpsRequest(url, options);
    request.setSocketKeepAlive(true, PROBE_MS);
    request.setNoDelay(true);
    request.on('response', resolve);
    request.on('error', (error) => {
      sent.reused = request.reusedSocket;
      reject(error);
    });
    request.end(wanted.body);
  });
}

/** The whole body as text. */
export async function readText(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of answer as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

/** No answer, or a broken one. */
export function unreachable(connection: Connection, error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError(
    0,
    'Unreachable',
    `The API server at ${connection.server} cannot be reached: ${messageOf(error)}`,
    undefined,
    { cause: error },
  );
}

/** The error that a refusal's body describes. */
export function statusError(status: number, text: string, retryAfter = Number.NaN): ApiError {
  const parsed = Status.safeParse(parseJson(text));
  const fields = parsed.success ? parsed.data : {};
  const seconds = Number.isFinite(retryAfter) ? retryAfter : fields.details?.retryAfterSeconds;
  return new ApiError(status, fields.reason ?? `Http${status}`, fields.message ?? shortened(text, status), seconds);
}

/** The error that a `Status` object in a watch stream describes. */
export function streamError(value: unknown): ApiError {
  const parsed = Status.safeParse(value);
  const code = parsed.success ? (parsed.data.code ?? 500) : 500;
  return statusError(code, JSON.stringify(value ?? null));
}

/** The JSON value, or `undefined` when the text is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function shortened(text: string, status: number): string {
  const line = text.trim().slice(0, 300);
  return line === '' ? `The API server answered ${status} without a reason.` : line;
}
