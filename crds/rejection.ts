// Why a commit is not served, as a status keeps it.
import { z } from 'zod';

export const rejection = z.object({
  rule: z.string(),
  file: z.string().optional(),
  line: z.int().optional(),
  message: z.string(),
  fix: z.string(),
  log: z.string().max(8_000).optional().describe('Last lines of the log, if there is one.'),
});
