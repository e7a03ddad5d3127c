// Answers that a reader may have already: an ETag of their content, and 304 where If-None-Match names it (RFC 9110).
import { createHash } from 'node:crypto';
import { createBufferedResponse } from './buffered-response.ts';

export interface ConditionalOptions {
  /** For how many seconds a cache may answer without asking again. */
  readonly maxAgeSeconds: number;
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** What of a request says which content its sender has. */
interface Reader {
  readonly headers: Headers;
}

/** A value as JSON, the same for all readers; or 304 where the reader has it. */
export function createConditionalJsonResponse(value: unknown, reader: Reader, options: ConditionalOptions): Response {
  return createConditionalResponse(JSON.stringify(value), 'application/json', reader, options);
}

/** The same of any text. */
export function createConditionalResponse(
  content: string,
  mediaType: string,
  reader: Reader,
  { maxAgeSeconds, headers = {} }: ConditionalOptions,
): Response {
  const etag = computeEtag(content);
  const described = { ...headers, etag, 'cache-control': `public, max-age=${maxAgeSeconds}` };
  if (matchesEtag(reader.headers, etag)) return new Response(null, { status: 304, headers: described });
  return createBufferedResponse(content, { headers: { 'content-type': mediaType, ...described } });
}

/** Weak, since a proxy may compress what it passes on. */
export function computeEtag(content: string): string {
  return `W/"${createHash('sha256').update(content).digest('base64url').slice(0, 27)}"`;
}

/** Whether If-None-Match names this content. Weak and strong tags are the same here. */
export function matchesEtag(headers: Headers, etag: string): boolean {
  const ifNoneMatch = headers.get('if-none-match');
  if (ifNoneMatch === null) return false;
  if (ifNoneMatch.trim() === '*') return true;
  const opaque = etag.slice(2);
  return ifNoneMatch.split(',').some((tag) => tag.trim().replace(/^W\//, '') === opaque);
}
