// Creates responses (text, bytes and JSON in memory, conditional responses with an ETag, server-sent events, escaped HTML) and
// sends them with backpressure.
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { FastResponse } from 'srvx/node';
import { escapeHtml } from '../../lib/values.ts';

/** Status and headers; header names are in lower case. */
export interface BufferedResponseInit {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Creates a Response of text or bytes in memory, which is sent in one piece, with its length and without a stream. It
 * becomes a full web Response only if something reads it as such.
 */
export function createBufferedResponse(
  content: string | Uint8Array<ArrayBuffer>,
  init: BufferedResponseInit = {},
): Response {
  return new FastResponse(content, init);
}

/** Recognizes a buffered response by its method: `instanceof FastResponse` holds for every Response. */
function isBuffered(response: Response): response is InstanceType<typeof FastResponse> {
  return '_toNodeResponse' in response;
}

export function createJsonResponse(value: unknown, { headers, ...init }: BufferedResponseInit = {}): Response {
  return createBufferedResponse(JSON.stringify(value), {
    ...init,
    headers: { 'content-type': 'application/json', ...headers },
  });
}

export interface ConditionalOptions {
  /** Seconds for which a cache may answer without revalidating. */
  readonly maxAgeSeconds: number;
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The part of a request that names the content its sender already has. */
interface Reader {
  readonly headers: Headers;
}

/** Creates a JSON response that is the same for all readers, or 304 if this reader already has it. */
export function createConditionalJsonResponse(value: unknown, reader: Reader, options: ConditionalOptions): Response {
  return createConditionalResponse(JSON.stringify(value), 'application/json', reader, options);
}

/** Creates a response with an ETag of its content, or 304 if If-None-Match names that content (RFC 9110). */
export function createConditionalResponse(
  content: string,
  mediaType: string,
  reader: Reader,
  { maxAgeSeconds, headers = {} }: ConditionalOptions,
): Response {
  const etag = computeEtag(content);
  const cacheHeaders = { ...headers, etag, 'cache-control': `public, max-age=${maxAgeSeconds}` };
  if (hasMatchingEtag(reader.headers, etag)) return new Response(null, { status: 304, headers: cacheHeaders });
  return createBufferedResponse(content, { headers: { 'content-type': mediaType, ...cacheHeaders } });
}

/** Computes a weak ETag, since a proxy may compress what it passes on. */
export function computeEtag(content: string): string {
  return `W/"${createHash('sha256').update(content).digest('base64url').slice(0, 27)}"`;
}

/** Whether If-None-Match names this content. Weak and strong tags are compared alike. */
export function hasMatchingEtag(headers: Headers, etag: string): boolean {
  const ifNoneMatch = headers.get('if-none-match');
  if (ifNoneMatch === null) return false;
  if (ifNoneMatch.trim() === '*') return true;
  const opaque = etag.slice(2);
  return ifNoneMatch.split(',').some((tag) => tag.trim().replace(/^W\//, '') === opaque);
}

export const eventStreamType = 'text/event-stream';

export interface EventStreamOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Silence after which a comment is sent, so that no proxy considers the stream dead. Default: 15 000 ms. */
  readonly keepaliveMs?: number;
  /** Called when the reader goes away; has to make the frames end. */
  readonly abort: () => void;
}

/**
 * Streams frames as they come. When the reader leaves, the generator is still read to its end, unsent, so that its work is
 * not cut off half way.
 */
export function createEventStreamResponse(
  frames: AsyncGenerator<string, unknown, undefined>,
  { headers = {}, keepaliveMs = 15_000, abort }: EventStreamOptions,
): Response {
  const encoder = new TextEncoder();
  const readNext = readWithSilence(frames, keepaliveMs);
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const result = await readNext();
        if (result?.done === true) controller.close();
        else controller.enqueue(encoder.encode(result === undefined ? ': keepalive\n\n' : result.value));
      },
      async cancel() {
        abort();
        while ((await readNext())?.done !== true);
      },
    },
    { highWaterMark: 0 },
  );
  // X-Accel-Buffering: nginx buffers a stream without it.
  return new Response(body, {
    headers: { 'content-type': eventStreamType, 'cache-control': 'no-store', 'x-accel-buffering': 'no', ...headers },
  });
}

/** Formats one server-sent event. */
export function formatEvent(event: string | undefined, data: unknown): string {
  return `${event === undefined ? '' : `event: ${event}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
}

/**
 * Returns a function that reads the next result of `source`, or undefined after `silenceMs` milliseconds without one. A
 * pending result is not lost: the next call waits for the same one.
 */
export function readWithSilence<Value>(
  source: AsyncGenerator<Value, unknown, undefined>,
  silenceMs: number,
): () => Promise<IteratorResult<Value, unknown> | undefined> {
  let next: Promise<IteratorResult<Value, unknown>> | undefined;
  return async () => {
    next ??= source.next();
    const silence = Promise.withResolvers<undefined>();
    const timer = setTimeout(silence.resolve, silenceMs, undefined);
    const result = await Promise.race([next, silence.promise]).finally(() => {
      clearTimeout(timer);
    });
    if (result !== undefined) next = undefined;
    return result;
  };
}

/**
 * Sends a web Response over the connection of its request. Resolves when the content is sent.
 * @param added names and values of further headers, alternating
 * @throws Error when the source fails or the client leaves; the connection is closed then
 */
export async function sendResponse(
  response: Response,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  added: readonly string[],
): Promise<void> {
  if (!incoming.complete) discardRest(incoming, outgoing);
  if (isBuffered(response)) {
    const { status, headers, body } = response._toNodeResponse();
    outgoing.writeHead(status, headers.concat(added)).end(incoming.method === 'HEAD' ? undefined : body);
    return;
  }
  const { body, status } = response;
  try {
    // Several headers of one name, such as Set-Cookie, stay several.
    outgoing.writeHead(status, [...response.headers].flat().concat(added));
  } catch (error) {
    outgoing.destroy();
    await body?.cancel(error);
    throw error;
  }
  if (body === null || incoming.method === 'HEAD' || outgoing.destroyed) {
    outgoing.end();
    await body?.cancel();
    return;
  }
  await pump(body.getReader(), outgoing);
}

const discardMs = 500;

/**
 * Reads and drops what a client still sends after its request was answered. Closing the connection immediately would
 * lose the response, and keeping it open would mean reading for ever.
 */
function discardRest(incoming: IncomingMessage, outgoing: ServerResponse): void {
  // A request whose body was abandoned has no socket any more.
  const { socket } = outgoing;
  if (socket === null) return;
  outgoing.once('finish', () => {
    const timer = setTimeout(() => {
      socket.destroySoon();
    }, discardMs);
    const done = (): void => {
      clearTimeout(timer);
      socket.off('close', done);
    };
    // Not on the request's 'close' event: a request whose body was abandoned leaves the rest of it on the connection.
    incoming.once('end', done);
    socket.once('close', done);
    incoming.resume();
  });
}

/** Node's own `pipeline` with `Readable.fromWeb` would cost a short response more than everything else done for it. */
async function pump(reader: ReadableStreamDefaultReader<Uint8Array>, outgoing: ServerResponse): Promise<void> {
  // Headers go out with the first bytes, but do not wait for them.
  const flush = setImmediate(() => {
    outgoing.flushHeaders();
  });
  const leave = (): void => {
    reader.cancel().catch(() => undefined);
  };
  outgoing.once('close', leave);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      clearImmediate(flush);
      if (done) break;
      if (!outgoing.write(value)) await waitForDrain(outgoing);
    }
    outgoing.end();
  } catch (error) {
    outgoing.destroy();
    throw error;
  } finally {
    outgoing.off('close', leave);
  }
}

async function waitForDrain(outgoing: ServerResponse): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const go = (): void => {
    outgoing.off('drain', go).off('close', go);
    resolve(undefined);
  };
  outgoing.once('drain', go).once('close', go);
  await promise;
}

/** Text that is HTML. */
export class Html {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

type HtmlValue = Html | string | number | readonly HtmlValue[];

/** Template tag for HTML: every value is escaped unless it is `Html` itself. */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return new Html(String.raw({ raw: strings }, ...values.map(escapeValue)));
}

/** Marks text as HTML without escaping it. Only for trusted text, such as a constant. */
export function trustHtml(text: string): Html {
  return new Html(text);
}

function escapeValue(value: HtmlValue): string {
  if (value instanceof Html) return value.toString();
  if (typeof value === 'object') return value.map(escapeValue).join('');
  return escapeHtml(String(value));
}
