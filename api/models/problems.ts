// The kinds of problems that model calls answer with, and the problem of a failed call.
import { Problem, type ProblemOptions, type ProblemType } from '../../lib/problem.ts';
import { ledgerUnavailable, ledgerUnconfigured, type Payer } from '../billing/index.ts';
import type { Settlement } from './metered-router.ts';
import type { FailureKind, RouterFailure } from './router/failures.ts';

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
    'Your network has sent several API keys that the model router does not know. Further keys from it are not checked for some minutes; recently valid keys still work. Try again after the number of seconds in Retry-After, or omit the key to use the free quota.',
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
    'The token does not belong to a hosted app with spec.models.enabled. Such apps get the base URL and their token in OPENAI_BASE_URL and OPENAI_API_KEY. The token works only at that address, inside the cluster.',
};

export const modelUnknown: ProblemType = {
  slug: 'model-unknown',
  status: 404,
  title: 'No such model',
  description: 'This installation has no model with this name. GET /v1/models lists all models.',
};

export const requestUnknown: ProblemType = {
  slug: 'request-unknown',
  status: 404,
  title: 'No such request',
  description:
    'None of your own uses belongs to a request with this id. With a key, GET /api/usage lists uses, only for that key. Without one, they are found by the X-Request-Id of the response, from the network that sent the request.',
};

/** What any call that is charged, or that reads its caller's account, can be refused with. */
export const payerProblems: readonly ProblemType[] = [
  keyRefused,
  keyChecksLimited,
  modelsUnconfigured,
  routerUnavailable,
  ledgerUnavailable,
  ledgerUnconfigured,
];

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

const creditActions = [
  {
    action: 'add-credit',
    description: 'Add credit to your account at the model router, or raise the limit of the key.',
  },
  {
    action: 'use-own-key',
    description: 'Send another API key of your own for the model router.',
    header: 'Authorization: Bearer sk-…',
  },
  {
    action: 'use-free-quota',
    description: 'Omit the Authorization header to use models in the free tier on the free quota.',
  },
];

interface FailedCall {
  readonly failure: RouterFailure;
  readonly model: string;
  readonly payer: Payer['kind'];
  /** What the problem carries in each case. */
  readonly options: ProblemOptions;
  /** The same, with Retry-After. */
  readonly later: (seconds: number) => ProblemOptions;
}

/** A hosted app cannot send its own key: /v1 takes the app's token instead. */
const describeMissingCredit = (payer: Payer['kind']): string =>
  `The model router account of this installation is out of credit. ${
    payer === 'app'
      ? 'The operator of this installation needs to add credit to it.'
      : 'To continue now, send your own API key for the model router: Authorization: Bearer sk-…'
  }`;

const createUnavailableProblem = ({ failure, payer, later }: FailedCall): Problem =>
  new Problem(
    routerUnavailable,
    `${toSentence(describeFailure(failure, payer))} Nothing was charged. Try again in ${failure.retryAfterSeconds ?? 5} seconds.`,
    later(5),
  );

const createUnfinishedProblem = ({ failure, model, payer, options }: FailedCall): Problem =>
  new Problem(
    modelFailed,
    `${model} did not complete its answer: ${toSentence(describeFailure(failure, payer))} The cost is not known yet.`,
    options,
  );

const problems: Readonly<Record<FailureKind, (failed: FailedCall) => Problem>> = {
  // The platform's own key is not the caller's business, and waiting is all that a caller can do.
  key: ({ payer, later }) =>
    payer === 'key'
      ? createKeyRefusal('The model router rejected this API key.')
      : new Problem(
          routerUnavailable,
          'The model router rejected the API key of this installation. The operator of this installation needs to fix MOORAGE_ROUTER_KEY.',
          later(300),
        ),
  credit: ({ failure, payer, options, later }) =>
    payer === 'key'
      ? new Problem(
          keyOutOfCredit,
          `The model router responded: ${toSentence(describeFailure(failure, payer))} To continue, add credit to your API key, or send another key of your own.`,
          { ...options, members: { ...options.members, actions: creditActions } },
        )
      : new Problem(routerUnavailable, describeMissingCredit(payer), later(3_600)),
  unreachable: createUnavailableProblem,
  busy: createUnavailableProblem,
  request: ({ failure, model, payer, options }) =>
    new Problem(modelRefused, `${model} rejected the request: ${toSentence(describeFailure(failure, payer))}`, options),
  model: ({ model, options }) =>
    new Problem(
      modelFailed,
      `The model router does not offer ${model}. Choose another model; the operator of this installation needs to fix its upstream in models.yaml.`,
      options,
    ),
  timeout: ({ model, options }) =>
    new Problem(modelTimeout, `${model} did not respond in time. The cost is not known yet.`, options),
  broken: createUnfinishedProblem,
  interrupted: createUnfinishedProblem,
  malformed: createUnfinishedProblem,
  cancelled: createUnfinishedProblem,
};

/** The problem of a failed call, with what is known of its cost. */
export function createCallProblem(
  failure: RouterFailure,
  settlement: Settlement,
  model: string,
  payer: Payer,
): Problem {
  const options: ProblemOptions = {
    members: { model, cost_source: settlement.source, latency_ms: settlement.latencyMs },
    cause: failure,
  };
  const later = (seconds: number): ProblemOptions => ({
    ...options,
    headers: { 'retry-after': String(failure.retryAfterSeconds ?? seconds) },
  });
  return problems[failure.kind]({ failure, model, payer: payer.kind, options, later });
}

/** What a caller may read of a failure: the router's own text is for the owner of the key, who has the account that it is about. */
export function describeFailure({ message, said }: RouterFailure, payer: Payer['kind']): string {
  return payer === 'key' && said !== undefined ? said : message;
}

/** A message as a complete sentence. */
function toSentence(message: string): string {
  const text = message.trim();
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${/[.!?…]$/.test(text) ? '' : '.'}`;
}

/** 401, with the scheme that is expected. */
export function createKeyRefusal(detail: string): Problem {
  return new Problem(keyRefused, `${detail} Send a valid key, or omit the header to use the free quota.`, {
    headers: { 'www-authenticate': 'Bearer realm="moorage", error="invalid_token"' },
  });
}
