// The kinds of problems that spending money answers with.
import type { ProblemType } from '../../lib/problem.ts';

export const quotaExhausted: ProblemType = {
  slug: 'quota-exhausted',
  status: 402,
  title: 'The quota does not cover this call',
  description:
    'A call is made only when the quota covers the most that it can cost. `quota` says how much there is, how much is used and when it begins afresh; ' +
    '`actions` lists how to go on: a key of your own, a shorter call, or waiting.',
};

export const ledgerUnavailable: ProblemType = {
  slug: 'ledger-unavailable',
  status: 503,
  title: 'The books cannot be written now',
  description:
    'No call is made that could not be booked. Nothing was asked and nothing was charged. Try again after the seconds in Retry-After.',
};

export const ledgerUnconfigured: ProblemType = {
  slug: 'ledger-unconfigured',
  status: 503,
  title: 'There are no books here',
  description:
    'What is charged for has to be booked, and this installation has no database for it. The detail names the setting that is missing. What costs nothing works without.',
};

export const idempotencyInFlight: ProblemType = {
  slug: 'idempotency-in-flight',
  status: 409,
  title: 'The same request is being answered',
  description:
    'A request with this Idempotency-Key is under way. Try again after the seconds in Retry-After to get its answer.',
};

export const idempotencyMismatch: ProblemType = {
  slug: 'idempotency-mismatch',
  status: 422,
  title: 'The Idempotency-Key was used for another request',
  description: 'An Idempotency-Key stands for one request. Use a new one for a new request.',
};

export const billingProblems: readonly ProblemType[] = [
  quotaExhausted,
  ledgerUnavailable,
  ledgerUnconfigured,
  idempotencyInFlight,
  idempotencyMismatch,
];
