// What pages of other sites may read (CORS): answers of public endpoints, never with credentials of the browser.

/** Headers of ours that a script needs: without being named, only a few standard ones are shown to it. */
const exposed = [
  'content-disposition',
  'etag',
  'idempotent-replayed',
  'link',
  'location',
  'mcp-session-id',
  'ratelimit',
  'ratelimit-policy',
  'retry-after',
  'www-authenticate',
  'x-charged-usd',
  'x-cost-source',
  'x-cost-usd',
  'x-latency-ms',
  'x-quota-hint',
  'x-request-id',
  'x-warnings',
].join(', ');

/** Names and values in turn, for every answer of an open path. */
export const corsHeaders: readonly string[] = [
  'access-control-allow-origin',
  '*',
  'access-control-expose-headers',
  exposed,
];

const nameList = /^[A-Za-z0-9-]{1,60}(?:\s*,\s*[A-Za-z0-9-]{1,60}){0,40}$/;

/**
 * What a browser may send, in answer to its question before a request. Clients add headers of their own, so what is asked
 * for is allowed by name: `*` would not include Authorization.
 */
export function createPreflightHeaders(methods: string, asked: string | null): Record<string, string> {
  return {
    'access-control-allow-methods': methods,
    'access-control-allow-headers':
      asked !== null && nameList.test(asked.trim()) ? asked.trim() : 'authorization, content-type, idempotency-key',
    'access-control-max-age': '7200',
    vary: 'access-control-request-headers',
  };
}
