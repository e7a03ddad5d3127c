// A forward proxy for programs that open URLs themselves, such as Chromium: the guard checks each connection as it checks
// a fetch. Chromium bypasses its proxy for loopback addresses unless it runs with `--proxy-bypass-list=<-loopback>`, and
// WebRTC ignores the proxy entirely.
import { createServer, request as send, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { pipeline, type Duplex } from 'node:stream';
import { Refusal, type Guard, type Target } from './guard.ts';

export interface ProxyOptions {
  readonly guard: Guard;
  readonly host: string;
  readonly port: number;
  /** Concurrent connections; default 256. */
  readonly maxConnections?: number;
  /** Idle time after which a connection is closed; default 30 000 ms. */
  readonly idleMs?: number;
  /** Maximum lifetime of a connection; default 120 000 ms. */
  readonly lifeMs?: number;
  /** Maximum bytes received over one connection; default 64 MiB. */
  readonly maxBytes?: number;
}

export interface GuardProxy {
  readonly url: string;
  close(): Promise<void>;
}

/** Hop-by-hop headers (RFC 9110, 7.6.1). */
const hopHeaders: ReadonlySet<string> = new Set([
  'connection',
  'proxy-connection',
  'proxy-authorization',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

export async function startGuardProxy(options: ProxyOptions): Promise<GuardProxy> {
  const server = createServer({ maxHeaderSize: 32_768, requestTimeout: 60_000 });
  server.maxConnections = options.maxConnections ?? 256;
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    limitSocket(socket, options);
    sockets.add(socket);
    socket.once('close', () => {
      sockets.delete(socket);
    });
  });
  server.on('connect', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    tunnel(request, socket, head, options);
  });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    forward(request, response, options);
  });
  server.on('upgrade', (_request: IncomingMessage, socket: Duplex) => {
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  });
  server.on('clientError', (_error: Error, socket: Duplex) => {
    socket.destroy();
  });
  server.listen(options.port, options.host);
  await once(server, 'listening');
  return { url: formatUrl(server), close: async () => close(server, sockets) };
}

/** Connects a CONNECT request to its target. */
function tunnel(request: IncomingMessage, socket: Duplex, head: Buffer, options: ProxyOptions): void {
  const refuse = (status: string): void => {
    socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\n\r\n`);
  };
  socket.on('error', () => {
    socket.destroy();
  });
  const target = findTarget(`https://${request.url ?? ''}`, options.guard);
  if (target === undefined) {
    refuse('403 Forbidden');
    return;
  }
  const outside = connect({ host: target.host, port: target.port, lookup: options.guard.createLookup(target) });
  limitSocket(outside, options);
  let joined = false;
  outside.once('connect', () => {
    joined = true;
    socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
    outside.write(head);
    pipeline(outside, socket, () => {
      outside.destroy();
    });
    pipeline(socket, outside, () => {
      socket.destroy();
    });
  });
  outside.once('error', (error) => {
    if (!joined) refuse(error instanceof Refusal ? '403 Forbidden' : '502 Bad Gateway');
  });
  socket.once('close', () => {
    outside.destroy();
  });
}

/** Forwards a plain http request. */
function forward(request: IncomingMessage, response: ServerResponse, options: ProxyOptions): void {
  const fail = (status: number): void => {
    if (!response.headersSent) response.writeHead(status, { connection: 'close' });
    response.end();
  };
  const target = findTarget(request.url ?? '', options.guard);
  if (target?.url.protocol !== 'http:') {
    fail(403);
    return;
  }
  const outside = send({
    host: target.host,
    port: target.port,
    path: `${target.url.pathname}${target.url.search}`,
    method: request.method,
    agent: false,
    lookup: options.guard.createLookup(target),
    headers: { ...filterHeaders(request), host: target.url.host },
    maxHeaderSize: 32_768,
  });
  outside.once('socket', (socket) => {
    limitSocket(socket, options);
  });
  outside.once('response', (answer) => {
    response.writeHead(answer.statusCode ?? 502, filterHeaders(answer));
    pipeline(answer, response, () => {
      outside.destroy();
    });
  });
  outside.on('error', (error) => {
    fail(error instanceof Refusal ? 403 : 502);
  });
  response.once('close', () => {
    outside.destroy();
  });
  request.pipe(outside);
}

function filterHeaders({ headers }: IncomingMessage): Record<string, string | string[]> {
  const kept = Object.entries(headers).filter(
    (entry): entry is [string, string | string[]] => entry[1] !== undefined && !hopHeaders.has(entry[0]),
  );
  return Object.fromEntries(kept);
}

function findTarget(address: string, guard: Guard): Target | undefined {
  try {
    return guard.parseTarget(address);
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

/** Closes a connection that is idle, too old or over its byte limit. */
function limitSocket(socket: Socket, options: ProxyOptions): void {
  const { idleMs = 30_000, lifeMs = 120_000, maxBytes = 67_108_864 } = options;
  const end = (): void => {
    socket.destroy();
  };
  // Both directions of a tunnel add listeners at both ends.
  socket.setMaxListeners(20);
  socket.setTimeout(idleMs, end);
  const life = setTimeout(end, lifeMs);
  const watch = setInterval(() => {
    if (socket.bytesRead > maxBytes) end();
  }, 200);
  socket.once('close', () => {
    clearTimeout(life);
    clearInterval(watch);
  });
}

async function close(server: Server, sockets: ReadonlySet<Socket>): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  for (const socket of sockets) socket.destroy();
  await closed;
}

function formatUrl(server: Server): string {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy does not listen');
  return `http://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`;
}
