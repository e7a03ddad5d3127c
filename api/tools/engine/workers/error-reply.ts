// An error as a worker process sends it. Without zod: a worker starts in half the time.
import { Problem } from '../../../../lib/problem.ts';
import type { Reply } from './messages.ts';

/** An error as a message; structured clone would lose which kind of problem it is. */
export function errorReply(error: unknown, spent: boolean): Reply {
  if (error instanceof Problem) {
    return {
      kind: 'refused',
      problem: {
        type: { ...error.type },
        detail: error.message,
        members: { ...error.members },
        errors: [...error.errors],
      },
      spent,
    };
  }
  const { message, stack = '' } = error instanceof Error ? error : new Error(String(error));
  return { kind: 'failed', message: message.slice(0, 2_000), stack: stack.slice(0, 8_000), spent };
}
