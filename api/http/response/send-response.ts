// Sends a web Response over the connection of a request, with backpressure, and stops its source when the client leaves.
import type { IncomingMessage, ServerResponse } from 'node:http';
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

/** Node's own `pipeline` with `Readable.fromWeb` costs a short answer more than all else that is done for it. */
async function pump(reader: ReadableStreamDefaultReader<Uint8Array>, outgoing: ServerResponse): Promise<void> {
  // Headers go with the first bytes, but do not wait for them.
  const waiting = setImmediate(() => {
    outgoing.flushHeaders();
  });
  const leave = (): void => {
    reader.cancel().catch(() => undefined);
  };
  outgoing.once('close', leave);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      clearImmediate(waiting);
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
    // Not when it is closed: a request whose body was given up leaves the rest of it on the connection.
    incoming.once('end', done);
    socket.once('close', done);
    incoming.resume();
  });
}
