// Months of statements, as `2026-11`, in UTC.
import { z } from 'zod';

export const monthField = z
  .string()
  .regex(/^20\d\d-(0[1-9]|1[0-2])$/, 'must be a month like 2026-11')
  .describe('Month, UTC, like 2026-11.');

/** The first day of a month, `2026-11-01`. */
export function firstDay(month: string): string {
  return `${month}-01`;
}

/** When the month after it begins. */
export function endOf(month: string): Date {
  const [year = 0, number = 1] = month.split('-').map(Number);
  return new Date(Date.UTC(year, number, 1));
}

export function monthOf(time: Date): string {
  return time.toISOString().slice(0, 7);
}
