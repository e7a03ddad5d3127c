// The messages of a worker process to the process that started it.
import { z } from 'zod';
import { Problem, type ProblemType } from '../../../../lib/problem.ts';
import { toolBusy } from '../../problems.ts';
import { fieldErrors } from '../field-errors.ts';
import { busy } from './busy.ts';

const problem = z.object({
  type: z.object({ slug: z.string(), status: z.int().min(400).max(599), title: z.string(), description: z.string() }),
  detail: z.string(),
  members: z.record(z.string(), z.unknown()),
  errors: fieldErrors,
});

const common = {
  /** It has used so much that another process should take the next task. */
  spent: z.boolean(),
};

export const reply = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('done'), output: z.unknown(), ...common }),
  z.object({ kind: z.literal('refused'), problem, ...common }),
  z.object({ kind: z.literal('failed'), message: z.string(), stack: z.string(), ...common }),
]);
export type Reply = z.output<typeof reply>;

/** The output of a reply. @throws what the module threw */
export function outputOf(message: Reply): unknown {
  if (message.kind === 'done') return message.output;
  if (message.kind === 'refused') {
    const { type, detail, members, errors } = message.problem;
    // Headers are not for a worker to choose.
    if (type.slug === toolBusy.slug) throw busy(detail);
    throw new Problem(type satisfies ProblemType, detail, { members, errors });
  }
  const error = new Error(message.message);
  error.stack = message.stack;
  throw error;
}
