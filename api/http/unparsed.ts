// Refuses requests that the HTTP parser could not take, such as one with an address that is too long: with a problem,
// like every other refusal.
import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Problem, problemBody, problemMediaType } from '../../lib/problem.ts';
import type { Logger } from '../../lib/log.ts';
import { malformedRequest, requestTimeout, requestTooLong } from './problems.ts';

/** Address and headers of a request together, in bytes. Gateways and clients take about as much. */
export const headLimit = 65_536;

export interface UnparsedOptions {
  /** Where the pages of problems are. */
  readonly baseUrl: string;
  readonly log: Logger;
}

/** Told on this server; a socket is answered once, and closed. */
export function refuseUnparsed(server: Server, { baseUrl, log }: UnparsedOptions): void {
  const answered = new WeakSet<object>();
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (answered.has(socket)) return;
    answered.add(socket);
    if (error.code === 'ECONNRESET' || !socket.writable || isAnswering(socket)) {
      socket.destroy();
      return;
    }
    const problem = problemOf(error);
    const id = randomUUID();
    log.info({ request_id: id, status: problem.type.status, code: error.code }, 'request could not be read');
    // What is still coming is read and left: a connection that is reset at once would take the answer with it.
    socket.end(text(problem, problemBody(problem, baseUrl, '', id), id));
    setTimeout(() => {
      socket.destroy();
    }, 2_000).unref();
  });
}

/** An answer to an earlier request of this connection may be half written; nothing may come between. */
function isAnswering(socket: Socket): boolean {
  return '_httpMessage' in socket && socket._httpMessage !== null;
}

function problemOf({ code }: NodeJS.ErrnoException): Problem {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new Problem(
      requestTooLong,
      `address and headers of the request are longer than ${headLimit} bytes; send what is long in the body of a POST: tools take the same fields there, as JSON`,
      { members: { limit_bytes: headLimit } },
    );
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new Problem(requestTimeout, 'the request did not come whole in time; send it again');
  return new Problem(
    malformedRequest,
    'this is not a request of HTTP/1.1 that can be read; send it with a client that keeps to RFC 9112',
  );
}

function text({ type: { status } }: Problem, body: Record<string, unknown>, id: string): string {
  const content = JSON.stringify(body);
  const reason = { 408: 'Request Timeout', 431: 'Request Header Fields Too Large' }[status] ?? 'Bad Request';
  return [
    `HTTP/1.1 ${status} ${reason}`,
    `content-type: ${problemMediaType}`,
    `content-length: ${Buffer.byteLength(content)}`,
    'cache-control: no-store',
    'x-content-type-options: nosniff',
    `x-request-id: ${id}`,
    'connection: close',
    '',
    content,
  ].join('\r\n');
}
