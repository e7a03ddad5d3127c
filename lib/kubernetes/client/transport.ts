// Exchanges one HTTP request with the API server or a kubelet: adds credentials, retries once on a stale connection, and
// throws ApiError.
import { type IncomingMessage, type RequestOptions, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { z } from 'zod';
import type { Connection } from './connection.ts';
import { ApiError, toErrorMessage } from '../errors.ts';

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

/** Sends a request and resolves with the response once its head has arrived with success. Rejects with `ApiError`. */
export async function exchange(connection: Connection, call: Exchange): Promise<IncomingMessage> {
  const answer = await attempt(connection, call, true);
  const status = answer.statusCode ?? 0;
  if (status >= 200 && status < 300) return answer;
  throw createStatusError(status, await readText(answer), Number(answer.headers['retry-after']));
}

async function attempt(connection: Connection, call: Exchange, retry: boolean): Promise<IncomingMessage> {
  const attemptState = { reused: false };
  try {
    return await send(connection, call, attemptState);
  } catch (error) {
    if (call.signal.aborted) throw call.signal.reason;
    // The server may close an idle connection at the moment we use it. A POST is not retried: it may have been executed.
    if (retry && attemptState.reused && call.method !== 'POST') return attempt(connection, call, false);
    throw createUnreachable(connection, error);
  }
}

async function send(
  connection: Connection,
  call: Exchange,
  attemptState: { reused: boolean },
): Promise<IncomingMessage> {
  const { headers, agent } = await connection.readCredentials();
  const url = new URL(connection.server + call.path);
  const options: RequestOptions = {
    method: call.method,
    agent,
    signal: call.signal,
    headers: { ...call.headers, ...headers },
  };
  return new Promise((resolve, reject) => {
    const request = url.protocol === 'http:' ? httpRequest(url, options) : httpsRequest(url, options);
    request.setSocketKeepAlive(true, PROBE_MS);
    request.setNoDelay(true);
    request.on('response', resolve);
    request.on('error', (error) => {
      attemptState.reused = request.reusedSocket;
      reject(error);
    });
    request.end(call.body);
  });
}

/** The whole body as text. */
export async function readText(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of answer as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

/** The error for no response, or a broken one. */
export function createUnreachable(connection: Connection, error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError(
    0,
    'Unreachable',
    `The API server at ${connection.server} cannot be reached: ${toErrorMessage(error)}`,
    undefined,
    { cause: error },
  );
}

/** The error that the body of a failed response describes. */
function createStatusError(status: number, text: string, retryAfter = Number.NaN): ApiError {
  const parsed = Status.safeParse(parseJson(text));
  const fields = parsed.success ? parsed.data : {};
  const seconds = Number.isFinite(retryAfter) ? retryAfter : fields.details?.retryAfterSeconds;
  return new ApiError(status, fields.reason ?? `Http${status}`, fields.message ?? shortenText(text, status), seconds);
}

/** The error that a `Status` object in a watch stream describes. */
export function createStreamError(value: unknown): ApiError {
  const parsed = Status.safeParse(value);
  const code = parsed.success ? (parsed.data.code ?? 500) : 500;
  return createStatusError(code, JSON.stringify(value ?? null));
}

/** The JSON value, or `undefined` when the text is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function shortenText(text: string, status: number): string {
  const line = text.trim().slice(0, 300);
  return line === '' ? `The API server answered ${status} without a reason.` : line;
}

/** Far above the largest object that the API server stores (1.5 MiB); past it, the peer is not an API server. */
const LONGEST_LINE = 32 * 1024 * 1024;
const NEWLINE = 0x0a;

/**
 * Cuts a byte stream into lines of text, looking at each byte once however long a line is. Yields each non-empty line
 * without its newline. A rest without a newline at the end of the stream is a line cut off: it is thrown as `ApiError`
 * `Truncated`, never yielded.
 */
export async function* splitLines(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  let parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of stream) {
    let from = 0;
    for (let to = chunk.indexOf(NEWLINE); to >= 0; to = chunk.indexOf(NEWLINE, from)) {
      const line = joinLine(parts, chunk.subarray(from, to));
      parts = [];
      length = 0;
      from = to + 1;
      if (line !== '') yield line;
    }
    if (from < chunk.length) {
      parts.push(chunk.subarray(from));
      length += chunk.length - from;
    }
    if (length > LONGEST_LINE)
      throw new ApiError(0, 'TooLong', `A line of the stream is longer than ${LONGEST_LINE} bytes.`);
  }
  if (length > 0) throw new ApiError(0, 'Truncated', 'The stream ended in the middle of a line.');
}

function joinLine(parts: Uint8Array[], last: Uint8Array): string {
  const bytes =
    parts.length === 0 ? Buffer.from(last.buffer, last.byteOffset, last.byteLength) : Buffer.concat([...parts, last]);
  return bytes.toString('utf8').trim();
}

interface KubeletRequest {
  /** Address of the node. */
  readonly address: string;
  readonly port: number;
  readonly path: string;
  /** Media type. */
  readonly accept: string;
  readonly userAgent: string;
}

/**
 * Requests a page of a node's kubelet, on its own port: the right to what it answers there (nodes/metrics, nodes/stats)
 * opens nothing else, while the way through the API server would need a right to everything that a kubelet can do.
 * @throws ApiError if the kubelet rejects the request or cannot be reached
 */
export async function askKubelet(
  connection: Connection,
  request: KubeletRequest,
  signal: AbortSignal,
): Promise<string> {
  const { address, port, path, accept, userAgent } = request;
  const host = address.includes(':') ? `[${address}]` : address;
  const answer = await exchange(
    { ...connection, readCredentials: () => connection.readCredentials(), server: `https://${host}:${port}` },
    { method: 'GET', path, headers: { accept, 'user-agent': userAgent }, body: undefined, signal },
  );
  return readText(answer);
}
