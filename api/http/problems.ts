// The kinds of problems that the API answers with, each with the page that its type URI leads to.
import type { ProblemType } from '../../lib/problem.ts';
import { appProblems } from '../apps/problems.ts';
import { billingProblems } from '../billing/problems.ts';
import { modelProblems } from '../models/problems.ts';
import { toolProblems } from '../tools/problems.ts';

export const invalidRequest: ProblemType = {
  slug: 'invalid-request',
  status: 400,
  title: 'The request is not valid',
  description:
    'Something in the request is missing, unknown or wrong. `errors` names each field, what is wrong with it, and what to send instead.',
};

export const notFound: ProblemType = {
  slug: 'not-found',
  status: 404,
  title: 'There is nothing here',
  description: 'No endpoint answers at this path. /openapi.json lists those that exist.',
};

export const methodNotAllowed: ProblemType = {
  slug: 'method-not-allowed',
  status: 405,
  title: 'The method is not for this path',
  description: 'The path exists, but not for this method. The Allow header lists the methods that it takes.',
};

export const notAcceptable: ProblemType = {
  slug: 'not-acceptable',
  status: 406,
  title: 'No media type that you accept',
  description:
    'The Accept header excludes all that this endpoint can answer with. `offers` lists it; leave the header out to take the first.',
};

export const bodyTooLarge: ProblemType = {
  slug: 'body-too-large',
  status: 413,
  title: 'The body is too large',
  description: 'The body is longer than this endpoint reads. `limit_bytes` says how much that is.',
};

export const unsupportedMediaType: ProblemType = {
  slug: 'unsupported-media-type',
  status: 415,
  title: 'The body is not JSON',
  description: 'Bodies are JSON in UTF-8, sent with Content-Type: application/json and without Content-Encoding.',
};

export const requestTooLong: ProblemType = {
  slug: 'request-too-long',
  status: 431,
  title: 'Address and headers are too long',
  description:
    'The address of the request, with its query, and its headers are longer together than is read. `limit_bytes` says how much that is. Send what is long in the body of a POST: tools take the same fields there, as JSON.',
};

export const keyInQuery: ProblemType = {
  slug: 'key-in-query',
  status: 400,
  title: 'A key does not belong in an address',
  description:
    'Addresses end up in logs, histories and caches. Send the key as `Authorization: Bearer sk-…`, and treat the one that you sent as known to others: revoke it.',
};

export const malformedRequest: ProblemType = {
  slug: 'malformed-request',
  status: 400,
  title: 'The request cannot be read',
  description: 'What was sent is not a request as RFC 9112 has it. Send it with a client that keeps to it.',
};

export const requestTimeout: ProblemType = {
  slug: 'request-timeout',
  status: 408,
  title: 'The request did not come in time',
  description: 'The connection was open, and the request did not come whole. Send it again.',
};

export const internalFault: ProblemType = {
  slug: 'internal-fault',
  status: 500,
  title: 'Something broke on our side',
  description:
    'The fault is ours, and it is logged under `request_id`. Trying again may help; if it does not, report that id.',
};

export const clusterUnavailable: ProblemType = {
  slug: 'cluster-unavailable',
  status: 503,
  title: 'The cluster cannot be asked now',
  description:
    'The Kubernetes API that keeps all state did not answer. Hosted apps go on serving. Try again after the seconds in Retry-After.',
};

export const notSubmitted: ProblemType = {
  slug: 'not-submitted',
  status: 404,
  title: 'This repository was never submitted',
  description: 'Nothing is hosted from this repository. Submit it first: POST /api/submit with {"repo": "owner/name"}.',
};

export const tooManySubmissions: ProblemType = {
  slug: 'too-many-submissions',
  status: 429,
  title: 'Too many new repositories today',
  description:
    'New repositories are limited for each caller within 24 hours. A repository that is hosted already can be submitted again at any time.',
};

export const platformFull: ProblemType = {
  slug: 'platform-full',
  status: 503,
  title: 'There is no room for another app',
  description:
    'As many apps are hosted as this installation allows (setting MOORAGE_MAX_APPS). Repositories that are hosted already are not affected.',
};

export const beingRemoved: ProblemType = {
  slug: 'being-removed',
  status: 409,
  title: 'The app is being removed',
  description:
    'The app of this repository is being taken down. Once that is done, the repository can be submitted anew.',
};

export const tooManyStreams: ProblemType = {
  slug: 'too-many-streams',
  status: 503,
  title: 'Too many logs are being followed',
  description:
    'This replica streams as many logs as it may. Poll the submit-status instead, or try again after the seconds in Retry-After.',
};

export const noCluster: ProblemType = {
  slug: 'no-cluster',
  status: 503,
  title: 'There is no cluster here',
  description:
    'The API runs alone, for a first look at models. Hosting needs a Kubernetes cluster: `npm run up` starts one on a Linux machine, and the Helm chart installs into your own.',
};

export const problemTypes: readonly ProblemType[] = [
  invalidRequest,
  keyInQuery,
  notFound,
  methodNotAllowed,
  notAcceptable,
  bodyTooLarge,
  unsupportedMediaType,
  requestTooLong,
  malformedRequest,
  requestTimeout,
  internalFault,
  clusterUnavailable,
  notSubmitted,
  tooManySubmissions,
  platformFull,
  beingRemoved,
  tooManyStreams,
  noCluster,
  ...billingProblems,
  ...modelProblems,
  ...toolProblems,
  ...appProblems,
];
