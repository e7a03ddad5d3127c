// Problems of /v1 carry an `error` member too, which is where the clients of apps look.
import { Problem } from '../../../lib/problem.ts';
import type { RouterFailure } from '../router/failure.ts';

/** Runs the work; a problem of it gets the `error` member that OpenAI clients read. */
export async function withErrorMember<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    throw new Problem(error.type, error.message, {
      errors: error.errors,
      headers: error.headers,
      members: { ...error.members, error: errorMember(error) },
      cause: error.cause,
    });
  }
}

export function errorMember(problem: Problem): Record<string, unknown> {
  return {
    message: problem.message,
    type: problem.type.slug,
    code: problem.type.slug,
    param: problem.errors[0]?.field ?? null,
  };
}

/** Event of a stream that failed after it began. */
export function failureEvent(failure: RouterFailure): Record<string, unknown> {
  return { error: { message: failure.message, type: 'model-failed', code: failure.kind } };
}
