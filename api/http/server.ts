// Listens on the public port, rejects requests that cannot be parsed, and drains without failing a request in progress.
import { randomUUID } from 'node:crypto';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../lib/telemetry.ts';
import { Problem, buildProblemBody, problemMediaType } from '../../lib/problem.ts';
import { malformedRequest, requestTimeout, requestTooLong } from './problems.ts';

export interface ServerOptions {
  readonly port: number;
  /** Default: all addresses. */
  readonly host?: string;
  readonly listener: RequestListener;
  readonly log: Logger;
  /** Base of the URLs of problem types. Without it, they are paths. */
  readonly baseUrl?: string;
}

/** A listening server. */
export interface PublicServer {
  readonly port: number;
  /**
   * Keeps serving for `graceMs`, so that load balancers can send new connections elsewhere. Then closes the port, calls
   * `endStreams`, and resolves when the open requests are answered or, after `limitMs`, cut off.
   */
  drain(options: { graceMs: number; limitMs: number; endStreams: () => void }): Promise<void>;
}

/** Longer than gateways keep idle connections, so that we never close one that they are about to use. */
const keepAliveMs = 120_000;
/** Limit in bytes for URL and headers together. Gateways and clients have about the same. */
const headLimit = 65_536;

/** Starts to listen. @throws Error when the port is in use */
export async function startServer(options: ServerOptions): Promise<PublicServer> {
  const server = createServer(
    { keepAliveTimeout: keepAliveMs, requestTimeout: 60_000, headersTimeout: 20_000, maxHeaderSize: headLimit },
    options.listener,
  );
  rejectUnparsedRequests(server, options);
  await listen(server, options);
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : options.port;
  options.log.info({ port }, 'listening');
  return {
    port,
    async drain({ graceMs, limitMs, endStreams }) {
      // A client that keeps its connection open would otherwise never learn that it has to reconnect elsewhere.
      server.prependListener('request', (_request, response) => {
        response.setHeader('connection', 'close');
      });
      options.log.info({ grace_ms: graceMs }, 'draining');
      await delay(graceMs);
      const closed = Promise.withResolvers<undefined>();
      server.close(() => {
        closed.resolve(undefined);
      });
      endStreams();
      // A client keeps its connection alive if the response began before the drain. It becomes idle only when that
      // response has ended.
      const sweep = setInterval(() => {
        server.closeIdleConnections();
      }, 50);
      const cutOff = setTimeout(() => {
        server.closeAllConnections();
      }, limitMs);
      await closed.promise;
      clearInterval(sweep);
      clearTimeout(cutOff);
    },
  };
}

async function listen(server: Server, { port, host }: ServerOptions): Promise<void> {
  const listening = Promise.withResolvers<undefined>();
  server.once('error', listening.reject);
  server.listen(port, host, () => {
    listening.resolve(undefined);
  });
  await listening.promise;
  server.off('error', listening.reject);
}

/**
 * Answers requests that the HTTP parser cannot read, such as one with a very long URL, with a problem like any other. Each
 * socket is answered once and closed.
 */
function rejectUnparsedRequests(server: Server, { baseUrl = '', log }: ServerOptions): void {
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
    log.info({ request_id: id, status: problem.type.status, code: error.code }, 'could not read a request');
    // Input that still arrives is read and dropped for a while: resetting the connection now would lose the response.
    socket.end(formatResponse(problem, buildProblemBody(problem, baseUrl, '', id), id));
    setTimeout(() => {
      socket.destroy();
    }, 2_000).unref();
  });
}

/** The response to an earlier request on this connection may be half written; nothing may be written into it. */
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
    return new Problem(requestTimeout, 'The request did not arrive in time. Send it again.');
  return new Problem(malformedRequest, 'This is not a valid HTTP/1.1 request. Use a client that follows RFC 9112.');
}

/** Formats a whole HTTP response: there is no ServerResponse for a request that was not parsed. */
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
