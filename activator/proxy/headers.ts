// Headers that are passed on: all but those that are about one connection (RFC 9110, section 7.6.1).
import type { IncomingMessage } from 'node:http';

/** `Trailer` is not among them: what it names is passed on as well. */
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
]);

/** Header names and values in turns, as they came. */
export type RawHeaders = readonly string[];

/** Those of a request, as the app gets them. @param upgrade protocol that is asked for */
export function requestHeaders(request: IncomingMessage, upgrade?: string): string[] {
  const kept = endToEnd(request.rawHeaders, request.headers.connection);
  const takesTrailers = /\btrailers\b/i.test(String(request.headers.te));
  const ownConnection =
    upgrade === undefined
      ? ['Connection', takesTrailers ? 'close, TE' : 'close', ...(takesTrailers ? ['TE', 'trailers'] : [])]
      : ['Connection', 'Upgrade', 'Upgrade', upgrade];
  return [
    ...kept,
    ...ownConnection,
    ...(request.headers['transfer-encoding'] === undefined ? [] : ['Transfer-Encoding', 'chunked']),
  ];
}

/** Those of a response, as the client gets them. */
export function responseHeaders(response: IncomingMessage): string[] {
  return endToEnd(response.rawHeaders, response.headers.connection);
}

function endToEnd(raw: RawHeaders, connection = ''): string[] {
  const named = new Set(
    connection
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  );
  return pairs(raw)
    .filter(([name]) => !ofConnection.has(name.toLowerCase()) && !named.has(name.toLowerCase()))
    .flat();
}

function pairs(raw: RawHeaders): [string, string][] {
  return Array.from({ length: raw.length / 2 }, (_, index) => [raw[2 * index] ?? '', raw[2 * index + 1] ?? '']);
}

/** Whether a body comes after the headers. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
