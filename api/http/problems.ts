// The problem types that any endpoint can answer with. A type that belongs to one room is defined in that room.
import type { ProblemType } from '../../lib/problem.ts';
import type { Endpoint } from './endpoint.ts';

export const invalidRequest: ProblemType = {
  slug: 'invalid-request',
  status: 400,
  title: 'The request is not valid',
  description:
    'A field is missing, unknown or wrong. `errors` lists each field with its location, what is wrong with it, and how to fix it.',
};

export const notFound: ProblemType = {
  slug: 'not-found',
  status: 404,
  title: 'Not found',
  description: 'There is no endpoint at this path. /openapi.json lists all endpoints.',
};

export const methodNotAllowed: ProblemType = {
  slug: 'method-not-allowed',
  status: 405,
  title: 'Method not allowed',
  description: 'The path does not support this method. The Allow header lists the methods that it supports.',
};

export const notAcceptable: ProblemType = {
  slug: 'not-acceptable',
  status: 406,
  title: 'No acceptable media type',
  description:
    'The Accept header excludes every media type that this endpoint can answer with. `offers` lists them; without the header, the first one is used.',
};

export const bodyTooLarge: ProblemType = {
  slug: 'body-too-large',
  status: 413,
  title: 'The body is too large',
  description: 'The body is larger than this endpoint allows. `limit_bytes` is the limit.',
};

export const unsupportedMediaType: ProblemType = {
  slug: 'unsupported-media-type',
  status: 415,
  title: 'The body is not JSON',
  description: 'Bodies are JSON in UTF-8, sent with Content-Type: application/json and without Content-Encoding.',
};

export const foreignForm: ProblemType = {
  slug: 'foreign-form',
  status: 403,
  title: 'The form comes from another site',
  description:
    "Forms are accepted only from pages of this site, because they spend the visitor's quota. Open the page here and send the form again; programs use the API.",
};

export const requestTooLong: ProblemType = {
  slug: 'request-too-long',
  status: 431,
  title: 'The URL and headers are too long',
  description:
    'The URL with its query and the headers together exceed `limit_bytes`. Send long values in the body of a POST; tools accept the same fields there as JSON.',
};

export const keyInQuery: ProblemType = {
  slug: 'key-in-query',
  status: 400,
  title: 'A key does not belong in a URL',
  description:
    'URLs end up in logs, histories and caches. Send the key as `Authorization: Bearer sk-…`, and revoke the key that you sent, since others may know it.',
};

export const malformedRequest: ProblemType = {
  slug: 'malformed-request',
  status: 400,
  title: 'Malformed request',
  description: 'This is not a valid HTTP/1.1 request. Use a client that follows RFC 9112.',
};

export const requestTimeout: ProblemType = {
  slug: 'request-timeout',
  status: 408,
  title: 'Request timeout',
  description: 'The request did not arrive in time. Send it again.',
};

export const internalFault: ProblemType = {
  slug: 'internal-fault',
  status: 500,
  title: 'Internal error',
  description:
    'Something went wrong on our side. It is logged under `request_id`. Try again; if it keeps failing, report that id.',
};

export const clusterUnavailable: ProblemType = {
  slug: 'cluster-unavailable',
  status: 503,
  title: 'The cluster is unavailable',
  description:
    'The Kubernetes API, which holds all state, did not answer. Hosted apps are not affected. Try again after the number of seconds in Retry-After.',
};

export const httpProblems: readonly ProblemType[] = [
  invalidRequest,
  keyInQuery,
  notFound,
  methodNotAllowed,
  notAcceptable,
  bodyTooLarge,
  unsupportedMediaType,
  foreignForm,
  requestTooLong,
  malformedRequest,
  requestTimeout,
  internalFault,
  clusterUnavailable,
];

/** Collects every problem type of an API by slug: those of any endpoint, and those that its endpoints declare. */
export function collectProblemTypes(endpoints: readonly Endpoint[]): ReadonlyMap<string, ProblemType> {
  const types = [...httpProblems, ...endpoints.flatMap(({ problems }) => problems)];
  return new Map(types.map((type) => [type.slug, type]));
}
