// The form in which field errors come back from a worker process or a stored job.
import { z } from 'zod';
import type { FieldError } from '../../../lib/problem.ts';

export const fieldErrors: z.ZodType<FieldError[]> = z.array(
  z.object({
    in: z.enum(['body', 'path', 'query', 'header', 'argument']),
    field: z.string(),
    message: z.string(),
    fix: z.string(),
  }),
);
