// The problem that a caller gets for a failed call of a model.
import { Problem, type ProblemOptions } from '../../../lib/problem.ts';
import type { Question } from './question.ts';
import { refusedKey } from '../callers/identify.ts';
import type { ModelCallResult, Settlement } from './metered-router.ts';
import type { Payer } from '../../billing/index.ts';
import { keyOutOfCredit, modelFailed, modelRefused, modelTimeout, routerUnavailable } from '../problems.ts';
import type { RouterAnswer } from '../router/answer.ts';
import type { FailureKind, RouterFailure } from '../router/failure.ts';
import type { ModelServices } from '../services.ts';

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

/** A hosted app cannot send a key of its own: /v1 takes the app's token in its stead. */
const outOfCredit = (payer: Payer['kind']): string =>
  `The model router account of this installation is out of credit. ${
    payer === 'app'
      ? 'The operator of this installation needs to add credit to it.'
      : 'To continue now, send your own API key for the model router: Authorization: Bearer sk-…'
  }`;

const unavailable = ({ failure, payer, later }: FailedCall): Problem =>
  new Problem(
    routerUnavailable,
    `${sentence(describeFailure(failure, payer))} Nothing was charged. Try again in ${failure.retryAfterSeconds ?? 5} seconds.`,
    later(5),
  );

const unfinished = ({ failure, model, payer, options }: FailedCall): Problem =>
  new Problem(
    modelFailed,
    `${model} did not complete its answer: ${sentence(describeFailure(failure, payer))} The cost is not known yet.`,
    options,
  );

const problems: Readonly<Record<FailureKind, (failed: FailedCall) => Problem>> = {
  // The platform's own key is not the caller's business, and waiting is all that a caller can do.
  key: ({ payer, later }) =>
    payer === 'key'
      ? refusedKey('The model router rejected this API key.')
      : new Problem(
          routerUnavailable,
          'The model router rejected the API key of this installation. The operator of this installation needs to fix MOORAGE_ROUTER_KEY.',
          later(300),
        ),
  credit: ({ failure, payer, options, later }) =>
    payer === 'key'
      ? new Problem(
          keyOutOfCredit,
          `The model router responded: ${sentence(describeFailure(failure, payer))} To continue, add credit to your API key, or send another key of your own.`,
          { ...options, members: { ...options.members, actions: creditActions } },
        )
      : new Problem(routerUnavailable, outOfCredit(payer), later(3_600)),
  unreachable: unavailable,
  busy: unavailable,
  request: ({ failure, model, payer, options }) =>
    new Problem(modelRefused, `${model} rejected the request: ${sentence(describeFailure(failure, payer))}`, options),
  model: ({ model, options }) =>
    new Problem(
      modelFailed,
      `The model router does not offer ${model}. Choose another model; the operator of this installation needs to fix its upstream in models.yaml.`,
      options,
    ),
  timeout: ({ model, options }) =>
    new Problem(modelTimeout, `${model} did not respond in time. The cost is not known yet.`, options),
  broken: unfinished,
  interrupted: unfinished,
  malformed: unfinished,
  cancelled: unfinished,
};

/** The problem of a failed call, with what is known of its cost. */
export function callProblem(failure: RouterFailure, settlement: Settlement, model: string, payer: Payer): Problem {
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

/**
 * The answer of a finished call. A key that the router refused is forgotten, so that it is checked again. @throws
 * Problem when it failed
 */
export function answerOrThrow(
  { keys }: Pick<ModelServices, 'keys'>,
  { model, payer }: Pick<Question, 'model' | 'payer'>,
  { settlement, answer, failure }: ModelCallResult,
): RouterAnswer {
  if (failure === undefined) return answer;
  if (failure.kind === 'key' && payer.key !== undefined) keys.forget(payer.key);
  throw callProblem(failure, settlement, model.id, payer);
}

/** What a caller may read of a failure: the router's own text is for the owner of the key, who has the account that it is about. */
export function describeFailure({ message, said }: RouterFailure, payer: Payer['kind']): string {
  return payer === 'key' && said !== undefined ? said : message;
}

/** A message as a sentence of its own. */
function sentence(message: string): string {
  const text = message.trim();
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${/[.!?…]$/.test(text) ? '' : '.'}`;
}
