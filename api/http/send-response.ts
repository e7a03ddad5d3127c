// Sends a web Response over the connection of a request, with backpressure, and stops its source when the client leaves.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { BufferedResponse } from './buffered-response.ts';

/** Resolves when the content is sent. @throws Error when its source fails or the client leaves; the connection is closed then */
export async function sendResponse(
  response: Response,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  if (!incoming.complete) outgoing.once('finish', () => discardRest(incoming));
  const { body, status } = response;
  const hasContent = body !== null && incoming.method !== 'HEAD' && !outgoing.destroyed;
  if (response instanceof BufferedResponse) {
    if (!response.headers.has('content-length'))
      outgoing.setHeader('content-length', Buffer.byteLength(response.content));
    outgoing.writeHead(status, flat(response.headers)).end(hasContent ? response.content : undefined);
    return;
  }
  outgoing.writeHead(status, flat(response.headers));
  if (hasContent) {
    // The first byte may be a long time coming.
    outgoing.flushHeaders();
    await pipeline(Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]), outgoing);
    return;
  }
  outgoing.end();
  await body?.cancel();
}

/** Headers as Node takes them; several of one name, such as Set-Cookie, stay several. */
function flat(headers: Headers): string[] {
  return [...headers].flat();
}

const discardMs = 500;

/**
 * Reads and drops what a client still sends to a request that is answered: a connection that is closed at once would
 * take the answer with it, and one that is kept open would be read for ever.
 */
function discardRest(incoming: IncomingMessage): void {
  const timer = setTimeout(() => {
    incoming.socket.destroySoon();
  }, discardMs);
  incoming.once('close', () => {
    clearTimeout(timer);
  });
  incoming.resume();
}
