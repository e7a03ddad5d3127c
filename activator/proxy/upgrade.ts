// Passes a change of protocol (WebSocket) to an app, and then the bytes both ways.
import { ServerResponse, STATUS_CODES, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { NoAnswer, openRequest, passBack } from './forward.ts';
import { responseHeaders } from './headers.ts';

/** Resolves when both connections are closed. @throws NoAnswer while nothing has been sent to the client */
export function forwardUpgrade(request: IncomingMessage, client: Socket, head: Buffer, socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    const upgrade = request.headers.upgrade ?? '';
    const onward = openRequest(request, socket, upgrade);
    const state = { hasAnswered: false };
    client.once('close', () => {
      socket.destroy();
      resolve();
    });
    onward.once('upgrade', (answer, upstream, early) => {
      state.hasAnswered = true;
      client.write(headOf(answer));
      if (early.length > 0) client.write(early);
      if (head.length > 0) upstream.write(head);
      // Either side may end its half first; what breaks ends both.
      upstream.pipe(client);
      client.pipe(upstream);
      upstream.on('error', () => client.destroy());
      upstream.once('close', () => client.end());
    });
    // The app does not want to change.
    onward.once('response', (answer) => {
      state.hasAnswered = true;
      const response = responseOn(request, client);
      passBack(answer, response);
      response.once('finish', () => client.end());
    });
    onward.once('error', (error) => {
      if (client.destroyed) return;
      if (state.hasAnswered) client.destroy();
      else reject(new NoAnswer(error.message, { cause: error }));
    });
    onward.end();
  });
}

/** A response on a bare connection, which ends with it. */
export function responseOn(request: IncomingMessage, client: Socket): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(client);
  return response;
}

function headOf(answer: IncomingMessage): string {
  const { statusCode = 101, statusMessage = STATUS_CODES[101] ?? '' } = answer;
  const raw = responseHeaders(answer);
  const lines = Array.from({ length: raw.length / 2 }, (_, index) => `${raw[2 * index]}: ${raw[2 * index + 1]}`);
  return [
    `HTTP/1.1 ${statusCode} ${statusMessage}`,
    'Connection: Upgrade',
    `Upgrade: ${answer.headers.upgrade ?? ''}`,
    ...lines,
    '\r\n',
  ].join('\r\n');
}
