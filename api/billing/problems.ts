// The kinds of problems that spending money answers with.
import type { ProblemType } from '../../lib/problem.ts';

export const quotaExhausted: ProblemType = {
  slug: 'quota-exhausted',
  status: 402,
  title: 'Quota exceeded',
  description:
    'A call is made only if the quota covers its maximum cost. `quota` shows the limit, how much of it is used, and when it resets. ' +
    '`actions` lists the ways to continue: with your own API key, with a smaller or cheaper call, or after the reset.',
};

export const callsStopped: ProblemType = {
  slug: 'calls-stopped',
  status: 503,
  title: 'Calls are stopped for today',
  description:
    'A call cost this installation more than the maximum that was computed for it, so its caller and its model are stopped until the day (UTC) is over. `stopped` says which of the two. Calls with your own API key for the model router are not stopped.',
};

export const callsInFlight: ProblemType = {
  slug: 'calls-in-flight',
  status: 429,
  title: 'Too many calls in progress',
  description:
    'The number of model calls that are made at the same time with the key of this installation is limited, for each caller and for all of them. Before the first call of a caller on a day has ended, the next one waits for it. Try again after the number of seconds in Retry-After, or send your own API key for the model router.',
};

export const ledgerUnavailable: ProblemType = {
  slug: 'ledger-unavailable',
  status: 503,
  title: 'Ledger unavailable',
  description:
    'A call that cannot be recorded in the ledger is not made, so nothing was charged. Try again after the number of seconds in Retry-After.',
};

export const ledgerUnconfigured: ProblemType = {
  slug: 'ledger-unconfigured',
  status: 503,
  title: 'No ledger is configured',
  description:
    'Charged calls are recorded in a ledger, and this installation has no database for it. `detail` names the missing setting. Calls that are free of charge work without a ledger.',
};

export const idempotencyInFlight: ProblemType = {
  slug: 'idempotency-in-flight',
  status: 409,
  title: 'Request in progress',
  description:
    'A request with this Idempotency-Key is in progress. Try again after the number of seconds in Retry-After to get its response.',
};

export const idempotencyMismatch: ProblemType = {
  slug: 'idempotency-mismatch',
  status: 422,
  title: 'Idempotency key reused',
  description: 'An Idempotency-Key identifies one request. Send a new key with each new request.',
};

export const billingProblems: readonly ProblemType[] = [
  quotaExhausted,
  callsStopped,
  callsInFlight,
  ledgerUnavailable,
  ledgerUnconfigured,
  idempotencyInFlight,
  idempotencyMismatch,
];
