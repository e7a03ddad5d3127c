// Passes one request to an app over an open connection, and the response back, as they come: nothing is kept.
import { request as ask, type ClientRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { requestHeaders, responseHeaders } from './headers.ts';

/** The app ended the connection before it answered anything. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
}

/**
 * Resolves when the response is over, on whichever side it ends.
 *
 * @throws NoAnswer while nothing has been sent to the client
 */
export function forward(request: IncomingMessage, response: ServerResponse, socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    const onward = openRequest(request, socket);
    const isOver = { value: false };
    const end = (): void => {
      isOver.value = true;
      socket.destroy();
      resolve();
    };
    // The client is gone, or has it all.
    response.once('close', end);
    onward.once('response', (answer) => {
      passBack(answer, response);
    });
    onward.once('error', (error) => {
      if (isOver.value) return;
      if (response.headersSent) {
        response.destroy();
        return;
      }
      response.removeListener('close', end);
      socket.destroy();
      reject(new NoAnswer(error.message, { cause: error }));
    });
    passOn(request, onward);
  });
}

/** @param upgrade protocol that is asked for */
export function openRequest(request: IncomingMessage, socket: Socket, upgrade?: string): ClientRequest {
  return ask({
    createConnection: () => socket,
    method: request.method ?? 'GET',
    path: request.url ?? '/',
    headers: requestHeaders(request, upgrade),
    // Some apps set more cookies than the usual 16 KiB.
    maxHeaderSize: 65_536,
  });
}

function passOn(request: IncomingMessage, onward: ClientRequest): void {
  // Tried again, a request without a body is over already.
  if (request.readableEnded) {
    onward.end();
    return;
  }
  request.on('error', () => undefined);
  request.pipe(onward, { end: false });
  request.once('end', () => {
    const trailers = Object.entries(request.trailers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as [string, string]],
    );
    if (trailers.length > 0) onward.addTrailers(trailers);
    onward.end();
  });
}

/** Also a response that comes before the request has been read. */
export function passBack(answer: IncomingMessage, response: ServerResponse): void {
  response.sendDate = false;
  response.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? '', responseHeaders(answer));
  // The first event of a stream may be long in coming.
  response.flushHeaders();
  answer.pipe(response, { end: false });
  answer.once('end', () => {
    const trailers = Object.entries(answer.trailers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as [string, string]],
    );
    if (trailers.length > 0) response.addTrailers(trailers);
    response.end();
  });
  // Cut off in the middle: the client has to see that.
  answer.once('error', () => {
    response.destroy();
  });
}
