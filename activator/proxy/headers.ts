// Headers that are passed on: all but those that are about one connection (RFC 9110, section 7.6.1). And whose request it
// is, by those that the gateway sets.
import { isIP, isIPv4, type BlockList } from 'node:net';
import type { IncomingMessage } from 'node:http';
import { probeHeader } from '../../crds/names.ts';

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
  // For the activator alone. Its value is a secret, and a stranger's says nothing.
  probeHeader,
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

/**
 * Whose request it is: the network (/32 of IPv4, /56 of IPv6) of the client that the gateway names. Only the gateway and
 * the API reach the activator, and the gateway always names the client; what has no X-Forwarded-For is a call by the
 * API, which has limits for its callers: undefined. `trusted`: proxies before the gateway, which are no clients.
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
  // Of a valid address a URL has the shortest form, with :: where it belongs.
  const [head = '', tail] = new URL(`http://[${client}]/`).hostname.slice(1, -1).split('::');
  const groups = head === '' ? [] : head.split(':');
  const missing = tail === undefined ? 0 : 8 - groups.length - (tail === '' ? 0 : tail.split(':').length);
  const all = [...groups, ...new Array<string>(missing).fill('0')];
  const fourth = Number.parseInt(all[3] ?? '0', 16) & 0xff00;
  return `${[...all.slice(0, 3), fourth.toString(16)].join(':')}::/56`;
}

/** Without port, brackets, zone, and the prefix of a mapped IPv4 address. */
function readAddress(hop: string): string {
  const text = hop.trim();
  const bare = /^\[(.*)\](?::\d+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text;
  return bare.replace(/%.*$/, '').replace(/^::ffff:(?=\d+\.)/i, '');
}
