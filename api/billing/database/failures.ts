// Which database failures are worth another try.
import { z } from 'zod';

const coded = z.object({ code: z.string() });

/** Serialization failure, deadlock: the server has rolled back, nothing happened. */
const rolledBack = new Set(['40001', '40P01']);
/** The server went away or is not up yet; whether the statement ran is unknown. */
const lost = new Set([
  '08000',
  '08003',
  '08006',
  '57P01',
  '57P02',
  '57P03',
  'ECONNRESET',
  'ECONNREFUSED',
  'EPIPE',
  'ENOENT',
]);
/** What pg says, without a code, of a connection that ended under a query. */
const lostWords = /^(Connection terminated|Client has encountered a connection error)/;

/** Whether to try again. `rolled back` counts only failures after which nothing can have happened. */
export function isTransient(error: unknown, harmless: 'any' | 'rolled back'): boolean {
  const parsed = coded.safeParse(error);
  const code = parsed.success ? parsed.data.code : '';
  if (rolledBack.has(code)) return true;
  if (harmless === 'rolled back') return false;
  return lost.has(code) || (error instanceof Error && lostWords.test(error.message));
}
