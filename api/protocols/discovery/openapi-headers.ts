// The response headers of the OpenAPI document: what every response has, and what an endpoint sends by what it is.
import type { Endpoint } from '../../http/index.ts';

type Json = Record<string, unknown>;

/** Defined once, as components. */
const descriptions = {
  'X-Request-Id': 'Id of the request, as in problems and in the log.',
  'X-Quota-Hint': 'Sent when less than a fifth of the free quota is left: how much, and how to continue.',
  RateLimit: 'What is left of the daily quota: `r` in millionths of a dollar, `t` in seconds until it resets.',
  'RateLimit-Policy': 'The daily quota: `q` in millionths of a dollar, `w` in seconds.',
  'Idempotent-Replayed': '`true` if this is the stored response to an earlier request with the same Idempotency-Key.',
  'Retry-After': 'After how many seconds to try again.',
  'WWW-Authenticate': 'Which credentials are accepted.',
  ETag: 'Names this content; send it as If-None-Match to learn whether it has changed.',
  'Cache-Control': 'For how long the response may be kept.',
} as const;
type HeaderName = keyof typeof descriptions;

export const headerComponents: Json = Object.fromEntries(
  Object.entries(descriptions).map(([name, description]) => [name, { description, schema: { type: 'string' } }]),
);

/** Of a response that succeeds. */
export function successHeaders(endpoint: Endpoint): Json {
  return {
    ...references(['X-Request-Id', ...byProblems(endpoint), ...byFreshness(endpoint)]),
    ...own(endpoint.responseHeaders),
  };
}

/** Of a response of 304. */
export function unchangedHeaders(): Json {
  return references(['X-Request-Id', 'ETag', 'Cache-Control']);
}

/** Of a problem of the endpoint with this status. */
export function problemHeaders(endpoint: Endpoint, status: number): Json {
  return {
    ...references([
      'X-Request-Id',
      'Cache-Control',
      ...(status === 401 ? (['WWW-Authenticate'] as const) : []),
      ...(status === 402 ? (['RateLimit', 'RateLimit-Policy'] as const) : []),
      ...([402, 409, 422, 429].includes(status) || status >= 500 ? (['Retry-After'] as const) : []),
    ]),
    ...own(endpoint.problemHeaders),
  };
}

/** Who spends a quota says what is left of it; who can be asked again says that he was. */
function byProblems({ problems }: Endpoint): HeaderName[] {
  const slugs = new Set(problems.map(({ slug }) => slug));
  return [
    ...(slugs.has('quota-exhausted') ? (['RateLimit', 'RateLimit-Policy', 'X-Quota-Hint'] as const) : []),
    ...(slugs.has('idempotency-mismatch') ? (['Idempotent-Replayed'] as const) : []),
  ];
}

function byFreshness({ maxAgeSeconds }: Endpoint): HeaderName[] {
  return maxAgeSeconds === undefined ? ['Cache-Control'] : ['ETag', 'Cache-Control'];
}

/** Headers that an endpoint describes itself. */
function own(headers: Readonly<Record<string, string>> = {}): Json {
  return Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, schema: { type: 'string' } }]),
  );
}

function references(names: readonly HeaderName[]): Json {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
