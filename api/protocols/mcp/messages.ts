// Handles MCP messages that need no library: reads bodies, answers plain calls, and cancels requests.
import { randomUUID } from 'node:crypto';
import {
  isJsonContentType,
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  PROTOCOL_VERSION_META_KEY,
  SERVER_INFO_META_KEY,
  SUPPORTED_PROTOCOL_VERSIONS,
  type CallToolResult,
} from '@modelcontextprotocol/server';
import { z } from 'zod';

export interface PreparsedRequest {
  /** Replaces the request if its body has been consumed and is not JSON. */
  readonly request?: Request;
  /** Parsed JSON. If undefined, the library reads and rejects the body. */
  readonly parsedBody: unknown;
}

/**
 * Reads the body of a call before the library does. The library would copy it through two streams, which takes a third
 * of the time of a cheap call. Reads only a short body declared as JSON: HTTP/1.1 ends a body at its declared length.
 */
export async function readAhead(request: Request, limit: number): Promise<PreparsedRequest> {
  const { headers, method } = request;
  const length = headers.get('content-length');
  if (method !== 'POST' || length === null || Number(length) > limit || !isJsonContentType(headers.get('content-type')))
    return { parsedBody: undefined };
  const text = await request.text();
  try {
    return { parsedBody: JSON.parse(text) as unknown };
  } catch {
    return { request: new Request(request.url, { method, headers, body: text }), parsedBody: undefined };
  }
}

/** The revision whose messages carry an envelope and whose headers repeat the request. */
const modernVersion = '2026-07-28';

const meta = z.strictObject({
  [PROTOCOL_VERSION_META_KEY]: z.literal(modernVersion),
  [CLIENT_INFO_META_KEY]: z.looseObject({ name: z.string(), version: z.string() }),
  [CLIENT_CAPABILITIES_META_KEY]: z.looseObject({}),
});
const fields = z.record(z.string(), z.unknown());
const message = z.strictObject({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.string(), z.int()]),
  method: z.literal('tools/call'),
  params: z.strictObject({ name: z.string(), arguments: fields.optional(), _meta: meta.optional() }),
});

export interface PlainCall {
  readonly id: string | number;
  readonly params: { readonly name: string; readonly arguments?: Record<string, unknown> | undefined };
  readonly modern: boolean;
}

/**
 * Recognizes the most common message: a tool call without further options. It is answered without creating a server and
 * a transport, which account for most of the cost of a cheap call. Returns undefined for every message, valid or not,
 * that the library has to answer with more than a result, including calls that request progress.
 */
export function parsePlainCall(headers: Headers, body: unknown): PlainCall | undefined {
  if (!isBothAccepted(headers.get('accept'))) return undefined;
  const read = message.safeParse(body);
  if (!read.success) return undefined;
  const { id, params } = read.data;
  const modern = params._meta !== undefined;
  const fits = modern ? hasMatchingHeaders(headers, params.name) : isEarlier(headers);
  return fits ? { id, params: { name: params.name, arguments: params.arguments }, modern } : undefined;
}

/** Formats the response as the library would, with the server's identity in results of the newer revision. */
export function formatPlainAnswer({ id, modern }: PlainCall, result: CallToolResult, serverInfo: object): string {
  const answered = modern
    ? { ...result, resultType: 'complete', _meta: { [SERVER_INFO_META_KEY]: serverInfo } }
    : result;
  return JSON.stringify({ result: answered, jsonrpc: '2.0', id });
}

function isBothAccepted(accept: string | null): boolean {
  return accept !== null && accept.includes('application/json') && accept.includes('text/event-stream');
}

/** Names that a header cannot hold unencoded arrive encoded, and so do not match here. */
function hasMatchingHeaders(headers: Headers, name: string): boolean {
  return (
    headers.get('mcp-protocol-version') === modernVersion &&
    headers.get('mcp-method') === 'tools/call' &&
    headers.get('mcp-name') === name
  );
}

function isEarlier(headers: Headers): boolean {
  const version = headers.get('mcp-protocol-version');
  return version !== null && version !== modernVersion && SUPPORTED_PROTOCOL_VERSIONS.includes(version);
}

export const sessionHeader = 'mcp-session-id';

type RequestId = string | number;

/**
 * Aborts a request when its client cancels it. In revision 2026-07-28, a client closes the request's stream. In the
 * 2025 revisions, it sends a separate notifications/cancelled message, which names the request only by a small number.
 *
 * The session id shows which client's number it is. It is issued with initialize and hard to guess, and the server
 * stores nothing for it except the requests in progress. Without a session id, or at another replica, a cancellation
 * has no effect.
 */
export class Cancellations {
  /** Requests in progress, by session and id. */
  readonly #calls = new Map<string, Set<AbortController>>();

  /**
   * Registers a message before it is answered. @returns a signal for a request of a session, which aborts when the
   * client cancels it; `onFinished` receives the function that unregisters it
   */
  read(headers: Headers, message: unknown, onFinished: (done: () => void) => void): AbortSignal | undefined {
    const session = headers.get(sessionHeader);
    if (session === null || !isMessage(message)) return undefined;
    const { id, method, params } = message;
    if (method === 'notifications/cancelled' && isId(params?.['requestId'])) {
      for (const call of this.#calls.get(toKey(session, params['requestId'])) ?? [])
        call.abort(new DOMException('The client canceled the request.', 'AbortError'));
      return undefined;
    }
    return isId(id) && method === 'tools/call' ? this.#begin(toKey(session, id), onFinished) : undefined;
  }

  /** Cancels all requests of a session that its client has ended. */
  end(session: string): void {
    for (const [key, calls] of this.#calls)
      if (key.startsWith(`${session} `))
        for (const call of calls) call.abort(new DOMException('The client ended the session.', 'AbortError'));
  }

  #begin(key: string, onFinished: (done: () => void) => void): AbortSignal {
    const controller = new AbortController();
    const calls = this.#calls.get(key) ?? new Set();
    this.#calls.set(key, calls.add(controller));
    onFinished(() => {
      calls.delete(controller);
      if (calls.size === 0) this.#calls.delete(key);
    });
    return controller.signal;
  }
}

/** Creates a session id for a client that initializes; undefined for any other message. */
export function createSessionId(message: unknown): string | undefined {
  return isMessage(message) && message.method === 'initialize' ? randomUUID() : undefined;
}

interface Message {
  readonly id?: unknown;
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>> | undefined;
}

function isMessage(message: unknown): message is Message {
  if (!isObject(message) || typeof message['method'] !== 'string') return false;
  return message['params'] === undefined || isObject(message['params']);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function isId(id: unknown): id is RequestId {
  return typeof id === 'number' || (typeof id === 'string' && id.length <= 200);
}

/** A number and the same number as text are different ids. */
function toKey(session: string, id: RequestId): string {
  return `${session} ${JSON.stringify(id)}`;
}
