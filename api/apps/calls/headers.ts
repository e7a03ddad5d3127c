// Which headers are forwarded to an app, and which are returned from one.

/**
 * Of one connection (RFC 9110), of the caller alone, or about the way that a request has come: never forwarded.
 */
const withheld =
  /^(connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|host|content-length|accept-encoding|cookie2?|authorization|proxy-.*|forwarded|x-forwarded-.*|x-real-ip|x-original-.*|x-rewrite-url|x-client-ip|x-cluster-client-ip|true-client-ip|cf-.*|x-envoy-.*|via|origin|referer|sec-.*|x-request-id|(x-)?moorage-.*)$/i;
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/;
const text = /^[\t\x20-\x7e\x80-\xff]{0,4096}$/;
const maxHeaders = 64;

/** Whether a header of a caller is forwarded to an app at all. */
export function isForwarded(name: string): boolean {
  return token.test(name) && !withheld.test(name);
}

/** The headers of a caller that an app receives. */
export function forwardedHeaders(given: Iterable<readonly [string, string]>): Record<string, string> {
  const all = [...given];
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

/** What a response may set. Not cookies, nor anything else that a browser would apply to this whole host. */
const returned = [
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
  // Of an app that speaks MCP: without them, its sessions are lost after the first call.
  'mcp-session-id',
  'mcp-protocol-version',
] as const;

export function returnedHeaders(
  given: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string> {
  return Object.fromEntries(
    returned.flatMap((name) => {
      const value = given[name];
      const one = Array.isArray(value) ? value.join(', ') : value;
      return one === undefined || !text.test(one) ? [] : [[name, one]];
    }),
  );
}
