// Problems of /v1 carry an `error` member too, which is where OpenAI clients look.
import type { Problem } from '../../../lib/problem.ts';
import type { Payer } from '../../billing/index.ts';
import { describeFailure } from '../metered/call-problem.ts';
import type { RouterFailure } from '../router/failure.ts';

/** As OpenAI names kinds of errors. */
const types: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'insufficient_quota',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
};

/** The member that problems at a path get: none outside of /v1. */
export function openAiError(problem: Problem, path: string): Readonly<Record<string, unknown>> {
  if (!path.startsWith('/v1/')) return {};
  const { status, slug } = problem.type;
  return {
    error: {
      message: problem.message,
      type: types[status] ?? (status < 500 ? 'invalid_request_error' : 'server_error'),
      code: slug,
      param: problem.errors[0]?.field ?? null,
    },
  };
}

/** Event of a stream that failed after it began. */
export function failureEvent(failure: RouterFailure, payer: Payer['kind']): Record<string, unknown> {
  return { error: { message: describeFailure(failure, payer), type: 'server_error', code: failure.kind, param: null } };
}
