// The kinds of problems that model calls answer with.
import type { ProblemType } from '../../lib/problem.ts';

export const keyRequired: ProblemType = {
  slug: 'key-required',
  status: 401,
  title: 'Your own API key is required',
  description:
    'Models in the premium tier require your own API key for the model router. Send it as `Authorization: Bearer sk-…`. Models in the free tier require no key. GET /api/models lists both.',
};

export const keyRefused: ProblemType = {
  slug: 'key-refused',
  status: 401,
  title: 'Invalid API key',
  description:
    'The Authorization header does not contain a valid API key for the model router. Send `Authorization: Bearer sk-…`, or omit the header to use the free quota.',
};

export const keyChecksLimited: ProblemType = {
  slug: 'key-checks-limited',
  status: 429,
  title: 'Too many invalid API keys',
  description:
    'Your network has sent several API keys that the model router does not know. Further keys from it are not checked until some minutes have passed; keys that were valid a moment ago still work. Try again after the number of seconds in Retry-After, or omit the key to use the free quota.',
};

export const keyOutOfCredit: ProblemType = {
  slug: 'key-out-of-credit',
  status: 402,
  title: 'API key out of credit',
  description:
    'The model router declined to bill this call to your API key. To continue, add credit at the router, raise the limit of the key, or send another key of your own. `actions` lists all options.',
};

export const modelsUnconfigured: ProblemType = {
  slug: 'models-unconfigured',
  status: 503,
  title: 'No model router is configured',
  description:
    'The operator of this installation has not connected it to a model router and a database yet. `detail` names the missing settings.',
};

export const routerUnavailable: ProblemType = {
  slug: 'router-unavailable',
  status: 503,
  title: 'Model router unavailable',
  description:
    'The router did not accept the call: it is unreachable, overloaded or out of credit. Nothing was charged. Try again after the number of seconds in Retry-After.',
};

export const modelFailed: ProblemType = {
  slug: 'model-failed',
  status: 502,
  title: 'Model call failed',
  description:
    'The router or the model behind it failed during the call. `cost_source` is `none` if nothing was charged, or `pending` until the router reports what it billed.',
};

export const modelTimeout: ProblemType = {
  slug: 'model-timeout',
  status: 504,
  title: 'Model call timed out',
  description:
    'The model did not finish within the time limit of a call. Set a lower max_tokens, stream the answer, or choose a faster model.',
};

export const modelRefused: ProblemType = {
  slug: 'model-refused',
  status: 422,
  title: 'Request rejected by the model',
  description:
    'The model rejected the request, for example because the prompt exceeds its context length. Nothing was charged. Sending the same request again has the same result.',
};

export const appTokenRefused: ProblemType = {
  slug: 'app-token-refused',
  status: 401,
  title: 'Invalid app token',
  description:
    'The token is not that of a hosted app with spec.models.enabled. Such apps find the base URL and their token in OPENAI_BASE_URL and OPENAI_API_KEY. The token works at that address only, inside the cluster.',
};

export const modelUnknown: ProblemType = {
  slug: 'model-unknown',
  status: 404,
  title: 'No such model',
  description: 'This installation has no model of this name. GET /v1/models lists all models.',
};

export const requestUnknown: ProblemType = {
  slug: 'request-unknown',
  status: 404,
  title: 'No such request',
  description:
    'None of your own uses belongs to a request of this id. With a key, uses are listed by GET /api/usage, and shown to that key only. Without one, they are found by the X-Request-Id of the answer, from the network that sent the request.',
};

export const modelProblems: readonly ProblemType[] = [
  keyRequired,
  keyRefused,
  keyChecksLimited,
  keyOutOfCredit,
  modelsUnconfigured,
  routerUnavailable,
  modelFailed,
  modelTimeout,
  modelRefused,
  appTokenRefused,
];
