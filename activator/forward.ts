// Forwards requests and upgrades to an app over an open connection, and streams the response back.
import {
  request as ask,
  ServerResponse,
  STATUS_CODES,
  type ClientRequest,
  type IncomingMessage,
  type OutgoingMessage,
} from 'node:http';
import { isIP, isIPv4, type BlockList, type Socket } from 'node:net';
import { accessHeader, isAccessKey } from '../crds/access.ts';
import { probeHeader } from '../crds/names.ts';
import { removeSession, sessionCookie } from './access.ts';

/** The app ended the connection before it answered anything. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
}

/**
 * Streams a request and its response without buffering. Resolves when the response is over, on whichever side it ends.
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
      sendResponse(answer, response);
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
    sendRequestBody(request, onward);
  });
}

/** @param upgrade the requested protocol */
export function openRequest(request: IncomingMessage, socket: Socket, upgrade?: string): ClientRequest {
  return ask({
    createConnection: () => socket,
    method: request.method ?? 'GET',
    path: request.url ?? '/',
    headers: buildRequestHeaders(request, upgrade),
    // Some apps set more cookies than the usual 16 KiB.
    maxHeaderSize: 65_536,
  });
}

function sendRequestBody(request: IncomingMessage, onward: ClientRequest): void {
  // On a retry, a request without a body has ended already.
  if (request.readableEnded) {
    onward.end();
    return;
  }
  request.on('error', () => undefined);
  request.pipe(onward, { end: false });
  request.once('end', () => {
    copyTrailers(request, onward);
    onward.end();
  });
}

/** Also passes a response that comes before the request has been read. */
export function sendResponse(answer: IncomingMessage, response: ServerResponse): void {
  response.sendDate = false;
  response.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? '', buildResponseHeaders(answer));
  // The first event of a stream may take long.
  response.flushHeaders();
  answer.pipe(response, { end: false });
  answer.once('end', () => {
    copyTrailers(answer, response);
    response.end();
  });
  // The response broke off: the client has to notice that.
  answer.once('error', () => {
    response.destroy();
  });
}

function copyTrailers(from: IncomingMessage, to: OutgoingMessage): void {
  const trailers = Object.entries(from.trailers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as [string, string]],
  );
  if (trailers.length > 0) to.addTrailers(trailers);
}

// Upgrades (WebSocket): the handshake, and then bytes both ways.

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
      client.write(formatHead(answer));
      if (early.length > 0) client.write(early);
      if (head.length > 0) upstream.write(head);
      // Either side may end its half first; an error ends both.
      upstream.pipe(client);
      client.pipe(upstream);
      upstream.on('error', () => client.destroy());
      upstream.once('close', () => client.end());
    });
    // The app does not switch protocols.
    onward.once('response', (answer) => {
      state.hasAnswered = true;
      const response = createResponse(request, client);
      sendResponse(answer, response);
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
export function createResponse(request: IncomingMessage, client: Socket): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(client);
  return response;
}

function formatHead(answer: IncomingMessage): string {
  const { statusCode = 101, statusMessage = STATUS_CODES[101] ?? '' } = answer;
  const raw = buildResponseHeaders(answer);
  const lines = Array.from({ length: raw.length / 2 }, (_, index) => `${raw[2 * index]}: ${raw[2 * index + 1]}`);
  return [
    `HTTP/1.1 ${statusCode} ${statusMessage}`,
    'Connection: Upgrade',
    `Upgrade: ${answer.headers.upgrade ?? ''}`,
    ...lines,
    '\r\n',
  ].join('\r\n');
}

// Headers: all are forwarded but those of one connection (RFC 9110, section 7.6.1). The client comes from those that the
// gateway sets.

/** `Trailer` is not among them, since trailers are forwarded as well. */
const ofConnection: ReadonlySet<string> = new Set([
  'connection',
  'proxy-connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'transfer-encoding',
  'upgrade',
  // Answered here, before the body is read.
  'expect',
  // Only for the activator. Its value is a secret, and anybody else's value means nothing.
  probeHeader,
  accessHeader,
]);

/** Header names and values in turn, as received. */
export type RawHeaders = readonly string[];

/** The headers that the app gets. @param upgrade the requested protocol */
export function buildRequestHeaders(request: IncomingMessage, upgrade?: string): string[] {
  const headers = keepEndToEnd(request.rawHeaders, request.headers.connection).flatMap(removeCredentials).flat();
  const takesTrailers = /\btrailers\b/i.test(String(request.headers.te));
  const ownConnection =
    upgrade === undefined
      ? ['Connection', takesTrailers ? 'close, TE' : 'close', ...(takesTrailers ? ['TE', 'trailers'] : [])]
      : ['Connection', 'Upgrade', 'Upgrade', upgrade];
  return [
    ...headers,
    ...ownConnection,
    ...(request.headers['transfer-encoding'] === undefined ? [] : ['Transfer-Encoding', 'chunked']),
  ];
}

/** The headers that the client gets. */
export function buildResponseHeaders(response: IncomingMessage): string[] {
  return keepEndToEnd(response.rawHeaders, response.headers.connection)
    .filter(([name, value]) => !(name.toLowerCase() === 'set-cookie' && value.trim().startsWith(`${sessionCookie}=`)))
    .flat();
}

/** What opens an app to a visitor is never shown to the app, no matter who sent it. */
function removeCredentials([name, value]: [string, string]): [string, string][] {
  const lowerCase = name.toLowerCase();
  if (lowerCase === 'authorization' && isAccessKey(value.trim().replace(/^Bearer +/i, ''))) return [];
  if (lowerCase !== 'cookie') return [[name, value]];
  const others = removeSession(value);
  return others === undefined ? [] : [[name, others]];
}

function keepEndToEnd(raw: RawHeaders, connection = ''): [string, string][] {
  const hopByHop = new Set(
    connection
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  );
  return toPairs(raw).filter(([name]) => !ofConnection.has(name.toLowerCase()) && !hopByHop.has(name.toLowerCase()));
}

function toPairs(raw: RawHeaders): [string, string][] {
  return Array.from({ length: raw.length / 2 }, (_, index) => [raw[2 * index] ?? '', raw[2 * index + 1] ?? '']);
}

/** Whether a body comes after the headers. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/**
 * Reads the network (/32 of IPv4, /56 of IPv6) of the client that the gateway names. Only the gateway and the API reach the
 * activator, and the gateway always names the client. A request without X-Forwarded-For comes from the API, which has its
 * own limits for callers: undefined. `trusted`: proxies before the gateway, which are no clients.
 */
export function readClient({ headers }: IncomingMessage, trusted: BlockList): string | undefined {
  const forwarded = headers['x-forwarded-for'];
  if (forwarded === undefined) return undefined;
  const hops = [forwarded].flat().join(',').split(',').map(readAddress).reverse();
  const isTrusted = (hop: string): boolean => isIP(hop) !== 0 && trusted.check(hop, isIPv4(hop) ? 'ipv4' : 'ipv6');
  return readNetwork(hops.find((hop) => !isTrusted(hop)) ?? hops.at(-1) ?? '');
}

function readNetwork(client: string): string {
  if (isIPv4(client)) return client;
  if (isIP(client) === 0) return 'unknown';
  // A URL has the shortest form of a valid address, with :: where it belongs.
  const [head = '', tail] = new URL(`http://[${client}]/`).hostname.slice(1, -1).split('::');
  const groups = head === '' ? [] : head.split(':');
  const missing = tail === undefined ? 0 : 8 - groups.length - (tail === '' ? 0 : tail.split(':').length);
  const fullGroups = [...groups, ...new Array<string>(missing).fill('0')];
  const fourth = Number.parseInt(fullGroups[3] ?? '0', 16) & 0xff00;
  return `${[...fullGroups.slice(0, 3), fourth.toString(16)].join(':')}::/56`;
}

/** Without port, brackets, zone, and the prefix of a mapped IPv4 address. */
function readAddress(hop: string): string {
  const text = hop.trim();
  const address = /^\[(.*)\](?::\d+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text;
  return address.replace(/%.*$/, '').replace(/^::ffff:(?=\d+\.)/i, '');
}
