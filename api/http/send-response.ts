// Sends a web Response over the connection of a request, with backpressure, and stops its source when the client leaves.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { isBuffered } from './buffered-response.ts';

/**
 * Resolves when the content is sent. @param added names and values of headers, in turn
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
  // Several headers of one name, such as Set-Cookie, stay several.
  outgoing.writeHead(status, [...response.headers].flat().concat(added));
  if (body === null || incoming.method === 'HEAD' || outgoing.destroyed) {
    outgoing.end();
    await body?.cancel();
    return;
  }
  // The first byte may be a long time coming.
  outgoing.flushHeaders();
  await pipeline(Readable.fromWeb(body), outgoing);
}

const discardMs = 500;

/**
 * Reads and drops what a client still sends to a request that is answered: a connection that is closed at once would
 * take the answer with it, and one that is kept open would be read for ever.
 */
function discardRest(incoming: IncomingMessage, outgoing: ServerResponse): void {
  // A request whose body was given up has no socket any more.
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
    incoming.once('end', done).once('close', done);
    socket.once('close', done);
    incoming.resume();
  });
}
