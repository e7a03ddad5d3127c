// Paths as the router of express takes them: those of endpoints as patterns, those of requests in one normal form.
import { Problem } from '../../../lib/problem.ts';
import { malformedRequest } from '../problems/problems.ts';

/** `/apps/{slug}/files/*` as express writes it; whatever else stands in a path means itself. */
export function toExpressPath(path: string): string {
  return path
    .replaceAll(/[\\:()[\]?+!]/g, String.raw`\$&`)
    .replaceAll(/\{([^}]+)\}/g, ':$1')
    .replaceAll('*', '*rest');
}

/** The same for paths that are matched as they were sent: express decodes only what stands in a group. */
export function toRawPathPattern(path: string): RegExp {
  const parts = path.split(/(\{[^}]+\}|\*)/).map((part) => {
    if (part === '*') return '.*';
    return part.startsWith('{') ? '[^/]+' : part.replaceAll(/[\\^$.|?*+()[\]{}]/g, String.raw`\$&`);
  });
  return new RegExp(`^${parts.join('')}/?$`, 's');
}

/** An address with nothing in it that could be written in another way. */
const plain = /^\/(?!\/)[\w!$&'()*+,;=:@~-]*(?:[/.][\w!$&'()*+,;=:@~-]+)*\/?(?:\?[^#]*)?$/;
/** Unreserved characters, which mean the same whether they are encoded or not (RFC 3986, 6.2.2.2). */
const encodedUnreserved = /%(?:2[DE]|3\d|4[1-9A-F]|5[\dAF]|6[1-9A-F]|7[\dAE])/gi;

/**
 * The address of a request for routing: without dot segments, and with nothing encoded that need not be. What is
 * reserved stays encoded. @throws Problem (malformed-request)
 */
export function normalizeUrl(url: string): string {
  if (plain.test(url)) return url;
  if (url.split('?', 1)[0]?.includes('\\') === true || !URL.canParse(url, 'http://host'))
    throw new Problem(malformedRequest, 'The path of the request is not valid. Percent-encode special characters.');
  const { pathname, search } = new URL(url.startsWith('/') ? `http://host${url}` : url, 'http://host');
  return pathname.replaceAll(encodedUnreserved, (encoded) => decodeURIComponent(encoded)) + search;
}
