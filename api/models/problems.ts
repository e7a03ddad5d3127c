// The kinds of problems that model calls answer with.
import type { ProblemType } from '../../lib/problem.ts';

export const quotaExhausted: ProblemType = {
  slug: 'quota-exhausted',
  status: 402,
  title: 'The quota does not cover this call',
  description:
    'A call is made only when the quota covers the most that it can cost. `quota` says how much there is, how much is used and when it begins afresh; ' +
    '`actions` lists how to go on: a key of your own, a shorter call, or waiting.',
};

export const keyRequired: ProblemType = {
  slug: 'key-required',
  status: 401,
  title: 'This model needs a key of your own',
  description:
    'Models of the tier premium are asked with your own key of the model router: send it as `Authorization: Bearer sk-…`. Models of the tier free need none; GET /api/models lists both.',
};

export const keyRefused: ProblemType = {
  slug: 'key-refused',
  status: 401,
  title: 'The key is not valid',
  description:
    'The Authorization header carries something that is not a valid key of the model router. Send `Authorization: Bearer sk-…`, or leave the header out to use the free quota.',
};

export const keyOutOfCredit: ProblemType = {
  slug: 'key-out-of-credit',
  status: 402,
  title: 'Your key has no credit left',
  description:
    'The model router refuses to bill this call to your key. Add credit there, or raise the limit of the key; `actions` says what else there is.',
};

export const modelsUnconfigured: ProblemType = {
  slug: 'models-unconfigured',
  status: 503,
  title: 'No model router is set up here',
  description:
    'Whoever runs this installation has not connected it to a model router and a database yet. The detail names the settings that are missing.',
};

export const routerUnavailable: ProblemType = {
  slug: 'router-unavailable',
  status: 503,
  title: 'The model router cannot take this call now',
  description:
    'The router did not take the call: it is away, overloaded or out of credit. Nothing was booked. Try again after the seconds in Retry-After.',
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

export const modelFailed: ProblemType = {
  slug: 'model-failed',
  status: 502,
  title: 'The model gave no answer',
  description:
    'The router or the model behind it failed in the middle of the call. `cost_source` says what is booked: none, or pending until the router says what it billed.',
};

export const modelTimeout: ProblemType = {
  slug: 'model-timeout',
  status: 504,
  title: 'The model took too long',
  description:
    'The model did not finish within the time that a call may take. Ask for fewer tokens (max_tokens), stream the answer, or take a faster model.',
};

export const modelRefused: ProblemType = {
  slug: 'model-refused',
  status: 422,
  title: 'The model does not take this request',
  description:
    'The model refused the request itself, for instance because the prompt is longer than it reads. Nothing was booked; the same request will be refused again.',
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

export const appTokenRefused: ProblemType = {
  slug: 'app-token-refused',
  status: 401,
  title: 'The token of the app is not valid',
  description:
    '/v1 is for hosted apps with spec.models.enabled: they find base URL and token in OPENAI_BASE_URL and OPENAI_API_KEY.',
};

export const modelProblems: readonly ProblemType[] = [
  quotaExhausted,
  keyRequired,
  keyRefused,
  keyOutOfCredit,
  modelsUnconfigured,
  routerUnavailable,
  ledgerUnavailable,
  modelFailed,
  modelTimeout,
  modelRefused,
  idempotencyInFlight,
  idempotencyMismatch,
  appTokenRefused,
];
