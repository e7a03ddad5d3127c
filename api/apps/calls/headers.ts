// Which headers go on to an app, and which come back from one.

/**
 * Of one connection (RFC 9110), of the caller alone, or about the way that a request has come: never passed on, given
 * or not.
 */
const kept =
  /^(connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|host|content-length|accept-encoding|cookie2?|authorization|proxy-.*|forwarded|x-forwarded-.*|x-real-ip|x-original-.*|x-rewrite-url|x-client-ip|x-cluster-client-ip|true-client-ip|cf-.*|x-envoy-.*|via|origin|referer|sec-.*|x-request-id|x-moorage-.*)$/i;
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/;
const text = /^[\t\x20-\x7e\x80-\xff]{0,4096}$/;
const mostHeaders = 64;

/** Whether a header of a caller may go on to an app at all. */
export function mayGoOn(name: string): boolean {
  return token.test(name) && !kept.test(name);
}

/** The caller's headers that an app hears. */
export function headersOn(given: Iterable<readonly [string, string]>): Record<string, string> {
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
      .filter(([name, value]) => mayGoOn(name) && !ofConnection.has(name) && text.test(value))
      .slice(0, mostHeaders),
  );
}

/** What an answer may say here. Not cookies, nor anything else that a browser would take as said by this host of all of it. */
const passed = [
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
] as const;

export function headersBack(given: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  return Object.fromEntries(
    passed.flatMap((name) => {
      const value = given[name];
      const one = Array.isArray(value) ? value.join(', ') : value;
      return one === undefined || !text.test(one) ? [] : [[name, one]];
    }),
  );
}
