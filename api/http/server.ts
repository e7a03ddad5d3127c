// Listens on the public port, and stops without failing a request: first new connections go elsewhere, then the port is closed.
import { createServer, type RequestListener, type Server } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../lib/telemetry.ts';
import { headLimit, rejectUnparsedRequests } from './request/unparsed.ts';

/** Settings of the public server. */
export interface ServerOptions {
  readonly port: number;
  /** Default all addresses. */
  readonly host?: string;
  readonly listener: RequestListener;
  readonly log: Logger;
  /** Where the pages of problems are; without it they are given as paths. */
  readonly baseUrl?: string;
}

/** A listening server. */
export interface PublicServer {
  readonly port: number;
  /**
   * Serves for `graceMs` more, so that whoever balances the load can look elsewhere, then takes no connection, calls
   * `endStreams`,
   * and resolves when the open requests are answered, or cut off after `limitMs`.
   */
  drain(options: { graceMs: number; limitMs: number; endStreams: () => void }): Promise<void>;
}

/** Longer than gateways keep idle connections, so that we never close one that they are about to use. */
const keepAliveMs = 120_000;

/** Starts to listen. @throws Error when the port is taken */
export async function startServer(options: ServerOptions): Promise<PublicServer> {
  const state = { draining: false };
  const server = createServer(
    { keepAliveTimeout: keepAliveMs, requestTimeout: 60_000, headersTimeout: 20_000, maxHeaderSize: headLimit },
    (request, response) => {
      // A client that keeps its connection open would never learn that it has to leave.
      if (state.draining) response.setHeader('connection', 'close');
      options.listener(request, response);
    },
  );
  rejectUnparsedRequests(server, { baseUrl: options.baseUrl ?? '', log: options.log });
  await listen(server, options);
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : options.port;
  options.log.info({ port }, 'listening');
  return {
    port,
    async drain({ graceMs, limitMs, endStreams }) {
      state.draining = true;
      options.log.info({ grace_ms: graceMs }, 'draining');
      await delay(graceMs);
      const closed = Promise.withResolvers<undefined>();
      server.close(() => {
        closed.resolve(undefined);
      });
      endStreams();
      // A connection whose answer began before the drain is kept alive by its client, and is idle only once that answer
      // has ended.
      const sweep = setInterval(() => {
        server.closeIdleConnections();
      }, 50);
      const cut = setTimeout(() => {
        server.closeAllConnections();
      }, limitMs);
      await closed.promise;
      clearInterval(sweep);
      clearTimeout(cut);
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
