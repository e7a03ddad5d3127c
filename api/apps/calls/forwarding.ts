// What passes between a caller and an app: methods, paths, headers and redirects. Worker processes load this file, so it
// imports nothing at run time.
import type { Target } from '../directory.ts';

export const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type Method = (typeof methods)[number];

/**
 * Parses path and query of a request to an app; undefined if the text is not a path. The result has no origin, so a caller
 * cannot change where the request goes.
 */
export function parseAppPath(text: string): string | undefined {
  if (!/^\/[\x21-\x7e\u00a1-\uffff]*$/.test(text) || text.length > 8_000) return undefined;
  // All leading slashes belong to the path: with a host in front, the parser cannot read one out of "//host".
  if (!URL.canParse(`http://app${text}`)) return undefined;
  const { host, pathname, search } = new URL(`http://app${text}`);
  return host === 'app' ? `${pathname}${search}` : undefined;
}

/** Headers that are never forwarded: hop-by-hop (RFC 9110), private to the caller, or about the route of the request. */
const withheld =
  /^(connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|host|content-length|accept-encoding|cookie2?|authorization|proxy-.*|forwarded|x-forwarded-.*|x-real-ip|x-original-.*|x-rewrite-url|x-client-ip|x-cluster-client-ip|true-client-ip|cf-.*|x-envoy-.*|via|origin|referer|sec-.*|x-request-id|(x-)?moorage-.*)$/i;
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/;
const text = /^[\t\x20-\x7e\x80-\xff]{0,4096}$/;
const maxHeaders = 64;

/** Whether a header of a caller is forwarded to an app at all. */
export function isForwarded(name: string): boolean {
  return token.test(name) && !withheld.test(name);
}

/** Selects the headers of a caller that an app receives. */
export function selectForwardedHeaders(headers: Iterable<readonly [string, string]>): Record<string, string> {
  const all = [...headers];
  const ofConnection = new Set(
    all
      .filter(([name]) => name.toLowerCase() === 'connection')
      .flatMap(([, value]) =>
        value
          .toLowerCase()
          .split(',')
          .map((part) => part.trim()),
      ),
  );
  return Object.fromEntries(
    all
      .map(([name, value]): [string, string] => [name.toLowerCase(), value])
      .filter(([name, value]) => isForwarded(name) && !ofConnection.has(name) && text.test(value))
      .slice(0, maxHeaders),
  );
}

/** What a response may set: no cookies, and nothing else that a browser would apply to this whole host. */
const returnedNames = [
  'content-type',
  'content-language',
  'content-disposition',
  'content-encoding',
  'content-range',
  'accept-ranges',
  'etag',
  'last-modified',
  'retry-after',
  'allow',
  'vary',
  // For apps that speak MCP: without them, a session is lost after the first call.
  'mcp-session-id',
  'mcp-protocol-version',
] as const;

export function selectReturnedHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string> {
  return Object.fromEntries(
    returnedNames.flatMap((name) => {
      const value = headers[name];
      const one = Array.isArray(value) ? value.join(', ') : value;
      return one === undefined || !text.test(one) ? [] : [[name, one]];
    }),
  );
}

/** Without spaces and control characters. An app must not send a browser anywhere from the origin of the API. */
const plain = /^[\x21-\x7e]{1,4000}$/;

/** Parses the web address in a Location header; undefined for anything else, such as javascript: and data:. */
function parseWebAddress(location: unknown, base: string): URL | undefined {
  if (typeof location !== 'string' || !plain.test(location)) return undefined;
  const url = URL.parse(location, base);
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url : undefined;
}

/** Parses path, query and fragment of a redirect within the app; undefined if it leaves the app. */
export function parseLocationWithin(location: unknown, { publicOrigin }: Target, path: string): string | undefined {
  const to = parseWebAddress(location, `${publicOrigin}${path}`);
  const { hostname } = new URL(publicOrigin);
  return to?.hostname === hostname ? `${to.pathname}${to.search}${to.hash}` : undefined;
}

/** Formats a redirect for a caller that decides whether to follow it: as the app wrote it, if it leads to the web. */
export function formatLocation(location: unknown, { publicOrigin }: Target): string | undefined {
  return parseWebAddress(location, publicOrigin) === undefined ? undefined : String(location).slice(0, 2_000);
}
