// A problem as an error of A2A, for what is no call of a tool: its own words, and its slug in the metadata.
import { A2AError, RequestMalformedError, TaskNotFoundError } from '@a2a-js/sdk/errors';
import { unknownJob, unknownTool } from '../../tools/index.ts';
import type { CallContext } from '../../http/index.ts';
import { toProblem } from './reply.ts';

export function protocolError(error: unknown, context: Pick<CallContext, 'log' | 'id'>): A2AError {
  if (error instanceof A2AError) return error;
  const problem = toProblem(error, context);
  const { type, errors } = problem;
  const fixes = errors.map(({ fix }) => fix);
  const options = {
    message: [problem.message, ...new Set(fixes)].join(' '),
    metadata: { problem: type.slug, request_id: context.id },
    cause: error,
  };
  if (type === unknownJob || type === unknownTool)
    return new TaskNotFoundError({
      ...options,
      message:
        'You have no task with this id: it belongs to another caller, has expired, or never was. Only the caller that started a task can read it.',
    });
  return type.status < 500 ? new RequestMalformedError(options) : new A2AError(options);
}
