// The kinds of problems that model calls answer with.
import type { ProblemType } from '../../lib/problem.ts';

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

export const appTokenRefused: ProblemType = {
  slug: 'app-token-refused',
  status: 401,
  title: 'The token of the app is not valid',
  description:
    '/v1 is for hosted apps with spec.models.enabled: they find base URL and token in OPENAI_BASE_URL and OPENAI_API_KEY.',
};

export const modelProblems: readonly ProblemType[] = [
  keyRequired,
  keyRefused,
  keyOutOfCredit,
  modelsUnconfigured,
  routerUnavailable,
  modelFailed,
  modelTimeout,
  modelRefused,
  appTokenRefused,
];
