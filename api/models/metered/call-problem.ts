// Turns a failed call into the problem that its caller sees.
import { Problem, type ProblemOptions } from '../../../lib/problem.ts';
import type { Called, Question } from './question.ts';
import { refusedKey } from '../callers/identify.ts';
import type { Booked } from './metered-router.ts';
import type { Payer } from '../../billing/payer.ts';
import { keyOutOfCredit, modelFailed, modelRefused, modelTimeout, routerUnavailable } from '../problems.ts';
import type { RouterAnswer } from '../router/answer.ts';
import type { FailureKind, RouterFailure } from '../router/failure.ts';
import type { ModelServices } from '../services.ts';

const creditActions = [
  { action: 'add-credit', description: 'Add credit, or raise the limit of the key, where you got it.' },
  {
    action: 'use-free-quota',
    description: 'Leave the Authorization header out: models of the tier free are then asked on the free quota.',
  },
];

interface Failed {
  readonly failure: RouterFailure;
  readonly model: string;
  readonly ownKey: boolean;
  /** What the problem carries in any case. */
  readonly options: ProblemOptions;
  /** The same, with Retry-After. */
  readonly later: (seconds: number) => ProblemOptions;
}

const unavailable = ({ failure, later }: Failed): Problem =>
  new Problem(
    routerUnavailable,
    `${failure.message}; nothing was booked, try again in ${failure.retryAfterSeconds ?? 5} s`,
    later(5),
  );

const unfinished = ({ failure, model, options }: Failed): Problem =>
  new Problem(modelFailed, `${model} gave no whole answer: ${failure.message}; what it cost is not known yet`, options);

const problems: Readonly<Record<FailureKind, (failed: Failed) => Problem>> = {
  // The platform's own key is not the caller's business, and waiting is all that a caller can do.
  key: ({ ownKey, later }) =>
    ownKey
      ? refusedKey('the model router refused this key')
      : new Problem(
          routerUnavailable,
          'the router refuses the key of this installation; whoever runs it has to fix MOORAGE_ROUTER_KEY',
          later(300),
        ),
  credit: ({ failure, ownKey, options, later }) =>
    ownKey
      ? new Problem(keyOutOfCredit, `the router says: ${failure.message}`, {
          ...options,
          members: { ...options.members, actions: creditActions },
        })
      : new Problem(
          routerUnavailable,
          'the router account of this installation has no credit left; send your own key (Authorization: Bearer sk-…), or try again later',
          later(3_600),
        ),
  unreachable: unavailable,
  busy: unavailable,
  request: ({ failure, model, options }) =>
    new Problem(modelRefused, `${model} does not take this: ${failure.message}`, options),
  model: ({ model, options }) =>
    new Problem(
      modelFailed,
      `the router does not offer ${model}; whoever runs this installation has to fix its upstream in models.yaml. Take another model meanwhile`,
      options,
    ),
  timeout: ({ model, options }) =>
    new Problem(modelTimeout, `${model} did not answer in time; what it cost is not known yet`, options),
  broken: unfinished,
  interrupted: unfinished,
  malformed: unfinished,
  cancelled: unfinished,
};

/** The problem of a failed call. Says what is booked for it. */
export function callProblem(failure: RouterFailure, booked: Booked, model: string, payer: Payer): Problem {
  const options: ProblemOptions = {
    members: { model, cost_source: booked.source, latency_ms: booked.latencyMs },
    cause: failure,
  };
  const later = (seconds: number): ProblemOptions => ({
    ...options,
    headers: { 'retry-after': String(failure.retryAfterSeconds ?? seconds) },
  });
  return problems[failure.kind]({ failure, model, ownKey: payer.key !== undefined, options, later });
}

/**
 * The answer of a finished call. A key that the router refused is forgotten, so that it is checked again. @throws
 * Problem when it failed
 */
export function answerOf(
  { keys }: Pick<ModelServices, 'keys'>,
  { model, payer }: Pick<Question, 'model' | 'payer'>,
  { booked, answer, failure }: Called,
): RouterAnswer {
  if (failure === undefined) return answer;
  if (failure.kind === 'key' && payer.key !== undefined) keys.forget(payer.key);
  throw callProblem(failure, booked, model.id, payer);
}
