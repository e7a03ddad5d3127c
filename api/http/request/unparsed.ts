// Refuses requests that the HTTP parser cannot read, such as one whose URL is too long, with a problem like any other.
import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Problem, problemBody, problemMediaType } from '../../../lib/problem.ts';
import type { Logger } from '../../../lib/telemetry.ts';
import { malformedRequest, requestTimeout, requestTooLong } from '../problems/problems.ts';

/** URL and headers of a request together, in bytes. Gateways and clients have about the same limit. */
export const headLimit = 65_536;

export interface UnparsedOptions {
  /** Where the pages of problems are. */
  readonly baseUrl: string;
  readonly log: Logger;
}

/** Listens on this server; a socket is answered once, and closed. */
export function rejectUnparsedRequests(server: Server, { baseUrl, log }: UnparsedOptions): void {
  const answered = new WeakSet<object>();
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (answered.has(socket)) return;
    answered.add(socket);
    if (error.code === 'ECONNRESET' || !socket.writable || isAnswering(socket)) {
      socket.destroy();
      return;
    }
    const problem = toUnparsedProblem(error);
    const id = randomUUID();
    log.info({ request_id: id, status: problem.type.status, code: error.code }, 'request could not be read');
    // What is still coming is read and left: a connection that is reset at once would take the answer with it.
    socket.end(formatResponse(problem, problemBody(problem, baseUrl, '', id), id));
    setTimeout(() => {
      socket.destroy();
    }, 2_000).unref();
  });
}

/** An answer to an earlier request of this connection may be half written; nothing may come between. */
function isAnswering(socket: Socket): boolean {
  return '_httpMessage' in socket && socket._httpMessage !== null;
}

function toUnparsedProblem({ code }: NodeJS.ErrnoException): Problem {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new Problem(
      requestTooLong,
      `The URL and headers are longer than ${headLimit} bytes together. Send long values in the body of a POST; tools accept the same fields there as JSON.`,
      { members: { limit_bytes: headLimit } },
    );
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new Problem(requestTimeout, 'The request was not complete in time. Send it again.');
  return new Problem(malformedRequest, 'This is not a valid HTTP/1.1 request. Use a client that follows RFC 9112.');
}

function formatResponse({ type: { status } }: Problem, body: Record<string, unknown>, id: string): string {
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
